package ledger

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	"tollgate/internal/fault"
	"tollgate/internal/ledger/requestlog"
	"tollgate/internal/money"
	"tollgate/internal/store"
	"tollgate/internal/store/storetest"
)

// preview calls Admissible and then Admit. Both must return the same error, and Admissible must
// write nothing. preview returns that error.
func (f *fixture) preview(a Admission) error {
	f.t.Helper()
	before := f.dump()
	preview := f.Admissible(context.Background(), a)
	if after := f.dump(); after != before {
		f.t.Errorf("%s: after Admissible the rows are\n%s\nwant them unchanged:\n%s", a.Account, after, before)
	}
	_, err := f.Admit(context.Background(), a)
	got, want := fault.Of(preview), fault.Of(err)
	switch {
	case (preview == nil) != (err == nil), errors.Is(preview, ErrKeyChanged) != errors.Is(err, ErrKeyChanged):
		f.t.Errorf("%s, %s: Admissible returned %v, want %v, as Admit did", a.Account, a.Amount, preview, err)
	case err == nil || errors.Is(err, ErrKeyChanged):
	case got.Code != want.Code || got.Message() != want.Message() || got.NoRetry != want.NoRetry || got.RetryAfter != want.RetryAfter:
		f.t.Errorf("%s, %s: Admissible returned %+v, want %+v, as Admit did", a.Account, a.Amount, got, want)
	}
	return preview
}

// dump returns the ledger's rows as text, except log rows, which are written later.
func (f *fixture) dump() string {
	f.t.Helper()
	var out strings.Builder
	err := f.db.View(context.Background(), func(tx *store.Tx) error {
		for _, table := range []string{"ledger_account", "ledger_key", "ledger_hit", "ledger_limit", "ledger_hold", "ledger_day"} {
			rows, err := tx.Query(`SELECT * FROM ` + table + ` ORDER BY 1, 2, 3`)
			if err != nil {
				return err
			}
			columns, err := rows.Columns()
			if err != nil {
				return err
			}
			values := make([]any, len(columns))
			for i := range values {
				values[i] = new(any)
			}
			for rows.Next() {
				if err := rows.Scan(values...); err != nil {
					return err
				}
				fmt.Fprint(&out, table)
				for _, v := range values {
					fmt.Fprintf(&out, " %v", *v.(*any))
				}
				fmt.Fprintln(&out)
			}
			if err := errors.Join(rows.Err(), rows.Close()); err != nil {
				return err
			}
		}
		return nil
	})
	if err != nil {
		f.t.Fatal(err)
	}
	return out.String()
}

func TestAdmissible(t *testing.T) {
	t.Parallel()
	two, budget, day := int64(2), money.USD/2, 24*time.Hour
	eachClock(t, func(t *testing.T, db *store.DB, c *clock) {
		f := start(t, db)
		f.open("poor", money.USD, 0, KeyLimits{})
		f.open("overdrawn", 0, -money.USD, KeyLimits{})
		f.open("budget", 10*money.USD, 0, KeyLimits{DailyBudget: &budget})
		f.open("limit", money.USD, 0, KeyLimits{TotalLimit: &budget})
		f.open("rate", money.USD, 0, KeyLimits{RPM: &two})
		f.open("free", 0, 0, KeyLimits{})
		f.open("off", money.USD, 0, KeyLimits{Disabled: true})
		for i, step := range []struct {
			later   time.Duration // the clock moves by this first
			account string
			amount  money.Amount
			change  func(*Admission)
			want    fault.Code // empty if the request is admitted
		}{
			{0, "poor", money.USD + 1, nil, fault.InsufficientQuota},
			{0, "poor", money.Max + 1, nil, fault.InsufficientQuota},
			{0, "poor", money.USD, nil, ""},
			{0, "poor", 1, nil, fault.InsufficientQuota}, // the hold counts
			{0, "overdrawn", money.USD + 1, nil, fault.InsufficientQuota},
			{0, "overdrawn", money.USD, nil, ""},
			{0, "budget", budget, nil, ""},
			{0, "budget", 1, nil, fault.InsufficientQuota},
			{0, "limit", budget + 1, nil, fault.InsufficientQuota},
			{0, "rate", 0, nil, ""},
			{time.Second, "rate", 0, nil, ""},
			{time.Second, "rate", 0, nil, fault.RateLimitExceeded},
			{0, "rate", 9 * money.USD, nil, fault.RateLimitExceeded}, // before the balance
			{57 * time.Second, "rate", 0, nil, fault.RateLimitExceeded},
			{time.Second, "rate", 0, nil, ""},
			{-time.Hour, "rate", 0, nil, fault.RateLimitExceeded}, // the hits are in the future
			{time.Hour, "free", 0, func(a *Admission) { a.FreeDaily = 1 }, ""},
			{0, "free", 0, func(a *Admission) { a.FreeDaily = 1 }, fault.RateLimitExceeded},
			{0, "off", 0, nil, fault.InvalidAPIKey},
			{0, "unknown", 0, nil, fault.InvalidAPIKey},
			{0, "poor", 0, func(a *Admission) { a.Key = "limit_key" }, fault.InvalidAPIKey},
			{day, "budget", budget, nil, ""}, // the next day
			{0, "free", 0, func(a *Admission) { a.FreeDaily = 1 }, ""},
			{-day, "budget", 1, nil, fault.InsufficientQuota}, // the row has the figures of another day
			{0, "free", 0, func(a *Admission) { a.FreeDaily = 1 }, fault.RateLimitExceeded},
		} {
			c.add(step.later)
			a := admission(step.account, step.amount)
			if step.change != nil {
				step.change(&a)
			}
			if err := f.preview(a); step.want != "" {
				wantCode(t, err, step.want)
			} else if err != nil {
				t.Errorf("step %d, %s, %s: got %v, want an admission", i, step.account, step.amount, err)
			}
		}
		stale := admission("limit", 0)
		stale.KeyVersion = 7
		if err := f.preview(stale); !errors.Is(err, ErrKeyChanged) {
			t.Errorf("another version of the key: %v; want ErrKeyChanged", err)
		}
		f.checkAudit()
	})
}

func TestAdmissibleDoesNotWait(t *testing.T) {
	t.Parallel()
	storetest.Each(t, func(t *testing.T, db *store.DB) {
		f := start(t, db)
		f.open("a", money.USD, 0, KeyLimits{})
		err := db.Update(context.Background(), func(tx *store.Tx) error {
			if _, err := CreditTx(tx, "a", money.USD, ""); err != nil {
				return err
			}
			return f.Admissible(context.Background(), admission("a", money.USD))
		})
		if err != nil {
			t.Error(err)
		}
	})
}

func TestAdmissibleIsNoReceipt(t *testing.T) {
	t.Parallel()
	storetest.Each(t, func(t *testing.T, db *store.DB) {
		f := start(t, db)
		f.open("a", 0, 0, KeyLimits{})
		a := admission("a", 1)
		wantCode(t, f.Admissible(context.Background(), a), fault.InsufficientQuota)
		f.close()
		if rows := f.requests(requestlog.Selection{}); len(rows) != 0 {
			t.Errorf("got receipts %+v, want none", rows)
		}
	})
}

// TestAdmissibleWithoutDatabase checks that Admissible answers like an admission while the database
// is unreachable.
func TestAdmissibleWithoutDatabase(t *testing.T) {
	t.Parallel()
	storetest.Each(t, func(t *testing.T, db *store.DB) {
		f := start(t, db)
		f.open("a", money.USD, 0, KeyLimits{})
		ctx, cancel := context.WithCancel(context.Background())
		cancel()
		err := f.Admissible(ctx, admission("a", 1))
		wantCode(t, err, fault.ServiceUnavailable)
		if fault.Of(err).RetryAfter != time.Second {
			t.Errorf("got Retry-After %v, want 1s", fault.Of(err).RetryAfter)
		}
	})
}
