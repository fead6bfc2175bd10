package topup

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"tollgate/internal/account"
	"tollgate/internal/ledger"
	"tollgate/internal/store"
	"tollgate/internal/store/id"
	"tollgate/internal/webhook"
)

// A movement of a top-up has the note `top-up topup_…`, `refund of topup_…` or `dispute of topup_…`.
const (
	creditNote = "top-up "
	noteOf     = " of "
)

// IDPrefix is the prefix of a top-up's id. Providers store the id with the payment.
const IDPrefix = "topup_"

// IsNote reports whether a note looks like the note of a top-up's movement. The audit assigns such a
// movement to the top-up, so other movements must not have such a note.
func IsNote(note string) bool { return topupOf(note) != "" }

// topupOf returns the top-up named in the note of its movement, or an empty string for other notes.
func topupOf(note string) string {
	for _, begin := range []string{creditNote, string(Refund) + noteOf, string(Dispute) + noteOf} {
		if name, ok := strings.CutPrefix(note, begin); ok && strings.HasPrefix(name, IDPrefix) {
			return name
		}
	}
	return ""
}

// errStale reports that the row has changed since the provider was asked. The answer may be older than
// the row, so the provider must be asked again.
var errStale = errors.New("the top-up has changed meanwhile")

// maxQueries bounds how often one Sync asks the provider.
const maxQueries = 5

// Sync asks the provider about a top-up and books the answer. It may be repeated, and may run on several
// nodes at once. session is the id of the payment page in the provider's message, or empty. The error is
// ErrOff if the provider is not configured, and a 404 for an unknown id.
func (t *Topups) Sync(ctx context.Context, id, session string) error {
	for n := 1; ; n++ {
		err := t.sync(ctx, id, session)
		if !errors.Is(err, errStale) || n == maxQueries {
			return err
		}
	}
}

func (t *Topups) sync(ctx context.Context, id, session string) error {
	row, err := store.Read(ctx, t.DB, func(tx *store.Tx) (Topup, error) { return GetTx(tx, id) })
	if err != nil {
		return err
	}
	p, err := t.provider(row.Provider)
	switch {
	case err != nil:
		return err
	case p.Info().Live != row.Live:
		return ErrOff
	}
	target := row
	if session != "" {
		target.Session = session
	}
	payment, err := p.Query(ctx, target)
	if err != nil {
		return fmt.Errorf("ask %s about %s: %w", row.Provider, id, err)
	}
	return t.book(ctx, row, payment)
}

// booking is the result of the transaction of book.
type booking struct {
	disabled string // the disabled account
	low      bool   // a webhook event reports a low balance
}

// book books p, the provider's answer. row must have been read before the provider was asked.
func (t *Topups) book(ctx context.Context, row Topup, p ProviderPayment) error {
	b, err := store.Write(ctx, t.DB, func(tx *store.Tx) (booking, error) { return t.bookTx(tx, row, p) })
	t.afterCommit(b)
	return err
}

// afterCommit tells other parts of the process about a committed booking.
func (t *Topups) afterCommit(b booking) {
	if b.disabled != "" && t.ForgetAccount != nil {
		t.ForgetAccount(b.disabled)
	}
	if b.low && t.Webhooks != nil {
		t.Webhooks.Wake()
	}
}

func (t *Topups) bookTx(tx *store.Tx, seen Topup, p ProviderPayment) (b booking, err error) {
	row, found, err := lockTx(tx, seen.ID)
	switch {
	case err != nil:
		return b, err
	case !found || row.version != seen.version:
		return b, errStale
	}
	reversals, err := ReversalsTx(tx, row.ID)
	if err != nil {
		return b, err
	}
	now, err := tx.NowMS()
	if err != nil {
		return b, err
	}
	d := decide(row, reversals, p, now, func(prefix string) string { return id.At(prefix, time.UnixMilli(now)) })
	if d.problem != "" {
		if err := reportTx(tx, Problem{Provider: row.Provider, Kind: d.problem, Object: problemObject(row, p), Topup: row.ID,
			Account: row.Account, Detail: d.detail}); err != nil {
			return b, err
		}
	}
	d.topup.checkMS = nextCheck(d.topup, slices.ContainsFunc(reversals, func(c Reversal) bool { return c.Requested }), now)
	if d.changed {
		b, err = t.writeTx(tx, d)
	} else {
		err = scheduleTx(tx, row.ID, d.topup.checkMS)
	}
	if err == nil && len(p.Disputes) > 0 {
		err = dueTx(tx, d.topup, p.Disputes)
	}
	return b, err
}

// writeTx writes a decision.
func (t *Topups) writeTx(tx *store.Tx, d decision) (b booking, err error) {
	if d.disputed && t.DisableOnDispute { // before the ledger's rows are locked
		if _, err := account.ChangeTx(tx, d.topup.Account, account.Patch{Disabled: new(true)}); err != nil {
			return b, fmt.Errorf("disable the account of a disputed payment: %w", err)
		}
		b.disabled = d.topup.Account
	}
	if d.disputed {
		if err := reportTx(tx, Problem{Provider: d.topup.Provider, Kind: problemDispute, Object: d.topup.Payment, Topup: d.topup.ID,
			Account: d.topup.Account, Detail: "the customer's bank disputes the payment"}); err != nil {
			return b, err
		}
	}
	if err := saveTx(tx, d.topup); err != nil {
		return b, err
	}
	if err := saveCardTx(tx, d.topup, d.card); err != nil {
		return b, err
	}
	for _, c := range d.reversals {
		if err := saveReversalTx(tx, c); err != nil {
			return b, err
		}
	}
	for _, payment := range d.moves {
		m, err := ledger.MoveTx(tx, d.topup.Account, payment)
		switch {
		case err != nil:
			return b, fmt.Errorf("book the payment of %s: %w", d.topup.ID, err)
		case m.Repeated:
			return b, fmt.Errorf("book the payment of %s: the reference %q belongs to another movement", d.topup.ID, payment.Reference)
		case m.Low != nil:
			if err := webhook.EmitLowTx(tx, m.Low.Account, m.Low.Balance, m.Low.Level); err != nil {
				return b, err
			}
			b.low = true
		}
	}
	if d.disputed {
		d.pause = PauseDispute
	}
	if err := t.pauseTx(tx, d.topup.Account, d.pause, d.topup.ID); err != nil {
		return b, err
	}
	if err := t.settleTx(tx, d); err != nil {
		return b, err
	}
	return b, t.mailTx(tx, d)
}

// scheduleTx sets when the provider is asked next. It does not change the version of the row.
func scheduleTx(tx *store.Tx, id string, checkMS int64) error {
	if _, err := tx.Exec(`UPDATE topup SET check_ms = $1 WHERE id = $2`, checkMS, id); err != nil {
		return fmt.Errorf("schedule a top-up: %w", err)
	}
	return nil
}
