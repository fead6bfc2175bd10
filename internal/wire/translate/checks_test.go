package translate

import (
	"strings"
	"testing"

	"tollgate/internal/wire/completions"
	"tollgate/internal/wire/field"
	"tollgate/internal/wire/internal/wiretest"
	"tollgate/internal/wire/jobrequest"
	"tollgate/internal/wire/messages"
	"tollgate/internal/wire/responses"
)

// checks are the checks of all bodies, each for a valid body with one more member.
func checks() map[string]func(member string) error {
	with := func(body, member string) []byte { return []byte(strings.Replace(body, "{", "{"+member+",", 1)) }
	return map[string]func(string) error{
		"chat": func(m string) error {
			r, err := completions.Open(with(`{"messages":[{"role":"user","content":"x"}]}`, m))
			if err == nil {
				err = r.Check()
			}
			return err
		},
		"responses": func(m string) error {
			r, err := responses.Open(with(`{"input":"x"}`, m))
			if err == nil {
				err = r.Check()
			}
			return err
		},
		"messages": func(m string) error {
			r, err := messages.Open(with(`{"max_tokens":5,"messages":[{"role":"user","content":"x"}]}`, m))
			if err == nil {
				err = r.Check()
			}
			return err
		},
		"a count": func(m string) error {
			r, err := messages.Open(with(`{"messages":[{"role":"user","content":"x"}]}`, m))
			if err == nil {
				err = r.CheckCount()
			}
			return err
		},
		"images": func(m string) error {
			r, err := jobrequest.OpenImage(with(`{"prompt":"x"}`, m))
			if err == nil {
				err = r.Check(false)
			}
			return err
		},
		"videos": func(m string) error {
			r, err := jobrequest.OpenVideo(with(`{"prompt":"x"}`, m))
			if err == nil {
				err = r.Check()
			}
			return err
		},
	}
}

// TestFieldsInOtherCaseAreRefused tests every field known to a form.
func TestFieldsInOtherCaseAreRefused(t *testing.T) {
	t.Parallel()
	for name, form := range map[string]string{"chat": "chat", "responses": "responses", "messages": "messages", "a count": "messages"} {
		wiretest.RefusesOtherCase(t, field.Form(form).Names(), checks()[name])
	}
}
