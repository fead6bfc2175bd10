### $ export OPENAI_API_KEY=sk-… ANTHROPIC_API_KEY=sk-ant-… GEMINI_API_KEY=AIza…
kill $!
wait $!
ln -s "$TREE/docs" docs

### $ sha256sum --check --ignore-missing SHA256SUMS
mkdir tollgate_v1_linux_amd64
cp -rL "$(command -v tollgate)" "$TREE/docs" tollgate_v1_linux_amd64/
tar -czf tollgate_v1_linux_amd64.tar.gz tollgate_v1_linux_amd64
sha256sum *.tar.gz >SHA256SUMS
rm -r tollgate_v1_linux_amd64
