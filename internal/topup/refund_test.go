package topup_test

import (
	"net/http"
	"testing"
	"time"

	"tollgate/internal/ledger"
	"tollgate/internal/ledger/audit"
	"tollgate/internal/ledger/ledgertest"
	"tollgate/internal/money"
	"tollgate/internal/store"
	"tollgate/internal/topup"
)

// TestRefundsTakeCreditBack refunds parts of a payment with a bonus on Stripe's own pages. The parts take
// back the credit proportionally, and together exactly. A failed refund gives it back.
func TestRefundsTakeCreditBack(t *testing.T) {
	t.Parallel()
	eachShop(t, topup.Options{}, func(t *testing.T, s *shop) {
		row, session := s.paid(10000)
		s.wantBalance(110 * money.USD)
		first := s.stripe.RefundElsewhere(session, 3333)
		s.wantState(row, topup.PartlyRefunded)
		s.wantBalance(110*money.USD - 36_663_000_000)
		s.stripe.RefundElsewhere(session, 3333)
		s.stripe.RefundElsewhere(session, 3334)
		s.wantState(row, topup.Refunded)
		s.wantBalance(0)
		s.stripe.FailRefund(first)
		s.wantState(row, topup.PartlyRefunded)
		s.wantBalance(36_663_000_000)
		for _, e := range s.stripe.Events() { // all messages again, in order
			if status := s.post(s.handler, e.Body, s.sign(e.Body)); status != http.StatusOK {
				t.Errorf("%s: got %d, want 200", e.Type, status)
			}
		}
		s.wantBalance(36_663_000_000)
	})
}

// TestRefundBeforePaid sends the message about a refund before any message about the payment.
func TestRefundBeforePaid(t *testing.T) {
	t.Parallel()
	eachShop(t, topup.Options{}, func(t *testing.T, s *shop) {
		s.stripe.SendTo("")
		row, session := s.begin(2000)
		s.stripe.Pay(session)
		s.stripe.RefundElsewhere(session, 2000)
		events := s.stripe.Events()
		for i := len(events) - 1; i >= 0; i-- {
			if status := s.post(s.handler, events[i].Body, s.sign(events[i].Body)); status != http.StatusOK {
				t.Errorf("%s: got %d, want 200", events[i].Type, status)
			}
			s.wantState(row, topup.Refunded)
			s.wantBalance(0)
		}
	})
}

// TestDisputeAfterSpending disputes a payment whose credit is spent. The balance falls below zero, and
// the account is disabled if the operator wants it (elizaOS/eliza#10920). Winning gives the credit back.
func TestDisputeAfterSpending(t *testing.T) {
	t.Parallel()
	for _, disables := range []bool{false, true} {
		eachShop(t, topup.Options{DisableOnDispute: disables}, func(t *testing.T, s *shop) {
			row, session := s.paid(2000)
			spend(s, 15*money.USD)
			dispute := s.stripe.Dispute(session, "needs_response")
			s.wantState(row, topup.Disputed)
			s.wantBalance(-15 * money.USD)
			if got := s.state().Disabled; got != disables {
				t.Errorf("disabled: got %t, want %t", got, disables)
			}
			s.wantProblems("dispute")
			s.stripe.EndDispute(dispute, "won")
			s.wantState(row, topup.Paid)
			s.wantBalance(5 * money.USD)
			s.stripe.EndDispute(dispute, "lost") // after arbitration
			s.wantState(row, topup.Disputed)
			s.wantBalance(-15 * money.USD)
		})
	}
}

// spend takes money as an operator would.
func spend(s *shop, amount money.Amount) {
	s.t.Helper()
	if err := s.db.Update(s.t.Context(), func(tx *store.Tx) error {
		_, err := ledger.CreditTx(tx, s.account, -amount, "spent")
		return err
	}); err != nil {
		s.t.Fatal(err)
	}
}

// TestInquiryTakesNoCredit opens an inquiry of a bank, which takes no money, but disables the account.
func TestInquiryTakesNoCredit(t *testing.T) {
	t.Parallel()
	eachShop(t, topup.Options{DisableOnDispute: true}, func(t *testing.T, s *shop) {
		row, session := s.paid(2000)
		dispute := s.stripe.Dispute(session, "warning_needs_response")
		s.wantState(row, topup.Paid)
		s.wantBalance(20 * money.USD)
		if !s.state().Disabled {
			t.Error("the account is enabled, want it disabled")
		}
		s.stripe.EndDispute(dispute, "needs_response")
		s.wantState(row, topup.Disputed)
		s.wantBalance(0)
	})
}

// TestRefundAndDisputeTakeTheCreditOnce disputes a payment that is partly refunded. Together they take
// back no more than the credit.
func TestRefundAndDisputeTakeTheCreditOnce(t *testing.T) {
	t.Parallel()
	eachShop(t, topup.Options{}, func(t *testing.T, s *shop) {
		row, session := s.paid(2000)
		refund := s.stripe.RefundElsewhere(session, 800)
		s.wantBalance(12 * money.USD)
		s.stripe.Dispute(session, "lost")
		s.wantState(row, topup.Disputed)
		s.wantBalance(0)
		s.stripe.FailRefund(refund)
		s.wantBalance(0)
	})
}

// TestOperatorRefunds refunds in parts. The credit is taken before Stripe is called.
func TestOperatorRefunds(t *testing.T) {
	t.Parallel()
	eachShop(t, topup.Options{}, func(t *testing.T, s *shop) {
		row, _ := s.paid(10000)
		for _, minor := range []int64{0, -1, 10001} {
			if _, err := s.refund(row, minor); err == nil {
				t.Errorf("a refund of %d: got no error, want one", minor)
			}
		}
		if _, err := s.refund(row, 2500); err != nil {
			t.Fatal(err)
		}
		s.wantState(row, topup.PartlyRefunded)
		s.wantBalance(82_500_000_000)
		if _, err := s.refund(row, 7501); err == nil {
			t.Error("a refund of more than the rest: got no error, want one")
		}
		if _, err := s.refund(row, 7500); err != nil {
			t.Fatal(err)
		}
		s.wantState(row, topup.Refunded)
		s.wantBalance(0)
		if got := s.stripe.Refunds(); got != 2 {
			t.Errorf("got %d refunds at Stripe, want 2", got)
		}
		open, _ := s.begin(2000)
		if _, err := s.refund(open, 1000); err == nil {
			t.Error("a refund of an unpaid top-up: got no error, want one")
		}
	})
}

// TestRefundIsRepeatedOnce loses the answer to a refund. The sweep finds the refund at Stripe, also after
// Stripe has forgotten the idempotency key, and makes no second one.
func TestRefundIsRepeatedOnce(t *testing.T) {
	t.Parallel()
	eachShop(t, topup.Options{}, func(t *testing.T, s *shop) {
		row, _ := s.paid(2000)
		s.stripe.SendTo("")
		s.stripe.SetDown(500)
		if _, err := s.refund(row, 500); !isNoAnswer(err) {
			t.Errorf("a refund without an answer: got %v, want ErrNoAnswer", err)
		}
		s.wantBalance(15 * money.USD)
		s.stripe.SetDown(0)
		for range 3 {
			s.clock.Advance(25 * time.Hour)
			s.sweepOK()
		}
		if got := s.stripe.Refunds(); got != 1 {
			t.Errorf("got %d refunds at Stripe, want 1", got)
		}
		s.wantState(row, topup.PartlyRefunded)
		s.wantBalance(15 * money.USD)
	})
}

// TestRefundAfterOutage loses Stripe when a refund begins and at its first repetition. A sweep after the outage
// pays the refund back, also that of a payment that is too old to be followed.
func TestRefundAfterOutage(t *testing.T) {
	t.Parallel()
	for name, age := range map[string]time.Duration{"new payment": time.Hour, "old payment": 200 * 24 * time.Hour} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			eachShop(t, topup.Options{}, func(t *testing.T, s *shop) {
				row, _ := s.paid(2000)
				s.stripe.SendTo("")
				s.clock.Advance(age)
				s.stripe.SetDown(http.StatusInternalServerError)
				if _, err := s.refund(row, 500); !isNoAnswer(err) {
					t.Errorf("a refund without an answer: got %v, want ErrNoAnswer", err)
				}
				s.clock.Advance(time.Minute)
				if err := s.Sweep(t.Context()); err == nil {
					t.Error("a sweep of a silent provider succeeds")
				}
				s.stripe.SetDown(0)
				s.clock.Advance(time.Minute)
				s.sweepOK()
				if got := s.stripe.Refunds(); got != 1 {
					t.Errorf("a minute after the outage: got %d refunds at Stripe, want 1", got)
				}
				s.wantState(row, topup.PartlyRefunded)
				s.wantBalance(15 * money.USD)
			})
		})
	}
}

// TestRefundWithoutRow asks for a refund whose transaction was rolled back, as after a repetition of a request
// that met a lock. Stripe pays nothing back.
func TestRefundWithoutRow(t *testing.T) {
	t.Parallel()
	eachShop(t, topup.Options{}, func(t *testing.T, s *shop) {
		row, _ := s.paid(2000)
		err := s.PayBack(t.Context(), topup.Reversal{ID: "refund_lost", Topup: row.ID, Account: s.account, Kind: topup.Refund, Minor: 500,
			Active: true, Requested: true})
		if got := s.stripe.Refunds(); err != nil || got != 0 {
			t.Errorf("got %d refunds at Stripe and error %v, want none", got, err)
		}
		s.wantBalance(20 * money.USD)
	})
}

// TestRefusedRefundGivesTheCreditBack refunds a payment that was refunded on Stripe's pages meanwhile.
func TestRefusedRefundGivesTheCreditBack(t *testing.T) {
	t.Parallel()
	eachShop(t, topup.Options{}, func(t *testing.T, s *shop) {
		row, session := s.paid(2000)
		s.stripe.SendTo("")
		s.stripe.RefundElsewhere(session, 1800)
		if _, err := s.refund(row, 500); err == nil {
			t.Error("a refund of more than the rest at Stripe: got no error, want one")
		}
		s.wantBalance(20 * money.USD)
		s.wantProblems("refund")
		s.clock.Advance(24 * time.Hour)
		s.sweepOK()
		s.wantBalance(2 * money.USD)
	})
}

// TestAuditFindsFaults plants faults in the rows of top-ups and in their movements.
func TestAuditFindsFaults(t *testing.T) {
	t.Parallel()
	eachShop(t, topup.Options{}, func(t *testing.T, s *shop) {
		row, session := s.paid(10000)
		s.stripe.RefundElsewhere(session, 2500)
		s.begin(2000)
		other := s.open("other")
		entry := `FROM ledger_entry WHERE note = 'top-up ` + row.ID + `'`
		for _, c := range []struct{ name, statements, want string }{
			{"the credit is gone", `DELETE ` + entry, "exactly one credit"},
			{"the credit is of another account", `UPDATE ledger_entry SET account = '` + other + `' WHERE note = 'top-up ` + row.ID + `'`,
				"names a top-up that the account"},
			{"the row is gone", `DELETE FROM topup WHERE id = '` + row.ID + `'`, "a movement names a top-up"},
			{"the row is moved", `UPDATE topup SET account = '` + other + `' WHERE id = '` + row.ID + `'`, "a movement names a top-up"},
			{"the row is not paid", `UPDATE topup SET state = 'pending', paid_ms = 0, payment = '' WHERE id = '` + row.ID + `'`,
				"an unpaid top-up was credited"},
			{"an open row is paid", `UPDATE topup SET state = 'paid', paid_ms = 1, payment = 'x', total_minor = 2000 WHERE state = 'pending'`,
				"exactly one credit"},
			{"the state alone is changed", `UPDATE topup SET state = 'paid' WHERE state = 'pending'`, "does not fit its payment"},
			{"the credit in the row", `UPDATE topup SET credit_nano = credit_nano + 1 WHERE id = '` + row.ID + `'`, "does not follow from"},
			{"the rate", `UPDATE topup SET rate_nano = rate_nano + 1 WHERE id = '` + row.ID + `'`, "does not follow from"},
			{"the refund is gone", `DELETE FROM topup_reversal`, "did not take back their part"},
			{"the refund is inactive", `UPDATE topup_reversal SET active = 0`, "did not take back their part"},
			{"the refund is larger", `UPDATE topup_reversal SET minor = minor + 1`, "did not take back their part"},
			{"the refund is of another account", `UPDATE topup_reversal SET account = '` + other + `'`, "a refund or dispute names a top-up"},
			{"the take-back is gone", `DELETE FROM ledger_entry WHERE note = 'refund of ` + row.ID + `'`, "did not take back their part"},
			{"the state after the refund", `UPDATE topup SET state = 'refunded' WHERE id = '` + row.ID + `'`, "does not fit its refunds"},
			{"the refund of a missing row", `UPDATE topup_reversal SET topup = 'topup_gone'`, "a refund or dispute names a top-up"},
		} {
			if found := ledgertest.Plant(t, s.db, ledgertest.Fault(c.statements), topup.AuditTx); !ledgertest.Reports(found, c.want) {
				t.Errorf("%s: got %+v, want %q", c.name, found, c.want)
			}
		}
		found, err := audit.Run(t.Context(), s.db, topup.AuditTx)
		if err != nil || !found.OK || found.Checked["top-ups"] != 2 {
			t.Errorf("audit: got %+v, %v; want 2 top-ups without a difference", found, err)
		}
	})
}
