package page_test

import (
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"tollgate/internal/account"
	"tollgate/internal/console"
	"tollgate/internal/console/consoletest"
	"tollgate/internal/console/page"
	"tollgate/internal/gatewaytest/fakeidentity"
	"tollgate/internal/money"
	"tollgate/internal/operator"
	"tollgate/internal/store"
)

// withSignUp returns a browser of a console with mail and sign-up, after change has edited its options.
// change may be nil.
func withSignUp(t *testing.T, s *consoletest.Scene, change func(*console.Options)) *consoletest.Browser {
	t.Helper()
	b := s.Browser()
	b.Handler = s.Console(func(o *console.Options) {
		o.SignUps.Trial = account.Trial{Credit: money.USD, DailyBudget: 10 * money.USD}
		if change != nil {
			change(o)
		}
	})
	return b
}

// signUp signs up, with further fields of the form, and returns the token in the mail.
func signUp(t *testing.T, s *consoletest.Scene, b *consoletest.Browser, email string, fields ...string) (token string) {
	t.Helper()
	b.Post("/console/sign-up", append(fields, "email", email, "password", "a new horse")...).Want(t, http.StatusOK, "Check your inbox")
	mails := outbox(s)
	last := mails[len(mails)-1]
	_, rest, found := strings.Cut(last.text, consoletest.PublicURL+"/console/verify#")
	if last.kind != "sign_up" || !found {
		t.Fatalf("the mail is %+v, want a link at %s", last, consoletest.PublicURL)
	}
	token, _, _ = strings.Cut(rest, "\n")
	return token
}

// TestSignUp checks the way from the sign-in page over the mail to the first key: before the
// verification there is no account, GET and the first form change nothing, and the link works once.
func TestSignUp(t *testing.T) {
	t.Parallel()
	consoletest.Each(t, func(t *testing.T, s *consoletest.Scene) {
		b := withSignUp(t, s, nil)
		b.Get("/console/sign-in").Want(t, http.StatusOK, "/console/sign-up")
		b.Get("/console/sign-up").Want(t, http.StatusOK, "Sign up")
		token := signUp(t, s, b, "Cleo@example.com")
		b.Get("/console/keys/new").Want(t, http.StatusSeeOther, "/console/sign-in")
		b.SignIn("cleo@example.com", "a new horse").Want(t, http.StatusUnprocessableEntity)
		for range 2 {
			b.Get("/console/verify").Want(t, http.StatusOK, "data-fragment")
			b.Post("/console/verify", "link", token).Want(t, http.StatusOK, "cleo@example.com", "Your account begins with this")
		}
		b.Post("/console/verify/confirm", "email", "cleo@example.com", "link", token).Want(t, http.StatusSeeOther)
		b.Get("/console/billing").Want(t, http.StatusOK, "trial credit", "$1.00")
		created := b.Post("/console/keys/new", "name", "first", "once", b.Get("/console/keys/new").Once(t))
		created.Want(t, http.StatusOK, "Key created")
		other := withSignUp(t, s, nil)
		other.SignIn("cleo@example.com", "a new horse").Want(t, http.StatusSeeOther)
		other.Post("/console/verify", "link", token).Want(t, http.StatusUnprocessableEntity, "no longer valid")
		other.Post("/console/verify/confirm", "link", token, "password", "another horse").
			Want(t, http.StatusUnprocessableEntity, "no longer valid")
		s.Operator().Get("/console/operator/log").Want(t, http.StatusOK, "account.create", "account.trial", "cleo@example.com")
	})
}

// TestSignUpInOtherBrowser checks that another browser must choose a password, and keeps what the form
// shows after a fault.
func TestSignUpInOtherBrowser(t *testing.T) {
	t.Parallel()
	consoletest.Each(t, func(t *testing.T, s *consoletest.Scene) {
		token := signUp(t, s, withSignUp(t, s, nil), "cleo@example.com")
		b := withSignUp(t, s, nil)
		b.Post("/console/verify", "link", token).Want(t, http.StatusOK, "another browser", `name="password"`)
		b.Post("/console/verify/confirm", "link", token, "password", "short").Want(t, http.StatusUnprocessableEntity,
			"at least 8 characters", "cleo@example.com", token)
		b.Post("/console/verify/confirm", "link", token, "password", "her own horse").Want(t, http.StatusSeeOther)
		b.Get("/console").Want(t, http.StatusOK, "cleo@example.com")
		s.Browser().SignIn("cleo@example.com", "a new horse").Want(t, http.StatusUnprocessableEntity)
	})
}

// TestSignUpRevealsNothing checks that the answer is the same for known and unknown emails, that the
// known user gets a mail about it, and that mails ignore the Host of the request.
func TestSignUpRevealsNothing(t *testing.T) {
	t.Parallel()
	consoletest.Each(t, func(t *testing.T, s *consoletest.Scene) {
		b := withSignUp(t, s, nil)
		b.Headers["X-Forwarded-Host"] = "evil.example"
		host := b.Handler
		b.Handler = http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) { r.Host = "evil.example"; host.ServeHTTP(w, r) })
		b.Headers["Origin"] = consoletest.PublicURL
		answers := map[string]bool{}
		for _, email := range []string{"ada@example.com", "cleo@example.com"} {
			got := b.Post("/console/sign-up", "email", email, "password", "a new horse")
			got.Want(t, http.StatusOK)
			if len(got.Result().Cookies()) != 1 {
				t.Errorf("%s: %d cookies, want one", email, len(got.Result().Cookies()))
			}
			answers[got.Body.String()] = true
		}
		if len(answers) != 1 {
			t.Errorf("the answers differ: %v", answers)
		}
		mails := outbox(s)
		if len(mails) != 2 || mails[0].kind != "known_user" || mails[0].to != "ada@example.com" || mails[1].kind != "sign_up" {
			t.Fatalf("the outbox has %+v, want a mail to the known user and one with a link", mails)
		}
		for _, m := range mails {
			if strings.Contains(m.text, "evil") || !strings.Contains(m.text, consoletest.PublicURL+"/console/") {
				t.Errorf("the mail does not link to %s alone:\n%s", consoletest.PublicURL, m.text)
			}
		}
	})
}

// TestSignUpPastInvitation checks that a stranger cannot hold an address by an invitation to an account of theirs: the
// owner of the address signs up, by mail or with a provider, and the invitation ends. An invitation to an account
// of one's own, or of an operator, stays.
func TestSignUpPastInvitation(t *testing.T) {
	t.Parallel()
	consoletest.Each(t, func(t *testing.T, s *consoletest.Scene) {
		p := fakeidentity.New(t)
		p.Claims["email"] = "dan@example.com"
		stranger := s.SignedIn("bob@example.com")
		tokens := map[string]string{}
		for _, email := range []string{"cleo@example.com", "dan@example.com"} {
			stranger.Post("/console/settings/users", "email", email).Want(t, http.StatusSeeOther, "done=invited")
			mails := outbox(s)
			tokens[email] = tokenIn(t, mails[len(mails)-1])
		}
		b := withSignUp(t, s, nil)
		token := signUp(t, s, b, "cleo@example.com")
		stranger.Get("/console/settings").Want(t, http.StatusOK, "cleo@example.com")
		b.Post("/console/verify/confirm", "email", "cleo@example.com", "link", token).Want(t, http.StatusSeeOther)
		c := withProviders(t, s, corp(p))
		visit(t, c, p, "corp").Want(t, http.StatusSeeOther, "/console/sign-up/with")
		c.Post("/console/sign-up/with", "email", "").Want(t, http.StatusSeeOther)
		for email, own := range map[string]*consoletest.Browser{"cleo@example.com": b, "dan@example.com": c} {
			own.Get("/console/settings").Want(t, http.StatusOK, email)
			own.Get("/console/settings").Without(t, "bob@example.com", s.Accounts["bob"].ID)
			stranger.Get("/console/settings").Without(t, email)
			s.Browser().Post("/console/link", "link", tokens[email]).Want(t, http.StatusUnprocessableEntity, "no longer valid")
		}
		s.Operator().Get("/console/operator/log?act=user.delete").Want(t, http.StatusOK, "cleo@example.com", "dan@example.com")

		s.Invite("bob", account.SignIn{Email: "op@example.com", Role: account.Support})
		s.Update(func(tx *store.Tx) error {
			a, err := account.CreateTx(tx, account.NewAccount{Name: "new"})
			if err == nil {
				_, err = account.CreateUserTx(tx, a.ID, account.SignIn{Email: "first@example.com"})
			}
			return err
		})
		for _, email := range []string{"op@example.com", "first@example.com", "ada@example.com"} {
			withSignUp(t, s, nil).Post("/console/sign-up", "email", email, "password", "a new horse").Want(t, http.StatusOK)
			if mails := outbox(s); mails[len(mails)-1].kind != "known_user" {
				t.Errorf("%s got the mail %+v, want known_user", email, mails[len(mails)-1])
			}
		}
	})
}

// TestSignUpOff checks that a shop without sign-up has none of its pages and no link to them.
func TestSignUpOff(t *testing.T) {
	t.Parallel()
	consoletest.Each(t, func(t *testing.T, s *consoletest.Scene) {
		b := withSignUp(t, s, func(o *console.Options) { o.SignUps = operator.SignUps{} })
		b.Get("/console/sign-in").Without(t, "sign-up")
		for _, path := range []string{"/console/sign-up", "/console/verify"} {
			b.Get(path).Want(t, http.StatusNotFound)
			b.Post(path).Want(t, http.StatusNotFound)
		}
	})
}

// fakeTurnstile answers as Turnstile: each answer of its widget is valid once, for one secret.
func fakeTurnstile(t *testing.T, secret string, status *int) *httptest.Server {
	valid := map[string]bool{"person": true}
	s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		answer := r.FormValue("response")
		verdict := `{"success":false,"error-codes":["invalid-input-response"]}`
		switch {
		case r.Method != http.MethodPost || r.FormValue("remoteip") == "":
			verdict = `{"success":false,"error-codes":["bad-request"]}`
		case r.FormValue("secret") != secret:
			verdict = `{"success":false,"error-codes":["invalid-input-secret"]}`
		case valid[answer]:
			valid[answer] = false
			verdict = `{"success":true,"error-codes":[],"hostname":"console.example"}`
		}
		w.Header().Set("Content-Type", "application/json")
		w.WriteHeader(*status)
		_, _ = w.Write([]byte(verdict))
	}))
	t.Cleanup(s.Close)
	return s
}

// TestChallenge checks that a sign-up needs an answer of the challenge, which works once, that a broken
// service lets nobody in, and that only this page may load its script.
func TestChallenge(t *testing.T) {
	t.Parallel()
	consoletest.Each(t, func(t *testing.T, s *consoletest.Scene) {
		status, secret := http.StatusOK, "the secret"
		service := fakeTurnstile(t, secret, &status)
		b := withSignUp(t, s, func(o *console.Options) {
			o.Challenge = &page.Challenge{SiteKey: "site-1", Secret: secret, VerifyURL: service.URL + "/siteverify",
				ScriptURL: "https://challenges.example/api.js", HTTP: service.Client()}
		})
		shown := b.Get("/console/sign-up")
		shown.Want(t, http.StatusOK, `data-sitekey="site-1"`, `<script src="https://challenges.example/api.js" async defer>`)
		policy := shown.Header().Get("Content-Security-Policy")
		if !strings.Contains(policy, "script-src 'self' https://challenges.example;") ||
			!strings.HasSuffix(policy, "; frame-src https://challenges.example") {
			t.Errorf("the policy is %q, want the script and the frame of the service", policy)
		}
		if got := b.Get("/console/sign-in").Header().Get("Content-Security-Policy"); strings.Contains(got, "challenges") {
			t.Errorf("the policy of another page is %q", got)
		}
		send := func(answer string, want int, text string) {
			t.Helper()
			got := b.Post("/console/sign-up", "email", "cleo@example.com", "password", "a new horse", "cf-turnstile-response", answer)
			got.Want(t, want, text)
			if want == http.StatusUnprocessableEntity && !strings.Contains(got.Body.String(), `data-sitekey="site-1"`) {
				t.Errorf("the page after a fault has no widget: %s", got.Body)
			}
			s.Exec(`DELETE FROM account_attempt`)
		}
		send("", http.StatusUnprocessableEntity, "is missing")
		send("robot", http.StatusUnprocessableEntity, "has failed")
		status = http.StatusBadGateway
		send("person", http.StatusServiceUnavailable, "")
		status = http.StatusOK
		if n := len(outbox(s)); n != 0 {
			t.Errorf("%d mails before the challenge was met, want 0", n)
		}
		send("robot", http.StatusUnprocessableEntity, "has failed")
	})
	consoletest.Each(t, func(t *testing.T, s *consoletest.Scene) {
		status := http.StatusOK
		service := fakeTurnstile(t, "the secret", &status)
		open := func(secret string) *consoletest.Browser {
			return withSignUp(t, s, func(o *console.Options) {
				o.Challenge = &page.Challenge{SiteKey: "site-1", Secret: secret, VerifyURL: service.URL, ScriptURL: service.URL, HTTP: service.Client()}
			})
		}
		fields := []string{"email", "cleo@example.com", "password", "a new horse", "cf-turnstile-response", "person"}
		open("a wrong secret").Post("/console/sign-up", fields...).Want(t, http.StatusServiceUnavailable)
		b := open("the secret")
		b.Post("/console/sign-up", fields...).Want(t, http.StatusOK)
		b.Post("/console/sign-up", fields...).Want(t, http.StatusUnprocessableEntity, "has failed")
		if n := len(outbox(s)); n != 1 {
			t.Errorf("%d mails, want 1", n)
		}
	})
}

// TestSignUpOnTwoNodes signs up at one node and verifies at another one, twice at the same time: one
// account is created.
func TestSignUpOnTwoNodes(t *testing.T) {
	t.Parallel()
	consoletest.Each(t, func(t *testing.T, s *consoletest.Scene) {
		first, second := withSignUp(t, s, nil), withSignUp(t, s, nil)
		second.Cookies = first.Cookies
		token := signUp(t, s, first, "cleo@example.com")
		codes := make(chan int, 2)
		for _, b := range []*consoletest.Browser{first, second} {
			own := *b
			own.Cookies = map[string]*http.Cookie{}
			for name, c := range b.Cookies {
				own.Cookies[name] = c
			}
			go func() { codes <- own.Post("/console/verify/confirm", "link", token).Code }()
		}
		got := map[int]int{<-codes: 1}
		got[<-codes]++
		if got[http.StatusSeeOther] != 1 || got[http.StatusUnprocessableEntity] != 1 {
			t.Errorf("got the statuses %v, want one sign-in and one invalid link", got)
		}
		s.Update(func(tx *store.Tx) error {
			var n int
			err := tx.QueryRow(`SELECT COUNT(*) FROM account WHERE email = 'cleo@example.com'`).Scan(&n)
			if n != 1 {
				t.Errorf("%d accounts, want 1", n)
			}
			return err
		})
	})
}
