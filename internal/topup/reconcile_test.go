package topup_test

import (
	"errors"
	"testing"
	"time"

	"tollgate/internal/store"
	"tollgate/internal/topup"
)

// TestReconcile compares payments at the provider with the rows, in both directions.
func TestReconcile(t *testing.T) {
	t.Parallel()
	eachShop(t, topup.Options{}, func(t *testing.T, s *shop) {
		old, _ := s.paid(1000) // before the compared time
		s.clock.Advance(48 * time.Hour)
		since := s.clock.Now().UnixMilli()
		s.paid(2000)
		s.begin(3000)
		want := func(name string, payments, topups int, differences ...topup.Mismatch) {
			t.Helper()
			s.clock.Advance(time.Minute)
			r, err := s.Reconcile(t.Context(), "stripe", since)
			if err != nil {
				t.Fatal(name, err)
			}
			if r.Payments != payments || r.Topups != topups || len(r.Differences) != len(differences) {
				t.Errorf("%s: got %+v, want %d payments, %d top-ups and %d differences", name, r, payments, topups, len(differences))
				return
			}
			for i, d := range differences {
				if r.Differences[i] != d {
					t.Errorf("%s: got %+v, want %+v", name, r.Differences[i], d)
				}
			}
		}
		want("all is well", 1, 1)

		row, session := s.begin(5000)
		s.stripe.SendTo("http://127.0.0.1:1") // messages are lost
		s.stripe.Pay(session)
		payment := func() string {
			p, err := s.Providers[0].Query(t.Context(), s.row(row.ID))
			if err != nil {
				t.Fatal(err)
			}
			return p.ID
		}()
		want("not credited", 2, 1, topup.Mismatch{Topup: row.ID, Payment: payment, What: "paid at the provider, but not credited",
			Here: "pending", There: "50.00 USD"})
		if err := s.Sync(t.Context(), row.ID, ""); err != nil {
			t.Fatal(err)
		}
		want("credited", 2, 2)

		exec := func(text string, args ...any) {
			t.Helper()
			if err := s.db.Update(t.Context(), func(tx *store.Tx) error { _, err := tx.Exec(text, args...); return err }); err != nil {
				t.Fatal(err)
			}
		}
		exec(`UPDATE topup SET total_minor = 5500 WHERE id = $1`, row.ID)
		want("another amount", 2, 2, topup.Mismatch{Topup: row.ID, Payment: payment, What: "the amounts differ",
			Here: "50.00 USD (55.00 with tax)", There: "50.00 USD"})
		exec(`UPDATE topup SET total_minor = 5000, payment = 'pi_other' WHERE id = $1`, row.ID)
		want("another payment", 2, 2, topup.Mismatch{Topup: row.ID, Payment: payment, What: "the payment has another id",
			Here: "pi_other", There: payment})
		exec(`UPDATE topup SET payment = $1 WHERE id = $2`, payment, row.ID)
		s.stripe.Set(session, "payment_status", "unpaid")
		want("not paid there", 1, 2, topup.Mismatch{Topup: row.ID, Payment: payment, What: "credited, but not paid at the provider",
			Here: "50.00 USD", There: "open"})
		s.stripe.Set(session, "payment_status", "paid")

		created := s.row(old.ID).CreatedMS
		exec(`UPDATE topup SET created_ms = $1 WHERE id = $2`, since+1, old.ID)
		want("not listed", 2, 3, topup.Mismatch{Topup: old.ID, Payment: old.Payment,
			What: "credited, but the provider does not list the payment", Here: "10.00 USD"})
		exec(`UPDATE topup SET created_ms = $1 WHERE id = $2`, created, old.ID)
		if _, err := s.Reconcile(t.Context(), "other", since); !errors.Is(err, topup.ErrOff) {
			t.Errorf("an unknown provider: got %v, want %v", err, topup.ErrOff)
		}
	})
}
