package console_test

import (
	"net/http"
	"strings"
	"testing"

	"tollgate/internal/account"
	"tollgate/internal/console"
	"tollgate/internal/store"
)

func TestSignIn(t *testing.T) {
	t.Parallel()
	each(t, func(t *testing.T, s *scene) {
		b := s.browser()
		want(t, b.get("/console/keys?after=x"), http.StatusSeeOther, "/console/sign-in?next=%2Fconsole%2Fkeys%3Fafter%3Dx")
		for _, wrong := range [][2]string{{"ada@example.com", "wrong horse"}, {"nobody@example.com", password}, {"no email", ""}} {
			got := b.post("/console/sign-in", "email", wrong[0], "password", wrong[1])
			want(t, got, http.StatusUnprocessableEntity, "Email or password is not right.", `value="`+wrong[0]+`"`)
			if wrong[1] != "" && strings.Contains(got.Body.String(), wrong[1]) {
				t.Error("the page holds the password")
			}
		}
		// A value that somebody else has set is worth nothing after the sign-in.
		planted := &http.Cookie{Name: "tollgate", Value: strings.Repeat("a", 43)}
		b.cookies["tollgate"] = planted
		want(t, b.post("/console/sign-in", "email", "Ada@Example.com", "password", password, "next", "/console/keys?after=x"),
			http.StatusSeeOther, "/console/keys?after=x")
		first := b.cookies["tollgate"]
		if first.Value == planted.Value || !first.HttpOnly || first.SameSite != http.SameSiteLaxMode || first.Secure || first.Path != "/" {
			t.Errorf("the cookie is %+v", first)
		}
		want(t, b.get("/console"), http.StatusOK, "ada@example.com", "$10.00")
		want(t, b.post("/console/sign-in", "email", "ada@example.com", "password", password), http.StatusSeeOther)
		second := b.cookies["tollgate"].Value
		b.cookies["tollgate"] = first
		want(t, b.get("/console"), http.StatusSeeOther)
		b.cookies["tollgate"] = &http.Cookie{Name: "tollgate", Value: second}
		want(t, b.post("/console/sign-out"), http.StatusSeeOther, "/console/sign-in")
		b.cookies["tollgate"] = &http.Cookie{Name: "tollgate", Value: second}
		want(t, b.get("/console"), http.StatusSeeOther)

		for next, leads := range map[string]string{
			"": "/console", "https://elsewhere.example/console": "/console", "//elsewhere.example/console": "/console",
			"/console/../v1": "/console", "/consoles": "/console", `/console\@x`: "/console", "/console/keys": "/console/keys",
			"javascript:alert(1)": "/console", "/%2fconsole": "/console",
		} {
			got := b.post("/console/sign-in", "email", "ada@example.com", "password", password, "next", next)
			if to := got.Header().Get("Location"); to != leads {
				t.Errorf("next %q leads to %q, want %q", next, to, leads)
			}
		}
	})
}

// TestSignInIsThrottled: it says how long to wait, and the wait is that of all
// nodes.
func TestSignInIsThrottled(t *testing.T) {
	t.Parallel()
	each(t, func(t *testing.T, s *scene) {
		b, other := s.browser(), s.browser()
		other.handler = s.console(func(o *console.Options) { o.Entrance = account.NewEntrance(s.db, s.options.Passwords, nil) })
		for range 10 {
			want(t, b.post("/console/sign-in", "email", "ada@example.com", "password", "wrong horse"), http.StatusUnprocessableEntity)
		}
		for _, b := range []*browser{b, other} {
			got := b.post("/console/sign-in", "email", "ada@example.com", "password", password)
			want(t, got, http.StatusTooManyRequests, "Too many attempts. Try again in 15 minutes.")
			if got.Header().Get("Retry-After") == "" {
				t.Error("no Retry-After")
			}
		}
		want(t, other.post("/console/sign-in", "email", "bob@example.com", "password", password), http.StatusSeeOther)
	})
}

func TestOperatorsSignIn(t *testing.T) {
	t.Parallel()
	each(t, func(t *testing.T, s *scene) {
		b := s.browser()
		want(t, b.get("/console/operator"), http.StatusSeeOther, "/console/operator/sign-in?next=%2Fconsole%2Foperator")
		want(t, b.post("/console/operator/sign-in", "admin_token", "wrong"), http.StatusUnprocessableEntity, "The token is not right.")
		want(t, b.post("/console/operator/sign-in", "email", "ada@example.com", "password", password), http.StatusUnprocessableEntity,
			"Email or password is not right.")
		want(t, b.post("/console/operator/sign-in", "admin_token", adminToken), http.StatusSeeOther, "/console/operator")
		want(t, b.get("/console/operator/sessions"), http.StatusOK, "the operator&#39;s token")
		want(t, b.get("/console"), http.StatusSeeOther) // its cookie opens no account

		// The session ends when the token changes.
		b.handler = s.console(func(o *console.Options) { o.AdminToken = "another-token-0123456789" })
		want(t, b.get("/console/operator"), http.StatusSeeOther)

		// While there is neither an operator nor a token, there is no such part.
		b.handler = s.console(func(o *console.Options) { o.AdminToken = "" })
		want(t, b.get("/console/operator"), http.StatusNotFound)
		want(t, b.get("/console/operator/sign-in"), http.StatusNotFound)
		s.user("ada", account.SignIn{Email: "op@example.com", Operator: true})
		want(t, b.get("/console/operator/sign-in"), http.StatusOK)
		want(t, b.post("/console/operator/sign-in", "admin_token", ""), http.StatusUnprocessableEntity)
		want(t, b.post("/console/operator/sign-in", "email", "op@example.com", "password", password), http.StatusSeeOther)
		want(t, b.get("/console/operator"), http.StatusOK, "op@example.com")
		no := false
		s.update(func(tx *store.Tx) error {
			_, err := account.ChangeUserTx(tx, s.users["op@example.com"].ID, account.UserChange{Operator: &no})
			return err
		})
		want(t, b.get("/console/operator"), http.StatusNotFound)
	})
}

// TestCookiesOfHTTPS: where users come by https, nothing else gets their cookies.
func TestCookiesOfHTTPS(t *testing.T) {
	t.Parallel()
	each(t, func(t *testing.T, s *scene) {
		b := s.browser()
		b.handler = s.console(func(o *console.Options) { o.PublicURL = "https://console.example" })
		b.headers["Origin"] = "https://console.example" // the proxy speaks plain http to us
		delete(b.headers, "Sec-Fetch-Site")
		got := b.post("/console/sign-in", "email", "ada@example.com", "password", password)
		want(t, got, http.StatusSeeOther)
		if c := b.cookies["__Host-tollgate"]; c == nil || !c.Secure || got.Header().Get("Strict-Transport-Security") == "" {
			t.Errorf("cookies %v, headers %v", b.cookies, got.Header())
		}
		want(t, b.get("/console"), http.StatusOK)
		b.cookies = map[string]*http.Cookie{"tollgate": b.cookies["__Host-tollgate"]}
		b.cookies["tollgate"].Name = "tollgate"
		want(t, b.get("/console"), http.StatusSeeOther)
	})
}

func TestNobodyYet(t *testing.T) {
	t.Parallel()
	each(t, func(t *testing.T, s *scene) {
		for _, u := range s.users {
			s.update(func(tx *store.Tx) error { return account.DeleteUserTx(tx, u.ID) })
		}
		want(t, s.browser().get("/console/sign-in"), http.StatusOK, "tollgate account create")
	})
}

func TestThemeIsWrittenIntoThePage(t *testing.T) {
	t.Parallel()
	each(t, func(t *testing.T, s *scene) {
		b := s.browser()
		b.headers["Referer"] = publicURL + "/console/sign-in?next=x"
		want(t, b.post("/console/theme", "theme", "dark"), http.StatusSeeOther, "/console/sign-in?next=x")
		want(t, b.get("/console/sign-in"), http.StatusOK, `data-theme="dark"`)
		want(t, b.post("/console/theme", "theme", `"><script>`), http.StatusSeeOther)
		if page := b.get("/console/sign-in").Body.String(); strings.Contains(page, "data-theme") {
			t.Error("another theme is kept")
		}
	})
}
