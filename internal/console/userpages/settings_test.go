package userpages_test

import (
	"crypto/rand"
	"fmt"
	"html"
	"net/http"
	"regexp"
	"strings"
	"testing"

	"tollgate/internal/account"
	"tollgate/internal/console/consoletest"
	"tollgate/internal/console/page"
	"tollgate/internal/operator"
	"tollgate/internal/store"
)

// TestPasswordAndSessions checks that a new password ends other sessions, and that a user can end one
// session or all.
func TestPasswordAndSessions(t *testing.T) {
	t.Parallel()
	consoletest.Each(t, func(t *testing.T, s *consoletest.Scene) {
		mine, other := s.SignedIn("ada@example.com"), s.SignedIn("ada@example.com")
		mine.Get("/console/settings").Want(t, http.StatusOK, "this one", `title="Test browser">Test browser<`, "192.0.2.7")
		got := mine.Post("/console/settings/password", "current", "wrong horse", "password", "better horse")
		got.Want(t, http.StatusUnprocessableEntity, "That is not your password.")
		mine.Post("/console/settings/password", "current", consoletest.Password, "password", "short").
			Want(t, http.StatusUnprocessableEntity, "at least 8")
		got.Without(t, "better horse")
		before := mine.Cookies["tollgate"].Value
		mine.Post("/console/settings/password", "current", consoletest.Password, "password", "better horse").
			Want(t, http.StatusSeeOther, "done=password")
		if mine.Cookies["tollgate"].Value == before {
			t.Error("after a new password, the session has the old value")
		}
		mine.Get("/console/settings?done=password").Want(t, http.StatusOK, "Your password is changed")
		other.Get("/console").Want(t, http.StatusSeeOther)
		other.SignIn("ada@example.com", "better horse").Want(t, http.StatusSeeOther)

		var list []account.ConsoleSession
		s.Update(func(tx *store.Tx) (err error) {
			list, _, err = account.ListSessionsTx(tx, s.Users["ada@example.com"].ID, "", 10)
			return err
		})
		if len(list) != 2 {
			t.Fatalf("ada has %d sessions, want 2", len(list))
		}
		mine.Post("/console/settings/sessions/"+list[0].ID+"/end").Want(t, http.StatusSeeOther)
		mine.Post("/console/settings/sessions/end").Want(t, http.StatusSeeOther, "/console/sign-in")
		mine.Get("/console").Want(t, http.StatusSeeOther)
		other.Get("/console").Want(t, http.StatusSeeOther)
	})
}

// TestUsersOfAnAccount checks that users can add, disable, enable and delete their colleagues.
func TestUsersOfAnAccount(t *testing.T) {
	t.Parallel()
	consoletest.Each(t, func(t *testing.T, s *consoletest.Scene) {
		b := s.SignedIn("ada@example.com")
		b.Handler = s.WithoutMail()
		b.Post("/console/settings/users", "email", "bob@example.com", "password", consoletest.Password).Want(t, http.StatusUnprocessableEntity,
			"Another user already signs in with bob@example.com", `value="bob@example.com"`)
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
		cleoUser := users[len(users)-1]
		if cleoUser.Email != "cleo@example.com" || cleoUser.Role != "" {
			t.Fatalf("the last user is %+v, want cleo, who is no operator", cleoUser)
		}
		path := "/console/settings/users/" + cleoUser.ID
		b.Get("/console/settings").Want(t, http.StatusOK, path+"/disable")
		b.Post(path+"/disable").Want(t, http.StatusSeeOther)
		cleo.Get("/console").Want(t, http.StatusSeeOther)
		b.Get("/console/settings").Want(t, http.StatusOK, path+"/enable")
		b.Post(path+"/enable").Want(t, http.StatusSeeOther)
		b.Get("/console/settings?confirm=delete-"+cleoUser.ID).Want(t, http.StatusOK, `<dialog id="delete-`+cleoUser.ID+`" open`)
		b.Post(path+"/delete").Want(t, http.StatusSeeOther)
		b.Post(path+"/delete").Want(t, http.StatusNotFound)

		// Users can disable neither themselves nor an operator.
		op := s.User("ada", account.SignIn{Email: "op@example.com", Role: account.Owner})
		for _, id := range []string{s.Users["ada@example.com"].ID, op.ID} {
			b.Post("/console/settings/users/"+id+"/disable").Want(t, http.StatusForbidden)
		}
	})
}

// TestUserDisabledByOperator checks that colleagues cannot enable, delete or replace a user
// disabled by an operator, and that the operator can.
func TestUserDisabledByOperator(t *testing.T) {
	t.Parallel()
	consoletest.Each(t, func(t *testing.T, s *consoletest.Scene) {
		const message = "was disabled by the operator, so only the operator can enable or delete this user"
		b, op := s.SignedIn("ada@example.com"), s.Operator()
		id := s.User("ada", account.SignIn{Email: "cleo@example.com"}).ID
		path, operatorPath := "/console/settings/users/"+id, "/console/operator/users/"+id
		users := "/console/operator/accounts/" + s.Accounts["ada"].ID + "?view=users"
		checkDisabled := func() {
			t.Helper()
			got := b.Get("/console/settings")
			got.Want(t, http.StatusOK, "cleo@example.com", "disabled by the operator")
			got.Without(t, path)
			for _, act := range []string{"/enable", "/disable", "/delete"} {
				b.Post(path+act).Want(t, http.StatusForbidden, "cleo@example.com "+message)
			}
			b.Post("/console/settings/users", "email", "Cleo@Example.com").Want(t, http.StatusUnprocessableEntity, "already")
			s.Browser().SignIn("cleo@example.com", consoletest.Password).Want(t, http.StatusUnprocessableEntity)
		}
		op.Post(operatorPath+"/disable").Want(t, http.StatusSeeOther)
		checkDisabled()
		op.Get(users).Want(t, http.StatusOK, "disabled by the operator", operatorPath+"/enable", operatorPath+"/delete")
		op.Post(operatorPath+"/enable").Want(t, http.StatusSeeOther)
		s.SignedIn("cleo@example.com").Get("/console").Want(t, http.StatusOK)

		// A colleague can enable a user disabled by a colleague, unless an operator keeps the user
		// disabled.
		b.Post(path+"/disable").Want(t, http.StatusSeeOther)
		b.Post(path+"/enable").Want(t, http.StatusSeeOther)
		b.Post(path+"/disable").Want(t, http.StatusSeeOther)
		op.Get(users).Want(t, http.StatusOK, "Keep disabled", operatorPath+"/disable")
		op.Post(operatorPath+"/disable").Want(t, http.StatusSeeOther)
		checkDisabled()
		op.Get(users).Without(t, "Keep disabled")

		op.Get(users+"&confirm=delete-"+id).Want(t, http.StatusOK, `<dialog id="delete-`+id+`" open`)
		op.Post(operatorPath+"/delete").Want(t, http.StatusSeeOther, "view=users&done=gone")
		op.Post(operatorPath+"/delete").Want(t, http.StatusNotFound)
		op.Get("/console/operator/log?act=user.change").Want(t, http.StatusOK, "disabled by: operator")
		op.Get("/console/operator/log?act=user.delete").Want(t, http.StatusOK, "cleo@example.com")
		b.Post("/console/settings/users", "email", "cleo@example.com").Want(t, http.StatusSeeOther)
	})
}

// TestInviteColleague checks that with mail, only the colleague gets the link of an invitation, and that without
// mail, the page shows the link. Otherwise a customer could add the address of a stranger and sign in with it.
func TestInviteColleague(t *testing.T) {
	t.Parallel()
	consoletest.Each(t, func(t *testing.T, s *consoletest.Scene) {
		b := s.SignedIn("ada@example.com")
		b.Post("/console/settings/users", "email", "victim@example.com", "password", "my own horse").
			Want(t, http.StatusBadRequest, "an unknown field")
		b.Get("/console/settings").Without(t, `name="password" type="password" autocomplete="new-password" id="new-f`)
		invited := b.Post("/console/settings/users", "email", "Eve@example.com")
		invited.Want(t, http.StatusSeeOther, "done=invited")
		invited.Without(t, operator.LinkPath)
		b.Get("/console/settings?done=invited").Want(t, http.StatusOK, "eve@example.com", "on its way")
		b.Get("/console/settings").Without(t, operator.LinkPath)
		var kind, to, text string
		s.Update(func(tx *store.Tx) error {
			return tx.QueryRow(`SELECT kind, recipient, body_text FROM mail_outbox ORDER BY id DESC LIMIT 1`).Scan(&kind, &to, &text)
		})
		if kind != "invitation" || to != "eve@example.com" || !strings.Contains(text, consoletest.PublicURL+operator.LinkPath) {
			t.Errorf("the mail is %s to %s, want an invitation to eve with a link:\n%s", kind, to, text)
		}

		b.Handler = s.WithoutMail()
		got := b.Post("/console/settings/users", "email", "Dan@example.com", "password", "")
		got.Want(t, http.StatusOK, "Copy this link", "To send to dan@example.com")
		_, token, _ := strings.Cut(got.Body.String(), operator.LinkPath)
		token = token[:43]
		settings := b.Get("/console/settings")
		settings.Want(t, http.StatusOK, "dan@example.com", "invited, no password yet")
		settings.Without(t, token)
		dan := s.Browser()
		dan.Post("/console/link/password", "link", token, "password", "my own horse").Want(t, http.StatusSeeOther, "/console")
		dan.Get("/console/settings").Want(t, http.StatusOK, "dan@example.com", "ada@example.com")
	})
}

// TestAccountIsFull checks that users cannot create more keys and users than an account may have,
// and that operators can.
func TestAccountIsFull(t *testing.T) {
	t.Parallel()
	consoletest.Each(t, func(t *testing.T, s *consoletest.Scene) {
		b, op, id := s.SignedIn("ada@example.com"), s.Operator(), s.Accounts["ada"].ID
		insertMany := func(insert string, n int) {
			s.Exec(strings.Replace(insert, "SELECT", `WITH RECURSIVE n (i) AS
				(SELECT CAST(1 AS BIGINT) UNION ALL SELECT i + 1 FROM n WHERE i < $2) SELECT`, 1), id, n)
		}
		insertMany(`INSERT INTO api_key (id, account, hash, name, hint, allowed_models, allowed_ips, created_ms, deleted)
			SELECT 'key_0' || CAST(i AS TEXT), CAST($1 AS TEXT), CAST(i AS TEXT), '', '', '', '', 0, 0 FROM n`, 999)
		insertMany(`INSERT INTO account_user (id, account, email, password, disabled, role, created_ms)
			SELECT 'user_0' || CAST(i AS TEXT), CAST($1 AS TEXT), 'u' || CAST(i AS TEXT) || '@example.com', '', 0, '', 0 FROM n`, 98)

		create := func(name string) consoletest.Answer {
			return b.Post("/console/keys/new", "name", name, "once", rand.Text())
		}
		create("last").Want(t, http.StatusOK, "Copy this key now.")
		create("surplus").Want(t, http.StatusUnprocessableEntity, "This account has 1000 keys, as many as its users can make.", `value="surplus"`)
		op.Post("/console/operator/accounts/"+id+"/keys", "name", "ours", "once", rand.Text()).Want(t, http.StatusOK, "Key created")

		add := func(email string) consoletest.Answer {
			return b.Post("/console/settings/users", "email", email)
		}
		add("last@example.com").Want(t, http.StatusSeeOther, "done=invited")
		// The answer for a full account does not reveal whether an email has a user elsewhere.
		for _, email := range []string{"surplus@example.com", "bob@example.com"} {
			add(email).Want(t, http.StatusUnprocessableEntity, "This account has 100 users, as many as its users can add.",
				`value="`+email+`"`)
		}
		op.Post("/console/operator/accounts/"+id+"/users", "email", "surplus@example.com", "password", "").
			Want(t, http.StatusOK, "Copy this link")
	})
}

// TestAddingUsersIsLimited checks that an account can find out at most 20 times a day whether an
// email has a user elsewhere. Successful additions count too.
func TestAddingUsersIsLimited(t *testing.T) {
	t.Parallel()
	consoletest.Each(t, func(t *testing.T, s *consoletest.Scene) {
		dan := s.User("ada", account.SignIn{Email: "dan@example.com"})
		b, colleague := s.SignedIn("ada@example.com"), s.Session(account.UserSession, dan.Email)
		add := func(b *consoletest.Browser, email string) consoletest.Answer {
			return b.Post("/console/settings/users", "email", email)
		}
		add(b, "no address").Want(t, http.StatusUnprocessableEntity, "must be a plain address") // this attempt does not count
		for i := range 10 {
			add(b, "bob@example.com").Want(t, http.StatusUnprocessableEntity, "Another user already signs in with bob@example.com")
			add(colleague, fmt.Sprintf("new%d@example.com", i)).Want(t, http.StatusSeeOther, "done=invited")
		}
		for _, email := range []string{"bob@example.com", "nobody@example.com"} {
			got := add(b, email)
			got.Want(t, http.StatusUnprocessableEntity, "The users of this account have tried to add 20 others within a day.",
				"An operator of this service can add more now. Try again in 24 hours.", `value="`+email+`"`)
			got.Without(t, "already")
		}
		add(s.SignedIn("bob@example.com"), "eve@example.com").Want(t, http.StatusSeeOther, "done=invited")
		op := s.Operator()
		op.Post("/console/operator/accounts/"+s.Accounts["ada"].ID+"/users", "email", "nobody@example.com", "password", "").
			Want(t, http.StatusOK, "Copy this link")
	})
}

// TestEverySessionAndUserIsListed checks that the pages of both lists show all sessions and all
// users.
func TestEverySessionAndUserIsListed(t *testing.T) {
	t.Parallel()
	consoletest.Each(t, func(t *testing.T, s *consoletest.Scene) {
		const many = 2*page.Rows + 10
		s.Update(func(tx *store.Tx) error {
			for i := range many {
				if _, _, err := account.OpenSessionTx(tx, account.NewSession{Kind: account.UserSession, User: s.Users["ada@example.com"].ID,
					Address: fmt.Sprintf("198.51.100.%d", i), Agent: "Test browser"}); err != nil {
					return err
				}
			}
			_, err := tx.Exec(`INSERT INTO account_user (id, account, email, password, disabled, role, created_ms)
				WITH RECURSIVE n (i) AS (SELECT CAST(1 AS BIGINT) UNION ALL SELECT i + 1 FROM n WHERE i < 109)
				SELECT 'user_z' || CAST(1000 + i AS TEXT), CAST($1 AS TEXT), 'user' || CAST(i AS TEXT) || '@example.com', '', 0, '', 0 FROM n`,
				s.Accounts["ada"].ID)
			return err
		})
		b := s.SignedIn("ada@example.com")
		sessions, users := map[string]bool{}, map[string]bool{}
		for _, name := range []string{"sessions", "after"} {
			next := regexp.MustCompile(`href="(/console/settings\?` + name + `=[^"&]+)"`)
			for path := "/console/settings"; path != ""; {
				body := b.Get(path).Body.String()
				for _, match := range regexp.MustCompile(`198\.51\.100\.\d+`).FindAllString(body, -1) {
					sessions[match] = true
				}
				for _, match := range regexp.MustCompile(`>(user\d+@example\.com)<`).FindAllStringSubmatch(body, -1) {
					users[match[1]] = true
				}
				_, current, _ := strings.Cut(path, name+"=")
				path = ""
				for _, link := range next.FindAllStringSubmatch(body, -1) {
					if !strings.HasSuffix(link[1], "="+current) {
						path = html.UnescapeString(link[1])
					}
				}
			}
		}
		if len(sessions) != many || len(users) != 109 {
			t.Errorf("the pages list %d sessions and %d users, want %d and 109", len(sessions), len(users), many)
		}
	})
}
