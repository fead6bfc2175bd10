package ledger

import (
	"context"
	"errors"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"tollgate/internal/ledger/books"
	"tollgate/internal/ledger/requestlog"
	"tollgate/internal/money"
	"tollgate/internal/store"
	"tollgate/internal/store/storetest"
)

// damage runs statements, outside the ledger, that damage the books.
func damage(t *testing.T, db *store.DB, texts ...string) {
	t.Helper()
	err := db.Update(context.Background(), func(tx *store.Tx) error {
		for _, text := range texts {
			if _, err := tx.Exec(text); err != nil {
				return err
			}
		}
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
}

// quarantineCauses returns the causes of the quarantined holds.
func (f *fixture) quarantineCauses() map[string]string {
	f.t.Helper()
	causes := map[string]string{}
	err := f.db.View(context.Background(), func(tx *store.Tx) error {
		rows, err := tx.Query(`SELECT id, cause FROM ledger_quarantine`)
		if err != nil {
			return err
		}
		defer rows.Close()
		for rows.Next() {
			var id, cause string
			if err := rows.Scan(&id, &cause); err != nil {
				return err
			}
			causes[id] = cause
		}
		return rows.Err()
	})
	if err != nil {
		f.t.Fatal(err)
	}
	return causes
}

// TestDamagedHoldsAreQuarantined checks that a hold that cannot be ended stops neither the start
// nor a sweep: it is quarantined, and the other holds are ended.
func TestDamagedHoldsAreQuarantined(t *testing.T) {
	t.Parallel()
	storetest.Each(t, func(t *testing.T, db *store.DB) {
		var count int
		f := start(t, db, func(o *Options) { o.Observer.Quarantined = func() { count++ } })
		for _, account := range []string{"a", "b", "c"} {
			f.open(account, 10*money.USD, 0, KeyLimits{})
		}
		withReceipt := f.mustAdmit("a", money.USD)
		for _, account := range []string{"a", "b", "c"} {
			f.mustAdmit(account, money.USD)
		}
		// One hold has a receipt, one lacks its key, one lacks its account.
		update(t, db, func(tx *store.Tx) error {
			q := tx.Batch()
			requestlog.Write(q, []books.ReceiptRow{{Hold: books.HoldRow{ID: withReceipt.open.Row.ID}, End: End{Outcome: Refused, Status: 503},
				Attempts: "[]", StandsFor: 1}})
			return tx.Run(q)
		})
		damage(t, db,
			`DELETE FROM ledger_key WHERE id = 'b_key'`,
			`DELETE FROM ledger_account WHERE id = 'c'`,
		)
		f.fence()
		next := start(t, db) // on SQLite, start sweeps at once
		if err := next.committer.Sweep(context.Background()); err != nil {
			t.Fatal(err)
		}
		if st := next.state("a"); st.Held != 0 || st.Balance != 10*money.USD {
			t.Errorf("a: %+v; want nothing held or charged", st)
		}
		if st := next.state("b"); st.Held != 0 {
			t.Errorf("b: %+v; want nothing held", st)
		}
		if causes := next.quarantineCauses(); len(causes) != 3 {
			t.Errorf("quarantined: %v; want three", causes)
		}
		if k := next.keyState("a"); k.Held != 0 {
			t.Errorf("the key holds %s, want 0", k.Held)
		}
		view(t, db, func(tx *store.Tx) error {
			requests, jobs, err := HeldTx(tx)
			if requests.Holds+jobs.Holds != 0 {
				t.Errorf("%d holds are left, want none", requests.Holds+jobs.Holds)
			}
			return err
		})
	})
}

// TestRefusalThatPasses makes endings fail for a while although the rows are sound. No hold is
// quarantined, the endings succeed later, and the jobs end as usual.
func TestRefusalThatPasses(t *testing.T) {
	t.Parallel()
	storetest.Each(t, func(t *testing.T, db *store.DB) {
		f := start(t, db)
		f.open("a", 10*money.USD, 0, KeyLimits{})
		ctx := context.Background()
		h := f.mustAdmit("a", money.USD)
		j, hold := jobAdmission(money.USD)
		if err := f.AdmitJob(ctx, j, &admitHook{}); err != nil {
			t.Fatal(err)
		}
		setUp, takeDown := []string{`CREATE TRIGGER refuses BEFORE INSERT ON ledger_receipt BEGIN SELECT RAISE(ABORT, 'not yet'); END`},
			[]string{`DROP TRIGGER refuses`}
		if db.Dialect() == store.PostgreSQL {
			setUp = []string{`CREATE FUNCTION refuse() RETURNS trigger AS $$ BEGIN RAISE EXCEPTION 'not yet'; END $$ LANGUAGE plpgsql`,
				`CREATE TRIGGER refuses BEFORE INSERT ON ledger_receipt FOR EACH ROW EXECUTE FUNCTION refuse()`}
			takeDown = []string{`DROP TRIGGER refuses ON ledger_receipt`}
		}
		damage(t, db, setUp...)
		if err := h.Settle(ctx, billed(money.USD)); !errors.Is(err, ErrNotSettled) {
			t.Errorf("settled with %v, want ErrNotSettled", err)
		}
		end := &endHook{admitHook: &admitHook{}, end: End{Outcome: Billed, Cost: money.USD}}
		if _, err := f.EndJob(ctx, hold, end); err == nil {
			t.Error("the end of the job returned no error, want one")
		}
		for range 2 { // the second sweep sees the retry of the first one
			if err := f.committer.Sweep(ctx); err != nil {
				t.Fatal(err)
			}
			if err := f.Confirm(ctx); err != nil {
				t.Fatal(err)
			}
		}
		damage(t, db, takeDown...)
		if err := f.committer.Sweep(ctx); err != nil {
			t.Fatal(err)
		}
		if ended, err := f.EndJob(ctx, hold, end); err != nil || !ended {
			t.Errorf("the job: ended %v, %v; want true", ended, err)
		}
		if causes := f.quarantineCauses(); len(causes) != 0 {
			t.Errorf("quarantined: %v; want none", causes)
		}
		if st := f.state("a"); st.Held != 0 || st.Balance != 9*money.USD {
			t.Errorf("%+v; want only the charge of the job", st)
		}
		f.checkAudit()
	})
}

func TestSettlementThatMeetsDamage(t *testing.T) {
	t.Parallel()
	storetest.Each(t, func(t *testing.T, db *store.DB) {
		f := start(t, db)
		f.open("a", 10*money.USD, 0, KeyLimits{})
		h := f.mustAdmit("a", money.USD)
		damage(t, db, `DELETE FROM ledger_key WHERE id = 'a_key'`)
		if err := h.Settle(context.Background(), billed(money.USD)); err == nil {
			t.Error("the settlement returned no error, want one")
		}
		if err := f.committer.Sweep(context.Background()); err != nil {
			t.Fatal(err)
		}
		if st := f.state("a"); st.Held != 0 || st.Balance != 10*money.USD {
			t.Errorf("%+v; want nothing held or charged", st)
		}
		if causes := f.quarantineCauses(); len(causes) != 1 {
			t.Errorf("quarantined: %v; want one", causes)
		}
	})
}

func TestJobWhoseHoldIsDamaged(t *testing.T) {
	t.Parallel()
	storetest.Each(t, func(t *testing.T, db *store.DB) {
		f := start(t, db)
		f.open("a", 10*money.USD, 0, KeyLimits{})
		ctx := context.Background()
		j, hold := jobAdmission(money.USD)
		if err := f.AdmitJob(ctx, j, &admitHook{}); err != nil {
			t.Fatal(err)
		}
		damage(t, db, `DELETE FROM ledger_key WHERE id = 'a_key'`)
		end := &endHook{admitHook: &admitHook{}, end: End{Outcome: Billed, Cost: money.USD}, orphaned: true}
		if ended, err := f.EndJob(ctx, hold, end); err == nil || ended {
			t.Fatal(ended, err)
		}
		if err := f.committer.Sweep(ctx); err != nil {
			t.Fatal(err)
		}
		// Several ends may share a batch; the job ends once.
		var group sync.WaitGroup
		var ends atomic.Int64
		for range 4 {
			group.Go(func() {
				ended, err := f.EndJob(ctx, hold, end)
				if err != nil {
					t.Error(err)
				}
				if ended {
					ends.Add(1)
				}
			})
		}
		group.Wait()
		if ends.Load() == 0 {
			t.Error("no end of the job took effect, want at least one")
		}
		if st := f.state("a"); st.Held != 0 || st.Balance != 10*money.USD {
			t.Errorf("%+v; want nothing held or charged", st)
		}
	})
}

// TestQuarantineLeavesNothingBehind checks that the books, including the figures of that day and
// the day before, are as if a quarantined hold had never existed. It deletes the row in the
// quarantine first.
func TestQuarantineLeavesNothingBehind(t *testing.T) {
	t.Parallel()
	for name, elapsed := range map[string]time.Duration{"same day": 0, "the day after": 24 * time.Hour} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			eachClock(t, func(t *testing.T, db *store.DB, c *clock) {
				f := start(t, db)
				f.open("a", 10*money.USD, 0, KeyLimits{})
				bad := admission("a", money.USD)
				bad.FreeDaily = 10
				h, err := f.Admit(context.Background(), bad)
				if err != nil {
					t.Fatal(err)
				}
				if elapsed > 0 {
					c.add(elapsed)
					next := admission("a", money.USD)
					next.FreeDaily = 10
					h, err := f.Admit(context.Background(), next)
					if err != nil {
						t.Fatal(err)
					}
					if err := h.Settle(context.Background(), billed(1)); err != nil {
						t.Fatal(err)
					}
				}
				damage(t, db, `UPDATE ledger_hold SET epoch = 'node_gone', prompt_tokens = -5 WHERE id = '`+bad.Request+`'`)
				if err := f.committer.Sweep(context.Background()); err != nil || f.quarantineCauses()[bad.Request] == "" {
					t.Fatal(f.quarantineCauses(), err)
				}
				h.ended.Store(true)
				damage(t, db, `DELETE FROM ledger_quarantine`)
				f.checkAudit()
			})
		})
	}
}

func TestImplausibleHoldsAreQuarantined(t *testing.T) {
	t.Parallel()
	storetest.Each(t, func(t *testing.T, db *store.DB) {
		f := start(t, db)
		f.open("a", 10*money.USD, 0, KeyLimits{})
		var damages []string
		for _, column := range []string{"amount_nano", "cost_nano", "prompt_tokens", "cached_tokens", "completion_tokens"} {
			for _, figure := range []string{"-5", "9223372036854775807"} {
				h := f.mustAdmit("a", 1)
				damages = append(damages, `UPDATE ledger_hold SET epoch = 'node_gone', `+column+` = `+figure+` WHERE id = '`+h.open.Row.ID+`'`)
			}
		}
		for _, text := range damages {
			damage(t, db, text)
		}
		_ = f.committer.Sweep(context.Background()) // the sum of holds fails while one is out of range
		if err := f.committer.Sweep(context.Background()); err != nil {
			t.Fatal(err)
		}
		if causes := f.quarantineCauses(); len(causes) != 10 {
			t.Errorf("quarantined: %v; want ten", causes)
		}
		damage(t, db, `DELETE FROM ledger_quarantine`)
		f.checkAudit()
	})
}
