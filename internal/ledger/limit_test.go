package ledger

import (
	"context"
	"errors"
	"testing"
	"time"

	"tollgate/internal/fault"
	"tollgate/internal/money"
	"tollgate/internal/store"
	"tollgate/internal/store/storetest"
)

func TestRefusals(t *testing.T) {
	t.Parallel()
	rpm := int64(2)
	budget, zero := money.USD/2, money.Amount(0)
	storetest.Each(t, func(t *testing.T, db *store.DB) {
		f := start(t, db)
		f.open("poor", money.USD, 0, KeyLimits{})
		f.open("overdrawn", 0, -money.USD, KeyLimits{})
		f.open("budget", money.USD, 0, KeyLimits{DailyBudget: &budget})
		f.open("limit", money.USD, 0, KeyLimits{TotalLimit: &budget})
		f.open("nothing", money.USD, 0, KeyLimits{TotalLimit: &zero})
		f.open("rate", money.USD, 0, KeyLimits{RPM: &rpm})
		f.open("off", money.USD, 0, KeyLimits{Disabled: true})
		f.open("closed", money.USD, 0, KeyLimits{})
		disabled := true
		err := db.Update(context.Background(), func(tx *store.Tx) error {
			return ChangeAccountTx(tx, "closed", AccountChange{Disabled: &disabled})
		})
		if err != nil {
			t.Fatal(err)
		}
		for _, tt := range []struct {
			account string
			amount  money.Amount
			want    fault.Code // empty if the request is admitted
		}{
			{"poor", money.USD + 1, fault.InsufficientQuota},
			{"poor", money.Max + 1, fault.InsufficientQuota},
			{"poor", 1<<63 - 1, fault.InsufficientQuota},
			{"poor", money.USD, ""},
			{"overdrawn", money.USD + 1, fault.InsufficientQuota},
			{"overdrawn", money.USD, ""},
			{"budget", budget + 1, fault.InsufficientQuota},
			{"budget", budget, ""},
			{"budget", 1, fault.InsufficientQuota},
			{"budget", 0, ""},
			{"limit", budget, ""},
			{"limit", 1, fault.InsufficientQuota},
			{"nothing", 1, fault.InsufficientQuota},
			{"rate", 0, ""},
			{"rate", 2 * money.USD, fault.InsufficientQuota},
			{"rate", 0, ""},
			{"rate", 0, fault.RateLimitExceeded},
			{"rate", 2 * money.USD, fault.RateLimitExceeded},
			{"off", 0, fault.InvalidAPIKey},
			{"closed", 0, fault.InvalidAPIKey},
			{"unknown", 0, fault.InvalidAPIKey},
		} {
			_, err := f.admit(tt.account, tt.amount)
			if tt.want == "" {
				if err != nil {
					t.Errorf("%s, %s: got %v, want an admission", tt.account, tt.amount, err)
				}
				continue
			}
			wantCode(t, err, tt.want)
			if e := fault.Of(err); e.RetryAfter != 0 || e.NoRetry != (tt.want == fault.InsufficientQuota) {
				t.Errorf("%s: got Retry-After %v, NoRetry %v; want none and %v",
					tt.account, e.RetryAfter, e.NoRetry, tt.want == fault.InsufficientQuota)
			}
		}
		stale := admission("poor", 0)
		stale.KeyVersion = 7
		if _, err := f.Admit(context.Background(), stale); !errors.Is(err, ErrKeyChanged) {
			t.Errorf("another version of the key: %v; want ErrKeyChanged", err)
		}
		f.checkAudit()
	})
}

func TestRateWindowIsExact(t *testing.T) {
	t.Parallel()
	rpm := int64(3)
	eachClock(t, func(t *testing.T, db *store.DB, c *clock) {
		f := start(t, db)
		f.open("a", money.USD, 0, KeyLimits{RPM: &rpm})
		for i, step := range []struct {
			later time.Duration // the clock moves by this first
			want  bool
		}{{0, true}, {time.Second, true}, {time.Second, true}, {0, false}, {57999 * time.Millisecond, false}, {time.Millisecond, true},
			{0, false}, {999 * time.Millisecond, false}, {time.Millisecond, true}} {
			c.add(step.later)
			if _, err := f.admit("a", 0); (err == nil) != step.want {
				t.Errorf("step %d: got %v, want an admission: %v", i, err, step.want)
			}
		}
	})
}

func TestRateWindowSurvivesBatchesAndTime(t *testing.T) {
	t.Parallel()
	eachClock(t, func(t *testing.T, db *store.DB, c *clock) {
		rpm := int64(5)
		f := start(t, db)
		f.open("a", money.USD, 0, KeyLimits{RPM: &rpm})
		var times []int64
		for range 400 {
			c.add(3 * time.Second)
			if _, err := f.admit("a", 0); err == nil {
				times = append(times, c.ms.Load())
			}
		}
		for i := 5; i < len(times); i++ {
			if d := times[i] - times[i-5]; d < 60_000 {
				t.Fatalf("got 6 requests within %d ms, want at least 60000 ms", d)
			}
		}
		if len(times) != 100 {
			t.Errorf("%d passed; want 100: 5 in each minute", len(times))
		}
		var hits int64
		if err := f.db.View(context.Background(), func(tx *store.Tx) error {
			return tx.QueryRow(`SELECT COUNT(*) FROM ledger_hit`).Scan(&hits)
		}); err != nil || hits > rpm {
			t.Errorf("%d rows of hits are kept, %v; want at most %d", hits, err, rpm)
		}
	})
}

func TestFreeQuotaIsPerDayAndGivenBackOnErrors(t *testing.T) {
	t.Parallel()
	eachClock(t, func(t *testing.T, db *store.DB, c *clock) {
		f := start(t, db)
		f.open("a", 0, 0, KeyLimits{})
		free := func() (*Hold, error) {
			a := admission("a", 0)
			a.FreeDaily = 2
			return f.Admit(context.Background(), a)
		}
		first, err := free()
		if err != nil {
			t.Fatal(err)
		}
		if _, err := free(); err != nil {
			t.Fatal(err)
		}
		_, err = free()
		wantCode(t, err, fault.RateLimitExceeded)
		if e := fault.Of(err); !e.NoRetry || e.RetryAfter != 0 {
			t.Errorf("%+v; want x-should-retry: false and no Retry-After", e)
		}
		first.Release(failed())
		again, err := free()
		if err != nil {
			t.Fatalf("after a failed request: got %v, want an admission", err)
		}
		if err := again.Settle(context.Background(), billed(0)); err != nil {
			t.Fatal(err)
		}
		if _, err := free(); err == nil {
			t.Error("after a settled request: admitted, want a refusal")
		}
		c.add(24 * time.Hour)
		if _, err := free(); err != nil {
			t.Errorf("the next day: got %v, want an admission", err)
		}
		f.checkAudit()
	})
}

func TestDailyBudgetBelongsToTheDayOfAdmission(t *testing.T) {
	t.Parallel()
	eachClock(t, func(t *testing.T, db *store.DB, c *clock) {
		budget := money.USD
		f := start(t, db)
		f.open("a", 10*money.USD, 0, KeyLimits{DailyBudget: &budget})
		old := f.mustAdmit("a", money.USD)
		c.add(24 * time.Hour)
		young := f.mustAdmit("a", money.USD)
		if err := old.Settle(context.Background(), billed(money.USD)); err != nil {
			t.Fatal(err)
		}
		if k := f.keyState("a"); k.SpentToday != 0 || k.Spent != money.USD {
			t.Errorf("%+v; want yesterday's charge in the total alone", k)
		}
		_, err := f.admit("a", 1)
		wantCode(t, err, fault.InsufficientQuota)
		c.add(-24 * time.Hour) // a clock set back does not refill a budget
		_, err = f.admit("a", 1)
		wantCode(t, err, fault.InsufficientQuota)
		young.Release(failed())
		f.checkAudit()
		if u := f.usage("a"); u.Total.Requests != 2 {
			t.Errorf("got usage %+v, want 2 requests", u)
		}
	})
}
