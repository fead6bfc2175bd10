### $ export OPENAI_API_BASE_URL=http://127.0.0.1:8080/v1
export OFFLINE_MODE=true

### $ curl -sS --retry 50
for try in $(seq 50); do curl -sf http://127.0.0.1:3000/health && break; sleep 1; done

### The total cost:
test "$(head -c 4 lighthouse.png | tail -c 3)" = PNG
