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

// linkOf returns the link's kind and user as the console sees them, and false if the link is
// invalid.
func (o *caller) linkOf(address string) (account.PasswordLink, bool) {
	o.t.Helper()
	token, ok := strings.CutPrefix(address, "https://gate.example/console/link#")
	if !ok {
		o.t.Fatalf("the link is %q", address)
	}
	e := account.NewSignIns(o.db, account.NewPasswords(), nil)
	l, err := e.Link(o.t.Context(), token, netip.MustParseAddr("192.0.2.1"))
	return l, err == nil
}

// TestInvitedUser checks that creating a user without a password returns a link, only once.
func TestInvitedUser(t *testing.T) {
	t.Parallel()
	each(t, func(t *testing.T, o *caller) {
		id := o.ok("POST", "/accounts", `{"name":"a"}`).text("id")
		body := `{"email":"ada@example.com","operator":true}`
		u := o.ok("POST", "/accounts/"+id+"/users", body, "Idempotency-Key", "u")
		u.wantNames("id", "account", "email", "disabled", "operator", "has_password", "second_factor", "created", "link", "link_expires")
		u.want(`{"email":"ada@example.com","operator":true,"has_password":false}`)
		if l, ok := o.linkOf(u.text("link")); !ok || l.Kind != account.Invitation || l.User.ID != u.text("id") {
			t.Errorf("its link is %+v, %v", l, ok)
		}
		again := o.ok("POST", "/accounts/"+id+"/users", body, "Idempotency-Key", "u")
		again.wantNames("id", "account", "email", "disabled", "operator", "has_password", "second_factor", "created")
		if again.header.Get("Idempotent-Replayed") != "true" {
			t.Errorf("again %v", again.header)
		}
		o.do("POST", "/accounts/"+id+"/users", `{"email":"b@example.com","disabled":true}`).wantFault(fault.InvalidRequest, "")
		if users, _ := o.ok("GET", "/accounts/"+id+"/users", "").list(); len(users) != 1 {
			t.Errorf("users %v", users)
		}
	})
}

// TestSecondFactorIsTurnedOff by an operator. An operator cannot turn it on.
func TestSecondFactorIsTurnedOff(t *testing.T) {
	t.Parallel()
	each(t, func(t *testing.T, o *caller) {
		id := o.ok("POST", "/accounts", `{"name":"a"}`).text("id")
		user := o.ok("POST", "/accounts/"+id+"/users", `{"email":"ada@example.com","password":"right horse"}`).text("id")
		storetest.Update(t, o.db, func(tx *store.Tx) error {
			_, err := tx.Exec(`UPDATE account_user SET totp_secret = 'JBSWY3DP', totp_since_ms = 5 WHERE id = $1`, user)
			return err
		})
		o.ok("GET", "/users/"+user, "").want(`{"second_factor":true}`)
		o.do("PATCH", "/users/"+user, `{"second_factor":true}`).wantFault(fault.InvalidRequest, "second_factor")
		o.do("POST", "/accounts/"+id+"/users", `{"email":"b@example.com","second_factor":false}`).wantFault(fault.InvalidRequest, "second_factor")
		o.ok("PATCH", "/users/"+user, `{}`).want(`{"second_factor":true}`)
		for range 2 {
			o.ok("PATCH", "/users/"+user, `{"second_factor":false}`).want(`{"second_factor":false,"has_password":true}`)
		}
		log := o.ok("GET", "/log?act=user.change", "")
		log.element(0).want(`{"object":"` + user + `","before":{"second_factor":"on"},"after":{"second_factor":"off"}}`)
		if rows, _ := log.list(); len(rows) != 1 {
			t.Errorf("%d rows of one change", len(rows))
		}
	})
}

// TestLinks checks that each link voids the previous one, has its kind, and is logged without its
// token.
func TestLinks(t *testing.T) {
	t.Parallel()
	each(t, func(t *testing.T, o *caller) {
		id := o.ok("POST", "/accounts", `{"name":"a"}`).text("id")
		u := o.ok("POST", "/accounts/"+id+"/users", `{"email":"ada@example.com"}`)
		user, first := u.text("id"), u.text("link")
		second := o.ok("POST", "/users/"+user+"/link", "{}")
		second.wantNames("user", "kind", "link", "link_expires")
		second.want(`{"user":"` + user + `","kind":"invitation"}`)
		if _, ok := o.linkOf(first); ok {
			t.Error("the first one is good still")
		}
		if _, ok := o.linkOf(second.text("link")); !ok {
			t.Error("the second one is good for nothing")
		}
		o.ok("PATCH", "/users/"+user, `{"password":"right horse"}`).want(`{"has_password":true}`)
		third := o.ok("POST", "/users/"+user+"/link", "")
		third.want(`{"kind":"reset"}`)
		l, _ := o.linkOf(third.text("link"))
		if ahead := time.Until(time.UnixMilli(l.ExpiresMS)); ahead < 23*time.Hour || ahead > 25*time.Hour {
			t.Errorf("a reset is good for %s", ahead)
		}

		log := o.ok("GET", "/log?act=user.link", "")
		log.element(0).want(`{"object":"` + user + `","account":"` + id + `","way":"token"}`)
		if rows, _ := log.list(); len(rows) != 3 {
			t.Errorf("%d rows of 3 links", len(rows))
		}
		for _, kind := range []string{"invitation", "reset"} {
			if !strings.Contains(log.body, `"link":"`+kind+`"`) {
				t.Errorf("no %s in %s", kind, log.body)
			}
		}
		if strings.Contains(log.body, "#") || o.log.Len() > 0 {
			t.Errorf("logged %s and %s", log.body, o.log)
		}

		o.do("POST", "/users/"+user+"/link", `{"kind":"reset"}`).wantFault(fault.InvalidRequest, "kind")
		o.do("POST", "/users/user_none/link", "").wantFault(fault.NotFound, "")
		o.ok("PATCH", "/users/"+user, `{"disabled":true}`)
		o.do("POST", "/users/"+user+"/link", "").wantFault(fault.InvalidRequest, "")
		storetest.View(t, o.db, func(tx *store.Tx) error {
			var n int
			if err := tx.QueryRow(`SELECT COUNT(*) FROM account_link`).Scan(&n); err != nil || n != 0 {
				t.Errorf("%d links of a disabled user, %v", n, err)
			}
			return nil
		})
	})
}
