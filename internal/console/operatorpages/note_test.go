package operatorpages_test

import (
	"net/http"
	"strings"
	"testing"

	"tollgate/internal/account"
	"tollgate/internal/console/consoletest"
)

// TestNoteOfAnAccount: operators keep it, the log says who did, and its users do not
// see it.
func TestNoteOfAnAccount(t *testing.T) {
	t.Parallel()
	consoletest.Each(t, func(t *testing.T, s *consoletest.Scene) {
		op := s.User("bob", account.SignIn{Email: "op@example.com", Operator: true})
		b := s.Session(account.OperatorSession, op.Email)
		path := "/console/operator/accounts/" + s.Accounts["ada"].ID
		b.Post(path+"/note", "note", " pays late\r\n<b>call</b> first ").Want(t, http.StatusSeeOther, path+"?done=changed")
		b.Get(path).Want(t, http.StatusOK, "pays late\n&lt;b&gt;call&lt;/b&gt; first")
		b.Get(path+"?view=log").Want(t, http.StatusOK, "op@example.com, 192.0.2.7", "note: pays late")
		b.Post(path+"/note", "note", strings.Repeat("x", 4001)).Want(t, http.StatusUnprocessableEntity, "at most 4000 characters", "aria-invalid")
		b.Post(path, "name", "ada", "overdraft_floor_usd", "0").Want(t, http.StatusSeeOther)
		b.Get(path).Want(t, http.StatusOK, "pays late")
		for _, page := range []string{"/console", "/console/settings", "/console/billing"} {
			if strings.Contains(s.SignedIn("ada@example.com").Get(page).Body.String(), "pays late") {
				t.Errorf("%s shows the note", page)
			}
		}
		b.Post(path+"/note", "note", "").Want(t, http.StatusSeeOther)
		b.Get(path+"?view=log").Want(t, http.StatusOK, "first → none")
	})
}

// TestForeignLinkFillsInNothing: the form of a credit is filled in by links of the console
// alone.
func TestForeignLinkFillsInNothing(t *testing.T) {
	t.Parallel()
	consoletest.Each(t, func(t *testing.T, s *consoletest.Scene) {
		b := s.Operator()
		path := "/console/operator/accounts/" + s.Accounts["ada"].ID + "?usd=4321&note=invoice+9"
		b.Get(path).Want(t, http.StatusOK, `value="4321"`, `value="invoice 9"`)
		for _, site := range []string{"cross-site", "same-site", "none", ""} {
			b.Headers["Sec-Fetch-Site"] = site
			got := b.Get(path)
			got.Want(t, http.StatusOK, "Credit")
			if strings.Contains(got.Body.String(), "4321") || strings.Contains(got.Body.String(), "invoice 9") {
				t.Errorf("%q fills in the form", site)
			}
		}
	})
}
