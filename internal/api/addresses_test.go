package api_test

import (
	"strings"
	"testing"

	"tollgate/internal/account"
	"tollgate/internal/api"
	"tollgate/internal/egress"
)

// TestAddressesInBodiesAreGuarded checks that private addresses in bodies are rejected, because a
// provider on the gateway's network could fetch them.
func TestAddressesInBodiesAreGuarded(t *testing.T) {
	t.Parallel()
	d := newServer(t, onSQLite(t), func(o *api.Options) { o.Guard = egress.New(nil) })
	_, secret := d.key(account.KeySettings{})
	for _, address := range []string{"http://10.0.0.1/a.png", "https://localhost/a.png", "http://169.254.169.254/latest/meta-data",
		"https://[::1]/a", "http://127.1/a", "http://0x7f000001/a", "http://db.internal/a", "http://router/a", "https://user:pw@e.com/a"} {
		got := d.send("POST", "/v1/chat/completions", `{"model":"swift-1","messages":[{"role":"user","content":[`+
			`{"type":"image_url","image_url":{"url":"`+address+`"}}]}]}`, "Authorization", "Bearer "+secret)
		if got.status != 400 || !strings.Contains(string(got.body), `"param":"messages[0].content[0].image_url.url"`) {
			t.Errorf("%s: %d %s", address, got.status, got.body)
		}
	}
}
