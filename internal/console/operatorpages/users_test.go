package operatorpages_test

import (
	"html"
	"net/http"
	"regexp"
	"strings"
	"testing"

	"tollgate/internal/account"
	"tollgate/internal/console/consoletest"
	"tollgate/internal/operator"
	"tollgate/internal/store"
)

// linkField matches the token of the link on a page.
var linkField = regexp.MustCompile(`id="link" value="` + regexp.QuoteMeta(consoletest.PublicURL+operator.LinkPath) + `([\w-]{43})"`)

// tokenOf returns the token of the link on a page, and checks that the text to send has the link.
func tokenOf(t *testing.T, got consoletest.Answer) string {
	t.Helper()
	match := linkField.FindStringSubmatch(got.Body.String())
	if match == nil {
		t.Fatalf("the page has no link: %s", got.Body)
	}
	if strings.Count(got.Body.String(), match[1]) != 2 {
		t.Errorf("the link is not in the text to send: %s", got.Body)
	}
	return match[1]
}

// setPassword sets a password with a link's token.
func setPassword(t *testing.T, s *consoletest.Scene, token, password string) {
	t.Helper()
	s.Browser().Post("/console/link/password", "link", token, "password", password).Want(t, http.StatusSeeOther, "/console")
}

// TestInviteUser checks that the response to adding a user without a password shows a link, and that
// a newer link invalidates the first.
func TestInviteUser(t *testing.T) {
	t.Parallel()
	consoletest.Each(t, func(t *testing.T, s *consoletest.Scene) {
		b, id := s.Operator(), s.Accounts["ada"].ID
		users := "/console/operator/accounts/" + id + "?view=users"
		got := b.Post("/console/operator/accounts/"+id+"/users", "email", "eve@example.com", "password", "")
		got.Want(t, http.StatusOK, "Copy this link", "works once until", "To send to eve@example.com", `data-copy="link"`)
		first := tokenOf(t, got)
		list := b.Get(users)
		list.Want(t, http.StatusOK, "invited, no password yet")
		list.Without(t, first)
		path := formFor(t, list, "/link", "eve@example.com")
		again := b.Post(path)
		again.Want(t, http.StatusOK, "Link for eve@example.com", "you set your password")
		second := tokenOf(t, again)
		s.Browser().Post("/console/link", "link", first).Want(t, http.StatusUnprocessableEntity, "no longer valid")
		setPassword(t, s, second, "my own horse")
		b.Post(path).Want(t, http.StatusOK, "set a new password")

		rows := logged(t, s, operator.UserLink, 3)
		if rows[2].After["link"] != string(account.Invitation) || rows[0].After["link"] != string(account.Reset) ||
			rows[0].Way != operator.Console || rows[0].Address != "192.0.2.7" || rows[0].Account != id {
			t.Errorf("the log has %+v, want an invitation first and a reset last, from the console", rows)
		}
		log := b.Get("/console/operator/log?act=user.link")
		log.Want(t, http.StatusOK, "link user", "invitation", "reset")
		log.Without(t, second)
		b.Post("/console/operator/users/user_none/link").Want(t, http.StatusNotFound)
		b.Post(strings.TrimSuffix(path, "link")+"disable").Want(t, http.StatusSeeOther)
		b.Post(path).Want(t, http.StatusBadRequest, "Enable it first")
	})
}

// TestOperatorsCannotRemoveThemselves checks that operators cannot delete or disable themselves.
func TestOperatorsCannotRemoveThemselves(t *testing.T) {
	t.Parallel()
	consoletest.Each(t, func(t *testing.T, s *consoletest.Scene) {
		me := s.User("ada", account.SignIn{Email: "op@example.com", Role: account.Owner})
		b := s.Session(account.OperatorSession, me.Email)
		path := "/console/operator/users/" + me.ID
		list := b.Get("/console/operator/accounts/" + s.Accounts["ada"].ID + "?view=users")
		list.Want(t, http.StatusOK, me.Email)
		list.Without(t, path+"/delete")
		b.Post(path+"/delete").Want(t, http.StatusForbidden, "You cannot delete yourself")
		b.Post(path+"/disable").Want(t, http.StatusForbidden, "You cannot disable yourself")
		b.Get("/console/operator").Want(t, http.StatusOK)
	})
}

// formFor returns the form action with a suffix in the table row with a text.
func formFor(t *testing.T, page consoletest.Answer, suffix, text string) string {
	t.Helper()
	for _, row := range strings.Split(page.Body.String(), "<tr") {
		if match := regexp.MustCompile(`action="([^"]+` + suffix + `)"`).FindStringSubmatch(row); match != nil && strings.Contains(row, text) {
			return match[1]
		}
	}
	t.Fatalf("no form with the suffix %s in the row with %s in %s", suffix, text, page.Body)
	return ""
}

// TestWelcomeText checks the text for a new account. It has the link, the key and an example request
// with the key. The link sets the password.
func TestWelcomeText(t *testing.T) {
	t.Parallel()
	consoletest.Each(t, func(t *testing.T, s *consoletest.Scene) {
		b := s.Operator()
		page := b.Get("/console/operator/accounts/new")
		page.Want(t, http.StatusOK, `name="invite" value="on" checked`, `name="key" value="on" checked`)
		fields := []string{"name", "Acme", "email", "Shop@Acme.example", "invite", "on", "password", "", "key", "on",
			"usd", "-50", "note", "invoice 1043", "overdraft_floor_usd", "0", "daily_budget_usd", "5", "once", page.Once(t)}
		b.Post("/console/operator/accounts/new", fields...).Want(t, http.StatusUnprocessableEntity, "First credit must be an amount above 0",
			"invoice 1043")
		fields[11] = "$50"
		got := b.Post("/console/operator/accounts/new", fields...)
		got.Want(t, http.StatusOK, "Account created", "Copy this link and this key", `data-copy="welcome-0-text"`, "credited with $50.00")
		token, secrets := tokenOf(t, got), got.Secrets()
		text := html.UnescapeString(regexp.MustCompile(`(?s)id="welcome-0-text">(.*?)</code>`).FindStringSubmatch(got.Body.String())[1])
		for _, part := range []string{"your account Acme is ready", consoletest.PublicURL + "/v1\n", "Your key: " + secrets[0],
			"Limits of the key: $5.00/day\n",
			consoletest.PublicURL + operator.LinkPath + token, "as shop@acme.example", "curl ", `"Authorization: Bearer ` + secrets[0] + `"`} {
			if !strings.Contains(text, part) {
				t.Errorf("the text has no %q: %s", part, text)
			}
		}
		again := b.Post("/console/operator/accounts/new", fields...)
		again.Want(t, http.StatusSeeOther, "done=created")
		setPassword(t, s, token, "my own horse")
		acme := s.Browser()
		acme.SignIn("shop@acme.example", "my own horse").Want(t, http.StatusSeeOther)
		acme.Get("/console/keys").Want(t, http.StatusOK, secrets[0][:7])
		acme.Get("/console/billing").Want(t, http.StatusOK, "$50.00", "invoice 1043")
		for act, n := range map[string]int{operator.AccountCreate: 1, operator.UserCreate: 1, operator.UserLink: 1, operator.KeyCreate: 1,
			operator.AccountCredit: 1} {
			logged(t, s, act, n)
		}

		// An email with a sign-in elsewhere is rejected, and nothing is created.
		fields[len(fields)-1] = b.Get("/console/operator/accounts/new").Once(t)
		b.Post("/console/operator/accounts/new", fields...).Want(t, http.StatusUnprocessableEntity, "signs in with shop@acme.example")
		logged(t, s, operator.AccountCreate, 1)
		// Without an email there is no invitation, but a key.
		fields = []string{"name", "Nobody", "email", "", "invite", "on", "key", "on", "once", b.Get("/console/operator/accounts/new").Once(t)}
		b.Post("/console/operator/accounts/new", fields...).Want(t, http.StatusOK, "Copy this key,")
	})
}

// TestUnlinkUser unlinks the provider of a user, who is signed in. The session ends, and the user can link the
// provider again. Only an owner unlinks the provider of an operator.
func TestUnlinkUser(t *testing.T) {
	t.Parallel()
	consoletest.Each(t, func(t *testing.T, s *consoletest.Scene) {
		s.AddProvider()
		link := func(user string) {
			t.Helper()
			s.Update(func(tx *store.Tx) error {
				_, err := account.AddIdentityTx(tx, user, account.LinkedIdentity{Issuer: "http://127.0.0.1:1", Subject: user, Email: "a@corp.example"})
				return err
			})
		}
		ada, owner := s.Users["ada@example.com"], s.User("ada", account.SignIn{Email: "owner@example.com", Role: account.Owner})
		clerk := s.User("bob", account.SignIn{Email: "clerk@example.com", Role: account.Operator})
		link(ada.ID)
		link(owner.ID)
		user, b := s.Session(account.UserSession, ada.Email), s.Session(account.OperatorSession, clerk.Email)
		user.Get("/console/settings").Want(t, http.StatusOK, "Corp")
		list := b.Get("/console/operator/accounts/" + ada.Account + "?view=users")
		list.Want(t, http.StatusOK, "Unlink Corp from ada@example.com?", "a@corp.example")
		list.Without(t, "Unlink Corp from owner@example.com?")
		var ownersID string
		s.Update(func(tx *store.Tx) error {
			list, err := account.IdentitiesTx(tx, owner.ID)
			ownersID = list[0].ID
			return err
		})
		b.Post("/console/operator/identities/"+ownersID+"/unlink").Want(t, http.StatusForbidden)
		path := regexp.MustCompile(`/console/operator/identities/idn_\w+/unlink`).FindString(list.Body.String())
		b.Post(path).Want(t, http.StatusSeeOther, "view=users", "done=unlinked")
		b.Post(path).Want(t, http.StatusNotFound)
		user.Get("/console/settings").Want(t, http.StatusSeeOther, "/console/sign-in")
		if rows := logged(t, s, operator.UserIdentityRemove, 1); rows[0].Before["subject"] != ada.ID || rows[0].Name != clerk.Email {
			t.Errorf("the log has %+v, want ada's identity, removed by the clerk", rows[0])
		}
		link(ada.ID)
		s.Session(account.UserSession, ada.Email).Get("/console/settings").Want(t, http.StatusOK, "a@corp.example")
		b.Get("/console/operator/accounts/"+ada.Account+"?view=users").Want(t, http.StatusOK, "Unlink Corp from ada@example.com?")
	})
}
