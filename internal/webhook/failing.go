package webhook

import (
	"fmt"

	"tollgate/internal/store"
)

// Failing is a receiver with a failed last attempt and pending events.
type Failing struct {
	Account string
	URL     string // of the oldest pending event
	SinceMS int64  // creation time of the oldest pending event
	Waiting int64  // pending events with at least one attempt, counted up to 1001
}

// FailingTx returns up to limit failing receivers, ordered by account.
func FailingTx(tx *store.Tx, limit int) ([]Failing, error) {
	list, err := store.Collect(tx, func(row store.Row) (f Failing, err error) {
		err = row.Scan(&f.Account, &f.URL, &f.SinceMS, &f.Waiting)
		return f, err
	}, `SELECT r.account, d.url, d.created_ms,
			(SELECT COUNT(*) FROM (SELECT 1 FROM webhook_queue w WHERE w.receiver = r.id AND w.tries > 0 LIMIT 1001) c)
		FROM webhook_receiver r JOIN webhook_delivery d ON d.id = (SELECT MIN(q.delivery) FROM webhook_queue q
			WHERE q.receiver = r.id AND q.tries > 0)
		WHERE r.failing = 1 ORDER BY r.account, r.id LIMIT $1`, limit)
	if err != nil {
		return nil, fmt.Errorf("read the failing receivers: %w", err)
	}
	return list, nil
}
