# Starts a gateway with the sandbox instead of the providers that guides use. Sets VENDOR, its
# address, and VENDOR_KEY.
VENDOR=http://127.0.0.1:8282
gateway vendor 8282 <<'END'
models:
  - {id: gpt-6-sol, kind: chat, forms: [chat, responses], context_window: 128000, max_output_tokens: 16384, price: {input: 2, output: 10}}
  - {id: claude-opus-5-5, kind: chat, forms: [messages], context_window: 128000, max_output_tokens: 16384, price: {input: 4, output: 20}}
  - {id: mistral-large-4, kind: chat, forms: [chat], context_window: 128000, max_output_tokens: 16384, price: {input: 0.7, output: 2.1}}
lines:
  - id: sandbox
    provider: sandbox
    models: {gpt-6-sol: sandbox-chat, claude-opus-5-5: sandbox-messages, mistral-large-4: sandbox-chat}
END
VENDOR_ACCOUNT=$ACCOUNT

# vendor_key creates another key of the provider and prints it.
vendor_key() { gateway_key vendor "$VENDOR_ACCOUNT"; }
VENDOR_KEY=$(vendor_key)

# vendor_withdraw KEY deletes a key of the provider.
vendor_withdraw() {
  (cd "$TMPDIR/vendor" && id=$(tollgate key list "$VENDOR_ACCOUNT" --json | tr -d ' \n' |
    grep -o "\"id\":\"key_[a-z0-9]*\",[^}]*\"hint\":\"${1:0:7}" | grep -o 'key_[a-z0-9]*' | tail -n 1) && tollgate key delete "$id")
}

# vendor FILE... replaces the addresses of providers in catalogs.
vendor() {
  sed -i "s|https://api.openai.com/v1|$VENDOR/v1|; s|https://api.mistral.ai/v1|$VENDOR/v1|; s|https://api.anthropic.com|$VENDOR/native|" "$@"
}
