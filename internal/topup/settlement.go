package topup

import (
	"fmt"

	"tollgate/internal/ledger/audit"
	"tollgate/internal/mail"
	"tollgate/internal/money"
	"tollgate/internal/store"
)

// PaymentSettlement is a final change of the amount paid for a top-up: the payment itself, a confirmed
// refund, a dispute that took the money, or the end of one of them.
type PaymentSettlement struct {
	Topup Topup
	// Reversal is the id of the refund or dispute. It is empty for the payment.
	Reversal string
	// Cause is unique among all settlements.
	Cause string
	// Minor is the change of the paid amount, in the smallest unit: above zero for the payment and for the
	// end of a refund or dispute, below zero for a refund or dispute. The sum never falls below zero, even if
	// refunds and disputes together exceed the payment.
	Minor int64
	// Credit is the change of the credit.
	Credit money.Amount
}

// settleTx reports the settlements of a saved decision.
func (t *Topups) settleTx(tx *store.Tx, d decision) error {
	if t.Settled == nil || len(d.mails) == 0 {
		return nil
	}
	reversals, err := ReversalsTx(tx, d.topup.ID)
	if err != nil {
		return err
	}
	returned := settledMinor(reversals)
	for _, m := range d.mails {
		returned -= m.returned()
	}
	for _, m := range d.mails {
		s := PaymentSettlement{Topup: d.topup, Reversal: m.reversal, Cause: m.cause, Credit: m.credit}
		if m.kind == mail.PaymentReceipt {
			s.Minor = d.topup.Total
		} else {
			before := min(returned, d.topup.Total)
			returned += m.returned()
			s.Minor = before - min(returned, d.topup.Total)
		}
		if m.returned() > 0 {
			s.Credit = -m.credit
		}
		if err := t.Settled(tx, s); err != nil {
			return fmt.Errorf("settle %s: %w", d.topup.ID, err)
		}
	}
	return nil
}

// returned returns the change of the money that the customer has got back.
func (m paymentMail) returned() int64 {
	switch m.kind {
	case mail.PaymentRefund, mail.PaymentDispute:
		return m.minor
	case mail.PaymentRestored:
		return -m.minor
	}
	return 0
}

// settledMinor returns the sum of the active reversals. It leaves out refunds that the provider can still
// refuse.
func settledMinor(reversals []Reversal) (minor int64) {
	for _, c := range reversals {
		if c.Active && !c.Requested {
			minor += c.Minor
		}
	}
	return minor
}

// SettledTopup is a paid top-up with the sum of its settlements.
type SettledTopup struct {
	Topup Topup
	Minor int64
}

// SettledTx returns the paid top-ups of the audit's range of accounts, by id.
func SettledTx(tx *store.Tx, books *audit.Books) (map[string]SettledTopup, error) {
	settled := map[string]SettledTopup{}
	where, args := books.Where("account")
	err := tx.Each(func(row store.Row) error {
		t, err := scanTopup(row)
		settled[t.ID] = SettledTopup{t, t.Total}
		return err
	}, `SELECT `+columns+` FROM topup WHERE paid_ms > 0 AND `+where, args...)
	if err != nil {
		return nil, fmt.Errorf("read paid top-ups: %w", err)
	}
	reversals := map[string][]Reversal{}
	err = tx.Each(func(row store.Row) error {
		c, err := scanReversal(row)
		reversals[c.Topup] = append(reversals[c.Topup], c)
		return err
	}, `SELECT `+reversalColumns+` FROM topup_reversal WHERE `+where, args...)
	if err != nil {
		return nil, fmt.Errorf("read the refunds of top-ups: %w", err)
	}
	for id, s := range settled {
		s.Minor = max(0, s.Minor-settledMinor(reversals[id]))
		settled[id] = s
	}
	return settled, nil
}
