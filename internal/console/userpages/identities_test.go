package userpages_test

import (
	"net/http"
	"regexp"
	"strings"
	"testing"
	"time"

	"tollgate/internal/account"
	"tollgate/internal/console"
	"tollgate/internal/console/consoletest"
	"tollgate/internal/gatewaytest/fakeidentity"
	"tollgate/internal/identity"
	"tollgate/internal/mail"
	"tollgate/internal/store"
)

// linkScene is a browser of ada in a shop with the fake of a provider of OpenID Connect, corp, and of
// GitHub, hub.
type linkScene struct {
	*consoletest.Browser
	t         *testing.T
	s         *consoletest.Scene
	corp, hub *fakeidentity.Provider
}

func newLinkScene(t *testing.T, s *consoletest.Scene) *linkScene {
	t.Helper()
	l := &linkScene{Browser: s.Browser(), t: t, s: s, corp: fakeidentity.New(t), hub: fakeidentity.NewGitHub(t)}
	mails, err := mail.New(mail.Options{DB: s.DB, From: "shop@example.com", PublicURL: consoletest.PublicURL,
		Server: mail.SMTPServer{Host: "127.0.0.1", Port: 1, Security: mail.Plain}})
	if err != nil {
		t.Fatal(err)
	}
	l.Handler = s.Console(func(o *console.Options) {
		o.Mails = mails
		for _, c := range []identity.Config{{Name: "corp", Title: "Corp", Kind: identity.OIDC, Issuer: l.corp.URL},
			{Name: "hub", Title: "Hub", Kind: identity.GitHub, Issuer: l.hub.URL},
			{Name: "staff", Title: "Staff", Kind: identity.OIDC, Issuer: "https://staff.example", For: identity.Operators}} {
			c.ClientID, c.ClientSecret = fakeidentity.ClientID, fakeidentity.ClientSecret
			o.Identities = append(o.Identities, identity.New(identity.Options{Config: c, HTTP: http.DefaultClient}))
		}
	})
	return l
}

// visit begins a visit to a provider with a form, and returns the answer to the callback.
func (l *linkScene) visit(p *fakeidentity.Provider, path string, fields ...string) consoletest.Answer {
	l.t.Helper()
	got := l.Post(path, fields...)
	got.Want(l.t, http.StatusOK)
	_, address, found := strings.Cut(got.Header().Get("Refresh"), "url=")
	if !found {
		l.t.Fatalf("%s leads nowhere, want a refresh: %s", path, got.Body)
	}
	return l.Get(p.Visit(address))
}

// unconfirm makes the confirmations of all sessions too old.
func (l *linkScene) unconfirm() {
	l.s.Exec(`UPDATE account_session SET confirmed_ms = confirmed_ms - $1`, (10 * time.Minute).Milliseconds())
}

// unlinks returns the paths that unlink the visitor's identities.
func (l *linkScene) unlinks() []string {
	return regexp.MustCompile(`/console/settings/identities/idn_[^"]+`).FindAllString(l.Get("/console/settings").Body.String(), -1)
}

// wantMails checks the kinds of all mails in the outbox.
func (l *linkScene) wantMails(want ...string) {
	l.t.Helper()
	var kinds []string
	l.s.Update(func(tx *store.Tx) (err error) {
		kinds, err = store.Collect(tx, func(row store.Row) (kind string, err error) { err = row.Scan(&kind); return kind, err },
			`SELECT kind FROM mail_outbox WHERE kind LIKE 'identity%' ORDER BY id`)
		return err
	})
	if strings.Join(kinds, " ") != strings.Join(want, " ") {
		l.t.Errorf("the mails are %v, want %v", kinds, want)
	}
}

// TestLinkProvider checks the life of a link: it needs a confirmed session, it is logged and told by mail,
// it signs the user in, and it can be undone.
func TestLinkProvider(t *testing.T) {
	t.Parallel()
	consoletest.Each(t, func(t *testing.T, s *consoletest.Scene) {
		l := newLinkScene(t, s)
		l.SignIn("ada@example.com", consoletest.Password).Want(t, http.StatusSeeOther)
		l.Get("/console/settings").Want(t, http.StatusOK, "Link Corp", "Link Hub")
		l.Get("/console/settings").Without(t, "Link Staff")
		l.Post("/console/settings/link/staff").Want(t, http.StatusNotFound)
		l.unconfirm()
		l.Post("/console/settings/link/corp").Want(t, http.StatusSeeOther, "/console/settings/confirm?next=")
		l.Get("/console/settings/confirm?next=/console/settings").Want(t, http.StatusOK, `name="password"`)
		l.Post("/console/settings/confirm", "password", "wrong horse", "next", "").
			Want(t, http.StatusUnprocessableEntity, "That is not your password")
		l.Post("/console/settings/link/corp").Want(t, http.StatusSeeOther, "confirm")
		l.Post("/console/settings/confirm", "password", consoletest.Password, "next", "https://evil.example/").
			Want(t, http.StatusSeeOther, "/console?done=confirm")
		l.visit(l.corp, "/console/settings/link/corp").Want(t, http.StatusSeeOther, "/console/settings?done=linked")
		l.Get("/console/settings?done=linked").Want(t, http.StatusOK, "From now on you can sign in that way too", "cleo@example.com", "Unlink")
		l.visit(l.hub, "/console/settings/link/hub").Want(t, http.StatusSeeOther)
		l.Post("/console/sign-out")
		l.visit(l.corp, "/console/sign-in/with/corp").Want(t, http.StatusSeeOther)
		paths := l.unlinks()
		if len(paths) != 2 {
			t.Fatalf("the settings have %d ways to unlink, want 2", len(paths))
		}
		l.Post(paths[0]).Want(t, http.StatusSeeOther, "confirm") // a sign-in with a provider confirms nothing
		l.Post("/console/settings/confirm", "password", consoletest.Password, "next", "/console/settings").Want(t, http.StatusSeeOther)
		for _, path := range paths {
			l.Post(path).Want(t, http.StatusSeeOther, "unlinked")
		}
		l.Post(paths[0]).Want(t, http.StatusNotFound)
		l.wantMails("identity_added", "identity_added", "identity_removed", "identity_removed")
		s.Operator().Get("/console/operator/log").Want(t, http.StatusOK, "user.identity_add", "user.identity_remove", "ada@example.com")
		l.Post("/console/sign-out")
		l.visit(l.corp, "/console/sign-in/with/corp").Without(t, "ada@example.com")
	})
}

// TestLinkBelongsToSession checks that an answer links nothing after the session has ended, that a person
// has one user, and that another user's link is not found.
func TestLinkBelongsToSession(t *testing.T) {
	t.Parallel()
	consoletest.Each(t, func(t *testing.T, s *consoletest.Scene) {
		l := newLinkScene(t, s)
		l.SignIn("ada@example.com", consoletest.Password)
		_, address, _ := strings.Cut(l.Post("/console/settings/link/corp").Header().Get("Refresh"), "url=")
		callback := l.corp.Visit(address)
		l.Post("/console/sign-out")
		l.SignIn("bob@example.com", consoletest.Password)
		l.Get(callback).Want(t, http.StatusForbidden, "Your session has ended since")
		l.visit(l.corp, "/console/settings/link/corp").Want(t, http.StatusSeeOther, "linked")
		bobs := l.unlinks()[0]
		l.Post("/console/sign-out")
		l.SignIn("ada@example.com", consoletest.Password)
		l.visit(l.corp, "/console/settings/link/corp").Want(t, http.StatusUnprocessableEntity, "Another user signs in with this Corp account")
		l.Post(bobs).Want(t, http.StatusNotFound)
		l.wantMails("identity_added")
	})
}

// TestUserWithoutPassword checks that a user with an identity alone can do all that asks for a password:
// after a sign-in anew at the provider, which must say when that was, or with a code.
func TestUserWithoutPassword(t *testing.T) {
	t.Parallel()
	consoletest.Each(t, func(t *testing.T, s *consoletest.Scene) {
		l := newLinkScene(t, s)
		l.visit(l.corp, "/console/sign-in/with/corp").Want(t, http.StatusSeeOther, "/console/sign-up/with")
		l.Post("/console/sign-up/with", "email", "cleo@example.com").Want(t, http.StatusSeeOther)
		for _, path := range []string{"/console/settings", "/console/settings/factor"} {
			l.Get(path).Want(t, http.StatusOK, "confirm first that it is you")
		}
		for path, fields := range map[string][]string{"password": {"password", "a new horse"},
			"email": {"email", "new@example.com"}, "factor": nil} {
			l.Post("/console/settings/"+path, fields...).Want(t, http.StatusUnprocessableEntity, "Confirm first that it is you")
		}
		l.Get("/console/settings/confirm?next=/console/settings/factor").Want(t, http.StatusOK, "Sign in with Corp again")
		l.Get("/console/settings/confirm").Without(t, `name="password"`, `name="code"`)
		l.Post("/console/settings/confirm", "code", "123456", "next", "").Want(t, http.StatusUnprocessableEntity)

		for name, value := range map[string]any{"no time": nil, "an old time": 1_700_000_000} {
			l.corp.Edit = func(all fakeidentity.Object) { all["auth_time"] = value }
			t.Log(name)
			l.visit(l.corp, "/console/settings/confirm/corp", "next", "").Want(t, http.StatusUnprocessableEntity, "confirms nothing")
		}
		l.corp.Edit = func(all fakeidentity.Object) { all["sub"] = "person-2" }
		l.corp.UserInfo = nil
		l.visit(l.corp, "/console/settings/confirm/corp", "next", "").Want(t, http.StatusForbidden, "confirms nothing")
		l.corp.Edit = nil
		l.Post("/console/settings/factor").Want(t, http.StatusUnprocessableEntity)
		l.visit(l.corp, "/console/settings/confirm/corp", "next", "/console/settings/factor").
			Want(t, http.StatusSeeOther, "/console/settings/factor")
		l.Post("/console/settings/factor").Want(t, http.StatusOK, "Add it to your app")
		only := l.unlinks()[0]
		l.Post(only).Want(t, http.StatusBadRequest, "your only way to sign in")
		l.visit(l.hub, "/console/settings/link/hub").Want(t, http.StatusSeeOther, "linked")
		l.Post("/console/settings/confirm/hub", "next", "").Want(t, http.StatusBadRequest, "cannot confirm")
		l.Post(only).Want(t, http.StatusSeeOther, "unlinked")
		l.Post("/console/settings/password", "password", "a new horse").Want(t, http.StatusSeeOther, "done=password")
		l.Post("/console/sign-out")
		l.SignIn("cleo@example.com", "a new horse").Want(t, http.StatusSeeOther)
	})
}

// TestPasswordByMailForLinkedUser sets the first password of a user with "Forgot your password?". The link
// invites nobody.
func TestPasswordByMailForLinkedUser(t *testing.T) {
	t.Parallel()
	consoletest.Each(t, func(t *testing.T, s *consoletest.Scene) {
		l := newLinkScene(t, s)
		s.Invite("ada", account.SignIn{Email: "dan@example.com"})
		s.Update(func(tx *store.Tx) error {
			_, err := account.AddIdentityTx(tx, s.Users["dan@example.com"].ID, account.LinkedIdentity{Issuer: l.corp.URL, Subject: "person-1"})
			return err
		})
		l.Post("/console/forgot", "email", "dan@example.com").Want(t, http.StatusOK)
		var kind, text string
		s.Update(func(tx *store.Tx) error {
			return tx.QueryRow(`SELECT kind, body_text FROM mail_outbox ORDER BY id DESC LIMIT 1`).Scan(&kind, &text)
		})
		_, token, _ := strings.Cut(text, "/console/link#")
		token, _, _ = strings.Cut(token, "\n")
		if kind != "password_reset" {
			t.Errorf("the mail is of the kind %q, want password_reset", kind)
		}
		l.Post("/console/link", "link", token).Without(t, "Continue with")
		l.Post("/console/link/password", "email", "dan@example.com", "link", token, "password", "a new horse").Want(t, http.StatusSeeOther)
		l.Get("/console/settings").Want(t, http.StatusOK, "dan@example.com", "Unlink")
	})
}
