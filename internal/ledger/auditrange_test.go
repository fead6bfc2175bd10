package ledger

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"slices"
	"testing"

	"tollgate/internal/ledger/audit"
	"tollgate/internal/ledger/ledgertest"
	"tollgate/internal/money"
	"tollgate/internal/store"
	"tollgate/internal/store/storetest"
)

// TestAuditInRanges audits the same books in one range and in ranges of one account.
func TestAuditInRanges(t *testing.T) {
	t.Parallel()
	eachClock(t, func(t *testing.T, db *store.DB, c *clock) {
		goodBooks(t, db, c)
		whole, err := audit.Run(t.Context(), db)
		if err != nil || !whole.OK {
			t.Fatal(err, whole)
		}
		var after []string
		single, err := audit.RunWith(t.Context(), db, audit.Options{RangeRows: 1, Save: func(_ context.Context, p audit.Progress) error {
			after = append(after, p.After)
			return nil
		}})
		if err != nil || !single.OK || !maps.Equal(single.Checked, whole.Checked) {
			t.Errorf("%v, %+v; want the counts %v", err, single, whole.Checked)
		}
		// The last account's range has no end, and the rows of no account follow.
		if want := []string{"a", "b", "", ""}; !slices.Equal(after, want) {
			t.Errorf("the ranges end after %q, want %q", after, want)
		}
	})
}

// TestAuditRangesBySize counts the ranges of accounts with different numbers of movements.
func TestAuditRangesBySize(t *testing.T) {
	t.Parallel()
	storetest.Each(t, func(t *testing.T, db *store.DB) {
		f := start(t, db)
		for i, requests := range []int{3, 0, 0, 0, 9, 2, 2, 0} { // each account also has a credit
			account := fmt.Sprint("a", i)
			f.open(account, money.USD, 0, KeyLimits{})
			for range requests {
				f.mustAdmit(account, 100).Release(failed())
			}
		}
		var after []string
		report, err := audit.RunWith(t.Context(), db, audit.Options{RangeRows: 9, Save: func(_ context.Context, p audit.Progress) error {
			after = append(after, p.After)
			return nil
		}})
		if err != nil || !report.OK || report.Checked["accounts"] != 8 || report.Checked["receipts"] != 16 {
			t.Errorf("got %v, %+v; want 8 accounts and 16 receipts without differences", err, report)
		}
		if want := []string{"a2", "a4", "", ""}; !slices.Equal(after, want) {
			t.Errorf("the ranges end after %q; want %q", after, want)
		}
	})
}

// TestAuditBetweenRanges changes the books after each range of an audit: requests are admitted, end
// and are refused on accounts before and after the range, jobs end, accounts are opened and closed,
// nodes die. None of this is a difference.
func TestAuditBetweenRanges(t *testing.T) {
	t.Parallel()
	eachClock(t, func(t *testing.T, db *store.DB, c *clock) {
		f := goodBooks(t, db, c)
		held := map[string]*Hold{}
		for _, account := range []string{"a", "b"} {
			held[account] = f.mustAdmit(account, 1000)
		}
		ranges := 0
		report, err := audit.RunWith(t.Context(), db, audit.Options{RangeRows: 1, Save: func(context.Context, audit.Progress) error {
			ranges++
			if ranges > 20 {
				return errors.New("the audit does not end")
			}
			for account, h := range held {
				if err := h.Settle(t.Context(), billed(1500)); err != nil { // above the hold
					return err
				}
				held[account] = f.mustAdmit(account, 1000)
			}
			credit(t, db, "a", -5)
			makeJob(f, c, fmt.Sprint("req_job_", ranges), ranges%2 == 0)
			early, late := fmt.Sprint("0early", ranges), fmt.Sprint("late", ranges)
			for _, account := range []string{early, late} {
				f.open(account, money.USD, 0, KeyLimits{})
				if err := f.mustAdmit(account, 100).Settle(t.Context(), billed(10)); err != nil {
					return err
				}
			}
			disabled := true
			update(t, db, func(tx *store.Tx) error {
				return errors.Join(CloseKeyTx(tx, early+"_key"), ChangeAccountTx(tx, early, AccountChange{Disabled: &disabled}))
			})
			return nil
		}})
		if err != nil || !report.OK {
			t.Errorf("got %v, %+v; want no differences", err, report)
		}
		for _, h := range held {
			h.Release(failed())
		}
		f.checkAudit()
	})
}

// TestAuditIsContinued interrupts an audit after each range, continues it from its stored progress,
// and gets the report of an audit without interruptions.
func TestAuditIsContinued(t *testing.T) {
	t.Parallel()
	eachClock(t, func(t *testing.T, db *store.DB, c *clock) {
		goodBooks(t, db, c)
		for _, f := range []ledgertest.Fault{ledgertest.LimitZero.Of("a_key"), ledgertest.OverMore.Of("a"), ledgertest.LimitGone.Of("b_key"),
			ledgertest.KeyLogGone.Of("c_key"), ledgertest.DayCountsLess.Of("c")} {
			update(t, db, func(tx *store.Tx) error {
				_, err := tx.Exec(string(f))
				return err
			})
		}
		whole, err := audit.RunWith(t.Context(), db, audit.Options{RangeRows: 1})
		if err != nil || whole.OK {
			t.Fatal(err, whole)
		}
		for _, account := range []string{"a", "b", "c"} { // each range has its own differences
			if !slices.ContainsFunc(whole.Differences, func(d audit.Difference) bool { return d.Account == account }) {
				t.Errorf("got %+v, want a difference of account %s", whole.Differences, account)
			}
		}
		interrupted := errors.New("killed")
		var stored []byte
		for runs := 1; ; runs++ {
			var from audit.Progress
			if stored != nil {
				if err := json.Unmarshal(stored, &from); err != nil {
					t.Fatal(err)
				}
			}
			save := func(_ context.Context, p audit.Progress) error {
				var err error
				stored, err = json.Marshal(p)
				return errors.Join(err, interrupted)
			}
			report, err := audit.RunWith(t.Context(), db, audit.Options{RangeRows: 1, From: from, Save: save})
			if err == nil { // everything had been read before the last interruption
				if runs != 5 || !maps.Equal(report.Checked, whole.Checked) || !slices.Equal(byText(report), byText(whole)) {
					t.Errorf("after %d runs: %+v; want %+v", runs, report, whole)
				}
				return
			}
			if !errors.Is(err, interrupted) || runs > 10 {
				t.Fatal(err, runs)
			}
		}
	})
}

// byText returns the differences in a fixed order.
func byText(f audit.Findings) (texts []string) {
	for _, d := range f.Differences {
		texts = append(texts, fmt.Sprintf("%+v", d))
	}
	slices.Sort(texts)
	return texts
}

// TestAuditOfOneAccount audits single accounts of books with differences in another one.
func TestAuditOfOneAccount(t *testing.T) {
	t.Parallel()
	eachClock(t, func(t *testing.T, db *store.DB, c *clock) {
		goodBooks(t, db, c)
		update(t, db, func(tx *store.Tx) error {
			_, err := tx.Exec(string(ledgertest.OverMore.Of("a")))
			return err
		})
		for account, ok := range map[string]bool{"a": false, "b": true, "c": true} {
			report, err := audit.RunWith(t.Context(), db, audit.Options{Account: account})
			if err != nil || report.OK != ok || report.Checked["accounts"] != 1 || report.Checked["keys"] != 1 {
				t.Errorf("%s: got %v, %+v; want one account and one key, OK %v", account, err, report, ok)
			}
		}
		if _, err := audit.RunWith(t.Context(), db, audit.Options{Account: "x"}); !errors.Is(err, audit.ErrNoAccount) {
			t.Errorf("an unknown account: got %v, want ErrNoAccount", err)
		}
	})
}
