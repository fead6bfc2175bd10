package topup

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"tollgate/internal/fault"
	"tollgate/internal/store"
	"tollgate/internal/store/id"
)

// RefundTx takes back the credit of an operator's refund and records the refund. The caller commits the
// transaction and then calls PayBack. minor is the amount in the smallest unit of the currency, at most
// Left. Errors that the operator can correct are *fault.Errors with the parameter amount or reason.
func (t *Topups) RefundTx(tx *store.Tx, topup string, minor int64, reason string) (Reversal, error) {
	row, found, err := lockTx(tx, topup)
	if err == nil && !found {
		_, err = GetTx(tx, topup) // a 404
	}
	if err != nil {
		return Reversal{}, err
	}
	reversals, err := ReversalsTx(tx, topup)
	if err != nil {
		return Reversal{}, err
	}
	if err := refundable(row, reversals, minor, reason); err != nil {
		return Reversal{}, err
	}
	now, err := tx.NowMS()
	if err != nil {
		return Reversal{}, err
	}
	// An amount that was paid back on the provider's own pages needs no call.
	paidBackThere, err := hasProblemTx(tx, row, problemRefunded)
	if err != nil {
		return Reversal{}, err
	}
	c := Reversal{ID: id.At("refund_", time.UnixMilli(now)), Topup: row.ID, Account: row.Account, Kind: Refund, Minor: minor, Active: true,
		Requested: t.Info(row.Provider).Refunds.Covers(minor, row.Total) && !paidBackThere, Reason: reason, CreatedMS: now}
	d := decision{topup: row}
	before := activeMinor(reversals)
	d.move(&c, row.TakenAt(before+minor)-row.TakenAt(before))
	d.reversals = []Reversal{c}
	d.report(Reversal{}, c)
	d.topup.State = stateOf(row, append(reversals, c))
	d.topup.checkMS = nextCheck(d.topup, true, now)
	_, err = t.writeTx(tx, d)
	return c, err
}

// refundable returns a *fault.Error if a refund is not possible.
func refundable(row Topup, reversals []Reversal, minor int64, reason string) error {
	left := row.Total - activeMinor(reversals)
	switch {
	case reason == "":
		return fault.At(fault.InvalidRequest, "reason", "Give a reason. It is kept in the log.")
	case !row.IsPaid():
		return fault.At(fault.InvalidRequest, "amount", "This top-up is not paid, so there is nothing to refund.")
	case left <= 0:
		return fault.At(fault.InvalidRequest, "amount", "The whole payment is refunded or disputed already.")
	case minor <= 0 || minor > left:
		return fault.At(fault.InvalidRequest, "amount", "The amount must be above 0 and at most %s, which is what is left of the payment.",
			row.Currency.Text(left))
	}
	return nil
}

// Left returns the rest of a payment after its refunds and disputes.
func Left(row Topup, reversals []Reversal) int64 { return max(0, row.Total-activeMinor(reversals)) }

func activeMinor(reversals []Reversal) (minor int64) {
	for _, c := range reversals {
		if c.Active {
			minor += c.Minor
		}
	}
	return minor
}

// PayBack asks the provider to pay a committed refund to the customer. If the provider refuses, the
// credit is given back and the error is a *fault.Error. If the provider does not answer, the error wraps
// ErrNoAnswer, and Sweep repeats the call. PayBack does nothing unless c.Requested.
func (t *Topups) PayBack(ctx context.Context, c Reversal) error {
	if !c.Requested {
		return nil
	}
	row, err := store.Read(ctx, t.DB, func(tx *store.Tx) (Topup, error) { return GetTx(tx, c.Topup) })
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
	if !c.called {
		if isRequested, err := t.beginRefund(ctx, p, row, c); err != nil || !isRequested {
			return err
		}
		c.called = true
	}
	err = p.Refund(ctx, row, c.Minor, c.ID)
	switch {
	case errors.Is(err, ErrRefused):
		t.Log.Error("topup: the payment provider refuses a refund", "provider", row.Provider, "topup", row.ID, "refund", c.ID, "error", err)
		if _, err := t.cancelRefund(ctx, c, err); err != nil {
			return err
		}
		return fault.New(fault.InvalidRequest, "%s refuses the refund, so the credit was given back. The page Top-ups has the reason.",
			p.Info().Title)
	case err != nil:
		return fmt.Errorf("%w: refund %s at %s: %w", ErrNoAnswer, c.ID, row.Provider, err)
	}
	if err := t.confirmRefund(ctx, c); err != nil {
		return err
	}
	return t.Sync(ctx, row.ID, "")
}

// beginRefund records that the provider is about to be asked for the first time to pay a refund back.
// isRequested is false if the refund was confirmed or refused after c was read, or if c was never
// committed.
//
// Some providers report that money was paid back, but not how much. If the provider reports this before the
// first call, somebody has paid money back on the provider's pages, and the amount is unknown. beginRefund
// then cancels the refund and returns a *fault.Error that asks the operator for the amount.
func (t *Topups) beginRefund(ctx context.Context, p PaymentProvider, row Topup, c Reversal) (isRequested bool, err error) {
	payment, err := p.Query(ctx, row)
	if err != nil {
		return false, fmt.Errorf("%w: refund %s at %s: %w", ErrNoAnswer, c.ID, row.Provider, err)
	}
	if !payment.HasRefund {
		return t.changeRefund(ctx, c, func(r *Reversal) { r.called = true })
	}
	canceled, err := t.cancelRefund(ctx, c, fmt.Errorf("%w: something was paid back already", ErrRefused))
	if err != nil || !canceled { // another node has called since c was read
		return true, err
	}
	if err := t.Sync(ctx, row.ID, ""); err != nil {
		return false, err
	}
	return false, fault.New(fault.InvalidRequest, "%s reports an earlier refund without its amount, so nothing was paid back now. "+
		"Look up the amount there and enter it here: this takes back the credit for that amount only.", p.Info().Title)
}

// confirmRefund records that the provider pays a refund back, so that the call is not repeated. Some
// providers do not list their refunds.
func (t *Topups) confirmRefund(ctx context.Context, c Reversal) error {
	_, err := t.changeRefund(ctx, c, func(r *Reversal) { r.Requested = false })
	return err
}

// changeRefund changes the row of a refund. It is a no-op that returns false if the refund is not Requested.
func (t *Topups) changeRefund(ctx context.Context, c Reversal, change func(r *Reversal)) (isRequested bool, err error) {
	b, err := store.Write(ctx, t.DB, func(tx *store.Tx) (booking, error) {
		isRequested = false
		row, found, err := lockTx(tx, c.Topup)
		if err != nil || !found {
			return booking{}, err
		}
		reversals, err := ReversalsTx(tx, row.ID)
		if err != nil {
			return booking{}, err
		}
		i := slices.IndexFunc(reversals, func(r Reversal) bool { return r.ID == c.ID && r.Requested })
		if i < 0 {
			return booking{}, nil
		}
		isRequested = true
		d, after := decision{topup: row}, reversals[i]
		change(&after)
		d.reversals = []Reversal{after}
		d.report(reversals[i], after)
		return t.writeTx(tx, d)
	})
	t.afterCommit(b)
	return isRequested, err
}

// cancelRefund gives back the credit of a refund refused by the provider. canceled is false if the refund has
// changed since c was read.
func (t *Topups) cancelRefund(ctx context.Context, c Reversal, cause error) (canceled bool, err error) {
	b, err := store.Write(ctx, t.DB, func(tx *store.Tx) (booking, error) {
		row, found, err := lockTx(tx, c.Topup)
		if err != nil || !found {
			return booking{}, err
		}
		reversals, err := ReversalsTx(tx, row.ID)
		if err != nil {
			return booking{}, err
		}
		d := decision{topup: row}
		for i := range reversals {
			if reversals[i].ID != c.ID || !reversals[i].Requested || reversals[i].called != c.called {
				continue
			}
			before := activeMinor(reversals)
			reversals[i].Active, reversals[i].Requested = false, false
			d.move(&reversals[i], row.TakenAt(activeMinor(reversals))-row.TakenAt(before))
			d.reversals = []Reversal{reversals[i]}
		}
		if canceled = len(d.reversals) > 0; !canceled {
			return booking{}, nil
		}
		d.topup.State = stateOf(row, reversals)
		if err := reportTx(tx, Problem{Provider: row.Provider, Kind: problemRefund, Object: c.ID, Topup: row.ID, Account: row.Account,
			Detail: fault.Excerpt(cause.Error())}); err != nil {
			return booking{}, err
		}
		return t.writeTx(tx, d)
	})
	t.afterCommit(b)
	return canceled && err == nil, err
}

// repeatRefunds repeats the calls for unconfirmed refunds.
func (t *Topups) repeatRefunds(ctx context.Context, topup string) error {
	reversals, err := store.Read(ctx, t.DB, func(tx *store.Tx) ([]Reversal, error) { return ReversalsTx(tx, topup) })
	if err != nil {
		return err
	}
	for _, c := range reversals {
		if err := t.PayBack(ctx, c); err != nil {
			if _, refused := errors.AsType[*fault.Error](err); !refused {
				return err
			}
		}
	}
	return nil
}
