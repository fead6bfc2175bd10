package page_test

import (
	"fmt"
	"net/http"
	"net/url"
	"slices"
	"strings"
	"testing"

	"tollgate/internal/account"
	"tollgate/internal/console"
	"tollgate/internal/console/consoletest"
	"tollgate/internal/gatewaytest/fakeidentity"
	"tollgate/internal/identity"
	"tollgate/internal/operator"
	"tollgate/internal/store"
)

// corp is the configuration of the fake of OpenID Connect in tests.
func corp(p *fakeidentity.Provider) identity.Config {
	return identity.Config{Name: "corp", Title: "Corp", Kind: identity.OIDC, Issuer: p.URL, ClientID: fakeidentity.ClientID,
		ClientSecret: fakeidentity.ClientSecret, For: identity.Customers, EmailTrust: identity.ByClaim}
}

// hub is the configuration of the fake of GitHub.
func hub(p *fakeidentity.Provider) identity.Config {
	c := corp(p)
	c.Name, c.Title, c.Kind = "hub", "Hub", identity.GitHub
	return c
}

// withProviders returns a browser of a console with mail, sign-up and identity providers.
func withProviders(t *testing.T, s *consoletest.Scene, configs ...identity.Config) *consoletest.Browser {
	t.Helper()
	return withSignUp(t, s, func(o *console.Options) {
		for _, c := range configs {
			o.Identities = append(o.Identities, identity.New(identity.Options{Config: c, HTTP: http.DefaultClient}))
		}
	})
}

// depart begins a visit to a provider with a form, and returns the provider's address.
func depart(t *testing.T, b *consoletest.Browser, path string, fields ...string) (address string) {
	t.Helper()
	got := b.Post(path, fields...)
	got.Want(t, http.StatusOK)
	_, address, found := strings.Cut(got.Header().Get("Refresh"), "url=")
	if !found {
		t.Fatalf("%s leads nowhere, want a refresh: %s", path, got.Body)
	}
	return address
}

// visit begins a sign-in with a provider and returns the answer to the callback.
func visit(t *testing.T, b *consoletest.Browser, p *fakeidentity.Provider, name string, fields ...string) consoletest.Answer {
	t.Helper()
	return b.Get(p.Visit(depart(t, b, "/console/sign-in/with/"+name, fields...)))
}

// link links a person of a provider to a user without a visit.
func link(s *consoletest.Scene, email, issuer, subject string) {
	s.Update(func(tx *store.Tx) error {
		_, err := account.AddIdentityTx(tx, s.Users[email].ID, account.LinkedIdentity{Issuer: issuer, Subject: subject})
		return err
	})
}

// TestSignInWithProvider signs a known person in with each kind of provider. The browser reaches the page
// in next. A GET begins nothing.
func TestSignInWithProvider(t *testing.T) {
	t.Parallel()
	consoletest.Each(t, func(t *testing.T, s *consoletest.Scene) {
		oidc, github := fakeidentity.New(t), fakeidentity.NewGitHub(t)
		b := withProviders(t, s, corp(oidc), hub(github))
		link(s, "ada@example.com", oidc.URL, "person-1")
		link(s, "bob@example.com", github.URL, "4711")
		b.Get("/console/sign-in").Want(t, http.StatusOK, "Continue with Corp", "Continue with Hub")
		b.Get("/console/sign-up").Want(t, http.StatusOK, "Continue with Corp")
		b.Get("/console/sign-in/with/corp").Want(t, http.StatusMethodNotAllowed)
		b.Post("/console/sign-in/with/none", "next", "").Want(t, http.StatusNotFound)
		visit(t, b, oidc, "corp", "next", "/console/keys").Want(t, http.StatusSeeOther, "/console/keys")
		b.Get("/console/settings").Want(t, http.StatusOK, "ada@example.com", "Ways to sign in", "Corp")
		b.Post("/console/sign-out")
		visit(t, b, github, "hub").Want(t, http.StatusSeeOther, "/console")
		b.Get("/console/settings").Want(t, http.StatusOK, "bob@example.com")
		if n := oidc.Requests("/.well-known/openid-configuration"); n != 1 {
			t.Errorf("the provider's description was read %d times, want once", n)
		}
	})
}

// TestProvidersOff checks that a shop without identity providers has none of their pages, buttons or rows.
func TestProvidersOff(t *testing.T) {
	t.Parallel()
	consoletest.Each(t, func(t *testing.T, s *consoletest.Scene) {
		b := withSignUp(t, s, nil)
		for _, path := range []string{"/console/sign-in", "/console/sign-up"} {
			b.Get(path).Without(t, "Continue with", "without a password")
		}
		b.Post("/console/sign-in/with/corp", "next", "").Want(t, http.StatusNotFound)
		b.Get("/console/sign-in/with/corp/callback?state=x&code=y").Want(t, http.StatusNotFound)
		in := s.SignedIn("ada@example.com")
		in.Get("/console/settings").Without(t, "Ways to sign in", "settings/confirm")
		in.Get("/console/settings/confirm").Want(t, http.StatusNotFound)
		in.Post("/console/settings/link/corp").Want(t, http.StatusNotFound)
	})
}

// TestProviderAnswersAreChecked checks each fault of an answer: no session begins, and the person learns
// the remedy.
func TestProviderAnswersAreChecked(t *testing.T) {
	t.Parallel()
	set := func(name string, value any) func(*fakeidentity.Provider) {
		return func(p *fakeidentity.Provider) { p.Edit = func(all fakeidentity.Object) { all[name] = value } }
	}
	serve := func(path string, status int, body string) func(*fakeidentity.Provider) {
		return func(p *fakeidentity.Provider) {
			p.Serve = func(w http.ResponseWriter, r *http.Request) bool {
				if r.URL.Path != path {
					return false
				}
				w.Header().Set("Content-Type", "application/json")
				w.WriteHeader(status)
				fmt.Fprint(w, body)
				return true
			}
		}
	}
	faults := map[string]struct {
		spoil  func(*fakeidentity.Provider)
		change func(callback url.Values)
		status int
	}{
		"wrong nonce":           {spoil: set("nonce", "another"), status: 422},
		"no nonce":              {spoil: set("nonce", ""), status: 422},
		"another audience":      {spoil: set("aud", "another-client"), status: 422},
		"audiences without azp": {spoil: set("aud", []string{fakeidentity.ClientID, "another-client"}), status: 422},
		"another azp":           {spoil: set("azp", "another-client"), status: 422},
		"foreign issuer":        {spoil: set("iss", "https://another.example"), status: 422},
		"expired token":         {spoil: set("exp", 1), status: 422},
		"no expiry":             {spoil: set("exp", nil), status: 422},
		"forged signature":      {spoil: func(p *fakeidentity.Provider) { p.Forge = true }, status: 422},
		"algorithm none":        {spoil: func(p *fakeidentity.Provider) { p.Algorithm = "none" }, status: 422},
		"signed by public key":  {spoil: func(p *fakeidentity.Provider) { p.Algorithm = "HS256" }, status: 422},
		"signed by secret":      {spoil: func(p *fakeidentity.Provider) { p.Algorithm, p.BySecret = "HS256", true }, status: 422},
		"no subject":            {spoil: set("sub", ""), status: 422},
		"long subject":          {spoil: set("sub", strings.Repeat("x", 256)), status: 422},
		"wrong state":           {change: func(q url.Values) { q.Set("state", "another") }, status: 422},
		"no state":              {change: func(q url.Values) { q.Del("state") }, status: 422},
		"wrong code":            {change: func(q url.Values) { q.Set("code", "another") }, status: 422},
		"no code":               {change: func(q url.Values) { q.Del("code") }, status: 422},
		"iss of another":        {change: func(q url.Values) { q.Set("iss", "https://another.example") }, status: 422},
		"no iss":                {change: func(q url.Values) { q.Del("iss") }, status: 422},
		"token endpoint down":   {spoil: serve("/token", 503, "down"), status: 503},
		"secret refused":        {spoil: serve("/token", 401, `{"error":"invalid_client"}`), status: 503},
		"token endpoint odd":    {spoil: serve("/token", 200, `[1,2]`), status: 503},
		"token endpoint huge":   {spoil: serve("/token", 200, `{"access_token":"`+strings.Repeat("x", 4<<20)+`"}`), status: 503},
		"no ID token":           {spoil: serve("/token", 200, `{"access_token":"x","token_type":"bearer"}`), status: 422},
		"keys down":             {spoil: serve("/keys", 500, ""), status: 422},
	}
	consoletest.Each(t, func(t *testing.T, s *consoletest.Scene) {
		for name, fault := range faults {
			p := fakeidentity.New(t)
			b := withProviders(t, s, corp(p))
			subject := "person-1"
			s.Exec(`DELETE FROM account_identity`)
			link(s, "ada@example.com", p.URL, subject)
			address := depart(t, b, "/console/sign-in/with/corp")
			callback, err := url.Parse(p.Visit(address))
			if err != nil {
				t.Fatal(err)
			}
			if fault.spoil != nil {
				fault.spoil(p)
			}
			if fault.change != nil {
				q := callback.Query()
				fault.change(q)
				callback.RawQuery = q.Encode()
			}
			t.Log(name)
			b.Get(callback.String()).Want(t, fault.status, "ry again")
			b.Get("/console/keys").Want(t, http.StatusSeeOther, "/console/sign-in")
		}
	})
}

// TestCallbackWorksOnce checks that an answer works neither twice, nor in another browser, nor at the
// address of another provider, nor after another visit was begun.
func TestCallbackWorksOnce(t *testing.T) {
	t.Parallel()
	consoletest.Each(t, func(t *testing.T, s *consoletest.Scene) {
		p, other := fakeidentity.New(t), fakeidentity.New(t)
		second := corp(other)
		second.Name = "second"
		b := withProviders(t, s, corp(p), second)
		link(s, "ada@example.com", p.URL, "person-1")
		callback := p.Visit(depart(t, b, "/console/sign-in/with/corp"))
		stranger := withProviders(t, s, corp(p), second)
		stranger.Get(callback).Want(t, http.StatusUnprocessableEntity, "belongs to no sign-in in this browser")
		b.Get(callback).Want(t, http.StatusSeeOther)
		b.Post("/console/sign-out")
		b.Get(callback).Want(t, http.StatusUnprocessableEntity, "belongs to no sign-in")

		mixed := p.Visit(depart(t, b, "/console/sign-in/with/corp"))
		b.Get(strings.Replace(mixed, "/corp/", "/second/", 1)).Want(t, http.StatusUnprocessableEntity, "belongs to no sign-in")
		if n := other.Requests("/token"); n != 0 {
			t.Errorf("another provider got the code in %d requests, want none", n)
		}
		first := p.Visit(depart(t, b, "/console/sign-in/with/corp"))
		depart(t, b, "/console/sign-in/with/second")
		b.Get(first).Want(t, http.StatusUnprocessableEntity, "another one was begun")
	})
}

// TestFlowOverTwoNodes begins a visit on one node and ends the visit on another one.
func TestFlowOverTwoNodes(t *testing.T) {
	t.Parallel()
	consoletest.Each(t, func(t *testing.T, s *consoletest.Scene) {
		p := fakeidentity.New(t)
		b := withProviders(t, s, corp(p))
		link(s, "ada@example.com", p.URL, "person-1")
		callback := p.Visit(depart(t, b, "/console/sign-in/with/corp"))
		b.Handler = withProviders(t, s, corp(p)).Handler
		b.Get(callback).Want(t, http.StatusSeeOther, "/console")
		b.Get("/console/keys").Want(t, http.StatusOK)
	})
}

// TestProviderAddresses checks that neither the Host of a request nor a foreign page in next decides where
// a browser goes, and that an error in the address is shown as text.
func TestProviderAddresses(t *testing.T) {
	t.Parallel()
	consoletest.Each(t, func(t *testing.T, s *consoletest.Scene) {
		p := fakeidentity.New(t)
		b := withProviders(t, s, corp(p))
		link(s, "ada@example.com", p.URL, "person-1")
		inner := b.Handler
		b.Handler = http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) { r.Host = "evil.example"; inner.ServeHTTP(w, r) })
		b.Headers["X-Forwarded-Host"] = "evil.example"
		address := depart(t, b, "/console/sign-in/with/corp")
		want := url.QueryEscape(consoletest.PublicURL + "/console/sign-in/with/corp/callback")
		if !strings.Contains(address, "redirect_uri="+want+"&") {
			t.Errorf("the address is %s, want redirect_uri=%s", address, want)
		}
		for _, next := range []string{"https://evil.example/", "//evil.example/console", "/console/../..//evil.example", `/\evil.example`} {
			visit(t, b, p, "corp", "next", next).Want(t, http.StatusSeeOther)
			b.Post("/console/sign-out")
			got := b.Get(p.Visit(depart(t, b, "/console/sign-in/with/corp", "next", next)))
			if location := got.Header().Get("Location"); location != "/console" {
				t.Errorf("next %q leads to %q, want /console", next, location)
			}
			b.Post("/console/sign-out")
		}
		u, err := url.Parse(p.Visit(depart(t, b, "/console/sign-in/with/corp")))
		if err != nil {
			t.Fatal(err)
		}
		state := url.QueryEscape(u.Query().Get("state"))
		got := b.Get(u.Path + "?state=" + state + "&error=%3Cscript%3E&error_description=a%0A%3Cb%3E")
		got.Want(t, http.StatusUnprocessableEntity, "&lt;script&gt;")
		got.Without(t, "<script>", "<b>")
		b.Get(u.Path+"?state=forged&error=access_denied").Want(t, http.StatusUnprocessableEntity, "belongs to no sign-in")
		b.Headers["Sec-Fetch-Site"], b.Headers["Origin"] = "cross-site", "https://evil.example"
		b.Post("/console/sign-in/with/corp").Want(t, http.StatusForbidden)
	})
}

// TestProviderDown signs in by password while a provider is down or faulty, and with the provider as soon
// as the provider works.
func TestProviderDown(t *testing.T) {
	t.Parallel()
	consoletest.Each(t, func(t *testing.T, s *consoletest.Scene) {
		p := fakeidentity.New(t)
		for name, body := range map[string]string{"down": "", "another issuer": `{"issuer":"https://another.example"}`,
			"huge": strings.Repeat("x", 4<<20), "script": `{"issuer":"` + p.URL +
				`","authorization_endpoint":"javascript:alert(1)","token_endpoint":"` + p.URL + `/token"}`} {
			p.Serve = func(w http.ResponseWriter, r *http.Request) bool { fmt.Fprint(w, body); return true }
			b := withProviders(t, s, corp(p))
			b.Get("/console/sign-in").Want(t, http.StatusOK, "Continue with Corp")
			t.Log(name)
			b.Post("/console/sign-in/with/corp").Want(t, http.StatusServiceUnavailable, "does not answer at the moment")
			b.SignIn("ada@example.com", consoletest.Password).Want(t, http.StatusSeeOther)
		}
		p.Serve = nil
		link(s, "ada@example.com", p.URL, "person-1")
		visit(t, withProviders(t, s, corp(p)), p, "corp").Want(t, http.StatusSeeOther)
	})
}

// TestEmailSignsNobodyIn checks the role of emails at a provider: a user's verified email opens no account,
// a changed email keeps the user, and another person with the email is not the user.
func TestEmailSignsNobodyIn(t *testing.T) {
	t.Parallel()
	consoletest.Each(t, func(t *testing.T, s *consoletest.Scene) {
		p := fakeidentity.New(t)
		p.Claims["email"] = "ada@example.com"
		b := withProviders(t, s, corp(p))
		visit(t, b, p, "corp").Want(t, http.StatusForbidden, "No user signs in with this Corp account yet")
		link(s, "ada@example.com", p.URL, "person-1")
		p.Claims["email"] = "new@example.com"
		visit(t, b, p, "corp").Want(t, http.StatusSeeOther)
		b.Get("/console/settings").Want(t, http.StatusOK, "ada@example.com", "new@example.com")
		b.Post("/console/sign-out")
		p.Claims["sub"], p.Claims["email"] = "person-2", "ada@example.com"
		visit(t, b, p, "corp").Want(t, http.StatusForbidden, "No user signs in")
	})
}

// TestDisabledUserStaysOut checks that a provider does not let a disabled user in.
func TestDisabledUserStaysOut(t *testing.T) {
	t.Parallel()
	consoletest.Each(t, func(t *testing.T, s *consoletest.Scene) {
		p := fakeidentity.New(t)
		b := withProviders(t, s, corp(p))
		link(s, "ada@example.com", p.URL, "person-1")
		s.ChangeUser("ada@example.com", account.UserChange{Disabled: new(true), ByOperator: true})
		visit(t, b, p, "corp").Want(t, http.StatusForbidden, "You cannot sign in here")
		b.Get("/console/keys").Want(t, http.StatusSeeOther)
	})
}

// TestSignUpWithProvider checks that a person with a verified email creates an account with a button,
// without a password and with trial credit, and that sign-ups of others with the address end.
func TestSignUpWithProvider(t *testing.T) {
	t.Parallel()
	consoletest.Each(t, func(t *testing.T, s *consoletest.Scene) {
		p := fakeidentity.New(t)
		b := withProviders(t, s, corp(p))
		hijack := signUp(t, s, withSignUp(t, s, nil), "cleo@example.com")
		visit(t, b, p, "corp", "next", "/console/billing").Want(t, http.StatusSeeOther, "/console/sign-up/with")
		b.Get("/console/keys").Want(t, http.StatusSeeOther, "/console/sign-in")
		b.Get("/console/sign-up/with").Want(t, http.StatusOK, "cleo@example.com", "Create the account")
		withProviders(t, s, corp(p)).Post("/console/sign-up/with", "email", "cleo@example.com").
			Want(t, http.StatusUnprocessableEntity, "ten minutes")
		b.Post("/console/sign-up/with", "email", "other@example.com").Want(t, http.StatusSeeOther, "/console/billing")
		b.Get("/console/billing").Want(t, http.StatusOK, "trial credit", "$1.00", "cleo@example.com")
		withSignUp(t, s, nil).Post("/console/verify", "link", hijack).Want(t, http.StatusUnprocessableEntity, "no longer valid")
		s.Browser().SignIn("cleo@example.com", "a new horse").Want(t, http.StatusUnprocessableEntity)
		b.Post("/console/sign-out")
		visit(t, b, p, "corp").Want(t, http.StatusSeeOther, "/console")
		s.Operator().Get("/console/operator/log").Want(t, http.StatusOK, "user.identity_add", "account.trial", "cleo@example.com")
	})
}

// TestSignUpWithProviderRefused checks the limits of new accounts: none for people with an unverified email, past
// a closed registration, or outside its domains.
func TestSignUpWithProviderRefused(t *testing.T) {
	t.Parallel()
	consoletest.Each(t, func(t *testing.T, s *consoletest.Scene) {
		p := fakeidentity.New(t)
		p.Claims["email_verified"] = false
		visit(t, withProviders(t, s, corp(p)), p, "corp").Want(t, http.StatusForbidden, "does not confirm that it is yours")
		delete(p.Claims, "email_verified")
		visit(t, withProviders(t, s, corp(p)), p, "corp").Want(t, http.StatusForbidden, "does not confirm that it is yours")
		trusted := corp(p)
		trusted.EmailTrust = identity.Always
		visit(t, withProviders(t, s, trusted), p, "corp").Want(t, http.StatusSeeOther, "/console/sign-up/with")
		p.Claims["email_verified"] = true
		distrusted := corp(p)
		distrusted.EmailTrust = identity.Never
		visit(t, withProviders(t, s, distrusted), p, "corp").Want(t, http.StatusForbidden, "does not confirm")

		for _, rules := range []account.SignUpRules{{}, {Mode: account.SignUpDomains, Domains: []string{"shop.example"}}} {
			b := withSignUp(t, s, func(o *console.Options) {
				o.Identities = []*identity.IDProvider{identity.New(identity.Options{Config: corp(p), HTTP: http.DefaultClient})}
				o.SignUps = operator.SignUps{Rules: rules}
			})
			visit(t, b, p, "corp").Want(t, http.StatusForbidden, "No user signs in")
			if rules.Mode == "" {
				b.Get("/console/sign-up/with").Want(t, http.StatusNotFound)
			}
		}
		domains := corp(p)
		domains.Domains = []string{"corp.example"}
		visit(t, withProviders(t, s, domains), p, "corp").Want(t, http.StatusForbidden, "verified address at corp.example")
		hosted := corp(p)
		hosted.HostedDomain = "corp.example"
		visit(t, withProviders(t, s, hosted), p, "corp").Want(t, http.StatusForbidden, "Only people of corp.example")
		p.Claims["hd"] = "corp.example"
		visit(t, withProviders(t, s, hosted), p, "corp").Want(t, http.StatusSeeOther, "/console/sign-up/with")
	})
}

// TestInvitationWithProvider accepts an invitation with a provider in place of a password. The invitation
// works once, and a link for a forgotten password links nothing.
func TestInvitationWithProvider(t *testing.T) {
	t.Parallel()
	consoletest.Each(t, func(t *testing.T, s *consoletest.Scene) {
		p := fakeidentity.New(t)
		b := withProviders(t, s, corp(p))
		_, token, _ := strings.Cut(s.Invite("ada", account.SignIn{Email: "dan@example.com"}), "#")
		b.Post("/console/link", "link", token).Want(t, http.StatusOK, "Continue with Corp", token)
		visit(t, b, p, "corp", "link", token).Want(t, http.StatusSeeOther, "/console")
		b.Get("/console/settings").Want(t, http.StatusOK, "dan@example.com", "Ways to sign in")
		added := func(l letter) bool { return l.kind == "identity_added" && l.to == "dan@example.com" }
		if mails := outbox(s); !slices.ContainsFunc(mails, added) {
			t.Errorf("the outbox has %+v, want a mail about the new way to dan", mails)
		}
		other := fakeidentity.New(t)
		c := withProviders(t, s, corp(other))
		c.Post("/console/link", "link", token).Want(t, http.StatusUnprocessableEntity, "no longer valid")
		visit(t, c, other, "corp", "link", token).Want(t, http.StatusUnprocessableEntity, "no longer valid")
		reset := s.Link("ada@example.com")
		c.Post("/console/link", "link", reset).Want(t, http.StatusOK, "replaces your old password")
		c.Post("/console/link", "link", reset).Without(t, "Continue with")
		visit(t, c, other, "corp", "link", reset).Want(t, http.StatusUnprocessableEntity, "no longer valid")
	})
}

// TestSecondFactorWithProvider expects the code page of the gateway after a sign-in with a provider, unless
// the operator trusts the provider's second factor and the token has the claim.
func TestSecondFactorWithProvider(t *testing.T) {
	t.Parallel()
	consoletest.Each(t, func(t *testing.T, s *consoletest.Scene) {
		p := fakeidentity.New(t)
		link(s, "ada@example.com", p.URL, "person-1")
		s.Exec(`UPDATE account_user SET totp_secret = 'JBSWY3DPEHPK3PXPJBSWY3DPEHPK3PXP', totp_since_ms = 1 WHERE email = 'ada@example.com'`)
		trusted := corp(p)
		trusted.SecondFactor = "amr=mfa"
		for _, c := range []struct {
			config identity.Config
			amr    []string
			want   string
		}{
			{corp(p), []string{"mfa"}, "/console/sign-in/code"},
			{trusted, []string{"pwd"}, "/console/sign-in/code"},
			{trusted, []string{"pwd", "mfa"}, "/console/keys"},
		} {
			p.Claims["amr"] = c.amr
			b := withProviders(t, s, c.config)
			got := visit(t, b, p, "corp", "next", "/console/keys")
			if location, _, _ := strings.Cut(got.Header().Get("Location"), "?"); location != c.want {
				t.Errorf("trust %q, amr %v: the sign-in leads to %q, want %q", c.config.SecondFactor, c.amr, location, c.want)
			}
		}
	})
}

// TestOperatorsByClaim checks the roles of operators by a claim: no setting gives none, the claim gives a
// role to a linked user, and a sign-in without the claim takes the role away. A role given by hand stays,
// and a provider for customers opens no operator's page.
func TestOperatorsByClaim(t *testing.T) {
	t.Parallel()
	consoletest.Each(t, func(t *testing.T, s *consoletest.Scene) {
		p := fakeidentity.New(t)
		link(s, "ada@example.com", p.URL, "person-1")
		p.Claims["groups"] = []string{"staff", "admins"}
		const begin = "/console/operator/sign-in/with/corp"
		enter := func(b *consoletest.Browser) consoletest.Answer {
			t.Helper()
			return b.Get(p.Visit(depart(t, b, begin)))
		}
		withProviders(t, s, corp(p)).Post(begin, "next", "").Want(t, http.StatusNotFound)
		plain := corp(p)
		plain.For = identity.Both
		enter(withProviders(t, s, plain)).Want(t, http.StatusForbidden, "not an operator")
		claiming := plain
		claiming.Roles = identity.RoleClaim{Claim: "groups", Roles: map[string]string{"admins": "owner"}, Order: []string{"owner", "support"}}
		b := withProviders(t, s, claiming)
		b.Get("/console/operator/sign-in").Want(t, http.StatusOK, "Continue with Corp")
		enter(b).Want(t, http.StatusSeeOther, "/console/operator")
		b.Get("/console/operator/accounts").Want(t, http.StatusOK)
		delete(p.Claims, "groups")
		enter(withProviders(t, s, claiming)).Want(t, http.StatusSeeOther, "/console/operator") // the last owner
		b.Get("/console/operator/accounts").Want(t, http.StatusOK)
		s.User("bob", account.SignIn{Email: "boss@example.com", Role: account.Owner})
		enter(withProviders(t, s, claiming)).Want(t, http.StatusForbidden, "not an operator")
		b.Get("/console/operator/accounts").Want(t, http.StatusSeeOther, "/console/operator/sign-in")
		s.Operator().Get("/console/operator/log").Want(t, http.StatusOK, "user.change", "owner")
		s.ChangeUser("ada@example.com", account.UserChange{Role: new(account.Support)})
		enter(withProviders(t, s, claiming)).Want(t, http.StatusSeeOther, "/console/operator")
		p.Claims["sub"], p.Claims["groups"] = "person-2", []string{"admins"}
		enter(withProviders(t, s, claiming)).Want(t, http.StatusForbidden, "No user signs in")
	})
}
