package page_test

import (
	"net/http"
	"strings"
	"testing"

	"tollgate/internal/account"
	"tollgate/internal/console/consoletest"
	"tollgate/internal/operator"
)

// TestInvitation checks that a user without a password sets one with a link, is signed in, and
// cannot use the link again.
func TestInvitation(t *testing.T) {
	t.Parallel()
	consoletest.Each(t, func(t *testing.T, s *consoletest.Scene) {
		address := s.Invite("ada", account.SignIn{Email: "new@example.com"})
		if !strings.HasPrefix(address, consoletest.PublicURL+operator.LinkPath) {
			t.Fatalf("the link is %q, want the prefix %q", address, consoletest.PublicURL+operator.LinkPath)
		}
		_, token, _ := strings.Cut(address, "#")
		b := s.Browser()
		b.Handler = s.WithoutMail()
		b.Get("/console/sign-in").Want(t, http.StatusOK, "Ask your operator for a link", `href="/console/link"`)
		b.Get("/console/link").Want(t, http.StatusOK, "data-fragment", `name="link"`)
		for _, sent := range []string{address, " " + address + "\n", token} {
			got := b.Post("/console/link", "link", sent)
			got.Want(t, http.StatusOK, "Set your password", `value="new@example.com"`, `autocomplete="new-password"`, `value="`+token+`"`)
			got.Without(t, `name="code"`, "replaces your old password")
		}
		b.Post("/console/link/password", "email", "new@example.com", "link", token, "password", "short").
			Want(t, http.StatusUnprocessableEntity, "at least 8 characters", "aria-invalid", `value="`+token+`"`)
		if len(b.Cookies) != 0 {
			t.Errorf("after the rejected password, the browser has cookies %v, want none", b.Cookies)
		}
		b.Post("/console/link/password", "link", token, "password", "my own horse", "email", "bob@example.com").
			Want(t, http.StatusSeeOther, "/console")
		b.Get("/console").Want(t, http.StatusOK, "new@example.com", "$10.00")
		s.Browser().SignIn("new@example.com", "my own horse").Want(t, http.StatusSeeOther)
		b.Post("/console/link", "link", token).Want(t, http.StatusUnprocessableEntity, "no longer valid", "data-fragment")
		b.Post("/console/link/password", "link", token, "password", "another horse").Want(t, http.StatusUnprocessableEntity, "no longer valid")
	})
}

// TestReset checks that a link for a lost password ends the user's sessions, and also the reader's
// own session of another user.
func TestReset(t *testing.T) {
	t.Parallel()
	consoletest.Each(t, func(t *testing.T, s *consoletest.Scene) {
		oldSession, b := s.SignedIn("ada@example.com"), s.SignedIn("bob@example.com")
		bob := *b
		bob.Cookies = map[string]*http.Cookie{"tollgate": b.Cookies["tollgate"]}
		token := s.Link("ada@example.com")
		b.Post("/console/link", "link", token).Want(t, http.StatusOK, "replaces your old password", "ada@example.com")
		oldSession.Get("/console").Want(t, http.StatusOK)
		b.Post("/console/link/password", "link", token, "password", "a new horse").Want(t, http.StatusSeeOther)
		b.Get("/console/settings").Want(t, http.StatusOK, "ada@example.com")
		oldSession.Get("/console").Want(t, http.StatusSeeOther, "sign-in")
		bob.Get("/console").Want(t, http.StatusSeeOther, "sign-in")
		s.Browser().SignIn("ada@example.com", consoletest.Password).Want(t, http.StatusUnprocessableEntity)
	})
}

// TestResetWithASecondFactor checks that a reset requires the code of the second factor.
func TestResetWithASecondFactor(t *testing.T) {
	t.Parallel()
	consoletest.Each(t, func(t *testing.T, s *consoletest.Scene) {
		oldSession := s.SignedIn("ada@example.com")
		app, _ := oldSession.EnableFactor(t)
		b, token := s.Browser(), s.Link("ada@example.com")
		b.Post("/console/link", "link", token).Want(t, http.StatusOK, `autocomplete="one-time-code"`)
		send := func(code string) consoletest.Answer {
			return b.Post("/console/link/password", "link", token, "password", "a new horse", "code", code)
		}
		for _, code := range []string{"", "123456"} {
			send(code).Want(t, http.StatusUnprocessableEntity, "The code is wrong", `name="code" value=""`)
		}
		oldSession.Get("/console").Want(t, http.StatusOK)
		send(app.Code(1)).Want(t, http.StatusSeeOther, "/console")
		b.Get("/console").Want(t, http.StatusOK, "ada@example.com")
		oldSession.Get("/console").Want(t, http.StatusSeeOther, "sign-in")

		token = s.Link("ada@example.com")
		for range 3 {
			send("123456").Want(t, http.StatusUnprocessableEntity)
		}
		got := send("123456")
		got.Want(t, http.StatusTooManyRequests, "Too many attempts", `value="`+token+`"`)
		if got.Header().Get("Retry-After") == "" {
			t.Error("the answer has no Retry-After")
		}
	})
}

// TestLinksAreThrottled checks that an address must wait after wrong links.
func TestLinksAreThrottled(t *testing.T) {
	t.Parallel()
	consoletest.Each(t, func(t *testing.T, s *consoletest.Scene) {
		b, token := s.Browser(), s.Link("ada@example.com")
		for range 30 {
			b.Post("/console/link", "link", strings.Repeat("A", 43)).Want(t, http.StatusUnprocessableEntity, "no longer valid")
		}
		got := b.Post("/console/link", "link", token)
		got.Want(t, http.StatusTooManyRequests, "Too many attempts. Try again in 15 minutes.")
		if got.Header().Get("Retry-After") == "" {
			t.Error("the answer has no Retry-After")
		}
	})
}

// TestLinksOfDisabledUsers checks that links of disabled users, and of users of disabled accounts,
// are rejected.
func TestLinksOfDisabledUsers(t *testing.T) {
	t.Parallel()
	consoletest.Each(t, func(t *testing.T, s *consoletest.Scene) {
		b, ada, bob := s.Browser(), s.Link("ada@example.com"), s.Link("bob@example.com")
		s.ChangeUser("ada@example.com", account.UserChange{Disabled: new(true)})
		s.ChangeAccount("bob", account.Patch{Disabled: new(true)})
		for _, token := range []string{ada, bob} {
			b.Post("/console/link", "link", token).Want(t, http.StatusUnprocessableEntity, "no longer valid")
			b.Post("/console/link/password", "link", token, "password", "a new horse").Want(t, http.StatusUnprocessableEntity, "no longer valid")
		}
	})
}
