package admin

import (
	"net/netip"
	"strings"
	"testing"
	"time"

	"tollgate/internal/account"
	"tollgate/internal/fault"
	"tollgate/internal/store"
	"tollgate/internal/store/storetest"
)

// linkOf returns the link at an address as the console reads it, and reports whether it is valid.
func (c *caller) linkOf(address string) (account.PasswordLink, bool) {
	c.t.Helper()
	token, ok := strings.CutPrefix(address, "https://gate.example/console/link#")
	if !ok {
		c.t.Fatalf("the address of the link is %q, want one below PublicURL", address)
	}
	e := account.NewSignIns(c.db, account.NewPasswords(), nil)
	l, err := e.Link(c.t.Context(), token, netip.MustParseAddr("192.0.2.1"))
	return l, err == nil
}

// TestInvitation checks that the answer to creating a user without a password has a link, and that a
// repetition of the request gets no link.
func TestInvitation(t *testing.T) {
	t.Parallel()
	eachDB(t, func(t *testing.T, c *caller) {
		id := c.ok("POST", "/accounts", `{"name":"a"}`).text("id")
		body := `{"email":"ada@example.com","operator":true}`
		u := c.ok("POST", "/accounts/"+id+"/users", body, "Idempotency-Key", "u")
		u.wantNames("id", "account", "email", "disabled", "operator", "role", "has_password", "second_factor", "created", "link", "link_expires")
		u.want(`{"email":"ada@example.com","operator":true,"role":"owner","has_password":false}`)
		if l, ok := c.linkOf(u.text("link")); !ok || l.Kind != account.Invitation || l.User.ID != u.text("id") {
			t.Errorf("the link is %+v, valid %v, want an invitation of the user", l, ok)
		}
		repeated := c.ok("POST", "/accounts/"+id+"/users", body, "Idempotency-Key", "u")
		repeated.wantNames("id", "account", "email", "disabled", "operator", "role", "has_password", "second_factor", "created")
		if repeated.header.Get("Idempotent-Replayed") != "true" {
			t.Errorf("the repetition has the header %v, want Idempotent-Replayed", repeated.header)
		}
		c.do("POST", "/accounts/"+id+"/users", `{"email":"b@example.com","disabled":true}`).wantFault(fault.InvalidRequest, "")
		if users, _ := c.ok("GET", "/accounts/"+id+"/users", "").list(); len(users) != 1 {
			t.Errorf("the users are %v, want 1", users)
		}
	})
}

// TestRoles checks that role and the short operator set a role, that null and false take it away, and that the
// last owner stays.
func TestRoles(t *testing.T) {
	t.Parallel()
	eachDB(t, func(t *testing.T, c *caller) {
		id := c.ok("POST", "/accounts", `{"name":"a"}`).text("id")
		u := c.ok("POST", "/accounts/"+id+"/users", `{"email":"ada@example.com","role":"support"}`)
		u.want(`{"operator":true,"role":"support"}`)
		path := "/users/" + u.text("id")
		c.ok("PATCH", path, `{"disabled":false}`).want(`{"role":"support"}`)
		c.ok("PATCH", path, `{"operator":true}`).want(`{"operator":true,"role":"owner"}`)
		c.do("PATCH", path, `{"role":null}`).wantFault(fault.InvalidRequest, "role")
		c.do("DELETE", path, "").wantFault(fault.InvalidRequest, "role")
		c.ok("POST", "/accounts/"+id+"/users", `{"email":"bob@example.com","role":"owner"}`)
		c.ok("PATCH", path, `{"role":null}`).wantNames("id", "account", "email", "disabled", "operator", "has_password",
			"second_factor", "created")
		c.ok("PATCH", path, `{"role":"owner"}`)
		c.ok("PATCH", path, `{"operator":false}`).want(`{"operator":false}`)
	})
}

// TestAcceptedTerms checks that a user shows the version of the terms that it accepted last.
func TestAcceptedTerms(t *testing.T) {
	t.Parallel()
	eachDB(t, func(t *testing.T, c *caller) {
		id := c.ok("POST", "/accounts", `{"name":"a"}`).text("id")
		user := c.ok("POST", "/accounts/"+id+"/users", `{"email":"ada@example.com","password":"right horse"}`).text("id")
		storetest.Update(t, c.db, func(tx *store.Tx) error {
			return account.AcceptTermsTx(tx, user, "2026-12-01", netip.MustParseAddr("192.0.2.1"))
		})
		got := c.ok("GET", "/users/"+user, "")
		got.wantNames("id", "account", "email", "disabled", "operator", "has_password", "second_factor", "terms_version",
			"terms_accepted", "created")
		got.want(`{"terms_version":"2026-12-01"}`)
	})
}

// TestTurnOffSecondFactor checks that an operator can turn a second factor off, but not on.
func TestTurnOffSecondFactor(t *testing.T) {
	t.Parallel()
	eachDB(t, func(t *testing.T, c *caller) {
		id := c.ok("POST", "/accounts", `{"name":"a"}`).text("id")
		user := c.ok("POST", "/accounts/"+id+"/users", `{"email":"ada@example.com","password":"right horse"}`).text("id")
		storetest.Exec(t, c.db, `UPDATE account_user SET totp_secret = 'JBSWY3DP', totp_since_ms = 5 WHERE id = $1`, user)
		c.ok("GET", "/users/"+user, "").want(`{"second_factor":true}`)
		c.do("PATCH", "/users/"+user, `{"second_factor":true}`).wantFault(fault.InvalidRequest, "second_factor")
		c.do("POST", "/accounts/"+id+"/users", `{"email":"b@example.com","second_factor":false}`).wantFault(fault.InvalidRequest, "second_factor")
		c.ok("PATCH", "/users/"+user, `{}`).want(`{"second_factor":true}`)
		for range 2 {
			c.ok("PATCH", "/users/"+user, `{"second_factor":false}`).want(`{"second_factor":false,"has_password":true}`)
		}
		log := c.ok("GET", "/log?act=user.change", "")
		log.element(0).want(`{"object":"` + user + `","before":{"second_factor":"on"},"after":{"second_factor":"off"}}`)
		if rows, _ := log.list(); len(rows) != 1 {
			t.Errorf("the log has %d rows for one change, want 1", len(rows))
		}
	})
}

// TestLinks checks that each link voids the previous one, has its kind, and is logged without its
// token.
func TestLinks(t *testing.T) {
	t.Parallel()
	eachDB(t, func(t *testing.T, c *caller) {
		id := c.ok("POST", "/accounts", `{"name":"a"}`).text("id")
		u := c.ok("POST", "/accounts/"+id+"/users", `{"email":"ada@example.com"}`)
		user, first := u.text("id"), u.text("link")
		second := c.ok("POST", "/users/"+user+"/link", "{}")
		second.wantNames("user", "kind", "link", "link_expires")
		second.want(`{"user":"` + user + `","kind":"invitation"}`)
		if _, ok := c.linkOf(first); ok {
			t.Error("the first link is still valid")
		}
		if _, ok := c.linkOf(second.text("link")); !ok {
			t.Error("the second link is not valid")
		}
		c.ok("PATCH", "/users/"+user, `{"password":"right horse"}`).want(`{"has_password":true}`)
		third := c.ok("POST", "/users/"+user+"/link", "")
		third.want(`{"kind":"reset"}`)
		l, _ := c.linkOf(third.text("link"))
		if validity := time.Until(time.UnixMilli(l.ExpiresMS)); validity < 23*time.Hour || validity > 25*time.Hour {
			t.Errorf("a reset link is valid for %s, want a day", validity)
		}

		log := c.ok("GET", "/log?act=user.link", "")
		log.element(0).want(`{"object":"` + user + `","account":"` + id + `","way":"token"}`)
		if rows, _ := log.list(); len(rows) != 3 {
			t.Errorf("the log has %d rows for 3 links, want 3", len(rows))
		}
		for _, kind := range []string{"invitation", "reset"} {
			if !strings.Contains(log.body, `"link":"`+kind+`"`) {
				t.Errorf("the log is %s, want a link of kind %s", log.body, kind)
			}
		}
		if strings.Contains(log.body, "#") || c.log.Len() > 0 {
			t.Errorf("the operators' log is %s and the log %s, want no token", log.body, c.log)
		}

		c.do("POST", "/users/"+user+"/link", `{"kind":"reset"}`).wantFault(fault.InvalidRequest, "kind")
		c.do("POST", "/users/user_none/link", "").wantFault(fault.NotFound, "")
		c.ok("PATCH", "/users/"+user, `{"disabled":true}`)
		c.do("POST", "/users/"+user+"/link", "").wantFault(fault.InvalidRequest, "")
		storetest.View(t, c.db, func(tx *store.Tx) error {
			var n int
			if err := tx.QueryRow(`SELECT COUNT(*) FROM account_link`).Scan(&n); err != nil || n != 0 {
				t.Errorf("a disabled user has %d links, %v, want 0", n, err)
			}
			return nil
		})
	})
}
