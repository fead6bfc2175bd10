package operator

import (
	"context"

	"tollgate/internal/store"
	"tollgate/internal/webhook"
)

// Resend resends the event of a delivery; see webhook.Webhooks.Resend. The log row follows the
// attempt, because an attempt cannot be undone.
func Resend(ctx context.Context, db *store.DB, hooks *webhook.Webhooks, by Actor, delivery string) (webhook.Delivery, error) {
	d, err := hooks.Resend(ctx, delivery)
	if err != nil {
		return d, err
	}
	return d, db.Update(ctx, func(tx *store.Tx) error {
		return writeLogTx(tx, by, LogRow{Act: DeliveryResend, Object: delivery, After: Details{"event": d.Event, "state": d.State}})
	})
}
