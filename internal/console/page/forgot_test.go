package page_test

import (
	"net/http"
	"strings"
	"testing"
	"time"

	"tollgate/internal/account"
	"tollgate/internal/console/consoletest"
	"tollgate/internal/store"
)

// letter is a mail in the outbox.
type letter struct{ kind, to, text string }

// outbox returns the mails in the order of their creation.
func outbox(s *consoletest.Scene) (list []letter) {
	s.Update(func(tx *store.Tx) (err error) {
		list, err = store.Collect(tx, func(row store.Row) (l letter, err error) {
			err = row.Scan(&l.kind, &l.to, &l.text)
			return l, err
		}, `SELECT kind, recipient, body_text FROM mail_outbox ORDER BY id`)
		return err
	})
	return list
}

// tokenIn returns the token of the link in a mail.
func tokenIn(t *testing.T, l letter) string {
	t.Helper()
	_, rest, found := strings.Cut(l.text, consoletest.PublicURL+"/console/link#")
	if !found {
		t.Fatalf("the mail has no link at %s:\n%s", consoletest.PublicURL, l.text)
	}
	token, _, _ := strings.Cut(rest, "\n")
	return token
}

// TestForgottenPassword checks the way from the sign-in page over the mail to a new password: the link
// is single-use, its token is stored as a hash, and all sessions end.
func TestForgottenPassword(t *testing.T) {
	t.Parallel()
	consoletest.Each(t, func(t *testing.T, s *consoletest.Scene) {
		b := s.Browser()
		old := s.Session(account.UserSession, "ada@example.com")
		off := s.Browser()
		off.Handler = s.WithoutMail()
		off.Get("/console/sign-in").Without(t, "/console/forgot")
		off.Get("/console/forgot").Want(t, http.StatusNotFound)
		b.Get("/console/sign-in").Want(t, http.StatusOK, `href="/console/forgot"`)
		b.Get("/console/forgot").Want(t, http.StatusOK, `name="email"`)
		b.Post("/console/forgot", "email", "").Want(t, http.StatusUnprocessableEntity, "Enter the email")
		b.Post("/console/forgot", "email", "Ada@Example.com").Want(t, http.StatusOK, "Check your inbox", `href="/console/sign-in"`)
		mails := outbox(s)
		if len(mails) != 1 || mails[0].kind != "password_reset" || mails[0].to != "ada@example.com" {
			t.Fatalf("the outbox has %+v, want one reset to ada@example.com", mails)
		}
		token := tokenIn(t, mails[0])
		s.Update(func(tx *store.Tx) error {
			var hash string
			var expires, now int64
			if err := tx.QueryRow(`SELECT hash, expires_ms FROM account_link`).Scan(&hash, &expires); err != nil {
				return err
			}
			now, err := tx.NowMS()
			if left := time.Duration(expires-now) * time.Millisecond; strings.Contains(hash, token) || left > time.Hour || left < 50*time.Minute {
				t.Errorf("the stored link is %q for %v, want a hash for an hour", hash, left)
			}
			return err
		})
		old.Get("/console").Want(t, http.StatusOK)
		b.Post("/console/link", "link", token).Want(t, http.StatusOK, "ada@example.com")
		b.Post("/console/link/password", "email", "ada@example.com", "link", token, "password", "a brand new horse").Want(t, http.StatusSeeOther)
		old.Get("/console").Want(t, http.StatusSeeOther, "/console/sign-in")
		b.Post("/console/link", "link", token).Want(t, http.StatusUnprocessableEntity, "no longer valid")
		if n := len(outbox(s)); n != 1 {
			t.Errorf("%d mails after the new password, want 1", n)
		}
	})
}

// TestForgottenPasswordRevealsNothing checks that unknown, disabled and known emails get the same answer
// after the same time, and that only the known one gets a mail.
func TestForgottenPasswordRevealsNothing(t *testing.T) {
	t.Parallel()
	consoletest.Each(t, func(t *testing.T, s *consoletest.Scene) {
		b := s.Browser()
		s.ChangeUser("bob@example.com", account.UserChange{Disabled: new(true)})
		answers := map[string]string{}
		for _, email := range []string{"ada@example.com", "bob@example.com", "nobody@example.com", "no email"} {
			began := time.Now()
			got := b.Post("/console/forgot", "email", email)
			if took := time.Since(began); took < 500*time.Millisecond {
				t.Errorf("%s was answered after %v, want at least 500ms", email, took)
			}
			got.Want(t, http.StatusOK)
			answers[got.Body.String()] = email
		}
		if len(answers) != 1 {
			t.Errorf("the answers differ for %v", answers)
		}
		if mails := outbox(s); len(mails) != 1 || mails[0].to != "ada@example.com" {
			t.Errorf("the outbox has %+v, want one mail to ada@example.com", mails)
		}
	})
}

// TestForgottenPasswordLimits checks the limits by email and by address, for known and unknown emails.
func TestForgottenPasswordLimits(t *testing.T) {
	t.Parallel()
	consoletest.Each(t, func(t *testing.T, s *consoletest.Scene) {
		b := s.Browser()
		for _, email := range []string{"ada@example.com", "nobody@example.com"} {
			for range 3 {
				b.Post("/console/forgot", "email", email).Want(t, http.StatusOK)
			}
			b.Post("/console/forgot", "email", email).Want(t, http.StatusTooManyRequests, "Too many mails to this address", `value="`+email+`"`)
		}
		for _, email := range []string{"a@example.com", "b@example.com", "c@example.com", "d@example.com"} {
			b.Post("/console/forgot", "email", email).Want(t, http.StatusOK)
		}
		b.Post("/console/forgot", "email", "e@example.com").Want(t, http.StatusTooManyRequests, "Too many mails were asked for.")
		if n := len(outbox(s)); n != 3 {
			t.Errorf("%d mails, want 3", n)
		}
	})
}

// TestNewBrowserIsMailed checks that a sign-in with an unknown browser is mailed once, and that the
// same browser is known afterwards.
func TestNewBrowserIsMailed(t *testing.T) {
	t.Parallel()
	consoletest.Each(t, func(t *testing.T, s *consoletest.Scene) {
		b := s.Browser()
		b.SignIn("ada@example.com", "wrong horse").Want(t, http.StatusUnprocessableEntity)
		for range 2 {
			b.SignIn("ada@example.com", consoletest.Password).Want(t, http.StatusSeeOther)
		}
		mails := outbox(s)
		if len(mails) != 1 || mails[0].kind != "sign_in" || mails[0].to != "ada@example.com" ||
			!strings.Contains(mails[0].text, consoletest.PublicURL+"/console/settings") {
			t.Fatalf("the outbox has %+v, want one mail about the first sign-in", mails)
		}
		b.Get("/console").Want(t, http.StatusOK)
		other := s.Browser()
		other.SignIn("ada@example.com", consoletest.Password).Want(t, http.StatusSeeOther)
		if n := len(outbox(s)); n != 2 {
			t.Errorf("%d mails after a sign-in with another browser, want 2", n)
		}
	})
}
