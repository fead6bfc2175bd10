# For guides about receivers of events: `proved PID ADDRESS` sees that the one which
# writes into the file received refuses what it should, drops what comes again, and goes
# on; then it ends it. It needs openssl, ACCOUNT and WEBHOOK_SECRET.

# sent ID AGE [BYTES] [SIGNATURE] posts an event of so many bytes that was signed AGE
# seconds ago, and prints the status.
sent() {
  local key stamp=$(($(date +%s) - $2)) body=$TMPDIR/event
  printf '%-*s' "${3:-0}" '{"type":"proof","data":{"status":"sent"}}' >"$body"
  key=$(echo "${WEBHOOK_SECRET#whsec_}" | base64 -d | od -An -tx1 | tr -d ' \n')
  curl -s -o /dev/null -w '%{http_code}' "$address" -H "webhook-id: $1" -H "webhook-timestamp: $stamp" -H 'Expect:' --data-binary @"$body" \
    -H "webhook-signature: ${4:-v1,$({ printf %s "$1.$stamp." && cat "$body"; } |
      openssl dgst -sha256 -mac HMAC -macopt "hexkey:$key" -binary | base64)}"
}

# begun TEXT sends the beginning of a request, and is gone.
begun() {
  local at=${address#http://}
  at=${at%/}
  (exec 9<>"/dev/tcp/${at%:*}/${at#*:}" && printf "POST / HTTP/1.1\r\nHost: receiver\r\n$1" >&9)
}

proved() {
  local address=$2
  [ "$(sent evt_forged 0 0 v1,AAAA)" = 400 ] || return 1
  [ "$(sent evt_stale 310)" = 400 ] || return 1
  [ "$(sent evt_ahead -310)" = 400 ] || return 1
  [ "$(sent evt_long 0 2000000)" != 204 ] || return 1
  begun 'Content-Length: -1\r\n\r\n' || return 1
  begun 'Content-Length: 10\r\n\r\nab' || return 1
  begun 'Transfer-Encoding: chunked\r\n\r\n5\r\nabc' || return 1
  tollgate webhook resend "$(tollgate webhook deliveries "$ACCOUNT" --json | grep -o 'dlv_[a-z0-9]*' | head -n 1)" || return 1
  [ "$(sent evt_fresh 0)" = 204 ] || return 1
  until grep -q 'verified proof sent' received; do sleep 0.1; done # what came before has been seen too
  [ "$(grep -c verified received)" = 3 ] || return 1
  kill "$1"
  wait "$1"
  true
}
