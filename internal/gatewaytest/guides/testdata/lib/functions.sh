# Functions for all guides.

# ready [PORT] waits until a gateway or a proxy is ready.
ready() { until curl -sf "http://127.0.0.1:${1:-8080}/readyz"; do sleep 0.05; done >/dev/null; }

# gateway NAME PORT [FLAG...] starts a second gateway in $TMPDIR/NAME, with the catalog of its
# standard input. It sets ACCOUNT, which has credit.
gateway() {
  local folder=$TMPDIR/$1
  mkdir -p "$folder"
  cat >"$folder/catalog.yaml"
  (cd "$folder" && exec tollgate serve --no-demo --catalog catalog.yaml --listen "127.0.0.1:$2" "${@:3}" >log 2>&1) &
  ready "$2"
  ACCOUNT=$(cd "$folder" && tollgate account create --name customer --json | grep -o 'acct_[a-z0-9]*')
  (cd "$folder" && tollgate account credit "$ACCOUNT" 100)
}

# gateway_key NAME ACCOUNT creates a key and prints it.
gateway_key() {
  (cd "$TMPDIR/$1" && tollgate key create "$2" --json) | grep -o '"sk-[A-Za-z0-9]*"' | tr -d '"'
}
