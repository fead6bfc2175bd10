package operatorpages_test

import (
	"net/http"
	"testing"

	"tollgate/internal/account"
	"tollgate/internal/console/consoletest"
	"tollgate/internal/operator"
)

// TestInviteOperator checks the life of an operator: the invitation with a role, the link, the sign-in, and a
// change of the role. The log names the owner.
func TestInviteOperator(t *testing.T) {
	t.Parallel()
	consoletest.Each(t, func(t *testing.T, s *consoletest.Scene) {
		s.User("ada", account.SignIn{Email: "boss@example.com", Role: account.Owner})
		b := s.Session(account.OperatorSession, "boss@example.com")
		b.Get("/console/operator/operators").Want(t, http.StatusOK, "boss@example.com", "Invite an operator", "you")
		invite := []string{"email", "Helper@example.com", "role", "support", "secret", "wrong"}
		b.Post("/console/operator/operators/new", invite...).Want(t, http.StatusUnprocessableEntity, "nobody was invited")
		invite[5] = consoletest.Password
		b.Post("/console/operator/operators/new", "email", "helper@example.com", "role", "root", "secret", consoletest.Password).
			Want(t, http.StatusUnprocessableEntity, "Role must be one of owner, operator, support")
		got := b.Post("/console/operator/operators/new", invite...)
		got.Want(t, http.StatusOK, "Link for helper@example.com", "/console/operator, as helper@example.com")
		setPassword(t, s, tokenOf(t, got), "my own horse")
		b.Post("/console/operator/operators/new", invite...).Want(t, http.StatusUnprocessableEntity, "Another user already signs in")

		customer := s.Browser()
		customer.Post("/console/sign-in", "email", "helper@example.com", "password", "my own horse").Want(t, http.StatusSeeOther)
		overview := customer.Get("/console")
		overview.Want(t, http.StatusOK, "You are an operator of this service.", `href="/console/operator"`)
		overview.Without(t, "The balance is used up")
		helper := s.Browser()
		helper.Post("/console/operator/sign-in", "email", "helper@example.com", "password", "my own horse").Want(t, http.StatusSeeOther)
		helper.Get("/console/operator/accounts").Want(t, http.StatusOK, "ada", "Role: support")
		rows := logged(t, s, operator.UserCreate, 1)
		if rows[0].Name != "boss@example.com" || rows[0].After["role"] != "support" {
			t.Errorf("the log has %+v, want boss@example.com and the role support", rows[0])
		}
		path := "/console/operator/operators/" + rows[0].Object
		helper.Post(path, "role", "owner", "secret", "my own horse").Want(t, http.StatusForbidden, "needs the role owner")
		b.Get(path).Want(t, http.StatusOK, "Role of helper@example.com", `value="support" selected`)
		b.Post(path, "role", "operator", "secret", consoletest.Password).Want(t, http.StatusSeeOther, "done=role")
		if change := logged(t, s, operator.UserChange, 1)[0]; change.Before["role"] != "support" || change.After["role"] != "operator" {
			t.Errorf("the log has %+v, want the roles support and operator", change)
		}
		b.Post(path, "role", "none", "secret", consoletest.Password).Want(t, http.StatusSeeOther)
		helper.Get("/console/operator/accounts").Want(t, http.StatusSeeOther, "sign-in")

		me := "/console/operator/operators/" + s.Users["boss@example.com"].ID
		b.Post(me, "role", "support", "secret", consoletest.Password).Want(t, http.StatusForbidden, "your own role")
		s.Operator().Post(me, "role", "support", "secret", consoletest.AdminToken).
			Want(t, http.StatusUnprocessableEntity, "This is the last owner")
		s.Operator().Post("/console/operator/users/"+s.Users["boss@example.com"].ID+"/delete").
			Want(t, http.StatusBadRequest, "This is the last owner")
	})
}

// TestSupportSeesNoLinks checks that support cannot see a link, with which it could set a customer's password,
// and that neither support nor an operator gets a link for an operator.
func TestSupportSeesNoLinks(t *testing.T) {
	t.Parallel()
	consoletest.Each(t, func(t *testing.T, s *consoletest.Scene) {
		ada, boss := s.Users["ada@example.com"], s.User("ada", account.SignIn{Email: "boss@example.com", Role: account.Owner})
		s.User("bob", account.SignIn{Email: "sue@example.com", Role: account.Support})
		s.User("bob", account.SignIn{Email: "op@example.com", Role: account.Operator})
		sue, op := s.Session(account.OperatorSession, "sue@example.com"), s.Session(account.OperatorSession, "op@example.com")
		list := "/console/operator/accounts/" + s.Accounts["ada"].ID + "?view=users"
		sue.Get(list).Want(t, http.StatusOK, "Mail a link", "/"+ada.ID+"/link")
		sue.Get(list).Without(t, "/"+boss.ID+"/link", "Make a link")
		sue.Post("/console/operator/users/"+boss.ID+"/link").Want(t, http.StatusForbidden, "Only an owner of this service")
		op.Get(list).Want(t, http.StatusOK, "/"+ada.ID+"/link", "Only an owner can change an operator")
		mailed := sue.Post("/console/operator/users/" + ada.ID + "/link")
		mailed.Want(t, http.StatusSeeOther, "done=mailed")
		if mailed.Body.Len() > 0 || logged(t, s, operator.UserLink, 1)[0].Name != "sue@example.com" {
			t.Errorf("the answer to support is %q, want none, and the log to name sue@example.com", mailed.Body)
		}
		sue.Get("/console/operator/mails").Want(t, http.StatusOK, "ada@example.com")
		sue.Handler = s.WithoutMail()
		sue.Get(list).Without(t, "/"+ada.ID+"/link")
		sue.Post("/console/operator/users/"+ada.ID+"/link").Want(t, http.StatusForbidden, "sends no mail")
		for _, path := range []string{"/link", "/disable", "/delete", "/factor/off"} {
			op.Post("/console/operator/users/"+boss.ID+path).Want(t, http.StatusForbidden, "Only an owner of this service")
		}
	})
}
