package operator

import (
	"context"

	"tollgate/internal/store"
	"tollgate/internal/webhook"
)

// Resend sends the event of a delivery again now, as webhook.Webhooks.Resend says.
// The row of the log comes after the attempt, which cannot be taken back.
func Resend(ctx context.Context, db *store.DB, hooks *webhook.Webhooks, by Actor, delivery string) (webhook.Delivery, error) {
	d, err := hooks.Resend(ctx, delivery)
	if err != nil {
		return d, err
	}
	return d, db.Update(ctx, func(tx *store.Tx) error {
		return NoteTx(tx, by, LogRow{Act: DeliveryResend, Object: delivery, After: Details{"event": d.Event, "state": d.State}})
	})
}
