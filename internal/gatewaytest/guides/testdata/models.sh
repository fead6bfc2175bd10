# Starts a gateway with the models that the reference pages name. Sets GATEWAY, its
# address, and ACCOUNT and KEY to use it with.
mkdir -p "$TMPDIR/models"
sed 's/^ *|//' >"$TMPDIR/models/catalog.yaml" <<'END'
  |models:
  |  - {id: swift-1, kind: chat, forms: [chat, responses, messages], context_window: 128000, max_output_tokens: 16384, price: {input: 0.25, output: 2}}
  |  - {id: easel-1, kind: image, price: {1K: 0.03, 2K: 0.05}, ratios: ["1:1", "16:9"], max_images: 4, max_references: 4}
  |  - {id: reel-1, kind: video, price: {720p: 0.05}, durations: [5, 10], ratios: ["16:9"], max_references: 2}
  |lines:
  |  - {id: sandbox, provider: sandbox, models: {swift-1: sandbox-chat, easel-1: sandbox-image, reel-1: sandbox-video}}
END
(cd "$TMPDIR/models" && exec env -u TOLLGATE_LISTEN tollgate serve --no-demo --catalog catalog.yaml --listen 127.0.0.1:0 --private-networks 127.0.0.0/8 \
  >log 2>&1) &
until GATEWAY=$(sed -n 's/^listening on //p' "$TMPDIR/models/log" 2>/dev/null) && [ -n "$GATEWAY" ]; do sleep 0.05; done
ACCOUNT=$(cd "$TMPDIR/models" && tollgate account create --name reader | grep -o 'acct_[a-z0-9]*' | head -n 1)
(cd "$TMPDIR/models" && tollgate account credit "$ACCOUNT" 100 >/dev/null)
KEY=$(cd "$TMPDIR/models" && tollgate key create "$ACCOUNT" --json | grep -o '"sk-[A-Za-z0-9]*"' | tr -d '"')
