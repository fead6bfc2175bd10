package ledger

import (
	"context"
	"fmt"
	"sync/atomic"
	"testing"
	"time"

	"tollgate/internal/fault"
	"tollgate/internal/ledger/requestlog"
	"tollgate/internal/money"
	"tollgate/internal/store"
	"tollgate/internal/store/id"
	"tollgate/internal/store/storetest"
)

// jumpingClock is a database clock that a test can set, with a monotonic clock beside it.
type jumpingClock struct {
	clock
	elapsed atomic.Int64 // of the monotonic clock
}

func (c *jumpingClock) pass(d time.Duration) { c.add(d); c.elapsed.Add(int64(d)) }

// eachJumpingClock runs a test on both databases, each with its own clocks.
func eachJumpingClock(t *testing.T, test func(t *testing.T, db *store.DB, c *jumpingClock)) {
	t.Helper()
	storetest.EachURL(t, func(t *testing.T, url string) {
		c := &jumpingClock{}
		c.ms.Store(newClock().ms.Load())
		elapsed := func() time.Duration { return time.Duration(c.elapsed.Load()) }
		test(t, storetest.Open(t, url, store.Options{Now: c.now, Elapsed: elapsed}), c)
	})
}

// request returns an admission that was received now.
func (c *jumpingClock) request(account, model string, amount money.Amount, free int64) Admission {
	a := admission(account, amount)
	a.Request, a.Model, a.FreeDaily, a.Received = id.At("req_", c.now()), model, free, c.now()
	return a
}

const (
	day    = 24 * time.Hour
	window = time.Minute // of the rate limit
)

var jumps = []time.Duration{time.Hour, day, 40 * day, 400 * day, -time.Hour, -day, -40 * day}

// TestLimitsHealAfterAJump sets the clock wrong for a while, and admits and settles requests
// before, during and after this time. Once the clock is right again, every limit is as if the
// clock had always been right, except that admissions on the wrong day count for that day.
func TestLimitsHealAfterAJump(t *testing.T) {
	t.Parallel()
	eachJumpingClock(t, func(t *testing.T, db *store.DB, c *jumpingClock) {
		f := start(t, db)
		for i, jump := range jumps {
			t.Run(jump.String(), func(t *testing.T) {
				f := &fixture{Ledger: f.Ledger, t: t}
				testHealsAfter(t, f, c, fmt.Sprint("a", i), jump)
			})
		}
	})
}

func testHealsAfter(t *testing.T, f *fixture, c *jumpingClock, account string, jump time.Duration) {
	ctx := t.Context()
	budget, rpm := money.USD, int64(5)
	f.open(account, 100*money.USD, 0, KeyLimits{DailyBudget: &budget, RPM: &rpm})
	admit := func(model string, amount money.Amount, free int64) *Hold {
		t.Helper()
		h, err := f.Admit(ctx, c.request(account, model, amount, free))
		if err != nil {
			t.Fatal(err)
		}
		return h
	}
	refused := func(what string, model string, amount money.Amount, free int64, want fault.Code) {
		t.Helper()
		_, err := f.Admit(ctx, c.request(account, model, amount, free))
		if err == nil {
			t.Errorf("%s: admitted, want %s", what, want)
			return
		}
		wantCode(t, err, want)
	}
	settle := func(h *Hold, cost money.Amount) {
		t.Helper()
		if err := h.Settle(ctx, billed(cost)); err != nil {
			t.Fatal(err)
		}
	}
	today := func(spent money.Amount, requests int64) {
		t.Helper()
		if k := f.keyState(account); k.SpentToday != spent {
			t.Errorf("the key's spent_today is %s, want %s", k.SpentToday, spent)
		}
		if u := f.usage(account); u.Today.Cost != spent || u.Today.Requests != requests {
			t.Errorf("usage.today is %s over %d requests, want %s over %d", u.Today.Cost, u.Today.Requests, spent, requests)
		}
		f.checkAudit()
		f.checkDaySums()
	}
	settle(admit("m", budget/2, 0), budget/4)
	across, broken := admit("m", budget/4, 0), admit("gift", 0, 2)
	today(budget/4, 1)
	c.pass(time.Minute)

	c.add(jump)
	if err := f.keepTime(ctx); err != nil { // after a step back, earlier hits count from now
		t.Fatal(err)
	}
	c.pass(window)
	otherDay := jump > 12*time.Hour || jump < -12*time.Hour
	spent, count := budget/4, int64(1)
	if otherDay {
		today(0, 0)
		settle(admit("m", budget/2, 0), budget/2)
		today(budget/2, 1)
	} else {
		refused("the budget of the same day", "m", budget, 0, fault.InsufficientQuota)
		settle(admit("m", budget/4, 0), 0)
		count++
	}
	late := admit("m", budget/4, 0)
	for range 3 {
		admit("gift", 0, 9).Release(failed()) // fills the window but uses no free place
	}
	settle(across, budget/8)
	spent, count = spent+budget/8, count+1
	broken.Release(failed())
	count++

	c.pass(10 * time.Second)
	c.add(-jump)
	if jump > 0 {
		refused("the rate limit, while the earlier window may still run", "m", 0, 0, fault.RateLimitExceeded)
	}
	c.pass(window)
	settle(late, budget/16)
	if !otherDay {
		spent, count = spent+budget/16, count+1+3
	}
	today(spent, count)
	refused("a budget that a jump must not renew", "m", budget-spent+1, 0, fault.InsufficientQuota)
	rest := admit("m", budget-spent, 0)
	refused("a used-up budget", "m", 1, 0, fault.InsufficientQuota)
	rest.Release(failed())
	count++
	for range 2 {
		admit("gift", 0, 2)
	}
	c.pass(window)
	refused("a free quota that a jump must not renew", "gift", 0, 2, fault.RateLimitExceeded)
	today(spent, count)

	// If the wrong day was tomorrow, tomorrow starts with the figures of that time.
	c.pass(day)
	if jump == day {
		spent, count = budget/2+budget/16, 1+1+3
	} else {
		spent, count = 0, 0
	}
	today(spent, count)
	refused("tomorrow's budget", "m", budget-spent+1, 0, fault.InsufficientQuota)
	admit("m", budget-spent, 0).Release(failed())
	today(spent, count+1)
}

// TestRateHealsByItself fills a key's window while the clock is ahead and sends the next request
// long after.
func TestRateHealsByItself(t *testing.T) {
	t.Parallel()
	eachJumpingClock(t, func(t *testing.T, db *store.DB, c *jumpingClock) {
		f := start(t, db)
		rpm := int64(2)
		f.open("a", money.USD, 0, KeyLimits{RPM: &rpm})
		if err := f.keepTime(t.Context()); err != nil {
			t.Fatal(err)
		}
		c.add(day)
		f.mustAdmit("a", 0)
		f.mustAdmit("a", 0)
		c.add(-day)
		if err := f.keepTime(t.Context()); err != nil {
			t.Fatal(err)
		}
		c.pass(window - time.Second)
		_, err := f.admit("a", 0)
		wantCode(t, err, fault.RateLimitExceeded)
		c.pass(time.Second)
		f.mustAdmit("a", 0)
		if used := f.keyState("a").LastUsedMS; used > c.ms.Load() {
			t.Errorf("the key was last used at %d, want at most the current time %d", used, c.ms.Load())
		}
	})
}

// TestRateForgetsAHitOfTheFuture checks that a hit with a time in the future counts as a hit at
// the time of the next request.
func TestRateForgetsAHitOfTheFuture(t *testing.T) {
	t.Parallel()
	eachJumpingClock(t, func(t *testing.T, db *store.DB, c *jumpingClock) {
		f := start(t, db)
		rpm := int64(2)
		f.open("a", money.USD, 0, KeyLimits{RPM: &rpm})
		c.add(day)
		f.mustAdmit("a", 0)
		c.add(-day)
		f.mustAdmit("a", 0)
		c.pass(window)
		for range 6 {
			f.mustAdmit("a", 0)
			c.pass(31 * time.Second)
		}
	})
}

// TestAJumpDeletesNothing sets the clock wrong for a minute while every deletion runs and a node
// starts.
func TestAJumpDeletesNothing(t *testing.T) {
	t.Parallel()
	for _, jump := range []time.Duration{400 * day, -40 * day} {
		t.Run(jump.String(), func(t *testing.T) { testDeletesNothing(t, jump) })
	}
}

func testDeletesNothing(t *testing.T, jump time.Duration) {
	eachJumpingClock(t, func(t *testing.T, db *store.DB, c *jumpingClock) {
		f := start(t, db)
		f.open("a", money.USD, 0, KeyLimits{})
		ctx := t.Context()
		save := func(key string) (saved []byte) {
			t.Helper()
			err := db.Update(ctx, func(tx *store.Tx) (err error) {
				once := Once{Scope: "s", Key: key, Fingerprint: []byte("body"), Window: day}
				if saved, err = AnswerTx(tx, once); err != nil || saved != nil {
					return err
				}
				return SaveTx(tx, once, []byte("answer"))
			})
			if err != nil {
				t.Fatal(err)
			}
			return saved
		}
		tidy := func() {
			t.Helper()
			if err := f.keepTime(ctx); err != nil {
				t.Fatal(err)
			}
			if err := f.Fold(ctx); err != nil {
				t.Fatal(err)
			}
		}
		for range 5 {
			h, err := f.Admit(ctx, c.request("a", "m", 1000, 0))
			if err != nil {
				t.Fatal(err)
			}
			if err := h.Settle(ctx, billed(100)); err != nil {
				t.Fatal(err)
			}
		}
		save("early")
		c.pass(time.Minute)
		tidy()
		c.add(jump)
		for range 6 {
			tidy()
			c.pass(10 * time.Second)
		}
		if save("early") == nil {
			t.Error("the answer of an Idempotency-Key is missing while the clock is wrong, want it saved")
		}
		save("meanwhile")
		// A node that starts now takes the steady time from the database.
		f.close()
		g := New(Options{DB: db, Node: join(t, db), OutageGrace: 20 * time.Second, QueueWait: 10 * time.Second})
		db.ResumeSteady(c.ms.Load())
		if err := g.Start(ctx); err != nil {
			t.Fatal(err)
		}
		f.Ledger = g
		tidy()
		c.add(-jump)
		tidy()
		if list := f.requests(requestlog.Selection{}); len(list) != 5 {
			t.Errorf("%d receipts are left, want 5", len(list))
		}
		if u := f.usage("a"); u.Today.Requests != 5 || u.Today.Cost != 500 {
			t.Errorf("usage.today: got %+v, want 5 requests of 500 nano-dollars in total", u.Today)
		}
		if save("early") == nil || (jump > 0 && save("meanwhile") == nil) {
			t.Error("the answer of an Idempotency-Key is missing within its window, want it saved")
		}
		for range 25 { // an hour at a time
			c.pass(time.Hour)
			tidy()
		}
		if save("early") != nil || save("meanwhile") != nil {
			t.Error("the answer of an Idempotency-Key is saved after its window, want none")
		}
		f.checkAudit()
		f.checkDaySums()
		c.pass(200 * day)
		tidy()
		if list := f.requests(requestlog.Selection{}); len(list) != 0 {
			t.Errorf("%d receipts are left after the retention, want none", len(list))
		}
		f.checkAudit()
		f.checkDaySums()
	})
}

// checkDaySums checks that the stored figures of every day, current or not, are the sums of the
// receipts and holds of that day.
func (f *fixture) checkDaySums() {
	f.t.Helper()
	check := func(what, text string) {
		f.t.Helper()
		err := f.db.View(context.Background(), func(tx *store.Tx) error {
			rows, err := tx.Query(text)
			if err != nil {
				return err
			}
			defer rows.Close()
			for rows.Next() {
				var name string
				var day, recorded, computed int64
				if err := rows.Scan(&name, &day, &recorded, &computed); err != nil {
					return err
				}
				if recorded != computed {
					f.t.Errorf("%s of %s on day %d: %d is recorded, want %d", what, name, day, recorded, computed)
				}
			}
			return rows.Err()
		})
		if err != nil {
			f.t.Fatalf("%s: %v", what, err)
		}
	}
	sum := func(figures, of string) string {
		return `SELECT name, day, CAST(SUM(recorded) AS BIGINT), CAST(SUM(computed) AS BIGINT) FROM (` + figures + ` UNION ALL ` + of + `) AS f
			WHERE day > 0 GROUP BY name, day`
	}
	check("spent", sum(`SELECT subject AS name, day, spent_nano AS recorded, 0 AS computed FROM ledger_limit`,
		`SELECT r.key, r.day, 0, r.cost_nano FROM ledger_receipt r JOIN ledger_key k ON k.id = r.key WHERE k.daily_budget_nano >= 0`))
}
