#= https://one-api.example http://127.0.0.1:8888
#= postgres://litellm@db/litellm $DATABASE_URL

### $ tollgate import one-api one-api.db --dry-run
FIXTURES=$TREE/internal/importer/testdata
sqlite3 one-api.db <"$FIXTURES/one-api.sqlite.sql"
echo '{"models": [], "lines": []}' >none.yaml
tollgate apply none.yaml
mkdir -p other/api/option
echo '{"success":true,"data":[{"key":"ModelRatio","value":"{\"gpt-4o\":2}"},{"key":"QuotaPerUnit","value":"500000"}]}' >other/api/option/index.html
python3 -u -m http.server --directory other --bind 127.0.0.1 8888 >log 2>&1 &
. "$LIB/store.sh" # needs psql

### The import only reads the other gateway's database
tollgate apply imported.yaml
tollgate audit

### $ tollgate import litellm postgres://litellm@db/litellm
cp "$FIXTURES/litellm.config.yaml" config.yaml
cp "$FIXTURES/litellm.models.json" model_prices_and_context_window.json
psql -q -v ON_ERROR_STOP=1 "$DATABASE_URL" <"$FIXTURES/litellm.postgres.sql"
