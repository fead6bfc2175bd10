### $ mkdir -m 700 keys
tollgate serve >/dev/null 2>&1 &
ready
. "$LIB/vendor.sh"
OPENAI_KEY=$VENDOR_KEY ANTHROPIC_KEY=$VENDOR_KEY MISTRAL_KEY=$VENDOR_KEY

### $ tollgate apply --dry-run catalog.yaml
vendor catalog.yaml

### Ask each model once:
until tollgate line list | grep mistral; do sleep 0.1; done

### Then set `state: retired` on its model in the catalog, remove the line, and apply:
sed -i '0,/^  - id: mistral$/s//&\n    state: retired/' catalog.yaml
sed -i '/^  - id: mistral$/{N;/provider/{N;N;N;N;d}}' catalog.yaml

### Users who request the model now
until curl -s http://127.0.0.1:8080/v1/chat/completions -H "Authorization: Bearer $KEY" -d '{"model": "mistral"}' | grep disabled; do sleep 0.1; done
