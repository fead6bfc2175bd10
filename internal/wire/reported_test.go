package wire

import "testing"

// FuzzReportedUsage: whatever a provider sends, the usage that is read from it
// holds together, in every form.
func FuzzReportedUsage(f *testing.F) {
	for _, seed := range []string{
		`{"error":{}}`, `{"delta":[`, `{"usage":{"prompt_tokens":1e99,"completion_tokens":-1}}`, `{"usage":{"input_tokens":5,"cache_read_input_tokens":9}}`,
		`[{"usageMetadata":{"promptTokenCount":3,"thoughtsTokenCount":1e9}}]`, `{"usage":{"input_tokens":5,"input_tokens_details":{"cached_tokens":7}}}`,
	} {
		f.Add([]byte(seed), []byte("{}"))
	}
	f.Fuzz(func(t *testing.T, first, second []byte) {
		for _, form := range []Form{"", FormChat, FormResponses, FormMessages, FormGemini} {
			checkMessagesUsage(t, first, ReportedUsage(form, first))
			checkMessagesUsage(t, second, ReportedUsage(form, append([]byte(`{"usage":`), second...)))
		}
	})
}
