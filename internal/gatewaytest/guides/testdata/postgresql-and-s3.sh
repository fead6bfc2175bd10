### $ psql -q "$PGURL" -c "CREATE ROLE tollgate LOGIN PASSWORD 'secret'"
. "$LIB/store.sh" 127.0.0.1:7070 # needs psql
psql -q "$PGURL" -c 'DROP DATABASE tollgate' -c 'DROP ROLE tollgate'

### ## More than one server
JOB=$(tollgate job list --json | grep -o 'job_[a-z0-9]*')
curl -sf -o /dev/null "$(curl -s "http://127.0.0.1:8080/v1/images/jobs/$JOB" -H "Authorization: Bearer $KEY" | grep -o 'http[^"]*png')"
[ -n "$(find "$TMPDIR/files/tollgate" -type f)" ]
