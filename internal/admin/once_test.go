package admin

import (
	"fmt"
	"net/http"
	"strings"
	"sync"
	"testing"
	"time"

	"tollgate/internal/fault"
	"tollgate/internal/store"
	"tollgate/internal/store/storetest"
)

func TestIdempotencyKey(t *testing.T) {
	t.Parallel()
	eachDB(t, func(t *testing.T, c *caller) {
		first := c.ok("POST", "/accounts", `{"name":"a"}`, "Idempotency-Key", "k-account")
		repeated := c.ok("POST", "/accounts", `{"name":"a"}`, "Idempotency-Key", "k-account")
		if repeated.body != first.body || repeated.header.Get("Idempotent-Replayed") != "true" || first.header.Get("Idempotent-Replayed") != "" {
			t.Errorf("the first answer is %s, the repetition %s with %v, want the same body replayed", first.body, repeated.body, repeated.header)
		}
		id := first.text("id")
		credits := "/accounts/" + id + "/credits"
		for range 3 {
			c.ok("POST", credits, `{"usd":5}`, "Idempotency-Key", "k-credit").want(`{"balance_usd":5}`)
		}
		c.ok("POST", credits, `{"usd":5}`, "Idempotency-Key", "k-credit-2").want(`{"balance_usd":10}`)
		c.ok("POST", credits, `{"usd":5}`).want(`{"balance_usd":15}`)

		for _, other := range []struct{ path, body string }{
			{credits, `{"usd":6}`}, {credits, `{"usd": 5}`}, {credits, `{"usd":0}`},
			{"/accounts/" + id + "/keys", `{}`}, {"/accounts", `{"name":"a"}`},
			// A previous version accepted these requests, so their answers may be saved.
			{"/accounts", `{"name":"a\u200bb"}`}, {"/accounts/" + id + "/users", `{"email":"a\u200bb@example.com","password":"12345678"}`},
		} {
			c.do("POST", other.path, other.body, "Idempotency-Key", "k-credit").wantFault(fault.InvalidRequest, "Idempotency-Key")
		}
		// A rejected request does not use up its Idempotency-Key.
		c.do("POST", credits, `{"usd":0}`, "Idempotency-Key", "k-late").wantFault(fault.InvalidRequest, "usd")
		c.do("POST", "/accounts/acct_none/credits", `{"usd":1}`, "Idempotency-Key", "k-late").wantFault(fault.NotFound, "")
		c.ok("POST", credits, `{"usd":1}`, "Idempotency-Key", "k-late").want(`{"balance_usd":16}`)

		for _, key := range []string{"", strings.Repeat("x", 256), "a\x01b", "\xff"} {
			c.do("POST", credits, `{"usd":1}`, "Idempotency-Key", key).wantFault(fault.InvalidRequest, "Idempotency-Key")
		}
		c.ok("GET", "/accounts/"+id, "").want(`{"balance_usd":16}`)
		if list, _ := c.ok("GET", "/accounts", "").list(); len(list) != 1 {
			t.Errorf("the accounts are %v, want 1", list)
		}
	})
}

// TestSavedAnswersHaveNoSecret checks that the repetition of a request returns the new key without
// its secret, and that no saved answer has a secret or a password.
func TestSavedAnswersHaveNoSecret(t *testing.T) {
	t.Parallel()
	eachDB(t, func(t *testing.T, c *caller) {
		id := c.ok("POST", "/accounts", `{"name":"a"}`).text("id")
		first := c.ok("POST", "/accounts/"+id+"/keys", `{"name":"ci"}`, "Idempotency-Key", "k")
		repeated := c.ok("POST", "/accounts/"+id+"/keys", `{"name":"ci"}`, "Idempotency-Key", "k")
		members := first.members()
		delete(members, "key")
		for name := range members {
			if fmt.Sprint(repeated.members()[name]) != fmt.Sprint(members[name]) {
				t.Errorf("member %s differs in the first answer %s and the repetition %s", name, first.body, repeated.body)
			}
		}
		if _, ok := repeated.members()["key"]; ok || repeated.header.Get("Idempotent-Replayed") != "true" {
			t.Errorf("the repetition got %s with %v, want a replay without key", repeated.body, repeated.header)
		}
		c.ok("POST", "/accounts/"+id+"/users", `{"email":"a@example.com","password":"correct horse"}`, "Idempotency-Key", "u")
		var saved string
		storetest.View(t, c.db, func(tx *store.Tx) error {
			return tx.Each(func(row store.Row) error {
				var all [4]string
				err := row.Scan(&all[0], &all[1], &all[2], &all[3])
				saved += fmt.Sprint(all)
				return err
			}, `SELECT scope, key, fingerprint, answer FROM ledger_once`)
		})
		if secret := first.text("key"); strings.Contains(saved, secret[8:40]) || strings.Contains(saved, "horse") ||
			strings.Contains(saved, "argon2") {
			t.Errorf("the saved answers are %s, want no secret or password", saved)
		}
	})
}

func TestIdempotencyKeysExpire(t *testing.T) {
	t.Parallel()
	storetest.EachClock(t, func(t *testing.T, db *store.DB, clock *storetest.Clock) {
		c := newCaller(t, db)
		id := c.ok("POST", "/accounts", `{"name":"a"}`).text("id")
		credit := func(want int) {
			c.ok("POST", "/accounts/"+id+"/credits", `{"usd":5}`, "Idempotency-Key", "k").want(fmt.Sprintf(`{"balance_usd":%d}`, want))
		}
		credit(5)
		clock.Advance(23 * time.Hour)
		credit(5)
		clock.Advance(2 * time.Hour)
		credit(10)
		credit(10)
	})
}

// TestConcurrentRepetitions checks that only one of several concurrent requests with the same
// Idempotency-Key is executed. All requests must succeed.
func TestConcurrentRepetitions(t *testing.T) {
	t.Parallel()
	eachDB(t, func(t *testing.T, c *caller) {
		id := c.ok("POST", "/accounts", `{"name":"a"}`).text("id")
		const requests = 8
		replies := make(chan reply, 2*requests)
		var group sync.WaitGroup
		for range requests {
			group.Go(func() {
				replies <- c.do("POST", "/accounts/"+id+"/credits", `{"usd":5}`, "Idempotency-Key", "credit")
			})
			group.Go(func() {
				replies <- c.do("POST", "/accounts/"+id+"/keys", `{}`, "Idempotency-Key", "key")
			})
		}
		group.Wait()
		close(replies)
		executed := 0
		for r := range replies {
			if r.status != http.StatusOK {
				t.Fatalf("a request answered %d %s, want 200", r.status, r.body)
			}
			if r.header.Get("Idempotent-Replayed") == "" {
				executed++
			}
		}
		c.ok("GET", "/accounts/"+id, "").want(`{"balance_usd":5}`)
		keys, _ := c.ok("GET", "/accounts/"+id+"/keys", "").list()
		entries, _ := c.ok("GET", "/accounts/"+id+"/entries", "").list()
		if len(keys) != 1 || len(entries) != 1 || executed != 2 {
			t.Errorf("got %d keys, %d entries and %d executed requests, want 1, 1 and 2", len(keys), len(entries), executed)
		}
	})
}
