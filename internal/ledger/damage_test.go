package ledger

import (
	"context"
	"testing"
	"time"

	"tollgate/internal/ledger/audit"
	"tollgate/internal/money"
	"tollgate/internal/store"
	"tollgate/internal/store/storetest"
)

// TestRowsOfAnotherType checks that an unreadable account or hold affects only its own account.
// SQLite stores any value in a column.
func TestRowsOfAnotherType(t *testing.T) {
	t.Parallel()
	for name, text := range map[string]string{
		"account":       `UPDATE ledger_account SET balance_nano = 0.5 WHERE id = 'b'`,
		"key":           `UPDATE ledger_key SET rpm = 'none' WHERE id = 'b_key'`,
		"hold":          `UPDATE ledger_hold SET amount_nano = 0.5 WHERE account = 'b'`,
		"hold's flag":   `UPDATE ledger_hold SET free = 'no' WHERE account = 'b'`,
		"hold's epoch":  `UPDATE ledger_hold SET epoch = CAST(epoch AS BLOB) WHERE account = 'b'`,
		"day of a key":  `UPDATE ledger_limit SET spent_nano = 'much' WHERE subject = 'b_key'`,
		"hold's tokens": `UPDATE ledger_hold SET prompt_tokens = 'many' WHERE account = 'b'`,
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			db := storetest.Open(t, storetest.SQLite(t), store.Options{})
			f := start(t, db)
			f.open("a", 10*money.USD, 0, KeyLimits{})
			budget := 10 * money.USD
			f.open("b", 10*money.USD, 0, KeyLimits{DailyBudget: &budget})
			f.mustAdmit("a", money.USD)
			if err := f.mustAdmit("b", money.USD).Settle(t.Context(), billed(1)); err != nil {
				t.Fatal(err)
			}
			f.mustAdmit("b", money.USD)
			damage(t, db, text)
			f.fence()

			ctx, cancel := context.WithTimeout(context.Background(), 10*time.Second)
			defer cancel()
			next := New(Options{DB: db, Node: join(t, db), OutageGrace: 5 * time.Second, QueueWait: 5 * time.Second})
			if err := next.Start(ctx); err != nil {
				t.Fatalf("start: %v", err)
			}
			n := &fixture{Ledger: next, t: t}
			_, _ = n.Admit(ctx, admission("b", money.USD)) // refused if the account's rows are damaged
			h, err := n.Admit(ctx, admission("a", money.USD))
			if err != nil {
				t.Fatalf("a: %v", err)
			}
			if err := h.Settle(ctx, billed(money.USD)); err != nil {
				t.Fatalf("settle a: %v", err)
			}
			if err := n.Sweep(ctx); err != nil {
				t.Errorf("sweep: %v", err)
			}
			if st := n.state("a"); st.Held != 0 || st.Balance != 9*money.USD {
				t.Errorf("account a: got %+v, want a balance of 9 and nothing held", st)
			}
			report, err := audit.Run(ctx, db)
			if err != nil || report.OK {
				t.Errorf("audit: got %v, %+v; want a difference", err, report)
			}
			if err := next.Close(ctx); err != nil {
				t.Errorf("close: %v", err)
			}
		})
	}
}
