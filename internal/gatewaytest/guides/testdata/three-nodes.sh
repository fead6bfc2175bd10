### The first node has created the tables.
# The guide's machines are three processes, with Caddy at port 8080 before ports 8081 to 8083.
. "$LIB/store.sh" 127.0.0.1:7070 # needs psql
bash -n database.sh
bash -n node.sh
sed -i "s|//tollgate:.*|//tollgate:secret@$SERVER/tollgate?sslmode=disable|
  s|store.internal:7070|127.0.0.1:7070|
  s|10.0.0.0/24|127.0.0.1/32|
  s|DELAY=3s|DELAY=1s|
  /METRICS_LISTEN/d
  /ADMIN_LISTEN/d
  s|https://api.example.com|http://127.0.0.1:8080|" env

### ## 3. The proxy
# start PORT starts a node with the settings of env.
start() {
  (
    while IFS='=' read -r name value; do export "$name=$value"; done <env
    exec tollgate serve --listen "127.0.0.1:$1" >>"log-$1" 2>&1
  ) &
}
start 8081; PID1=$!
start 8082; PID2=$!
start 8083; PID3=$!
export TOLLGATE_DATABASE=$DATABASE_URL
until curl -sf http://127.0.0.1:8081/healthz; do sleep 0.05; done
tollgate apply catalog.yaml
ready 8081
ready 8082
ready 8083

### Send a request through the proxy
sed -i 's|^api.example.com {|{\n\tadmin off\n}\nhttp://127.0.0.1:8080 {|
  s|interval 1s|interval 200ms|
  s|node1:8080 node2:8080 node3:8080|127.0.0.1:8081 127.0.0.1:8082 127.0.0.1:8083|' Caddyfile
caddy run --config Caddyfile >caddy.log 2>&1 &
ready 8080
ACCOUNT=$(tollgate account create --name Acme --json | grep -o 'acct_[a-z0-9]*')
tollgate account credit "$ACCOUNT" 5
KEY=$(tollgate key create "$ACCOUNT" --json | grep -o '"sk-[A-Za-z0-9]*"' | tr -d '"')
API=http://127.0.0.1:8080

### Meanwhile no request was refused
# client N streams one answer after the other until the file stop exists. answers-N gets the
# status and the last event of each answer, bad the incomplete answers.
client() {
  while [ ! -e stop ]; do
    curl -sN -o "answer-$1" -w '%{http_code}\n' "$API/v1/chat/completions" -H "Authorization: Bearer $KEY" \
      -d '{"model": "swift", "stream": true, "messages": [{"role": "user", "content": "Hello!"}]}' &&
      tail -n 2 "answer-$1" | head -n 1
    grep -q DONE "answer-$1" || cat "answer-$1" >>bad
  done >"answers-$1"
}
CLIENTS=
for n in 1 2 3 4; do
  client $n &
  CLIENTS="$CLIENTS $!"
done
kill $PID1; wait $PID1; start 8081; ready 8081
kill $PID2; wait $PID2; start 8082; ready 8082
kill $PID3; wait $PID3; start 8083; ready 8083
sleep 1
touch stop
wait $CLIENTS

# check fails if a request was refused or a stream was cut, unless Caddy itself closed the
# connection, or the ledger was too busy for the admission.
check() {
  grep -c DONE answers-*
  local other own busy
  other=$(cat answers-* | grep -vc '^200$\|DONE')
  own=$(grep -c 'aborting.*use of closed network connection' caddy.log)
  busy=$(cat log-* | grep -c 'no batch has taken the admission')
  ! grep aborting caddy.log | grep -v 'use of closed network connection' &&
    [ "$(cat answers-* | grep -cx '[013-9]..')" -le "$busy" ] &&
    [ "$other" -le $((own + 2 * busy)) ] &&
    [ "$(cat answers-* | grep -c DONE)" -ge 8 ] ||
    {
      cat bad
      grep -h 'level=[EW]' log-*
      false
    }
}
check
