package translate

import (
	"encoding/json"
	"errors"
	"maps"
	"strings"
	"testing"

	"tollgate/internal/wire"
	"tollgate/internal/wire/completions"
	"tollgate/internal/wire/internal/wiretest"

	"tollgate/internal/wire/translate/internal/pairtest"
)

// TestOneLimitGoesToALine expects the smallest of the client's limits at a line of any form,
// in its own field.
func TestOneLimitGoesToALine(t *testing.T) {
	t.Parallel()
	const limits = `"n_predict":9000,"max_tokens":1000,"max_completion_tokens":40,"max_output_tokens":50,"tokens_to_generate":99,` +
		`"min_tokens":90,"min_completion_tokens":90`
	edits := wire.Edits{Model: "v", Limit: 7, LimitField: "max_completion_tokens"}
	chat, err := completions.Open([]byte(`{"messages":[{"role":"user","content":"x"}],` + limits + `}`))
	if err = errors.Join(err, chat.Check()); err != nil {
		t.Fatal(err)
	}
	messages := openMessages(t, `{"messages":[{"role":"user","content":"x"}],`+limits+`}`)
	if err := messages.Check(); err != nil {
		t.Fatal(err)
	}
	responses := pairtest.Responses(t, `{"input":"x",`+limits+`}`)
	in := wire.Translation{Edits: edits, MaxOutput: 8000}
	for name, of := range map[string]struct {
		body  func() ([]byte, error)
		field string
	}{
		"chat":             {func() ([]byte, error) { return chat.Body(edits).Bytes(), nil }, "max_completion_tokens"},
		"messages":         {func() ([]byte, error) { return messages.Body(edits).Bytes(), nil }, "max_tokens"},
		"responses":        {func() ([]byte, error) { return responses.Body(edits).Bytes(), nil }, "max_output_tokens"},
		"chat to messages": {func() ([]byte, error) { return pairtest.Body(New(chat, wire.FormMessages, wire.Identity{}), in) }, "max_tokens"},
		"messages to chat": {func() ([]byte, error) { return pairtest.Body(New(messages, wire.FormChat, wire.Identity{}), in) },
			"max_completion_tokens"},
		"responses to chat": {func() ([]byte, error) { return pairtest.Body(New(responses, wire.FormChat, wire.Identity{}), in) },
			"max_completion_tokens"},
		"chat to responses": {func() ([]byte, error) { return pairtest.Body(New(chat, wire.FormResponses, wire.Identity{}), in) },
			"max_output_tokens"},
		"messages to responses": {func() ([]byte, error) { return pairtest.Body(New(messages, wire.FormResponses, wire.Identity{}), in) },
			"max_output_tokens"},
		"a count has no limit": {func() ([]byte, error) { return messages.CountBody(edits).Bytes(), nil }, ""},
	} {
		sent, err := of.body()
		if err != nil {
			t.Fatal(name, err)
		}
		want := map[string]string{of.field: "40"}
		if of.field == "" {
			want = map[string]string{}
		}
		if got := wiretest.LimitsIn(sent); !maps.Equal(got, want) || !json.Valid(sent) || strings.Contains(string(sent), `"min_`) {
			t.Errorf("%s: %s", name, sent)
		}
	}
	gemini, err := pairtest.Body(New(chat, wire.FormGemini, wire.Identity{}), in)
	if err != nil || !strings.Contains(string(gemini), `"maxOutputTokens":40`) {
		t.Errorf("%s, %v", gemini, err)
	}
	if chat.Limit != 40 || messages.Limit != 40 || responses.Limit != 40 {
		t.Errorf("%d, %d and %d are held", chat.Limit, messages.Limit, responses.Limit)
	}
}
