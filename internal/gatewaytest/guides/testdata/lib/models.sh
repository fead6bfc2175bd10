# Starts a gateway with the models of the reference pages. Sets GATEWAY, its address, and
# ACCOUNT and KEY.
GATEWAY=http://127.0.0.1:8181
gateway models 8181 --private-networks 127.0.0.0/8 <<'END'
models:
  - {id: swift-1, kind: chat, forms: [chat, responses, messages, gemini], context_window: 128000, max_output_tokens: 16384, price: {input: 0.25, output: 2}}
  - {id: easel-1, kind: image, price: {1K: 0.03, 2K: 0.05}, ratios: ["1:1", "16:9"], max_images: 4, max_references: 4}
  - {id: reel-1, kind: video, price: {720p: 0.05}, durations: [5, 10], ratios: ["16:9"], max_references: 2}
lines:
  - {id: sandbox, provider: sandbox, models: {swift-1: sandbox-chat, easel-1: sandbox-image, reel-1: sandbox-video}}
END
KEY=$(gateway_key models "$ACCOUNT")
