### ```yaml catalog.yaml
. "$LIB/vendor.sh"
OLD=$VENDOR_KEY
NEW=$(vendor_key)

### $ mkdir -m 700 keys
vendor catalog.yaml

### $ echo "$NEW" > keys/openai
KEY=$(tollgate key create "$ACCOUNT" --json | grep -o '"sk-[A-Za-z0-9]*"' | tr -d '"')
ask() {
  [ "$(curl -s -o /dev/null -w '%{http_code}' http://127.0.0.1:8080/v1/chat/completions -H "Authorization: Bearer $KEY" \
    -d '{"model": "gpt", "messages": [{"role": "user", "content": "Hello!"}]}')" = 200 ]
}
ask

### $ tollgate line list
ask
vendor_withdraw "$OLD"
ask

### $ grep api_keys catalog.yaml
OLD=$NEW
NEW=$(vendor_key)
echo "$OLD" >keys/openai-old
echo "$NEW" >keys/openai-new
sed -i 's|api_key: .*|api_keys: ["${file:keys/openai-new}", "${file:keys/openai-old}"]|' catalog.yaml

### ## The operator's token
until curl -s http://127.0.0.1:8080/admin/v1/lines -H "Authorization: Bearer $(cat admin-token)" | grep '"keys"'; do sleep 0.1; done
ask
vendor_withdraw "$OLD"
ask

### From now on this node accepts only the new token
until curl -sf -o /dev/null http://127.0.0.1:8080/admin/v1/lines -H "Authorization: Bearer $(cat admin-token)"; do sleep 0.05; done
