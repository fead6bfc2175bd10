# The service that docs/operator.md commands: two lines of chat, the first of which
# answers 500, one of pictures and clips, and a receiver of events at HOOK, all on a
# terminal of 80 columns. Sets CONFIG, the file of its settings, and what `with` names.
. "$TREE/internal/gatewaytest/guides/testdata/vendor.sh"
mkdir -p "$TMPDIR/operator"
sed 's/^ *|//' >"$TMPDIR/operator/catalog.yaml" <<'END'
  |models:
  |  - {id: swift-1, kind: chat, forms: [chat, responses], context_window: 128000, max_output_tokens: 1000, price: {input: 0.25, output: 2}}
  |  - {id: swift-2, kind: chat, state: maintenance, context_window: 128000, max_output_tokens: 1000, price: {input: 0.25, output: 2}}
  |  - {id: easel-1, kind: image, price: {1K: 0.03}}
  |  - {id: reel-1, kind: video, price: {720p: 0.05}, durations: [5, 10]}
  |lines:
  |  - {id: first, provider: sandbox, models: {swift-1: sandbox-chat}, options: {fail: unavailable}}
  |  - {id: second, provider: sandbox, models: {swift-1: sandbox-chat}, priority: 2, cost: {input: 0.15, output: 0.6}}
  |  - id: media
  |    provider: sandbox
  |    models: {easel-1: sandbox-image, reel-1: sandbox-video}
  |    options: {fail: render_failed, fail_on: "fail:([a-z_]+)"}
END

CONFIG=$TMPDIR/operator/tollgate.yaml
echo "admin_token: operator-token-for-this-page" >"$CONFIG"
export TOLLGATE_PUBLIC_URL=https://gate.example TOLLGATE_PRIVATE_NETWORKS=127.0.0.0/8 EXAMPLE_API_KEY=$VENDOR_KEY
TOLLGATE_CONFIG=$CONFIG tollgate serve --no-demo --catalog "$TMPDIR/operator/catalog.yaml" >"$TMPDIR/operator/log" 2>&1 &
python3 - >"$TMPDIR/operator/hook" <<'END' &
import http.server

class Receiver(http.server.BaseHTTPRequestHandler):
    def do_POST(self):
        self.rfile.read(int(self.headers["Content-Length"]))
        self.send_response(204)
        self.end_headers()
    def log_message(self, *args):
        pass

server = http.server.HTTPServer(("127.0.0.1", 0), Receiver)
print("http://127.0.0.1:%d/hook" % server.server_port, flush=True)
server.serve_forever()
END
API=http://${TOLLGATE_LISTEN:-127.0.0.1:8080}
until curl -sf "$API/readyz"; do sleep 0.1; done
until HOOK=$(cat "$TMPDIR/operator/hook") && [ -n "$HOOK" ]; do sleep 0.1; done

tollgate() { # on a narrower terminal than those of the other guides
  stty cols 80 2>/dev/null
  command tollgate "$@"
}

FIRST=$(date -u -d yesterday +%F) LAST=$(date -u -d tomorrow +%F) LATER=$(date -u -d '+30 days' +%F)
account() { tollgate account list --json | grep -o 'acct_[a-z0-9]*'; }
user() { grep -o -m 1 'user_[a-z0-9]*' "$SEEN"; }
key() { grep -o -m 1 'key_[a-z0-9]*' "$SEEN"; }
hint() { sed -n 's/^hint *//p' "$SEEN"; }
code() { grep -o -m 1 'code_[a-z0-9]*' "$SEEN"; }

post() { # post PATH BODY sends a request of the account
  : "${KEY:=$(tollgate key create "$(account)" --json | grep -o '"sk-[A-Za-z0-9]*"' | tr -d '"')}"
  curl -s "$API$1" -H "Authorization: Bearer $KEY" -H "Idempotency-Key: $RANDOM$RANDOM" -d "$2"
}
ask() { post /v1/chat/completions "{\"model\":\"${1:-swift-1}\",\"messages\":[{\"role\":\"user\",\"content\":\"Say hi!\"}]}"; }
job() { # job KIND MODEL PROMPT STATUS submits a job and waits until it is so far; sets JOB
  local submitted
  submitted=$(post "/v1/$1/generations" "{\"model\":\"$2\",\"prompt\":\"$3\"}")
  JOB=$(grep -o 'job_[a-z0-9]*' <<<"$submitted") || { echo "$submitted"; return 1; }
  until curl -s "$API/v1/$1/jobs/$JOB" -H "Authorization: Bearer $KEY" | grep -q "\"status\":\"$4\""; do sleep 0.1; done
}
of_fal() { # of_fal FILE prints a catalog with a line whose options stand in the file
  printf '%s\n' 'models: [{id: easel-1, kind: image, price: {1K: 0.03}}]' 'lines:' '  - id: fal' '    provider: fal' \
    '    api_key: ${EXAMPLE_API_KEY}' '    models: {easel-1: fal-ai/nano-banana-pro}'
  sed 's/^/    /' "$1"
}
