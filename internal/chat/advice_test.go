package chat

import (
	"strings"
	"testing"
	"time"

	"tollgate/internal/ledger"
	"tollgate/internal/wire"
	"tollgate/internal/wire/completions"
	"tollgate/internal/wire/messages"
	"tollgate/internal/wire/responses"
)

// TestAdviceNamesTheLimitField checks that the advice of a 402 names the limit field of the client's
// request, or the usual field of the form if the request has no limit.
func TestAdviceNamesTheLimitField(t *testing.T) {
	t.Parallel()
	const prompt = `{"model":"swift-1","messages":[{"role":"user","content":"hi"}]`
	open := func(form wire.Form, body string) (wire.Request, error) {
		switch form {
		case wire.FormResponses:
			r, err := responses.Open([]byte(body))
			if err != nil {
				return nil, err
			}
			return r, r.Check()
		case wire.FormMessages:
			r, err := messages.Open([]byte(body))
			if err != nil {
				return nil, err
			}
			return r, r.Check()
		}
		r, err := completions.Open([]byte(body))
		if err != nil {
			return nil, err
		}
		return r, r.Check()
	}
	for name, test := range map[string]struct {
		form  wire.Form
		body  string
		field string
	}{
		"chat, max_tokens":            {wire.FormChat, prompt + `,"max_tokens":50}`, "max_tokens"},
		"chat, max_completion_tokens": {wire.FormChat, prompt + `,"max_completion_tokens":50}`, "max_completion_tokens"},
		"chat, no limit":              {wire.FormChat, prompt + `}`, "max_tokens"},
		"responses":                   {wire.FormResponses, `{"model":"swift-1","input":"hi","max_output_tokens":50}`, "max_output_tokens"},
		"responses, no limit":         {wire.FormResponses, `{"model":"swift-1","input":"hi"}`, "max_output_tokens"},
		"messages":                    {wire.FormMessages, prompt + `,"max_tokens":50}`, "max_tokens"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			body, err := open(test.form, test.body)
			if err != nil {
				t.Fatal(err)
			}
			c := AcceptedRequest{Form: test.form, Body: body, Snapshot: formSnapshot(t, wire.FormChat),
				Admission: ledger.Admission{Request: "req_1", Account: "acct_1", Key: "key_1", KeyVersion: 1, Received: time.Now()}}
			c.Model, _ = c.Snapshot.Model("swift-1")
			tr := newTrial(t, reply{pieces: []string{whole1}})
			tr.send(c)
			if want := "lower " + test.field; len(tr.books.amounts) != 1 || tr.books.amounts[0].Advice != want {
				t.Errorf("admissions %+v, want the advice %q", tr.books.amounts, want)
			}
			if strings.Contains(test.body, "tokens") && !strings.Contains(test.body, test.field) {
				t.Fatal("the request lacks the field")
			}
		})
	}
}
