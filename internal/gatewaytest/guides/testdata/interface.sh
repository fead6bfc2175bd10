#= https://gateway.example.com http://127.0.0.1:8181
#= 1700000000 …
#= https://example.com/hat.png data:image/png;base64,iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAQAAAC1HAwCAAAAC0lEQVR42mNk+A8AAQUBAScY42YAAAAASUVORK5CYII=

### $ curl https://gateway.example.com/v1/images/generations
. "$LIB/models.sh"
echo "$KEY"

### {"id":"evt_…","object":"event","type":"image.completed"
python3 -c '
import http.server, os
class Receiver(http.server.BaseHTTPRequestHandler):
    def do_POST(self):
        open("part", "wb").write(self.rfile.read(int(self.headers["Content-Length"])))
        os.rename("part", "event")
        self.send_response(204)
        self.end_headers()
server = http.server.HTTPServer(("127.0.0.1", 9000), Receiver)
open("waiting", "w")
server.handle_request()' >receiver 2>&1 &
until test -e waiting; do sleep 0.1; done
(cd "$TMPDIR/models" && tollgate webhook set "$ACCOUNT" --url http://127.0.0.1:9000/ --events image.completed --private-networks 127.0.0.0/8) >webhook
curl -sS "$GATEWAY/v1/images/generations" -H "Authorization: Bearer $KEY" -d '{"model": "easel-1", "prompt": "a hat"}' >submitted
until test -s event; do sleep 0.1; done
cat event

### {"error": {"message"
ask() { curl -sS "$GATEWAY$1" -H "Authorization: Bearer $KEY" -d '{"model": "swift-1", "max_tokens": 9, "messages": '"$2"'}'; }
user='{"role": "user", "content": "Hello!"}'
ask /v1/chat/completions "[$user, $user, {\"role\": \"x\"}]"

### {"type": "error", "error"
ask /native/v1/messages '[]'

### {"error": {"code"
curl -sS "$GATEWAY/v1beta/models/swift-1:generateContent" -H "x-goog-api-key: $KEY" -d '{"contents": [{"role": "x", "parts": [{"text": "Hello!"}]}]}'
