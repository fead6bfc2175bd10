package page_test

import (
	"net/http"
	"testing"

	"tollgate/internal/account"
	"tollgate/internal/console/consoletest"
)

// TestSignInWithCode checks that the password alone gives no session, and that a code is valid only
// once.
func TestSignInWithCode(t *testing.T) {
	t.Parallel()
	consoletest.Each(t, func(t *testing.T, s *consoletest.Scene) {
		app, recovery := s.SignedIn("ada@example.com").Factor(t)
		b := s.Browser()
		password := func(next string) {
			t.Helper()
			b.Post("/console/sign-in", "email", "ada@example.com", "password", consoletest.Password, "next", next).
				Want(t, http.StatusSeeOther, "/console/sign-in/code")
		}
		b.Get("/console/sign-in/code").Want(t, http.StatusSeeOther, "/console/sign-in")
		b.Post("/console/sign-in/code", "code", app.Code(1)).Want(t, http.StatusSeeOther, "/console/sign-in")
		password("/console/keys")
		if b.Cookies["tollgate"] != nil {
			t.Fatal("the password alone gives a session")
		}
		half := b.Cookies["tollgate-code"]
		if half == nil || !half.HttpOnly || half.MaxAge != 600 {
			t.Fatalf("the cookie is %+v", half)
		}
		b.Get("/console/sign-in/code?next=%2Fconsole%2Fkeys").Want(t, http.StatusOK, `autocomplete="one-time-code"`, `value="/console/keys"`)
		b.Get("/console").Want(t, http.StatusSeeOther)
		for _, name := range []string{"tollgate", "tollgate-op", "tollgate-op-code"} { // the value is no session under any other name
			b.Cookies[name] = &http.Cookie{Name: name, Value: half.Value}
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
		b.Cookies = map[string]*http.Cookie{half.Name: half}
		b.Post("/console/sign-in/code", "code", recovery[0]).Want(t, http.StatusSeeOther, "/console/sign-in")

		password("https://elsewhere.example/console")
		b.Post("/console/sign-in/code", "code", app.Code(1)).Want(t, http.StatusUnprocessableEntity)
		b.Post("/console/sign-in/code", "code", recovery[0], "next", "https://elsewhere.example/console").Want(t, http.StatusSeeOther, "/console")

		// Guesses are counted with the user, not with the browser.
		for range 3 {
			password("")
			b.Post("/console/sign-in/code", "code", "guess").Want(t, http.StatusUnprocessableEntity)
		}
		b.Post("/console/sign-in/code", "code", recovery[1]).Want(t, http.StatusTooManyRequests, "Try again in 15 minutes.")
	})
}

// TestOperatorsCode checks that operators are asked for a code too, and that another operator can
// turn the second factor off after it is lost.
func TestOperatorsCode(t *testing.T) {
	t.Parallel()
	consoletest.Each(t, func(t *testing.T, s *consoletest.Scene) {
		op := s.User("ada", account.SignIn{Email: "op@example.com", Operator: true})
		_, recovery := s.SignedIn(op.Email).Factor(t)
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
		s.ChangeUser(op.Email, account.UserChange{Operator: new(false)})
		s.SignedIn(op.Email)
	})
}
