package page_test

import (
	"net/http"
	"net/url"
	"testing"

	"tollgate/internal/account"
	"tollgate/internal/console"
	"tollgate/internal/console/consoletest"
	"tollgate/internal/gatewaytest/fakeidentity"
	"tollgate/internal/identity"
	"tollgate/internal/store"
)

const acceptPath = "/console/terms/accept"

// withTerms returns an option with a version of the terms.
func withTerms(version string) func(*console.Options) {
	return func(o *console.Options) { o.Legal.Version = version }
}

// wantAccepted checks the version and the address of a user's newest acceptance of terms.
func wantAccepted(t *testing.T, s *consoletest.Scene, email, version string) {
	t.Helper()
	var got, addr string
	s.Update(func(tx *store.Tx) error {
		return tx.QueryRow(`SELECT COALESCE(MAX(a.version), ''), COALESCE(MAX(a.address), '') FROM account_acceptance a
			JOIN account_user u ON u.id = a.member WHERE u.email = $1`, email).Scan(&got, &addr)
	})
	if got != version || (addr == "") != (version == "") {
		t.Errorf("%s has accepted %q from %q, want %q", email, got, addr, version)
	}
}

// TestAcceptance checks that a user accepts each version once before other pages, returns to the page of a
// link, may read the texts and sign out before, and that operators see it and are not asked.
func TestAcceptance(t *testing.T) {
	t.Parallel()
	consoletest.Each(t, func(t *testing.T, s *consoletest.Scene) {
		b := s.Browser()
		b.SignIn("ada@example.com", consoletest.Password)
		b.Get("/console").Want(t, http.StatusOK)
		b.Get(acceptPath).Want(t, http.StatusSeeOther, "/console")

		b.Handler = s.Console(withTerms("1"))
		link := "/console/requests?status=failed"
		asked := acceptPath + "?next=" + url.QueryEscape(link)
		b.Get(link).Want(t, http.StatusSeeOther, asked)
		b.Post("/console/keys/new", "name", "backend").Want(t, http.StatusSeeOther, acceptPath)
		b.Get("/console/terms").Want(t, http.StatusOK, "Be kind.")
		b.Get("/console/privacy").Want(t, http.StatusOK)
		b.Get(asked).Want(t, http.StatusOK, "I accept the terms", `href="/console/terms" target="_blank"`, `value="1"`, "Sign out")
		b.Post(acceptPath, "next", link).Want(t, http.StatusUnprocessableEntity, "Accept the terms to go on.")
		wantAccepted(t, s, "ada@example.com", "")
		b.Post(acceptPath, "next", link, "terms", "1").Want(t, http.StatusSeeOther, link)
		b.Get(link).Want(t, http.StatusOK)
		b.Post(acceptPath, "terms", "1").Want(t, http.StatusSeeOther)
		wantAccepted(t, s, "ada@example.com", "1")

		b.Handler = s.Console(withTerms("2"))
		b.Get("/console").Want(t, http.StatusSeeOther, acceptPath)
		b.Post(acceptPath, "terms", "1").Want(t, http.StatusUnprocessableEntity, "have changed since")
		b.Post(acceptPath, "terms", "2", "next", "https://evil.example/console").Want(t, http.StatusSeeOther, "/console")
		for _, version := range []string{"1", "2"} { // two nodes during a rollout
			b.Handler = s.Console(withTerms(version))
			b.Get("/console").Want(t, http.StatusOK)
		}
		b.Handler = s.Console(withTerms("3"))
		b.Post("/console/sign-out").Want(t, http.StatusSeeOther, "/console/sign-in")
		b.Get(acceptPath).Want(t, http.StatusSeeOther, "/console/sign-in")

		o := s.Operator()
		users := "/console/operator/accounts/" + s.Accounts["ada"].ID + "?view=users"
		o.Get(users).Without(t, "Terms accepted")
		o.Handler = s.Console(withTerms("3"))
		o.Get(users).Want(t, http.StatusOK, "Terms accepted", ">2<")
		o.Get("/console/operator/accounts/"+s.Accounts["bob"].ID+"?view=users").Want(t, http.StatusOK, "Terms accepted", ">none<")
	})
}

// TestAcceptanceOfOperators checks that the role of an operator needs no acceptance in the customers' pages.
func TestAcceptanceOfOperators(t *testing.T) {
	t.Parallel()
	consoletest.Each(t, func(t *testing.T, s *consoletest.Scene) {
		s.Update(func(tx *store.Tx) error {
			_, err := account.ChangeUserTx(tx, s.Users["ada@example.com"].ID, account.UserChange{Role: new(account.Support)})
			return err
		})
		b := s.Browser()
		b.Handler = s.Console(withTerms("1"))
		b.SignIn("ada@example.com", consoletest.Password)
		b.Get("/console").Want(t, http.StatusOK)
	})
}

// TestSignUpWithTerms checks that a sign-up needs the acceptance, which counts in the browser that signed up
// alone, and not for terms that have changed before the form was sent.
func TestSignUpWithTerms(t *testing.T) {
	t.Parallel()
	consoletest.Each(t, func(t *testing.T, s *consoletest.Scene) {
		b := withSignUp(t, s, withTerms("1"))
		b.Get("/console/sign-up").Want(t, http.StatusOK, `name="terms" value="1"`, "/console/privacy")
		fields := []string{"email", "cleo@example.com", "password", "a new horse"}
		b.Post("/console/sign-up", fields...).Want(t, http.StatusUnprocessableEntity, "Accept the terms to go on.")
		b.Post("/console/sign-up").Want(t, http.StatusUnprocessableEntity, "Accept the terms to go on.", "Email must be a plain address",
			"Password must have at least 8 characters")
		b.Post("/console/sign-up", append(fields, "terms", "0")...).Want(t, http.StatusUnprocessableEntity, "have changed since", `value="1"`)
		if mails := outbox(s); len(mails) != 0 {
			t.Errorf("%d mails were sent without an acceptance", len(mails))
		}
		token := signUp(t, s, b, "cleo@example.com", "terms", "1")
		b.Handler = withSignUp(t, s, withTerms("2")).Handler // a newer version while the mail waits
		b.Post("/console/verify/confirm", "link", token).Want(t, http.StatusSeeOther)
		wantAccepted(t, s, "cleo@example.com", "1")
		b.Get("/console/billing").Want(t, http.StatusSeeOther, acceptPath)
		b.Handler = withSignUp(t, s, withTerms("1")).Handler
		b.Get("/console/billing").Want(t, http.StatusOK)

		token = signUp(t, s, b, "dan@example.com", "terms", "1")
		other := withSignUp(t, s, withTerms("1"))
		other.Post("/console/verify/confirm", "link", token, "password", "his own horse").Want(t, http.StatusSeeOther)
		wantAccepted(t, s, "dan@example.com", "")
		other.Get("/console").Want(t, http.StatusSeeOther, acceptPath)
	})
}

// TestSignUpWithProviderAndTerms checks the acceptance in the form of a new account after a visit to a provider.
func TestSignUpWithProviderAndTerms(t *testing.T) {
	t.Parallel()
	consoletest.Each(t, func(t *testing.T, s *consoletest.Scene) {
		p := fakeidentity.New(t)
		b := withSignUp(t, s, func(o *console.Options) {
			o.Identities = []*identity.IDProvider{identity.New(identity.Options{Config: corp(p), HTTP: http.DefaultClient})}
			o.Legal.Version = "1"
		})
		visit(t, b, p, "corp").Want(t, http.StatusSeeOther, "/console/sign-up/with")
		b.Get("/console/sign-up/with").Want(t, http.StatusOK, `name="terms" value="1"`)
		b.Post("/console/sign-up/with", "email", "").Want(t, http.StatusUnprocessableEntity, "Accept the terms", "cleo@example.com")
		b.Post("/console/sign-up/with", "email", "", "terms", "1").Want(t, http.StatusSeeOther)
		wantAccepted(t, s, "cleo@example.com", "1")
		b.Get("/console").Want(t, http.StatusOK, "cleo@example.com")
	})
}
