package operatorpages_test

import (
	"net/http"
	"strings"
	"testing"

	"tollgate/internal/account"
	"tollgate/internal/console/consoletest"
	"tollgate/internal/store"
)

// TestNoteOfAnAccount checks that operators can save a note, that the log names the operator, and
// that the account's users do not see the note.
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

// TestAccountWithUnseenCharacters checks that the forms of an account with stored invisible
// characters can change other fields, and that no form accepts new invisible characters.
func TestAccountWithUnseenCharacters(t *testing.T) {
	t.Parallel()
	consoletest.Each(t, func(t *testing.T, s *consoletest.Scene) {
		const name, note = "a\u200bda", "safe\u202egpj\nend"
		b, id := s.Operator(), s.Accounts["ada"].ID
		path := "/console/operator/accounts/" + id
		b.Post(path, "name", name, "overdraft_floor_usd", "0").Want(t, http.StatusUnprocessableEntity,
			"Name has a character that nobody sees (U&#43;200B)")
		b.Post(path+"/note", "note", note).Want(t, http.StatusUnprocessableEntity, "Note has a character that nobody sees (U&#43;202E)")
		s.Update(func(tx *store.Tx) error {
			_, err := tx.Exec(`UPDATE account SET name = $1, note = $2 WHERE id = $3`, name, note, id)
			return err
		})
		b.Get("/console/operator/accounts").Want(t, http.StatusOK, name)
		b.Post(path, "name", name, "overdraft_floor_usd", "-3").Want(t, http.StatusSeeOther, "done=changed")
		b.Post(path+"/note", "note", strings.ReplaceAll(note, "\n", "\r\n")).Want(t, http.StatusSeeOther, "done=changed")
		b.Post(path+"/disable").Want(t, http.StatusSeeOther)
		b.Get(path).Want(t, http.StatusOK, name, "gpj\nend", `value="-3"`)
	})
}

// TestForeignLinkFillsInNothing checks that only links of the console fill in the form of a credit.
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
