package completions

import (
	"strings"
	"testing"
)

// TestConversation checks that requests of one conversation get the same number, and requests of
// other conversations get other numbers.
func TestConversation(t *testing.T) {
	t.Parallel()
	number := func(body string) uint64 {
		r, err := Open([]byte(body))
		if err != nil {
			t.Fatal(err)
		}
		for range 2 { // a second check has the same result
			if err := r.Check(); err != nil {
				t.Fatal(err)
			}
		}
		return r.Conversation
	}
	const (
		system = `{"role":"system","content":"be brief"}`
		hello  = `{"role":"user","content":"hello"}`
		answer = `{"role":"assistant","content":"hi"},{"role":"user","content":"more"}`
	)
	long := strings.Repeat("x", 5000)
	first := number(`{"model":"m","messages":[` + system + `,` + hello + `]}`)
	same := map[string]string{
		"next turn":     `{"model":"m","messages":[` + system + `,` + hello + `,` + answer + `]}`,
		"other options": `{"temperature":1,"messages":[` + system + `,` + hello + `],"model":"m","max_tokens":5}`,
	}
	for name, body := range same {
		if number(body) != first {
			t.Errorf("%s: got another conversation's number", name)
		}
	}
	others := map[string]string{
		"other user text":   `{"messages":[` + system + `,{"role":"user","content":"hallo"}]}`,
		"other system text": `{"messages":[{"role":"system","content":"be long"},` + hello + `]}`,
		"no system text":    `{"messages":[` + hello + `]}`,
		"long":              `{"messages":[{"role":"user","content":"` + long + `"}]}`,
		"longer":            `{"messages":[{"role":"user","content":"` + long + `x"}]}`,
		"key a":             `{"prompt_cache_key":"a","messages":[` + system + `,` + hello + `]}`,
		"key b":             `{"prompt_cache_key":"b","messages":[` + system + `,` + hello + `]}`,
	}
	seen := map[uint64]string{first: "first", 0: "nothing"}
	for name, body := range others {
		n := number(body)
		if other, taken := seen[n]; taken {
			t.Errorf("%s has the number of %s", name, other)
		}
		seen[n] = name
	}
	if number(`{"prompt_cache_key":"a","messages":[`+hello+`]}`) != number(others["key a"]) {
		t.Error("prompt_cache_key does not decide the conversation alone")
	}
}
