### $ sqlite3 data/tollgate.db ".backup 'backup.db'"
tollgate serve >/dev/null 2>&1 &
PID=$!
ready
tollgate account create --name Acme

### $ sh nightly.sh
tollgate account create --name Night
sh nightly.sh >/dev/null

### Run the script from cron
sh nightly.sh # again on the same day
cp audit.json before.json
sed -i 's/"accounts": 3/"accounts": 4/' audit.json
! sh nightly.sh || false
mv before.json audit.json
rm audit.new

### $ kill $PID
tollgate account credit "$(tollgate account list --q Acme --json | grep -o 'acct_[a-z0-9]*')" 5

### $ pg_dump --format=custom --file=backup.dump "$DATABASE_URL"
. "$LIB/store.sh" # needs psql
RESTORED_URL="postgres://tollgate:secret@$SERVER/restored?sslmode=disable"
tollgate serve --database "$DATABASE_URL" >/dev/null 2>&1 &
PID=$!
ready

### Do not restore a backup to go back
kill $PID
wait $PID
cp data/tollgate.db newer.db
sqlite3 newer.db "INSERT INTO goose_db_version (version_id, is_applied) VALUES (9000, 1)"
tollgate serve --database sqlite:newer.db >newer.log 2>&1 &
ready
tollgate audit --database sqlite:newer.db | grep '"ok": true'
kill $!
wait $!
sqlite3 newer.db "UPDATE store_schema SET compatible_since = 9000"
! tollgate audit --database sqlite:newer.db 2>newer.error || false
! tollgate serve --database sqlite:newer.db 2>>newer.error || false
test "$(wc -l <newer.error)" = 2
grep 'this binary is older than the database' newer.error
