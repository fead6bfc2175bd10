package console_test

import (
	"net/http"
	"strings"
	"testing"

	"tollgate/internal/account"
	"tollgate/internal/store"
)

func TestPasswordAndSessions(t *testing.T) {
	t.Parallel()
	each(t, func(t *testing.T, s *scene) {
		mine, other := s.signedIn("ada@example.com"), s.signedIn("ada@example.com")
		want(t, mine.get("/console/settings"), http.StatusOK, "this one", "Test browser", "192.0.2.7")
		got := mine.post("/console/settings/password", "current", "wrong horse", "password", "better horse")
		want(t, got, http.StatusUnprocessableEntity, "That is not your password.")
		want(t, mine.post("/console/settings/password", "current", password, "password", "short"), http.StatusUnprocessableEntity, "at least 8")
		if strings.Contains(got.Body.String(), "better horse") {
			t.Error("the page holds a password")
		}
		before := mine.cookies["tollgate"].Value
		want(t, mine.post("/console/settings/password", "current", password, "password", "better horse"), http.StatusSeeOther, "done=password")
		if mine.cookies["tollgate"].Value == before {
			t.Error("the session keeps its value")
		}
		want(t, mine.get("/console/settings?done=password"), http.StatusOK, "Your password is changed")
		want(t, other.get("/console"), http.StatusSeeOther)
		want(t, other.post("/console/sign-in", "email", "ada@example.com", "password", "better horse"), http.StatusSeeOther)

		var list []account.ConsoleSession
		s.update(func(tx *store.Tx) (err error) {
			list, err = account.ListSessionsTx(tx, s.users["ada@example.com"].ID)
			return err
		})
		if len(list) != 2 {
			t.Fatalf("%d sessions", len(list))
		}
		want(t, mine.post("/console/settings/sessions/"+list[0].ID+"/end"), http.StatusSeeOther)
		want(t, mine.post("/console/settings/sessions/end"), http.StatusSeeOther, "/console/sign-in")
		want(t, mine.get("/console"), http.StatusSeeOther)
		want(t, other.get("/console"), http.StatusSeeOther)
	})
}

func TestUsersOfAnAccount(t *testing.T) {
	t.Parallel()
	each(t, func(t *testing.T, s *scene) {
		b := s.signedIn("ada@example.com")
		want(t, b.post("/console/settings/users", "email", "bob@example.com", "password", password), http.StatusUnprocessableEntity,
			"Somebody signs in with bob@example.com already", `value="bob@example.com"`)
		want(t, b.post("/console/settings/users", "email", "cleo@example.com", "password", password, "operator", "on"), http.StatusBadRequest)
		want(t, b.post("/console/settings/users", "email", "cleo@example.com", "password", password), http.StatusSeeOther, "done=added")
		cleo := s.signedIn("cleo@example.com")
		var users []account.User
		s.update(func(tx *store.Tx) (err error) {
			users, _, err = account.ListUsersTx(tx, s.accounts["ada"].ID, "", 10)
			return err
		})
		added := users[len(users)-1]
		if added.Email != "cleo@example.com" || added.Operator {
			t.Fatalf("added %+v", added)
		}
		path := "/console/settings/users/" + added.ID
		want(t, b.get("/console/settings"), http.StatusOK, path+"/disable")
		want(t, b.post(path+"/disable"), http.StatusSeeOther)
		want(t, cleo.get("/console"), http.StatusSeeOther)
		want(t, b.get("/console/settings"), http.StatusOK, path+"/enable")
		want(t, b.post(path+"/enable"), http.StatusSeeOther)
		want(t, b.get("/console/settings?confirm=delete-"+added.ID), http.StatusOK, `<dialog id="delete-`+added.ID+`" open`)
		want(t, b.post(path+"/delete"), http.StatusSeeOther)
		want(t, b.post(path+"/delete"), http.StatusNotFound)

		// Neither oneself nor an operator.
		op := s.user("ada", account.SignIn{Email: "op@example.com", Operator: true})
		for _, id := range []string{s.users["ada@example.com"].ID, op.ID} {
			want(t, b.post("/console/settings/users/"+id+"/disable"), http.StatusForbidden)
		}
	})
}
