### $ ACCOUNT=$(tollgate account create --name Acme --json | grep -o 'acct_[a-z0-9]*')
tollgate serve >/dev/null 2>&1 &
ready
models() { curl -s http://127.0.0.1:8080/v1/models -H "Authorization: Bearer $KEY"; }

### Users see the new price at `/v1/models`.
until models | grep '"sandbox-chat".*"output":3,"cached_input":0.025.*"sandbox-reasoner"'; do sleep 0.1; done

### The change applies to the next request
until models | grep '"sandbox-chat".*"output":1.6,"cached_input":0.02[,}].*"sandbox-reasoner"'; do sleep 0.1; done
