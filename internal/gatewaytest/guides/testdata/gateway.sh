# `gateway NAME [FLAG...]` starts a second tollgate beside that of a guide's reader, with the
# catalog of its standard input (lines begin with |), in the folder NAME below TMPDIR. Sets
# STARTED, its address, and CUSTOMER, an account of it with credit; `gateway_key NAME ACCOUNT`
# makes a key and prints it.
gateway() {
  local folder=$TMPDIR/$1
  mkdir -p "$folder"
  sed 's/^ *|//' >"$folder/catalog.yaml"
  (cd "$folder" && exec env -u TOLLGATE_LISTEN tollgate serve --no-demo --catalog catalog.yaml --listen 127.0.0.1:0 "${@:2}" >log 2>&1) &
  until STARTED=$(sed -n 's/^listening on //p' "$folder/log" 2>/dev/null) && [ -n "$STARTED" ]; do sleep 0.05; done
  CUSTOMER=$(cd "$folder" && tollgate account create --name customer | grep -o 'acct_[a-z0-9]*' | head -n 1)
  (cd "$folder" && tollgate account credit "$CUSTOMER" 100 >/dev/null)
}
gateway_key() {
  (cd "$TMPDIR/$1" && tollgate key create "$2" --json) | grep -o '"sk-[A-Za-z0-9]*"' | tr -d '"'
}
