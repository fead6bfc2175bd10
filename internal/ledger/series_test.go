package ledger

import (
	"context"
	"reflect"
	"strings"
	"testing"
	"time"

	"tollgate/internal/ledger/spending"
	"tollgate/internal/money"
	"tollgate/internal/store"
	"tollgate/internal/store/storetest"
)

// usageBy reads the usage of all accounts.
func (f *fixture) usageBy(q spending.Query) []spending.UsageRow {
	f.t.Helper()
	var rows []spending.UsageRow
	err := f.db.View(context.Background(), func(tx *store.Tx) (err error) {
		rows, err = spending.ReadTx(tx, q)
		return err
	})
	if err != nil {
		f.t.Fatal(err)
	}
	return rows
}

func TestUsageByGrouping(t *testing.T) {
	t.Parallel()
	eachClock(t, func(t *testing.T, db *store.DB, c *clock) {
		f := start(t, db)
		f.open("a", 10*money.USD, 0, KeyLimits{})
		f.open("b", 10*money.USD, 0, KeyLimits{})
		first := c.now()
		lineCost := money.Amount(40)
		send := func(account, model string, e End) {
			t.Helper()
			a := admission(account, 1000)
			a.Model = model
			h, err := f.Admit(context.Background(), a)
			if err != nil {
				t.Fatal(err)
			}
			if e.Outcome != Billed {
				h.Release(e)
			} else if err := h.Settle(context.Background(), e); err != nil {
				t.Fatal(err)
			}
		}
		withCost := billed(100)
		withCost.LineCost, withCost.Tokens = &lineCost, Tokens{Prompt: 10, Cached: 4, Completion: 5}
		failedWithCost := failed()
		failedWithCost.LineCost = &lineCost
		send("a", "m", withCost)
		send("a", "m", billed(300))
		send("a", "n", failedWithCost)
		send("b", "m", billed(5))
		c.add(24 * time.Hour)
		send("a", "m", billed(7))
		day := first.UTC().Format(time.DateOnly)
		next := c.now().UTC().Format(time.DateOnly)
		sums := func(requests, billed, failed, charge, lineCost, lineCosts int64) spending.Sums {
			return spending.Sums{Requests: requests, Billed: billed, Failed: failed, Prompt: 10 * billed, Completion: 5 * billed,
				Charged: money.Amount(charge), LineCost: money.Amount(lineCost), LineCosts: lineCosts}
		}
		// The only charged request with a known cost also has cached tokens.
		cached := func(u spending.Sums) spending.Sums { u.Cached, u.KnownCost = 4, 100; return u }
		for name, test := range map[string]struct {
			q    spending.Query
			want []spending.UsageRow
		}{
			"all": {spending.Query{}, []spending.UsageRow{{Sums: cached(sums(5, 4, 1, 412, 80, 2))}}},
			"account": {spending.Query{By: []spending.By{spending.ByAccount}}, []spending.UsageRow{
				{Account: "a", Sums: cached(sums(4, 3, 1, 407, 80, 2))},
				{Account: "b", Sums: sums(1, 1, 0, 5, 0, 0)}}},
			"account and day": {spending.Query{By: []spending.By{spending.ByDay, spending.ByAccount}}, []spending.UsageRow{
				{Day: day, Account: "a", Sums: cached(sums(3, 2, 1, 400, 80, 2))},
				{Day: day, Account: "b", Sums: sums(1, 1, 0, 5, 0, 0)},
				{Day: next, Account: "a", Sums: sums(1, 1, 0, 7, 0, 0)}}},
			"a's models on the first day": {
				spending.Query{Account: "a", Until: dayOf(first) + 1, By: []spending.By{spending.ByModel}}, []spending.UsageRow{
					{Model: "m", Sums: cached(sums(2, 2, 0, 400, 40, 1))},
					{Model: "n", Sums: sums(1, 0, 1, 0, 40, 1)}}},
			"a key": {spending.Query{Key: "b_key", By: []spending.By{spending.ByKey, spending.ByLine}}, []spending.UsageRow{
				{Key: "b_key", Line: "line", Sums: sums(1, 1, 0, 5, 0, 0)}}},
			"a line": {spending.Query{Line: "other", By: []spending.By{spending.ByLine}}, nil},
			"the second day": {spending.Query{Since: dayOf(c.now()), By: []spending.By{spending.ByModel}}, []spending.UsageRow{
				{Model: "m", Sums: sums(1, 1, 0, 7, 0, 0)}}},
			"another model": {spending.Query{Model: "n", By: []spending.By{spending.ByEndpoint}}, []spending.UsageRow{
				{Endpoint: "/v1/chat/completions", Sums: sums(1, 0, 1, 0, 40, 1)}}},
			"nothing at all":  {spending.Query{Until: dayOf(first)}, []spending.UsageRow{{}}},
			"an unknown path": {spending.Query{Endpoint: "/v1/x", By: []spending.By{spending.ByAccount, spending.ByDay}}, nil},
		} {
			test.q.Limit = 100
			got := f.usageBy(test.q)
			if len(got) != len(test.want) {
				t.Errorf("%s: %+v, want %+v", name, got, test.want)
				continue
			}
			for i := range got {
				if !reflect.DeepEqual(got[i], test.want[i]) {
					t.Errorf("%s: %+v, want %+v", name, got[i], test.want[i])
				}
			}
		}
		f.checkAudit()
	})
}

func dayOf(at time.Time) int64 { return at.UnixMilli() / (24 * time.Hour).Milliseconds() }

// TestUsageWalksIndexes checks the query plans of usage on both databases. A plan must read only
// the days of an account's or a key's series, or the days of the span. It must read no requests and
// no whole table.
func TestUsageWalksIndexes(t *testing.T) {
	t.Parallel()
	storetest.Each(t, func(t *testing.T, db *store.DB) {
		const numbers = ` WITH RECURSIVE n (i) AS (SELECT CAST(0 AS BIGINT) UNION ALL SELECT i + 1 FROM n WHERE i < $1) `
		for _, text := range []string{
			`INSERT INTO ledger_series (id, account, key, model, line, endpoint, folded)` + numbers + `
			SELECT i, 'a' || CAST(i / 10 AS TEXT), 'k' || CAST(i / 5 AS TEXT), 'm' || CAST(i % 5 AS TEXT), 'l', 'e', 0 FROM n`,
			`INSERT INTO ledger_day (day, series, requests, billed, failed, prompt_tokens, cached_tokens, completion_tokens, quantity,
				cost_nano, line_cost_nano, line_costs)` + numbers + `
			SELECT d.day, n.i, 1, 1, 0, 1, 0, 1, 0, 1, 0, 0 FROM n, (SELECT DISTINCT i % 30 + 20000 AS day FROM n) d`,
		} {
			update(t, db, func(tx *store.Tx) error { _, err := tx.Exec(text, 999); return err })
		}
		update(t, db, func(tx *store.Tx) error { _, err := tx.Exec(`ANALYZE`); return err })
		view(t, db, func(tx *store.Tx) error {
			for _, q := range []spending.Query{
				{Account: "a7", By: []spending.By{spending.ByDay, spending.ByModel}},
				{Account: "a7", Since: 20010, Until: 20012, By: []spending.By{spending.ByKey}},
				{Key: "k9", By: []spending.By{spending.ByDay}}, {Since: 20029, Until: 20030, By: []spending.By{spending.ByAccount, spending.ByModel}},
				{Since: 20029, Until: 20030, Model: "m2"},
			} {
				text, args := q.Statement()
				plan := storetest.Plan(t, tx, text, args...)
				for _, step := range plan {
					days := strings.Contains(step, "ledger_day") || strings.Contains(step, " d")
					if storetest.ReadsAll(step) && days || strings.Contains(step, "receipt") {
						t.Errorf("%+v: got the plan %q, want no read of all days or of receipts", q, plan)
					}
				}
			}
			return nil
		})
	})
}
