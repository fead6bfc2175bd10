# `. store.sh ADDRESS` starts a PostgreSQL server with the role and the database tollgate,
# and an S3 store at ADDRESS with the bucket tollgate. Sets SERVER, HOST:PORT of the one.
: "${TOLLGATE_TEST_S3SERVER:?is not set: run the tests with make test, or export it as scripts/s3server prints it}"
"$TREE/scripts/postgres" run sh -c 'echo "$TOLLGATE_TEST_POSTGRES" >"$TMPDIR/postgres"; exec tail -f /dev/null' >"$TMPDIR/postgres.log" 2>&1 &
mkdir -p "$TMPDIR/files/tollgate" "$TMPDIR/attributes"
"$TOLLGATE_TEST_S3SERVER" --access tollgate --secret store-password --port "$1" --quiet \
  posix --sidecar "$TMPDIR/attributes" "$TMPDIR/files" >"$TMPDIR/s3.log" 2>&1 &
until [ -s "$TMPDIR/postgres" ] && curl -s -o /dev/null "http://$1"; do sleep 0.1; done
SERVER=$(sed 's|.*@\([^/]*\)/.*|\1|' "$TMPDIR/postgres")
psql -q "$(cat "$TMPDIR/postgres")" -c "CREATE ROLE tollgate LOGIN PASSWORD 'secret'" -c 'CREATE DATABASE tollgate OWNER tollgate'
