package console_test

import (
	"net/http"
	"strings"
	"testing"

	"tollgate/internal/account"
	"tollgate/internal/console"
	"tollgate/internal/console/consoletest"
	"tollgate/internal/store"
)

// TestMailsIgnoreHost sends each form with a mail under another Host, as in a reset poisoning. The mails link only
// to the public address of the settings.
func TestMailsIgnoreHost(t *testing.T) {
	t.Parallel()
	consoletest.Each(t, func(t *testing.T, s *consoletest.Scene) {
		s.User("ada", account.SignIn{Email: "boss@example.com", Role: account.Owner})
		user := "/console/operator/users/" + s.Users["bob@example.com"].ID
		guest, ada, boss := s.Browser(), s.SignedIn("ada@example.com"), s.Session(account.OperatorSession, "boss@example.com")
		pages := s.Console(func(o *console.Options) { o.NoPublicURL = false })
		for _, b := range []*consoletest.Browser{guest, ada, boss} {
			b.Handler = http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) { r.Host = "evil.example"; pages.ServeHTTP(w, r) })
			b.Headers["X-Forwarded-Host"], b.Headers["Forwarded"] = "evil.example", "host=evil.example"
		}
		s.Exec(`DELETE FROM mail_outbox`)
		for _, c := range []struct {
			b      *consoletest.Browser
			kind   string
			path   string
			fields []string
		}{
			{guest, "sign_up", "/console/sign-up", []string{"email", "new@example.com", "password", "a new horse"}},
			{guest, "known_user", "/console/sign-up", []string{"email", "ada@example.com", "password", "a new horse"}},
			{guest, "password_reset", "/console/forgot", []string{"email", "ada@example.com"}},
			{guest, "sign_in", "/console/sign-in", []string{"email", "bob@example.com", "password", consoletest.Password}},
			{ada, "new_address", "/console/settings/email", []string{"email", "ada2@example.com", "password", consoletest.Password}},
			{ada, "invitation", "/console/settings/users", []string{"email", "dan@example.com"}},
			{boss, "password_reset", user + "/link", nil},
			{boss, "invitation", "/console/operator/accounts/" + s.Accounts["bob"].ID + "/users",
				[]string{"email", "eve@example.com", "password", ""}},
			{boss, "operator_invitation", "/console/operator/operators/new",
				[]string{"email", "op@example.com", "role", "support", "secret", consoletest.Password}},
			{boss, "test", "/console/operator/mails/test", []string{"to", "ops@example.com"}},
		} {
			got := c.b.Post(c.path, c.fields...)
			if got.Code != http.StatusOK && got.Code != http.StatusSeeOther {
				t.Errorf("%s: status %d: %s", c.path, got.Code, got.Body)
			}
			kinds := ""
			s.Update(func(tx *store.Tx) error {
				kinds = ""
				return tx.Each(func(row store.Row) error {
					var kind, text, html string
					err := row.Scan(&kind, &text, &html)
					kinds += kind + " "
					if strings.Contains(text+html, "evil") || kind != "test" && !strings.Contains(text, consoletest.PublicURL+"/console/") {
						t.Errorf("the mail %s of %s does not link to %s alone:\n%s", kind, c.path, consoletest.PublicURL, text)
					}
					return err
				}, `SELECT kind, body_text, body_html FROM mail_outbox`)
			})
			if !strings.Contains(kinds, c.kind+" ") {
				t.Errorf("%s wrote the mails %q, want %s", c.path, kinds, c.kind)
			}
			s.Exec(`DELETE FROM mail_outbox`)
		}
	})
}
