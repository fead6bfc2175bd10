#= 2026-11-01 $FIRST
#= 2026-11-30 $LAST
#= 2026-12-31 $LATER
#= 0GnUhRVF0yHFBQxoIeTC43xVwwzm8R53SLvOe8zcXp8 …
#= 5D0T4 …
#= req_01m84y5mtdhq7b7rxhdq1sb1cg $REQUEST
#= job_01m84x9t4e8n5kq0rz3w6c1bva $RUNNING
#= job_01m84xa2m7d9f6gs4yh8x0jtpe $DONE
#= /etc/tollgate.yaml $CONFIG
#= https://example.com/hook http://127.0.0.1:9000/hook

### $ tollgate account create --name "Acme & Co"
# The catalog has two lines for chat, of which the first one answers 500, and one for images
# and videos.
. "$LIB/vendor.sh"
cat >start.yaml <<'END'
models:
  - {id: swift-1, kind: chat, forms: [chat, responses], context_window: 128000, max_output_tokens: 1000, price: {input: 0.25, output: 2}}
  - {id: swift-2, kind: chat, state: maintenance, context_window: 128000, max_output_tokens: 1000, price: {input: 0.25, output: 2}}
  - {id: easel-1, kind: image, price: {1K: 0.03}}
  - {id: reel-1, kind: video, price: {720p: 0.05}, durations: [5, 10]}
lines:
  - {id: first, provider: sandbox, models: {swift-1: sandbox-chat}, options: {fail: unavailable}}
  - {id: second, provider: sandbox, models: {swift-1: sandbox-chat}, priority: 2, cost: {input: 0.15, output: 0.6}}
  - id: media
    provider: sandbox
    models: {easel-1: sandbox-image, reel-1: sandbox-video}
    options: {fail: render_failed, fail_on: "fail:([a-z_]+)"}
END
CONFIG=$PWD/tollgate.yaml
echo "admin_token: operator-token-for-this-page" >"$CONFIG"
export TOLLGATE_PUBLIC_URL=https://gate.example TOLLGATE_PRIVATE_NETWORKS=127.0.0.0/8 EXAMPLE_API_KEY=$VENDOR_KEY
TOLLGATE_CONFIG=$CONFIG tollgate serve --no-demo --catalog start.yaml >log 2>&1 &
ready
python3 -c '
import http.server

class Receiver(http.server.BaseHTTPRequestHandler):
    def do_POST(self):
        self.rfile.read(int(self.headers["Content-Length"]))
        self.send_response(204)
        self.end_headers()

http.server.HTTPServer(("127.0.0.1", 9000), Receiver).serve_forever()' >receiver 2>&1 &

tollgate() { # on a narrower terminal than in other guides
  stty cols 80 2>/dev/null
  command tollgate "$@"
}

FIRST=$(date -u -d yesterday +%F) LAST=$(date -u -d tomorrow +%F) LATER=$(date -u -d '+30 days' +%F)

# post PATH BODY sends a request of the account.
post() {
  curl -s "http://127.0.0.1:8080$1" -H "Authorization: Bearer $KEY" -H "Idempotency-Key: $RANDOM$RANDOM" -d "$2"
}
ask() { post /v1/chat/completions "{\"model\":\"${1:-swift-1}\",\"messages\":[{\"role\":\"user\",\"content\":\"Say hi!\"}]}"; }
# job KIND MODEL PROMPT STATUS submits a job and waits for the status. It sets JOB.
job() {
  local submitted
  submitted=$(post "/v1/$1/generations" "{\"model\":\"$2\",\"prompt\":\"$3\"}")
  JOB=$(grep -o 'job_[a-z0-9]*' <<<"$submitted" | head -n 1)
  [ -n "$JOB" ] || { echo "$submitted"; return 1; }
  until curl -s "http://127.0.0.1:8080/v1/$1/jobs/$JOB" -H "Authorization: Bearer $KEY" | grep -q "\"status\":\"$4\""; do sleep 0.1; done
}

### After a first request
KEY=$(tollgate key create "$(tollgate account list --json | grep -o 'acct_[a-z0-9]*')" --json | grep -o '"sk-[A-Za-z0-9]*"' | tr -d '"')
ask

### **user.**
grep -c charge acme-november.csv

### **usage.**
wc -l <codes.csv | grep -x 101
ask

### **request.**
grep Acme november.csv | grep swift-1
REQUEST=$(tollgate request list --json | grep -o 'req_[a-z0-9]*' | tail -n 1)
ask swift-2
until tollgate request list --status 503 | grep swift-2; do sleep 0.1; done

### **job.**
job images easel-1 "a cat" succeeded
DONE=$JOB
job videos reel-1 "a cat fail:render_failed" failed
job videos reel-1 "a cat fail:never" processing
RUNNING=$JOB

### **line.**
until [ "$(tollgate line list --json | grep -c '"success_rate": [01],')" = 4 ]; do sleep 0.3; done

### **completion.**
mkdir -p ~/.config/fish/completions

### ## First start
complete -p tollgate
grep 'complete.* tollgate' ~/.config/fish/completions/tollgate.fish

### - Defaults are in the comments
sed "s|https://api.example.com/v1|$VENDOR/v1|; s|vendor-swift-2026-05|gpt-6-sol|" catalog.yaml | tollgate apply --yes - | grep 'revision 2 is current'
until ask | grep 'Say hi!' && tollgate request list --limit 1 --json | tr -d '\n ' | grep '"line":"main".*"cost_usd":"*0.0000295'; do sleep 0.3; done

### (end)
{
  printf '%s\n' 'models: [{id: easel-1, kind: image, price: {1K: 0.03}}]' 'lines:' '  - id: fal' '    provider: fal' \
    '    api_key: ${EXAMPLE_API_KEY}' '    models: {easel-1: fal-ai/nano-banana-pro}'
  sed 's/^/    /' options.yaml
} | tollgate apply --dry-run -
