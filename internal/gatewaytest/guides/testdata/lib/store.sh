# `. store.sh [ADDRESS]` starts a PostgreSQL server with the role and the database tollgate,
# and an S3 store at ADDRESS with the bucket tollgate. Sets SERVER, the HOST:PORT of
# PostgreSQL, DATABASE_URL of the role, and PGURL of the administrator.
"$TREE/scripts/postgres" run sh -c 'echo "$TOLLGATE_TEST_POSTGRES" >"$TMPDIR/postgres"; exec tail -f /dev/null' >"$TMPDIR/postgres.log" 2>&1 &
if [ $# -gt 0 ]; then
  [ -n "${S3SERVER:-}" ] || { echo 'Run the tests with make test, or export TOLLGATE_TEST_S3SERVER=$(scripts/s3server).'; false; }
  mkdir -p "$TMPDIR/files/tollgate" "$TMPDIR/attributes"
  "$S3SERVER" --access tollgate --secret store-password --port "$1" --quiet \
    posix --sidecar "$TMPDIR/attributes" "$TMPDIR/files" >"$TMPDIR/s3.log" 2>&1 &
  until curl -s -o /dev/null "http://$1"; do sleep 0.1; done
fi
until [ -s "$TMPDIR/postgres" ]; do sleep 0.1; done
SERVER=$(sed 's|.*@\([^/]*\)/.*|\1|' "$TMPDIR/postgres")
PGURL=postgres://postgres@$SERVER/postgres?sslmode=disable
DATABASE_URL=postgres://tollgate:secret@$SERVER/tollgate?sslmode=disable
psql -q "$PGURL" -c "CREATE ROLE tollgate LOGIN PASSWORD 'secret'" -c 'CREATE DATABASE tollgate OWNER tollgate'
