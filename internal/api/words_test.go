package api_test

import (
	"strings"
	"testing"

	"tollgate/internal/account"
)

// TestRefusalsSayWhatToDo: messages name the way out.
func TestRefusalsSayWhatToDo(t *testing.T) {
	t.Parallel()
	d := newDesk(t, onSQLite(t), nil)
	_, secret := d.key(account.KeySettings{})
	const chat = "/v1/chat/completions"
	for _, c := range []struct {
		path, body, code, says string
		status                 int
	}{
		{chat, `{"model":"easel-1","messages":[]}`, "model_not_found", "/v1/images/generations", 400},
		{chat, `{"model":"reel-1","messages":[]}`, "model_not_found", "/v1/videos/generations", 400},
		{generations, `{"model":"swift-1","prompt":"x"}`, "model_not_found", chat, 400},
		{chat, "", "invalid_json", "body is empty", 400},
		{chat, " \n", "invalid_json", "body is empty", 400},
		{chat, `{"model":`, "invalid_json", "ends too early", 400},
	} {
		got := d.send("POST", c.path, c.body, as(secret)...)
		got.refused(t, c.status, c.code)
		if !strings.Contains(string(got.body), c.says) {
			t.Errorf("%s %q: %s; want %q", c.path, c.body, got.body, c.says)
		}
	}
}
