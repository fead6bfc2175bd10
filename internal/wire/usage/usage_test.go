package usage

import (
	"testing"

	"tollgate/internal/wire"
	"tollgate/internal/wire/internal/wiretest"
)

// FuzzReported checks that the usage is consistent in every form, whatever a provider sends.
func FuzzReported(f *testing.F) {
	for _, seed := range []string{
		`{"error":{}}`, `{"delta":[`, `{"usage":{"prompt_tokens":1e99,"completion_tokens":-1}}`,
		`{"usage":{"input_tokens":5,"cache_read_input_tokens":9}}`,
		`[{"usageMetadata":{"promptTokenCount":3,"thoughtsTokenCount":1e9}}]`,
		`{"usage":{"input_tokens":5,"input_tokens_details":{"cached_tokens":7}}}`,
	} {
		f.Add([]byte(seed), []byte("{}"))
	}
	f.Fuzz(func(t *testing.T, first, second []byte) {
		for _, form := range []wire.Form{"", wire.FormChat, wire.FormResponses, wire.FormMessages, wire.FormGemini} {
			wiretest.CheckUsage(t, first, Read(form, first))
			wiretest.CheckUsage(t, second, Read(form, append([]byte(`{"usage":`), second...)))
		}
	})
}
