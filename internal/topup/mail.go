package topup

import (
	"fmt"
	"strings"

	"tollgate/internal/account"
	"tollgate/internal/ledger"
	"tollgate/internal/mail"
	"tollgate/internal/money"
	"tollgate/internal/store"
)

// paymentMail is a mail about a payment to the users of its account.
type paymentMail struct {
	kind     mail.LetterKind
	cause    string
	reversal string       // id of the refund or dispute; empty for the payment
	minor    int64        // of the payment
	credit   money.Amount // credited, taken back or given back
}

// report adds the mail about a change of a reversal. A refund gets its mail when it is final, because the
// provider can refuse an operator's refund.
func (d *decision) report(before, after Reversal) {
	m := paymentMail{cause: after.reference(d.topup), reversal: after.ID, minor: after.Minor, credit: after.Taken}
	wasSettled, isSettled := before.Active && !before.Requested, after.Active && !after.Requested
	switch {
	case wasSettled == isSettled:
		return
	case wasSettled:
		m.kind, m.credit = mail.PaymentRestored, before.Taken-after.Taken
	case after.Kind == Refund:
		m.kind = mail.PaymentRefund
	default:
		m.kind = mail.PaymentDispute
	}
	d.mails = append(d.mails, m)
}

// mailPauseTx writes the mail about paused automatic top-ups.
func (t *Topups) mailPauseTx(tx *store.Tx, name, cause string) error {
	if !t.Mails.On() {
		return nil
	}
	states, err := ledger.AccountsTx(tx, []string{name})
	if err != nil {
		return fmt.Errorf("read the balance for a mail: %w", err)
	}
	return account.MailUsersTx(tx, t.Mails, name, mail.Letter{Kind: mail.AutomaticPaused, Cause: cause,
		Link:   strings.TrimRight(t.PublicURL, "/") + "/console/billing/automatic",
		Values: map[string]string{"balance": mail.USD(states[name].Balance)}})
}

// mailTx writes the mails of a decision, after its movements.
func (t *Topups) mailTx(tx *store.Tx, d decision) error {
	if len(d.mails) == 0 || !t.Mails.On() {
		return nil
	}
	row := d.topup
	states, err := ledger.AccountsTx(tx, []string{row.Account})
	if err != nil {
		return fmt.Errorf("read the balance for a mail: %w", err)
	}
	for _, m := range d.mails {
		kind := m.kind
		if kind == mail.PaymentReceipt && row.IsAutomatic() {
			kind = mail.AutomaticTopup
		}
		if err := account.MailUsersTx(tx, t.Mails, row.Account, mail.Letter{Kind: kind, Cause: m.cause,
			Link: strings.TrimRight(t.PublicURL, "/") + "/console/billing/top-ups/" + row.ID,
			Values: map[string]string{"amount": row.Currency.Text(m.minor), "credit": mail.USD(m.credit),
				"balance": mail.USD(states[row.Account].Balance), "provider": t.Info(row.Provider).MethodTitle(row.Method), "payment": row.Payment,
				"paid": mail.Time(row.PaidMS)}}); err != nil {
			return err
		}
	}
	return nil
}
