# Takes the place of vendors: a second tollgate with the sandbox behind the models that
# guides use. Sets VENDOR, its address, and VENDOR_KEY; `vendor FILE...` puts it into
# catalogs in place of the vendors' addresses, vendor_key and vendor_withdraw are keys.
. "$TREE/internal/gatewaytest/guides/testdata/gateway.sh"
gateway vendor <<'END'
  |models:
  |  - {id: gpt-6-sol, kind: chat, forms: [chat, responses], context_window: 128000, max_output_tokens: 16384, price: {input: 2, output: 10}}
  |  - {id: claude-opus-5-5, kind: chat, forms: [messages], context_window: 128000, max_output_tokens: 16384, price: {input: 4, output: 20}}
  |  - {id: mistral-large-4, kind: chat, forms: [chat], context_window: 128000, max_output_tokens: 16384, price: {input: 0.7, output: 2.1}}
  |lines:
  |  - id: sandbox
  |    provider: sandbox
  |    models: {gpt-6-sol: sandbox-chat, claude-opus-5-5: sandbox-messages, mistral-large-4: sandbox-chat}
END
VENDOR=$STARTED vendor_account=$CUSTOMER
vendor_key() { gateway_key vendor "$vendor_account"; } # makes another key and prints it
vendor_withdraw() { # a key is refused from now on
  (cd "$TMPDIR/vendor" && id=$(tollgate key list "$vendor_account" --json | tr -d ' \n' |
    grep -o "\"id\":\"key_[a-z0-9]*\",[^}]*\"hint\":\"${1:0:7}" | grep -o 'key_[a-z0-9]*' | tail -n 1) && tollgate key delete "$id")
}
VENDOR_KEY=$(vendor_key)
vendor() {
  sed -i "s|https://api.openai.com/v1|$VENDOR/v1|; s|https://api.mistral.ai/v1|$VENDOR/v1|; s|https://api.anthropic.com|$VENDOR/native|" "$@"
}
