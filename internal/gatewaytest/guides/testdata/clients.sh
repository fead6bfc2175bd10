#= https://gateway.example.com http://127.0.0.1:8181

### $ export OPENAI_BASE_URL=https://gateway.example.com/v1
. "$LIB/models.sh"
echo "$KEY"
python3 -m venv venv && . venv/bin/activate && pip install --quiet openai anthropic google-genai && npm install openai @anthropic-ai/sdk @google/genai
answers() { grep -q 'You said: Hello!$' || { echo "not the answer"; return 1; }; }
go_run() { (cd "$TREE/clients" && go run "$OLDPWD/$1"); }

### ```js ask.mjs
python ask.py | answers
python -c '
import openai
print(openai.OpenAI().responses.create(model="swift-1", input="Hello!").output_text)' | answers

### ```go ask.go
node ask.mjs | answers

### $ export ANTHROPIC_BASE_URL=https://gateway.example.com/native
go_run ask.go | answers

### ```js message.mjs
python message.py | answers
python -c '
import anthropic
messages = [{"role": "user", "content": "Hello!"}]
print(anthropic.Anthropic().messages.create(model="swift-1", max_tokens=1000, messages=messages).content[0].text)' | answers

### ```go message.go
node message.mjs | answers

### ```python content.py
go_run message.go | answers

### ```js content.mjs
python content.py | answers

### ## Images and videos
node content.mjs | answers

### With a key that waits:
python hat.py
test "$(head -c 4 hat.png | tail -c 3)" = PNG

### ```go clip.go
python edit.py | grep '^http.*/media/.*[.]png$'

### With Go's `client.Images.Generate`
go_run clip.go | grep '^http.*/media/.*[.]mp4$'
