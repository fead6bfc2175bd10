package topup

import (
	"fmt"
	"strconv"

	"tollgate/internal/ledger/audit"
	"tollgate/internal/money"
	"tollgate/internal/store"
)

// topupKey is a top-up with its account. The audit reads a range of accounts at a time, so it matches rows
// within an account.
type topupKey struct{ topup, account string }

// topupMoves has the sums of a top-up's movements.
type topupMoves struct {
	credit, change money.Amount // credited for the payment; changed by refunds and disputes
	credits        int
}

// AuditTx checks the top-ups against the movements of credit, in both directions. Each paid top-up has
// exactly one credit, and its value follows from the row. No other top-up has a credit. Refunds and
// disputes took back exactly their part. Each movement with a top-up's note has a top-up. AuditTx is an
// audit.Check.
func AuditTx(tx *store.Tx, books *audit.Books) error {
	movements := map[topupKey]*topupMoves{}
	err := books.Movements(func(m audit.Movement) {
		name := topupOf(m.Note)
		if name == "" {
			return
		}
		b := movements[topupKey{name, m.Account}]
		if b == nil {
			b = &topupMoves{}
			movements[topupKey{name, m.Account}] = b
		}
		if m.Note == creditNote+name {
			b.credit, b.credits = b.credit+m.Amount, b.credits+1
		} else {
			b.change += m.Amount
		}
	})
	if err != nil {
		return fmt.Errorf("read the movements of top-ups: %w", err)
	}
	reversals := map[topupKey][]Reversal{}
	where, args := books.Where("account")
	err = tx.Each(func(row store.Row) error {
		c, err := scanReversal(row)
		if err == nil {
			reversals[topupKey{c.Topup, c.Account}] = append(reversals[topupKey{c.Topup, c.Account}], c)
		}
		return err
	}, `SELECT `+reversalColumns+` FROM topup_reversal WHERE `+where, args...)
	if err != nil {
		return fmt.Errorf("read the refunds of top-ups: %w", err)
	}
	err = tx.Each(func(row store.Row) error {
		t, err := scanTopup(row)
		if err != nil {
			return err
		}
		key := topupKey{t.ID, t.Account}
		auditTopup(books, t, reversals[key], movements[key])
		books.Count("top-ups", 1)
		delete(reversals, key)
		delete(movements, key)
		return nil
	}, `SELECT `+columns+` FROM topup WHERE `+where, args...)
	if err != nil {
		return fmt.Errorf("read top-ups: %w", err)
	}
	for key, b := range movements {
		books.Report(audit.Difference{Account: key.account, Request: key.topup, What: "a movement names a top-up that the account does not have",
			Recorded: (b.credit + b.change).String(), Computed: "nothing"})
	}
	for key := range reversals {
		books.Report(audit.Difference{Account: key.account, Request: key.topup,
			What: "a refund or dispute names a top-up that the account does not have"})
	}
	return nil
}

// auditTopup checks one top-up.
func auditTopup(books *audit.Books, t Topup, reversals []Reversal, b *topupMoves) {
	report := func(what, recorded, computed string) {
		books.Report(audit.Difference{Account: t.Account, Request: t.ID, What: what, Recorded: recorded, Computed: computed})
	}
	if b == nil {
		b = &topupMoves{}
	}
	credit, err := creditOf(t.Minor, t.Rate, t.Bonus, t.Currency.Decimals)
	if err != nil || credit != t.Credit {
		report("the credit of a top-up does not follow from its amount, rate and bonus", t.Credit.String(), credit.String())
	}
	isPaid := t.State == Paid || t.State == PartlyRefunded || t.State == Refunded || t.State == Disputed
	if isPaid != t.IsPaid() || isPaid != (t.Payment != "") || isPaid && t.Total < t.Minor {
		report("the state of a top-up does not fit its payment", string(t.State), t.Payment)
	}
	switch {
	case !t.IsPaid() && b.credits > 0:
		report("an unpaid top-up was credited", string(t.State), b.credit.String())
	case t.IsPaid() && (b.credits != 1 || b.credit != t.Credit):
		report("a paid top-up does not have exactly one credit of its value", t.Credit.String(),
			strconv.Itoa(b.credits)+" of "+b.credit.String())
	}
	auditReversals(t, reversals, b, report)
}

// auditReversals checks the refunds and disputes of a top-up.
func auditReversals(t Topup, reversals []Reversal, b *topupMoves, report func(what, recorded, computed string)) {
	var taken money.Amount
	for _, c := range reversals {
		taken += c.Taken
	}
	want := money.Amount(0)
	if minor := activeMinor(reversals); minor > 0 {
		want = t.TakenAt(minor)
	}
	switch {
	case len(reversals) > 0 && !t.IsPaid():
		report("an unpaid top-up has a refund or a dispute", string(t.State), "")
	case taken != want || b.change != -want:
		report("refunds and disputes did not take back their part of the credit", b.change.String(), (-want).String())
	case t.IsPaid() && stateOf(t, reversals) != t.State:
		report("the state of a top-up does not fit its refunds and disputes", string(t.State), string(stateOf(t, reversals)))
	}
}
