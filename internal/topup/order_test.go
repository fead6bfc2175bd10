package topup_test

import (
	"net/http"
	"testing"
	"time"

	"tollgate/internal/store"
	"tollgate/internal/store/storetest"
	"tollgate/internal/topup"
)

// problems returns the open problems.
func (s *shop) problems() (list []topup.Problem) {
	s.t.Helper()
	storetest.View(s.t, s.db, func(tx *store.Tx) (err error) {
		list, _, err = topup.ProblemsTx(tx, "", 100)
		return err
	})
	return list
}

// TestRefusedOrders orders while Stripe refuses payments for good. The orders fail at once, and the operators see
// one problem for each cause, which opens again if the cause comes back.
func TestRefusedOrders(t *testing.T) {
	t.Parallel()
	eachShop(t, topup.Options{AlertMail: []string{"ops@example.com"}}, func(t *testing.T, s *shop) {
		refuse := func(status int, code string) (row topup.Topup) {
			t.Helper()
			s.stripe.RefuseSessions(status, code)
			row, _ = s.begin(1000)
			s.wantState(row, topup.Failed)
			if !s.row(row.ID).IsRefused() {
				t.Errorf("%d %s: the top-up is not refused", status, code)
			}
			return row
		}
		refuse(http.StatusBadRequest, "amount_too_small")
		newest := refuse(http.StatusBadRequest, "amount_too_small")
		list := s.problems()
		if len(list) != 1 || list[0].Object != "400 amount_too_small" || list[0].Count != 2 || list[0].Topup != newest.ID {
			t.Errorf("two orders with one cause: got %+v, want one problem, seen twice", list)
		}
		s.watch()
		s.wantMails("payment_problem ops@example.com")
		s.wantWords("payment_problem", "the payment could not be started", "Stripe says why.")
		refuse(http.StatusForbidden, "") // a restricted key without the permission
		s.wantProblems("order", "order")
		for _, p := range s.problems() {
			storetest.Update(t, s.db, func(tx *store.Tx) error { _, _, err := topup.CloseProblemTx(tx, p.ID); return err })
		}
		s.wantProblems()
		s.clock.Advance(time.Second)
		refuse(http.StatusBadRequest, "amount_too_small")
		s.wantProblems("order")
		s.watch()
		s.wantMails("payment_problem ops@example.com", "payment_problem ops@example.com")
		s.stripe.RefuseSessions(0, "")
		s.paid(1000)
	})
}
