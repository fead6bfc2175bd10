package topup_test

import (
	"net/http"
	"testing"
	"time"

	"tollgate/internal/money"
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

// TestOrderAfterChange loses the answer about a session, and repeats the call after the public address has changed.
// Stripe refuses the idempotency key. The customer gets the first session. If the session is missing, the order
// fails, and the next order can be paid.
func TestOrderAfterChange(t *testing.T) {
	t.Parallel()
	eachShop(t, topup.Options{}, func(t *testing.T, s *shop) {
		moved := s.Options
		moved.PublicURL = "https://moved.example"
		lose := func() topup.Topup {
			t.Helper()
			row := s.create(1000)
			s.stripe.OnCall(func(string, string) { panic(http.ErrAbortHandler) })
			if err := s.Begin(t.Context(), row.ID); !isNoAnswer(err) {
				t.Errorf("a lost answer: got %v, want ErrNoAnswer", err)
			}
			s.stripe.OnCall(nil)
			return row
		}
		again := func(row topup.Topup) {
			t.Helper()
			if err := topup.New(moved).Begin(t.Context(), row.ID); err != nil {
				t.Error(err)
			}
		}
		row := lose()
		session := s.stripe.Session(row.ID)
		again(row)
		if got := s.row(row.ID); got.Session != session || got.Address != s.stripe.URL+"/pay/"+session || s.stripe.Sessions() != 1 {
			t.Errorf("got %+v and %d sessions, want the first session and no other", got, s.stripe.Sessions())
		}
		s.stripe.Pay(session)
		s.wantBalance(10 * money.USD)
		s.wantProblems()

		row = lose()
		s.stripe.Set(s.stripe.Session(row.ID), "metadata", object{})
		again(row)
		s.wantState(row, topup.Failed)
		s.wantProblems("order")
		s.paid(1000)
	})
}
