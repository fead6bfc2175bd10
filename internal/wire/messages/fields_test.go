package messages

import (
	"strings"
	"testing"

	"tollgate/internal/wire/internal/wiretest"
)

// TestFieldsInOtherCaseAreRefused tests every field read or set by the gateway, in requests and in
// counts.
func TestFieldsInOtherCaseAreRefused(t *testing.T) {
	t.Parallel()
	wiretest.RefusesOtherCase(t, fields.Names(), func(member string) error {
		r, err := Open([]byte(strings.Replace(`{"max_tokens":5,"messages":[{"role":"user","content":"x"}]}`, "{", "{"+member+",", 1)))
		if err == nil {
			err = r.Check()
		}
		return err
	})
	wiretest.RefusesOtherCase(t, fields.Names(), func(member string) error {
		r, err := Open([]byte(strings.Replace(`{"messages":[{"role":"user","content":"x"}]}`, "{", "{"+member+",", 1)))
		if err == nil {
			err = r.CheckCount()
		}
		return err
	})
}

// TestFieldListIsWhole checks that the list contains every top-level field read by this package and
// the translators of the form.
func TestFieldListIsWhole(t *testing.T) {
	t.Parallel()
	wiretest.ReadsOnly(t, 20, fields.Names(), "*.go",
		"../translate/internal/chatmessages/chat*.go", "../translate/internal/messagesresponses/*.go")
}
