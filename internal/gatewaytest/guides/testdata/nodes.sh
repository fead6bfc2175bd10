# `. nodes.sh` for the guide with three machines: does with three processes at 127.0.0.1,
# 8081 to 8083 behind a Caddy at 8080, what it tells its readers to do. SERVER is the
# database's HOST:PORT (store.sh).

API=http://127.0.0.1:8080

# alone makes the file env, which all machines get, one for processes of this machine.
alone() {
  bash -n database.sh && bash -n node.sh &&
    sed -i "s|//tollgate:.*|//tollgate:secret@$SERVER/tollgate?sslmode=disable|
      s|store.internal:7070|127.0.0.1:7070|
      s|10.0.0.0/24|127.0.0.1/32|
      s|DELAY=3s|DELAY=1s|
      /METRICS_LISTEN/d
      /ADMIN_LISTEN/d
      s|https://api.example.com|$API|" env
}

# ready waits for a node, or the proxy.
ready() { until curl -sf "http://127.0.0.1:$1/readyz"; do sleep 0.05; done; }

# node starts one with the settings of env. Sets NODE, its process.
node() {
  (
    while IFS='=' read -r name value; do export "$name=$value"; done <env
    exec tollgate serve --listen "127.0.0.1:$1" >>"log-$1" 2>&1
  ) &
  NODE=$!
}

# nodes starts all three, and applies the catalog on the first, which makes the tables.
nodes() {
  node 8081 && ONE=$NODE
  node 8082 && TWO=$NODE
  node 8083 && THREE=$NODE
  export TOLLGATE_DATABASE="postgres://tollgate:secret@$SERVER/tollgate?sslmode=disable"
  until curl -sf http://127.0.0.1:8081/healthz; do sleep 0.05; done
  tollgate apply catalog.yaml
  ready 8081 && ready 8082 && ready 8083
}

# proxy starts Caddy with the Caddyfile, for this machine, and makes an account. Sets KEY.
proxy() {
  sed -i 's|^api.example.com {|{\n\tadmin off\n}\nhttp://127.0.0.1:8080 {|
    s|interval 1s|interval 200ms|
    s|node1:8080 node2:8080 node3:8080|127.0.0.1:8081 127.0.0.1:8082 127.0.0.1:8083|' Caddyfile
  caddy run --config Caddyfile >caddy.log 2>&1 &
  ready 8080
  ACCOUNT=$(tollgate account create --name Acme | grep -o 'acct_[a-z0-9]*' | head -n 1)
  tollgate account credit "$ACCOUNT" 5
  KEY=$(tollgate key create "$ACCOUNT" | grep -o '"sk-[A-Za-z0-9]*"' | tr -d '"')
}

# ask streams answers, one after the other, until there is a file stop. answers-N gets the
# status and the last event of each, bad those that did not end well.
ask() {
  while [ ! -e stop ]; do
    curl -sN -o "answer-$1" -w '%{http_code}\n' "$API/v1/chat/completions" -H "Authorization: Bearer $KEY" \
      -d '{"model": "swift", "stream": true, "messages": [{"role": "user", "content": "Hello!"}]}' &&
      tail -n 2 "answer-$1" | head -n 1
    grep -q DONE "answer-$1" || cat "answer-$1" >>bad
  done >"answers-$1"
}

# callers starts four that ask.
callers() {
  for i in 1 2 3 4; do
    ask $i &
    ASKING="$ASKING $!"
  done
}

# restart_all restarts one node after the other, and ends the callers a second later.
restart_all() {
  kill "$ONE"
  wait "$ONE"
  node 8081 && ready 8081
  kill "$TWO"
  wait "$TWO"
  node 8082 && ready 8082
  kill "$THREE"
  wait "$THREE"
  node 8083 && ready 8083
  sleep 1
  touch stop
  wait $ASKING
}

# nobody_noticed fails where a caller was refused, or a stream was cut, for another reason
# than a connection that Caddy itself has closed, or a ledger that was too busy to admit.
nobody_noticed() {
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
