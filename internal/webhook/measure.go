package webhook

import (
	"context"
	"fmt"
	"time"

	"tollgate/internal/store"
)

// Limits of Measure.
const (
	measureEvery = 10 * time.Second
	maxMeasured  = 10_000 // pending deliveries
)

const measureText = `SELECT COUNT(*), COALESCE(MIN(CASE WHEN lease = '' THEN due_ms END), $1)
	FROM (SELECT due_ms, lease FROM webhook_queue LIMIT $2) q`

// Measure updates the metrics with the number and the delay of pending deliveries of all nodes. It is
// one step of Run.
func (w *Webhooks) Measure(ctx context.Context) error {
	var pending, dueMS, nowMS int64
	err := w.opts.DB.View(ctx, func(tx *store.Tx) (err error) {
		if nowMS, err = tx.NowMS(); err != nil {
			return err
		}
		return tx.QueryRow(measureText, int64(never), maxMeasured).Scan(&pending, &dueMS)
	})
	if err != nil {
		return fmt.Errorf("count the deliveries: %w", err)
	}
	w.metrics.pending.Set(float64(pending))
	w.metrics.overdue.Set((time.Duration(max(nowMS-dueMS, 0)) * time.Millisecond).Seconds())
	return nil
}
