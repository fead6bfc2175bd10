package userpages_test

import (
	"net/http"
	"strings"
	"testing"

	"tollgate/internal/account"
	"tollgate/internal/console/consoletest"
	"tollgate/internal/operator"
	"tollgate/internal/store"
)

func TestPasswordAndSessions(t *testing.T) {
	t.Parallel()
	consoletest.Each(t, func(t *testing.T, s *consoletest.Scene) {
		mine, other := s.SignedIn("ada@example.com"), s.SignedIn("ada@example.com")
		mine.Get("/console/settings").Want(t, http.StatusOK, "this one", `title="Test browser">Test browser<`, "192.0.2.7")
		got := mine.Post("/console/settings/password", "current", "wrong horse", "password", "better horse")
		got.Want(t, http.StatusUnprocessableEntity, "That is not your password.")
		mine.Post("/console/settings/password", "current", consoletest.Password, "password", "short").
			Want(t, http.StatusUnprocessableEntity, "at least 8")
		if strings.Contains(got.Body.String(), "better horse") {
			t.Error("the page holds a password")
		}
		before := mine.Cookies["tollgate"].Value
		mine.Post("/console/settings/password", "current", consoletest.Password, "password", "better horse").
			Want(t, http.StatusSeeOther, "done=password")
		if mine.Cookies["tollgate"].Value == before {
			t.Error("the session keeps its value")
		}
		mine.Get("/console/settings?done=password").Want(t, http.StatusOK, "Your password is changed")
		other.Get("/console").Want(t, http.StatusSeeOther)
		other.Post("/console/sign-in", "email", "ada@example.com", "password", "better horse").Want(t, http.StatusSeeOther)

		var list []account.ConsoleSession
		s.Update(func(tx *store.Tx) (err error) {
			list, err = account.ListSessionsTx(tx, s.Users["ada@example.com"].ID)
			return err
		})
		if len(list) != 2 {
			t.Fatalf("%d sessions", len(list))
		}
		mine.Post("/console/settings/sessions/"+list[0].ID+"/end").Want(t, http.StatusSeeOther)
		mine.Post("/console/settings/sessions/end").Want(t, http.StatusSeeOther, "/console/sign-in")
		mine.Get("/console").Want(t, http.StatusSeeOther)
		other.Get("/console").Want(t, http.StatusSeeOther)
	})
}

func TestUsersOfAnAccount(t *testing.T) {
	t.Parallel()
	consoletest.Each(t, func(t *testing.T, s *consoletest.Scene) {
		b := s.SignedIn("ada@example.com")
		b.Post("/console/settings/users", "email", "bob@example.com", "password", consoletest.Password).Want(t, http.StatusUnprocessableEntity,
			"Somebody signs in with bob@example.com already", `value="bob@example.com"`)
		b.Post("/console/settings/users", "email", "cleo@example.com", "password", consoletest.Password, "operator", "on").
			Want(t, http.StatusBadRequest)
		b.Post("/console/settings/users", "email", "cleo@example.com", "password", consoletest.Password).
			Want(t, http.StatusSeeOther, "done=added")
		cleo := s.SignedIn("cleo@example.com")
		var users []account.User
		s.Update(func(tx *store.Tx) (err error) {
			users, _, err = account.ListUsersTx(tx, s.Accounts["ada"].ID, "", 10)
			return err
		})
		added := users[len(users)-1]
		if added.Email != "cleo@example.com" || added.Operator {
			t.Fatalf("added %+v", added)
		}
		path := "/console/settings/users/" + added.ID
		b.Get("/console/settings").Want(t, http.StatusOK, path+"/disable")
		b.Post(path+"/disable").Want(t, http.StatusSeeOther)
		cleo.Get("/console").Want(t, http.StatusSeeOther)
		b.Get("/console/settings").Want(t, http.StatusOK, path+"/enable")
		b.Post(path+"/enable").Want(t, http.StatusSeeOther)
		b.Get("/console/settings?confirm=delete-"+added.ID).Want(t, http.StatusOK, `<dialog id="delete-`+added.ID+`" open`)
		b.Post(path+"/delete").Want(t, http.StatusSeeOther)
		b.Post(path+"/delete").Want(t, http.StatusNotFound)

		// Neither oneself nor an operator.
		op := s.User("ada", account.SignIn{Email: "op@example.com", Operator: true})
		for _, id := range []string{s.Users["ada@example.com"].ID, op.ID} {
			b.Post("/console/settings/users/"+id+"/disable").Want(t, http.StatusForbidden)
		}
	})
}

// TestColleagueIsInvited: without a password the answer shows a link, once.
func TestColleagueIsInvited(t *testing.T) {
	t.Parallel()
	consoletest.Each(t, func(t *testing.T, s *consoletest.Scene) {
		b := s.SignedIn("ada@example.com")
		got := b.Post("/console/settings/users", "email", "Dan@example.com", "password", "")
		got.Want(t, http.StatusOK, "Copy this link", "To send to dan@example.com")
		_, token, _ := strings.Cut(got.Body.String(), operator.LinkPath)
		token = token[:43]
		settings := b.Get("/console/settings")
		if settings.Want(t, http.StatusOK, "dan@example.com", "invited, no password yet"); strings.Contains(settings.Body.String(), token) {
			t.Error("the link is shown again")
		}
		dan := s.Browser()
		dan.Post("/console/link/password", "link", token, "password", "my own horse").Want(t, http.StatusSeeOther, "/console")
		dan.Get("/console/settings").Want(t, http.StatusOK, "dan@example.com", "ada@example.com")
	})
}
