# `. store.sh [ADDRESS]` starts a PostgreSQL server with the role and the database tollgate,
# and an S3 store at ADDRESS with the bucket tollgate. Sets SERVER, HOST:PORT of the one.
"$TREE/scripts/postgres" run sh -c 'echo "$TOLLGATE_TEST_POSTGRES" >"$TMPDIR/postgres"; exec tail -f /dev/null' >"$TMPDIR/postgres.log" 2>&1 &
if [ $# -gt 0 ]; then
  : "${S3SERVER:?is not there: run the tests with make test, or export TOLLGATE_TEST_S3SERVER as scripts/s3server prints it}"
  mkdir -p "$TMPDIR/files/tollgate" "$TMPDIR/attributes"
  "$S3SERVER" --access tollgate --secret store-password --port "$1" --quiet \
    posix --sidecar "$TMPDIR/attributes" "$TMPDIR/files" >"$TMPDIR/s3.log" 2>&1 &
  until curl -s -o /dev/null "http://$1"; do sleep 0.1; done
fi
until [ -s "$TMPDIR/postgres" ]; do sleep 0.1; done
SERVER=$(sed 's|.*@\([^/]*\)/.*|\1|' "$TMPDIR/postgres")
psql -q "$(cat "$TMPDIR/postgres")" -c "CREATE ROLE tollgate LOGIN PASSWORD 'secret'" -c 'CREATE DATABASE tollgate OWNER tollgate'
