# check_receiver tests a receiver of events at port 9000 that writes into the file received,
# and ends it: it must reject forged, old and malformed events, drop repeated ones, and keep
# running. The receiver must be the last background process. Needs openssl, ACCOUNT and
# WEBHOOK_SECRET.

# send_event ID AGE [BYTES] [SIGNATURE] posts an event that was signed AGE seconds ago, and
# prints the status.
send_event() {
  local key stamp=$(($(date +%s) - $2)) body=$TMPDIR/event
  printf '%-*s' "${3:-0}" '{"type":"proof","data":{"status":"sent"}}' >"$body"
  key=$(echo "${WEBHOOK_SECRET#whsec_}" | base64 -d | od -An -tx1 | tr -d ' \n')
  curl -s -o /dev/null -w '%{http_code}' http://127.0.0.1:9000/ -H "webhook-id: $1" -H "webhook-timestamp: $stamp" -H 'Expect:' \
    -H "webhook-signature: ${4:-v1,$({ printf %s "$1.$stamp." && cat "$body"; } |
      openssl dgst -sha256 -mac HMAC -macopt "hexkey:$key" -binary | base64)}" --data-binary @"$body"
}

# send_part TEXT sends the beginning of a request and disconnects.
send_part() { (exec 9<>/dev/tcp/127.0.0.1/9000 && printf "POST / HTTP/1.1\r\nHost: receiver\r\n$1" >&9); }

check_receiver() {
  [ "$(send_event evt_forged 0 0 v1,AAAA)" = 400 ] &&
    [ "$(send_event evt_stale 310)" = 400 ] &&
    [ "$(send_event evt_ahead -310)" = 400 ] &&
    [ "$(send_event evt_long 0 2000000)" != 204 ] &&
    send_part 'Content-Length: -1\r\n\r\n' &&
    send_part 'Content-Length: 10\r\n\r\nab' &&
    send_part 'Transfer-Encoding: chunked\r\n\r\n5\r\nabc' &&
    tollgate webhook resend "$(tollgate webhook deliveries "$ACCOUNT" --json | grep -o -m 1 'dlv_[a-z0-9]*')" &&
    [ "$(send_event evt_fresh 0)" = 204 ] || return 1
  until grep -q 'verified proof sent' received; do sleep 0.1; done # the receiver has read all earlier events
  [ "$(grep -c verified received)" = 3 ] || return 1
  kill $!
  wait $! || true
}
