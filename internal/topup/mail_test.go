package topup_test

import (
	"errors"
	"fmt"
	"net/http"
	"slices"
	"strings"
	"testing"

	"tollgate/internal/account"
	"tollgate/internal/store"
	"tollgate/internal/store/storetest"
	"tollgate/internal/topup"
)

// addUser adds a user to the account.
func (s *shop) addUser(email string) account.User {
	s.t.Helper()
	u, err := store.Write(s.t.Context(), s.db, func(tx *store.Tx) (account.User, error) {
		return account.CreateUserTx(tx, s.account, account.SignIn{Email: email, PasswordHash: "$argon2id$"})
	})
	if err != nil {
		s.t.Fatal(err)
	}
	return u
}

// mails returns the waiting mails in the order of their creation, as KIND READER.
func (s *shop) mails() (list []string) {
	s.t.Helper()
	storetest.View(s.t, s.db, func(tx *store.Tx) (err error) {
		list, err = store.Collect(tx, func(row store.Row) (text string, err error) {
			return text, row.Scan(&text)
		}, `SELECT kind || ' ' || recipient FROM mail_outbox ORDER BY created_ms, id`)
		return err
	})
	slices.Sort(list)
	return list
}

// body returns the text of the newest mail of a kind.
func (s *shop) body(kind string) (text string) {
	s.t.Helper()
	storetest.View(s.t, s.db, func(tx *store.Tx) error {
		return tx.QueryRow(`SELECT body_text FROM mail_outbox WHERE kind = $1 ORDER BY id DESC LIMIT 1`, kind).Scan(&text)
	})
	return text
}

func (s *shop) wantMails(want ...string) {
	s.t.Helper()
	slices.Sort(want)
	if got := s.mails(); !slices.Equal(got, want) {
		s.t.Errorf("mails: got %q, want %q", got, want)
	}
}

func (s *shop) wantWords(kind string, words ...string) {
	s.t.Helper()
	text := s.body(kind)
	for _, w := range words {
		if !strings.Contains(text, w) {
			s.t.Errorf("the mail %s does not have %q:\n%s", kind, w, text)
		}
	}
}

// TestReceipt checks that each user who can sign in gets one receipt, even if the provider reports the
// payment many times, and that an unpaid top-up has none.
func TestReceipt(t *testing.T) {
	t.Parallel()
	eachShop(t, topup.Options{}, func(t *testing.T, s *shop) {
		s.addUser("ann@example.com")
		s.addUser("bob@example.com")
		blocked := s.addUser("eve@example.com")
		if err := s.db.Update(t.Context(), func(tx *store.Tx) error {
			_, err := account.ChangeUserTx(tx, blocked.ID, account.UserChange{Disabled: new(true)})
			return errors.Join(err, func() error {
				_, err := account.CreateUserTx(tx, s.account, account.SignIn{Email: "invited@example.com"})
				return err
			}())
		}); err != nil {
			t.Fatal(err)
		}
		s.begin(2000)
		s.wantMails()
		row, session := s.paid(10000)
		for range 3 {
			if err := s.Sync(t.Context(), row.ID, session); err != nil {
				t.Fatal(err)
			}
		}
		s.wantMails("payment_receipt ann@example.com", "payment_receipt bob@example.com")
		s.wantWords("payment_receipt", "Paid: 100.00 USD", "Credit: $110.00", "New balance: $110.00", row.Payment,
			"https://shop.example/console/billing/top-ups/"+row.ID, "user of the account acme")
	})
}

// TestRolledBackPaymentHasNoMail breaks the transaction that credits a payment. The mail is written once,
// by the transaction that succeeds.
func TestRolledBackPaymentHasNoMail(t *testing.T) {
	t.Parallel()
	eachShop(t, topup.Options{}, func(t *testing.T, s *shop) {
		s.addUser("ann@example.com")
		row, session := s.begin(2000)
		s.stripe.SendTo("http://127.0.0.1:1") // the message is lost
		s.stripe.Pay(session)
		renamed := func(from, to string) {
			if err := s.db.Update(t.Context(), func(tx *store.Tx) error {
				_, err := tx.Exec(fmt.Sprintf("ALTER TABLE %s RENAME TO %s", from, to))
				return err
			}); err != nil {
				t.Fatal(err)
			}
		}
		renamed("ledger_entry", "ledger_entry_gone")
		if err := s.Sync(t.Context(), row.ID, session); err == nil {
			t.Fatal("the payment was booked without the ledger")
		}
		renamed("ledger_entry_gone", "ledger_entry")
		s.wantMails()
		s.sweepAt(row)
		s.wantState(row, topup.Paid)
		s.wantMails("payment_receipt ann@example.com")
	})
}

// sweepAt sweeps when the next question about a top-up is due.
func (s *shop) sweepAt(row topup.Topup) {
	s.t.Helper()
	s.clock.Advance(20 * 60 * 1e9)
	s.sweepOK()
}

// TestReversalMails checks the mails about a refund on the provider's pages that fails later, about a
// dispute that is won, and about an operator's refund.
func TestReversalMails(t *testing.T) {
	t.Parallel()
	eachShop(t, topup.Options{}, func(t *testing.T, s *shop) {
		row, session := s.paid(10000)
		s.addUser("ann@example.com")
		refund := s.stripe.RefundElsewhere(session, 5000)
		want := []string{"payment_refund ann@example.com"}
		s.wantMails(want...)
		s.wantWords("payment_refund", "Refund: 50.00 USD", "Credit taken back: $55.00", "New balance: $55.00")
		s.stripe.FailRefund(refund)
		want = append(want, "payment_restored ann@example.com")
		s.wantMails(want...)
		s.wantWords("payment_restored", "Credit given back: $55.00", "New balance: $110.00")
		dispute := s.stripe.Dispute(session, "needs_response")
		want = append(want, "payment_dispute ann@example.com")
		s.wantMails(want...)
		s.wantWords("payment_dispute", "Credit taken back: $110.00", "New balance: $0.00")
		s.stripe.EndDispute(dispute, "won")
		want = append(want, "payment_restored ann@example.com")
		s.wantMails(want...)
		if _, err := s.refund(row, 10000); err != nil {
			t.Fatal(err)
		}
		s.wantMails(append(want, "payment_refund ann@example.com")...)
	})
}

// TestRefusedRefundHasNoMail checks that an operator's refund is reported only after the provider has
// confirmed it.
func TestRefusedRefundHasNoMail(t *testing.T) {
	t.Parallel()
	eachShop(t, topup.Options{}, func(t *testing.T, s *shop) {
		row, _ := s.paid(2000)
		s.addUser("ann@example.com")
		s.stripe.SetDown(http.StatusBadGateway)
		if _, err := s.refund(row, 500); !isNoAnswer(err) {
			t.Fatalf("a refund while the provider is down: got %v, want no answer", err)
		}
		s.wantMails()
		s.stripe.SetDown(0)
		s.sweepAt(row)
		s.wantMails("payment_refund ann@example.com")
		s.stripe.SetDown(http.StatusBadRequest)
		if _, err := s.refund(row, 500); err == nil {
			t.Fatal("a refused refund has no error")
		}
		s.stripe.SetDown(0)
		s.wantMails("payment_refund ann@example.com")
	})
}
