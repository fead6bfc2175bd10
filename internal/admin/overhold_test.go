package admin

import (
	"context"
	"fmt"
	"slices"
	"testing"
	"time"

	"tollgate/internal/ledger"
	"tollgate/internal/line"
	"tollgate/internal/money"
	"tollgate/internal/store"
	"tollgate/internal/store/storetest"
)

// TestUsageAboveHolds checks that a request is charged at most its hold, and that over_hold_usd of
// requests, accounts, keys and lines has the rest of the cost.
func TestUsageAboveHolds(t *testing.T) {
	t.Parallel()
	eachDB(t, func(t *testing.T, c *caller) {
		books := c.startLedger()
		var accounts, keys []string
		for i := range 2 {
			accounts = append(accounts, c.ok("POST", "/accounts", fmt.Sprintf(`{"name":"%d"}`, i)).text("id"))
			c.ok("POST", "/accounts/"+accounts[i]+"/credits", `{"usd":50}`)
		}
		slices.Sort(accounts) // the order of lists, because ids of the same millisecond have no order
		for _, account := range []int{0, 0, 1} {
			keys = append(keys, c.ok("POST", "/accounts/"+accounts[account]+"/keys", `{}`).text("id"))
		}
		slices.Sort(keys[:2])
		for i, tt := range []struct {
			account, key int
			line         string
			cost         money.Amount // the hold is 1 USD
		}{
			{0, 0, "main", 2 * money.USD}, {0, 0, "main", 3 * money.USD}, {0, 0, "spare", 5 * money.USD},
			{0, 1, "main", 9 * money.USD}, {0, 1, "main", money.USD}, {1, 2, "spare", money.USD / 2},
		} {
			runRequest(t, books, ledger.Admission{Request: fmt.Sprintf("req_%d", i), Account: accounts[tt.account], Key: keys[tt.key], KeyVersion: 1,
				Model: "swift-1", Endpoint: "/v1/chat/completions", Amount: money.USD, Revision: 1, Received: time.Now()}, func(h *ledger.Hold) error {
				return h.Settle(context.Background(), ledger.End{Outcome: ledger.Billed, Cost: tt.cost, Status: 200, Line: tt.line})
			})
		}

		log := c.ok("GET", "/requests?account="+accounts[0], "")
		log.element(0).want(`{"id":"req_4","cost_usd":1,"over_hold_usd":0}`)
		log.element(1).want(`{"id":"req_3","cost_usd":1,"over_hold_usd":8}`)
		all := c.ok("GET", "/accounts", "")
		all.element(0).want(`{"balance_usd":45,"over_hold_usd":15}`)
		all.element(1).want(`{"balance_usd":49.5,"over_hold_usd":0}`)
		c.ok("GET", "/accounts/"+accounts[0], "").want(`{"over_hold_usd":15}`)
		list := c.ok("GET", "/accounts/"+accounts[0]+"/keys", "")
		list.element(0).want(`{"spent_usd":3,"over_hold_usd":7}`)
		list.element(1).want(`{"spent_usd":2,"over_hold_usd":8}`)
		c.ok("GET", "/keys/"+keys[1], "").want(`{"over_hold_usd":8}`)
		c.ok("GET", "/keys/"+keys[2], "").want(`{"over_hold_usd":0}`)

		here, node := newNode(t, c.db, "node_a", line.Status{Line: "main"}, line.Status{Line: "spare"}, line.Status{Line: "idle"})
		for _, query := range []string{"", "?node=all"} {
			lines := here.ok("GET", "/lines"+query, "")
			lines.element(0).want(`{"id":"main","over_hold_usd":11}`)
			lines.element(1).want(`{"id":"spare","over_hold_usd":4}`)
			lines.element(2).want(`{"id":"idle","over_hold_usd":0}`)
		}

		// Without the database, the lines are listed without over_hold_usd.
		closedDB, err := store.Open(t.Context(), storetest.SQLite(t), store.Options{})
		if err != nil {
			t.Fatal(err)
		}
		if err := closedDB.Close(); err != nil {
			t.Fatal(err)
		}
		unavailable := newCaller(t, closedDB, func(options *Options) { options.Lines = node })
		unavailable.ok("GET", "/lines", "").element(0).want(`{"id":"main","over_hold_usd":null}`)
	})
}
