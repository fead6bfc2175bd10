package admin

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"tollgate/internal/account"
	"tollgate/internal/operator"
	"tollgate/internal/store"
	"tollgate/internal/store/storetest"
)

// TestEveryActionIsLogged checks that each change is logged in a row with the old and new values.
// Rejected requests and requests without a change have no row.
func TestEveryActionIsLogged(t *testing.T) {
	t.Parallel()
	eachDB(t, func(t *testing.T, c *caller) {
		acct := c.ok("POST", "/accounts", `{"name":"Acme"}`).text("id")
		c.ok("PATCH", "/accounts/"+acct, `{"overdraft_floor_usd":-5}`)
		c.ok("PATCH", "/accounts/"+acct, `{"overdraft_floor_usd":-5}`)
		c.ok("POST", "/accounts/"+acct+"/credits", `{"usd":50,"note":"invoice 1043"}`)
		user := c.ok("POST", "/accounts/"+acct+"/users", `{"email":"ada@example.com","password":"right horse"}`).text("id")
		c.ok("PATCH", "/users/"+user, `{"password":"other horse","disabled":true}`)
		c.ok("PATCH", "/users/"+user, `{"disabled":true}`)
		c.ok("DELETE", "/users/"+user, "")
		key := c.ok("POST", "/accounts/"+acct+"/keys", `{"name":"backend","rpm":60}`)
		c.ok("PATCH", "/keys/"+key.text("id"), `{"rpm":null,"disabled":true}`)
		c.ok("PATCH", "/keys/"+key.text("id"), `{"rpm":null,"disabled":true}`)
		c.ok("DELETE", "/keys/"+key.text("id"), "")
		c.ok("PUT", "/accounts/"+acct+"/webhook", `{"url":"https://hooks.example.com/in","events":["balance.low"]}`)
		c.ok("PUT", "/accounts/"+acct+"/webhook", `{"url":"https://hooks.example.com/in","events":["balance.low"]}`)
		c.ok("POST", "/accounts/"+acct+"/webhook/roll", "")
		if got := c.do("POST", "/accounts/"+acct+"/credits", `{"usd":0}`); got.status != 400 {
			t.Errorf("a credit of 0 USD answered %d, want 400", got.status)
		}

		log := c.ok("GET", "/log?account="+acct, "")
		for i, want := range []string{
			`{"act":"webhook.roll","before":{},"after":{}}`,
			`{"act":"webhook.change","before":{"events":[],"url":""},"after":{"events":["balance.low"],"url":"https://hooks.example.com/in"}}`,
			`{"act":"key.delete","after":{}}`,
			`{"act":"key.change","before":{"rpm":60,"disabled":false},"after":{"disabled":true}}`,
			`{"act":"key.create","after":{"disabled":false,"name":"backend","rpm":60}}`,
			`{"act":"user.delete","before":{"disabled":true,"email":"ada@example.com","operator":false}}`,
			`{"act":"user.change","before":{"disabled":false},"after":{"disabled":true,"password":"new"}}`,
			`{"act":"user.create","after":{"disabled":false,"email":"ada@example.com","operator":false}}`,
			`{"act":"account.credit","before":{"balance_usd":0},"after":{"balance_usd":50,"usd":50,"note":"invoice 1043"}}`,
			`{"act":"account.change","before":{"overdraft_floor_usd":0},"after":{"overdraft_floor_usd":-5}}`,
			`{"act":"account.create","way":"token","address":"192.0.2.1","account":"` + acct + `",` +
				`"after":{"disabled":false,"email":"","name":"Acme","overdraft_floor_usd":0,"price_factor":1,"sign_in":false}}`,
		} {
			log.element(i).want(want)
		}
		if rows, _ := log.list(); len(rows) != 11 {
			t.Errorf("the log has %d rows, want 11", len(rows))
		}
		c.ok("GET", "/log?act=key.create", "").element(0).want(`{"object":"` + key.text("id") + `"}`)
		c.ok("GET", "/log?object="+key.text("id")+"&limit=1", "").want(`{"has_more":true}`)
	})
}

// TestActionAndLogRowAreOneTransaction checks that an action that is rolled back leaves no row in
// the log.
func TestActionAndLogRowAreOneTransaction(t *testing.T) {
	t.Parallel()
	eachDB(t, func(t *testing.T, c *caller) {
		acct := c.ok("POST", "/accounts", `{"name":"Acme"}`).text("id")
		errRollback := store.ErrUncertain
		err := c.db.Update(t.Context(), func(tx *store.Tx) error {
			if _, err := operator.CreditTx(tx, operator.Actor{Way: operator.Shell, Role: account.Owner}, acct, operator.Credit{USD: 5}); err != nil {
				return err
			}
			return errRollback
		})
		if err == nil {
			t.Fatal("Update returned no error, want the error of the function")
		}
		c.ok("GET", "/accounts/"+acct, "").want(`{"balance_usd":0}`)
		if rows, _ := c.ok("GET", "/log?act=account.credit", "").list(); len(rows) != 0 {
			t.Errorf("the log has the rows %v of the rolled back action, want none", rows)
		}
	})
}

// TestLogRowsOfConcurrentChanges checks that the log row of a change that waited for another change
// has the other change's values as its old values, and does not repeat the other change.
func TestLogRowsOfConcurrentChanges(t *testing.T) {
	t.Parallel()
	c := newCaller(t, storetest.Open(t, storetest.PostgreSQL(t), store.Options{}))
	acct := c.ok("POST", "/accounts", `{"name":"Acme"}`).text("id")
	user := c.ok("POST", "/accounts/"+acct+"/users", `{"email":"ada@example.com","password":"right horse"}`).text("id")
	actor := operator.Actor{Way: operator.Shell, Role: account.Owner}
	for _, test := range []struct {
		first      func(tx *store.Tx) error
		path, body string
		want       string
	}{
		{func(tx *store.Tx) error {
			_, err := operator.ChangeUserTx(tx, actor, user, account.UserChange{Disabled: new(true)})
			return err
		}, "/users/" + user, `{"disabled":false}`, `{"act":"user.change","before":{"disabled":true},"after":{"disabled":false}}`},
		{func(tx *store.Tx) error {
			_, err := operator.ChangeAccountTx(tx, actor, acct, account.Patch{Email: new("a@example.com"), Disabled: new(true)})
			return err
		}, "/accounts/" + acct, `{"email":"b@example.com"}`,
			`{"act":"account.change","before":{"email":"a@example.com"},"after":{"email":"b@example.com"}}`},
		{func(tx *store.Tx) error {
			_, err := operator.ChangeUserTx(tx, actor, user, account.UserChange{Email: new("eve@example.com")})
			return err
		}, "/users/" + user, "", `{"act":"user.delete","before":{"disabled":false,"email":"eve@example.com","operator":false}}`},
	} {
		method, replies := "PATCH", make(chan reply, 1)
		if test.body == "" {
			method = "DELETE"
		}
		storetest.Update(t, c.db, func(tx *store.Tx) error {
			if err := test.first(tx); err != nil {
				return err
			}
			go func() { replies <- c.do(method, test.path, test.body) }()
			return c.waitForLock()
		})
		if got := <-replies; got.status/100 != 2 {
			t.Fatalf("%s %s answered %d %s, want 200", method, test.path, got.status, got.body)
		}
		log := c.ok("GET", "/log?limit=1", "")
		log.element(0).want(test.want)
		if rows, _ := log.list(); strings.Count(test.want, "disabled") == 0 && strings.Contains(fmt.Sprint(rows), "disabled") {
			t.Errorf("the log row %v has the change of another operator", rows)
		}
	}
}

// waitForLock returns once a statement waits for the lock of another transaction.
func (c *caller) waitForLock() error {
	for deadline := time.Now().Add(30 * time.Second); ; {
		var waiting bool
		if err := c.db.View(c.t.Context(), func(tx *store.Tx) error {
			return tx.QueryRow(`SELECT count(*) > 0 FROM pg_stat_activity, pg_sleep(0.005)
				WHERE datname = current_database() AND wait_event_type = 'Lock'`).Scan(&waiting)
		}); err != nil || waiting {
			return err
		}
		if time.Now().After(deadline) {
			return fmt.Errorf("no statement waits for a lock")
		}
	}
}
