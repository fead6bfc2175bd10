package operator

import (
	"tollgate/internal/fault"
	"tollgate/internal/store"
	"tollgate/internal/topup"
)

// maxReason bounds the reason of a refund, in characters.
const maxReason = 500

// RefundTopupTx records a refund of a top-up and takes its credit back. Call PayBack of the top-ups
// after the commit. The refund is in the smallest unit of the payment's currency.
func RefundTopupTx(tx *store.Tx, by Actor, shop *topup.Topups, id string, minor int64, reason string) (topup.Reversal, error) {
	reason, err := checkLine("reason", reason, maxReason)
	if err != nil {
		return topup.Reversal{}, err
	}
	before, err := topup.GetTx(tx, id)
	if err != nil {
		return topup.Reversal{}, err
	}
	r, err := shop.RefundTx(tx, id, minor, reason)
	if err != nil {
		return r, err
	}
	after, err := topup.GetTx(tx, id)
	if err != nil {
		return r, err
	}
	return r, writeLogTx(tx, by, LogRow{Act: TopupRefund, Object: id, Account: r.Account, Before: Details{"state": before.State},
		After: Details{"state": after.State, "refund": r.ID, "amount": before.Currency.Text(minor), "credit_usd": r.Taken, "reason": reason}})
}

// CloseProblemTx closes a problem of a payment. Closing a problem again is a no-op.
func CloseProblemTx(tx *store.Tx, by Actor, id string) (topup.Problem, error) {
	p, isNew, err := topup.CloseProblemTx(tx, id)
	if err != nil || !isNew {
		return p, err
	}
	return p, writeLogTx(tx, by, LogRow{Act: ProblemClose, Object: id, Account: p.Account,
		After: Details{"kind": p.Kind, "detail": fault.Excerpt(p.Detail)}})
}
