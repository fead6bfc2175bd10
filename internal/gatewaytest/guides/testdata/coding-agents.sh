### $ export GATEWAY_API_KEY=sk-…
git init --quiet

### $ npm install -g @openai/codex
mkdir ~/.codex
mv config.toml ~/.codex

### $ npm install -g @google/gemini-cli
mkdir ~/.gemini
mv settings.json ~/.gemini
