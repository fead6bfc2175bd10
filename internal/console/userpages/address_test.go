package userpages_test

import (
	"net/http"
	"strings"
	"testing"

	"tollgate/internal/console/consoletest"
	"tollgate/internal/store"
)

// TestChangeEmail checks the way from the settings over the mail to a new email: it needs the password,
// both addresses get a mail, the link works for this user alone and once, and nothing depends on Host.
func TestChangeEmail(t *testing.T) {
	t.Parallel()
	consoletest.Each(t, func(t *testing.T, s *consoletest.Scene) {
		pages := s.Console(nil)
		poisoned := http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) { r.Host = "evil.example"; pages.ServeHTTP(w, r) })
		ada, bob := s.SignedIn("ada@example.com"), s.SignedIn("bob@example.com")
		ada.Handler, bob.Handler = poisoned, poisoned
		ada.Get("/console/settings").Want(t, http.StatusOK, "New email")
		for _, path := range []string{"", "/check", "/confirm"} {
			ada.Post("/console/settings/email"+path, "email", "new@example.com", "password", consoletest.Password, "link", "x", "account", "x").
				Want(t, http.StatusBadRequest, "an unknown field")
		}
		ada.Post("/console/settings/email", "email", "new@example.com", "password", "wrong horse").
			Want(t, http.StatusUnprocessableEntity, "That is not your password.", `value="new@example.com"`)
		ada.Post("/console/settings/email", "email", "new@example.com", "password", consoletest.Password).
			Want(t, http.StatusSeeOther, "done=address")
		texts := map[string]string{}
		s.Update(func(tx *store.Tx) error {
			return tx.Each(func(row store.Row) error {
				var to, text string
				err := row.Scan(&to, &text)
				texts[to] = text
				return err
			}, `SELECT recipient, body_text FROM mail_outbox WHERE kind <> 'sign_in'`)
		})
		if len(texts) != 2 || !strings.Contains(texts["ada@example.com"], "new@example.com") {
			t.Fatalf("the mails are %v, want one to each address", texts)
		}
		_, rest, found := strings.Cut(texts["new@example.com"], consoletest.PublicURL+"/console/settings/email#")
		if !found {
			t.Fatalf("the mail has no link at %s:\n%s", consoletest.PublicURL, texts["new@example.com"])
		}
		token, _, _ := strings.Cut(rest, "\n")
		ada.Get("/console/settings/email").Want(t, http.StatusOK, "data-fragment")
		bob.Post("/console/settings/email/check", "link", token).
			Want(t, http.StatusUnprocessableEntity, "not valid for you")
		ada.Post("/console/settings/email/check", "link", token).Want(t, http.StatusOK, "new@example.com", "Sign in with this email")
		bob.Post("/console/settings/email/confirm", "email", "new@example.com", "link", token).
			Want(t, http.StatusUnprocessableEntity, "not valid for you")
		ada.Post("/console/settings/email/confirm", "email", "new@example.com", "link", token).Want(t, http.StatusSeeOther, "done=verified")
		ada.Get("/console/settings").Want(t, http.StatusOK, "new@example.com")
		ada.Post("/console/settings/email/confirm", "email", "new@example.com", "link", token).
			Want(t, http.StatusUnprocessableEntity, "not valid for you")

		off := s.SignedIn("bob@example.com")
		off.Handler = s.WithoutMail()
		off.Get("/console/settings").Without(t, "New email")
		off.Get("/console/settings/email").Want(t, http.StatusNotFound)
	})
}
