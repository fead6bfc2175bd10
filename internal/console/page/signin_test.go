package page_test

import (
	"net/http"
	"strings"
	"testing"

	"tollgate/internal/account"
	"tollgate/internal/console"
	"tollgate/internal/console/consoletest"
	"tollgate/internal/httpapi"
	"tollgate/internal/store"
)

// TestSignIn checks the sign-in with a password, the cookie, the end of old sessions, and the address
// after the sign-in.
func TestSignIn(t *testing.T) {
	t.Parallel()
	consoletest.Each(t, func(t *testing.T, s *consoletest.Scene) {
		b := s.Browser()
		b.Get("/console/keys?after=x").Want(t, http.StatusSeeOther, "/console/sign-in?next=%2Fconsole%2Fkeys%3Fafter%3Dx")
		for _, wrong := range [][2]string{{"ada@example.com", "wrong horse"}, {"nobody@example.com", consoletest.Password}, {"no email", ""}} {
			got := b.SignIn(wrong[0], wrong[1])
			got.Want(t, http.StatusUnprocessableEntity, "Wrong email or password.", `value="`+wrong[0]+`"`)
			if wrong[1] != "" && strings.Contains(got.Body.String(), wrong[1]) {
				t.Error("the page shows the password")
			}
		}
		// A planted cookie value must be worthless after the sign-in.
		planted := &http.Cookie{Name: "tollgate", Value: strings.Repeat("a", 43)}
		b.Cookies["tollgate"] = planted
		b.Post("/console/sign-in", "email", "Ada@Example.com", "password", consoletest.Password, "next", "/console/keys?after=x").
			Want(t, http.StatusSeeOther, "/console/keys?after=x")
		first := b.Cookies["tollgate"]
		if first.Value == planted.Value || !first.HttpOnly || first.SameSite != http.SameSiteLaxMode || first.Secure || first.Path != "/" {
			t.Errorf("the cookie is %+v, want a new value, HttpOnly, SameSite=Lax and the path /", first)
		}
		b.Get("/console").Want(t, http.StatusOK, "ada@example.com", "$10.00")
		b.SignIn("ada@example.com", consoletest.Password).Want(t, http.StatusSeeOther)
		second := b.Cookies["tollgate"].Value
		b.Cookies["tollgate"] = first
		b.Get("/console").Want(t, http.StatusSeeOther)
		b.Cookies["tollgate"] = &http.Cookie{Name: "tollgate", Value: second}
		b.Post("/console/sign-out").Want(t, http.StatusSeeOther, "/console/sign-in")
		b.Cookies["tollgate"] = &http.Cookie{Name: "tollgate", Value: second}
		b.Get("/console").Want(t, http.StatusSeeOther)

		for next, want := range map[string]string{
			"": "/console", "https://elsewhere.example/console": "/console", "//elsewhere.example/console": "/console",
			"/console/../v1": "/console", "/consoles": "/console", `/console\@x`: "/console", "/console/keys": "/console/keys",
			"javascript:alert(1)": "/console", "/%2fconsole": "/console",
		} {
			answer := b.Post("/console/sign-in", "email", "ada@example.com", "password", consoletest.Password, "next", next)
			if got := answer.Header().Get("Location"); got != want {
				t.Errorf("next %q leads to %q, want %q", next, got, want)
			}
		}
	})
}

// TestLinkToOperatorsSignIn checks that the users' sign-in page links to the operators' sign-in
// if operators can sign in there.
func TestLinkToOperatorsSignIn(t *testing.T) {
	t.Parallel()
	consoletest.Each(t, func(t *testing.T, s *consoletest.Scene) {
		const link = `href="/console/operator/sign-in"`
		b := s.Browser()
		b.Get("/console/sign-in").Want(t, http.StatusOK, link)
		for _, change := range []func(*console.Options){
			func(o *console.Options) { o.Sections = console.UserSection },
			func(o *console.Options) { o.AdminToken = httpapi.NewOperatorToken("") }, // and no user is an operator
		} {
			b.Handler = s.Console(change)
			b.Get("/console/sign-in").Without(t, link)
		}
		s.User("ada", account.SignIn{Email: "op@example.com", Role: account.Owner})
		b.Get("/console/sign-in").Want(t, http.StatusOK)
		b.Handler = s.Console(func(o *console.Options) { o.AdminToken = httpapi.NewOperatorToken("") })
		b.Get("/console/sign-in").Want(t, http.StatusOK, link)
	})
}

// TestSignInIsThrottled checks that the page shows the time to wait, and that all nodes share the
// wait.
func TestSignInIsThrottled(t *testing.T) {
	t.Parallel()
	consoletest.Each(t, func(t *testing.T, s *consoletest.Scene) {
		b, other := s.Browser(), s.Browser()
		other.Handler = s.Console(func(o *console.Options) { o.SignIns = account.NewSignIns(s.DB, s.Options.Passwords, nil) })
		for range 10 {
			b.SignIn("ada@example.com", "wrong horse").Want(t, http.StatusUnprocessableEntity)
		}
		for _, b := range []*consoletest.Browser{b, other} {
			got := b.SignIn("ada@example.com", consoletest.Password)
			got.Want(t, http.StatusTooManyRequests, "Too many attempts. Try again in 15 minutes.")
			if got.Header().Get("Retry-After") == "" {
				t.Error("the answer has no Retry-After")
			}
		}
		other.SignIn("bob@example.com", consoletest.Password).Want(t, http.StatusSeeOther)
	})
}

// TestOperatorsSignIn checks the sign-in with the token and as a user who is an operator.
func TestOperatorsSignIn(t *testing.T) {
	t.Parallel()
	consoletest.Each(t, func(t *testing.T, s *consoletest.Scene) {
		b := s.Browser()
		b.Get("/console/operator").Want(t, http.StatusSeeOther, "/console/operator/sign-in?next=%2Fconsole%2Foperator")
		b.Post("/console/operator/sign-in", "admin_token", "wrong").Want(t, http.StatusUnprocessableEntity, "Wrong token.")
		b.Post("/console/operator/sign-in", "email", "ada@example.com", "password", consoletest.Password).Want(t, http.StatusUnprocessableEntity,
			"Wrong email or password.")
		b.Post("/console/operator/sign-in", "admin_token", consoletest.AdminToken).Want(t, http.StatusSeeOther, "/console/operator")
		b.Get("/console/operator/sessions").Want(t, http.StatusOK, "operator&#39;s token")
		b.Get("/console").Want(t, http.StatusSeeOther) // the operator's cookie does not open the users' pages

		// The session ends when the token changes.
		b.Handler = s.Console(func(o *console.Options) { o.AdminToken = httpapi.NewOperatorToken("another-token-0123456789") })
		b.Get("/console/operator").Want(t, http.StatusSeeOther)

		// While there is neither an operator nor a token, there is no such page.
		b.Handler = s.Console(func(o *console.Options) { o.AdminToken = nil })
		b.Get("/console/operator").Want(t, http.StatusNotFound)
		b.Get("/console/operator/sign-in").Want(t, http.StatusNotFound)
		s.User("ada", account.SignIn{Email: "op@example.com", Role: account.Owner})
		b.Get("/console/operator/sign-in").Want(t, http.StatusOK)
		b.Post("/console/operator/sign-in", "admin_token", "").Want(t, http.StatusUnprocessableEntity)
		b.Post("/console/operator/sign-in", "email", "op@example.com", "password", consoletest.Password).Want(t, http.StatusSeeOther)
		b.Get("/console/operator").Want(t, http.StatusOK, "op@example.com")
		s.ChangeUser("op@example.com", account.UserChange{Role: new(account.OperatorRole(""))})
		b.Get("/console/operator").Want(t, http.StatusNotFound)
	})
}

// TestSessionsOpenOnlyTheirSection checks that the cookie value of one section is not a session under
// the name of the other section's cookie, also for a user with the operator's role.
func TestSessionsOpenOnlyTheirSection(t *testing.T) {
	t.Parallel()
	consoletest.Each(t, func(t *testing.T, s *consoletest.Scene) {
		s.User("ada", account.SignIn{Email: "op@example.com", Role: account.Owner})
		user, operator := s.SignedIn("op@example.com"), s.Browser()
		operator.Post("/console/operator/sign-in", "email", "op@example.com", "password", consoletest.Password).Want(t, http.StatusSeeOther)
		token := s.Operator()
		for name, c := range map[string]struct {
			from, to, path string
			browser        *consoletest.Browser
		}{
			"a user's session":                               {"tollgate", "tollgate-op", "/console/operator", user},
			"an operator's session":                          {"tollgate-op", "tollgate", "/console", operator},
			"the token's session":                            {"tollgate-op", "tollgate", "/console", token},
			"an operator's session with the operators' name": {"tollgate-op", "tollgate-op", "/console", operator},
		} {
			b := s.Browser()
			b.Cookies[c.to] = &http.Cookie{Name: c.to, Value: c.browser.Cookies[c.from].Value}
			if got := b.Get(c.path); got.Code != http.StatusSeeOther || !strings.HasPrefix(got.Header().Get("Location"), c.path+"/sign-in") {
				t.Errorf("%s at %s: status %d to %q, want a redirect to the sign-in", name, c.path, got.Code, got.Header().Get("Location"))
			}
		}
	})
}

// TestCookiesOfHTTPS checks that cookies are Secure and have the prefix if the public URL is https,
// and that the value of such a cookie is not a session under the name without the prefix.
func TestCookiesOfHTTPS(t *testing.T) {
	t.Parallel()
	consoletest.Each(t, func(t *testing.T, s *consoletest.Scene) {
		b := s.Browser()
		b.Handler = s.Console(func(o *console.Options) { o.PublicURL = "https://console.example" })
		b.Headers["Origin"] = "https://console.example" // the proxy forwards plain http
		delete(b.Headers, "Sec-Fetch-Site")
		got := b.SignIn("ada@example.com", consoletest.Password)
		got.Want(t, http.StatusSeeOther)
		if c := b.Cookies["__Host-tollgate"]; c == nil || !c.Secure || got.Header().Get("Strict-Transport-Security") == "" {
			t.Errorf("cookies %v, headers %v, want a Secure __Host-tollgate and HSTS", b.Cookies, got.Header())
		}
		b.Get("/console").Want(t, http.StatusOK)
		b.Cookies = map[string]*http.Cookie{"tollgate": b.Cookies["__Host-tollgate"]}
		b.Cookies["tollgate"].Name = "tollgate"
		b.Get("/console").Want(t, http.StatusSeeOther)
	})
}

// TestSignInWithoutUsers checks that the sign-in page without users names the command to create one.
func TestSignInWithoutUsers(t *testing.T) {
	t.Parallel()
	consoletest.Each(t, func(t *testing.T, s *consoletest.Scene) {
		for _, u := range s.Users {
			s.Update(func(tx *store.Tx) error { return account.DeleteUserTx(tx, u.ID) })
		}
		s.Browser().Get("/console/sign-in").Want(t, http.StatusOK, "tollgate account create")
	})
}

// TestThemeAndShortcuts checks that a reader's choices are kept in cookies and written into the pages.
func TestThemeAndShortcuts(t *testing.T) {
	t.Parallel()
	consoletest.Each(t, func(t *testing.T, s *consoletest.Scene) {
		b := s.Browser()
		b.Headers["Referer"] = consoletest.PublicURL + "/console/sign-in?next=x"
		b.Post("/console/theme", "theme", "dark").Want(t, http.StatusSeeOther, "/console/sign-in?next=x")
		b.Get("/console/sign-in").Want(t, http.StatusOK, `data-theme="dark"`)
		b.Get("/console/sign-in").Without(t, "data-keys")
		b.Post("/console/shortcuts", "keys", "off").Want(t, http.StatusSeeOther, "/console/sign-in?next=x")
		b.Get("/console/sign-in").Want(t, http.StatusOK, `data-keys="off"`)
		b.Get("/console/nowhere").Want(t, http.StatusNotFound, `data-keys="off"`)
		b.Post("/console/shortcuts", "keys", "on").Want(t, http.StatusSeeOther)
		if b.Cookies["tollgate-keys"] != nil {
			t.Error("the default is stored in a cookie")
		}
		b.Post("/console/theme", "theme", `"><script>`).Want(t, http.StatusSeeOther)
		b.Get("/console/sign-in").Without(t, "data-theme")
	})
}

// TestKnownBrowsersSignIn checks that a browser with an earlier sign-in keeps its own attempts,
// even if other browsers of its network use up theirs.
func TestKnownBrowsersSignIn(t *testing.T) {
	t.Parallel()
	consoletest.Each(t, func(t *testing.T, s *consoletest.Scene) {
		known, other := s.Browser(), s.Browser()
		signIn := func(b *consoletest.Browser, email, password string, status int) {
			t.Helper()
			b.SignIn(email, password).Want(t, status)
		}
		signIn(known, "ada@example.com", consoletest.Password, http.StatusSeeOther)
		signIn(known, "bob@example.com", consoletest.Password, http.StatusSeeOther) // another user of the same browser
		known.Post("/console/sign-out").Want(t, http.StatusSeeOther)
		marks := 0
		for name, c := range known.Cookies {
			if strings.HasPrefix(name, "tollgate-browser-") {
				marks++
				if !c.HttpOnly || c.SameSite != http.SameSiteLaxMode || c.Path != "/" || c.MaxAge != int(account.MarkLifetime.Seconds()) ||
					strings.Contains(name+c.Value, "example") {
					t.Errorf("the mark is %+v, want HttpOnly, SameSite=Lax, the path / and no email", c)
				}
			}
		}
		if marks != 2 {
			t.Fatalf("the browser has %d marks, want 2", marks)
		}
		for range 10 {
			signIn(other, "ada@example.com", "wrong horse", http.StatusUnprocessableEntity)
		}
		if len(other.Cookies) != 0 {
			t.Errorf("a browser without a sign-in has the cookies %v, want none", other.Cookies)
		}
		signIn(other, "ada@example.com", consoletest.Password, http.StatusTooManyRequests)
		signIn(known, "ada@example.com", consoletest.Password, http.StatusSeeOther)
		signIn(known, "bob@example.com", consoletest.Password, http.StatusSeeOther)
	})
}

// TestSignInShowsUsableForms checks that a form is shown only if somebody can sign in with it.
func TestSignInShowsUsableForms(t *testing.T) {
	t.Parallel()
	const password, token, separator = `name="password"`, `name="admin_token"`, "<h2>Or</h2>"
	consoletest.Each(t, func(t *testing.T, s *consoletest.Scene) {
		b := s.Browser()
		withoutToken := s.Console(func(o *console.Options) { o.AdminToken = nil })
		withToken := b.Handler
		check := func(got consoletest.Answer, status int, want, unwanted []string) {
			t.Helper()
			got.Want(t, status, want...)
			got.Without(t, unwanted...)
		}
		const page = "/console/operator/sign-in"
		check(b.Get(page), http.StatusOK, []string{token}, []string{password, separator}) // no user is an operator
		check(b.Post(page, "admin_token", "wrong"), http.StatusUnprocessableEntity, []string{token, "Wrong token."},
			[]string{password, separator})
		b.Handler = withoutToken
		b.Get(page).Want(t, http.StatusNotFound)
		s.User("ada", account.SignIn{Email: "op@example.com", Role: account.Owner})
		check(b.Get(page), http.StatusOK, []string{password}, []string{token, separator})
		b.Handler = withToken
		b.Get(page).Want(t, http.StatusOK, password, token, separator)
		check(b.Get("/console/sign-in"), http.StatusOK, []string{password}, []string{"Nobody can sign in yet"})
		s.Exec(`UPDATE account_user SET disabled = 1`)
		check(b.Get(page), http.StatusOK, []string{token}, []string{password, separator})
		check(b.Get("/console/sign-in"), http.StatusOK, []string{"Nobody can sign in yet"}, []string{password, "No password yet"})
	})
}

// TestSignInWithCode checks that the password alone gives no session, and that a code is valid only
// once.
func TestSignInWithCode(t *testing.T) {
	t.Parallel()
	consoletest.Each(t, func(t *testing.T, s *consoletest.Scene) {
		app, recovery := s.SignedIn("ada@example.com").EnableFactor(t)
		b := s.Browser()
		sendPassword := func(next string) {
			t.Helper()
			b.Post("/console/sign-in", "email", "ada@example.com", "password", consoletest.Password, "next", next).
				Want(t, http.StatusSeeOther, "/console/sign-in/code")
		}
		b.Get("/console/sign-in/code").Want(t, http.StatusSeeOther, "/console/sign-in")
		b.Post("/console/sign-in/code", "code", app.Code(1)).Want(t, http.StatusSeeOther, "/console/sign-in")
		sendPassword("/console/keys")
		if b.Cookies["tollgate"] != nil {
			t.Fatal("the password alone opened a session")
		}
		pending := b.Cookies["tollgate-code"]
		if pending == nil || !pending.HttpOnly || pending.MaxAge != 600 {
			t.Fatalf("the cookie is %+v, want HttpOnly and 600 seconds", pending)
		}
		b.Get("/console/sign-in/code?next=%2Fconsole%2Fkeys").Want(t, http.StatusOK, `autocomplete="one-time-code"`, `value="/console/keys"`)
		b.Get("/console").Want(t, http.StatusSeeOther)
		for _, name := range []string{"tollgate", "tollgate-op", "tollgate-op-code"} { // the value is not a session under any other name
			b.Cookies[name] = &http.Cookie{Name: name, Value: pending.Value}
			b.Get("/console").Want(t, http.StatusSeeOther)
			b.Get("/console/operator").Want(t, http.StatusSeeOther)
			b.Get("/console/operator/sign-in/code").Want(t, http.StatusSeeOther)
			delete(b.Cookies, name)
		}
		b.Post("/console/sign-in/code", "code", app.Code(0), "next", "/console/keys").
			Want(t, http.StatusUnprocessableEntity, "The code is wrong", `value="/console/keys"`)
		b.Post("/console/sign-in/code", "code", app.Code(1), "next", "/console/keys").Want(t, http.StatusSeeOther, "/console/keys")
		if b.Cookies["tollgate-code"] != nil {
			t.Error("the browser keeps the cookie of the code")
		}
		b.Get("/console/keys").Want(t, http.StatusOK)
		b.Cookies = map[string]*http.Cookie{pending.Name: pending}
		b.Post("/console/sign-in/code", "code", recovery[0]).Want(t, http.StatusSeeOther, "/console/sign-in")

		sendPassword("https://elsewhere.example/console")
		b.Post("/console/sign-in/code", "code", app.Code(1)).Want(t, http.StatusUnprocessableEntity)
		b.Post("/console/sign-in/code", "code", recovery[0], "next", "https://elsewhere.example/console").Want(t, http.StatusSeeOther, "/console")

		// Guesses count against the user, not the browser.
		for range 3 {
			sendPassword("")
			b.Post("/console/sign-in/code", "code", "guess").Want(t, http.StatusUnprocessableEntity)
		}
		b.Post("/console/sign-in/code", "code", recovery[1]).Want(t, http.StatusTooManyRequests, "Try again in 15 minutes.")
	})
}

// TestOperatorSignInWithCode checks that operators are asked for a code too, and that another operator
// can turn the second factor off after it is lost.
func TestOperatorSignInWithCode(t *testing.T) {
	t.Parallel()
	consoletest.Each(t, func(t *testing.T, s *consoletest.Scene) {
		op := s.User("ada", account.SignIn{Email: "op@example.com", Role: account.Owner})
		_, recovery := s.SignedIn(op.Email).EnableFactor(t)
		b := s.Browser()
		b.Post("/console/operator/sign-in", "email", op.Email, "password", consoletest.Password, "next", "/console/operator/log").
			Want(t, http.StatusSeeOther, "/console/operator/sign-in/code?next=%2Fconsole%2Foperator%2Flog")
		b.Get("/console/operator").Want(t, http.StatusSeeOther)
		b.Post("/console/operator/sign-in/code", "code", recovery[0], "next", "/console/operator/log").
			Want(t, http.StatusSeeOther, "/console/operator/log")
		b.Get("/console/operator").Want(t, http.StatusOK)
		path := "/console/operator/users/" + op.ID + "/factor/off"
		b.Post(path).Want(t, http.StatusForbidden, "with a code")

		other := s.Session(account.OperatorSession, "")
		list := "/console/operator/accounts/" + op.Account + "?view=users"
		other.Get(list).Want(t, http.StatusOK, path)
		other.Post(path).Want(t, http.StatusSeeOther, "done=factor")
		other.Post(path).Want(t, http.StatusSeeOther)
		other.Get("/console/operator/log?object="+op.ID).Want(t, http.StatusOK, "second factor: on → off")
		s.ChangeUser(op.Email, account.UserChange{Role: new(account.OperatorRole(""))})
		s.SignedIn(op.Email)
	})
}
