package webhook

import (
	"fmt"

	"tollgate/internal/store"
)

// Failing is a receiver with a failed last attempt and pending events.
type Failing struct {
	Account  string
	Receiver string // id of the receiver
	URL      string // of the oldest pending event
	SinceMS  int64  // creation time of the oldest pending event
	Waiting  int64  // pending events with at least one attempt, counted up to 1001
}

const failingReceivers = `SELECT r.account, r.id, d.url, d.created_ms,
		(SELECT COUNT(*) FROM (SELECT 1 FROM webhook_queue w WHERE w.receiver = r.id AND w.tries > 0 LIMIT 1001) c)
	FROM webhook_receiver r JOIN webhook_delivery d ON d.id = (SELECT MIN(q.delivery) FROM webhook_queue q
		WHERE q.receiver = r.id AND q.tries > 0)
	WHERE r.failing = 1`

func failingTx(tx *store.Tx, condition string, args ...any) ([]Failing, error) {
	list, err := store.Collect(tx, func(row store.Row) (f Failing, err error) {
		err = row.Scan(&f.Account, &f.Receiver, &f.URL, &f.SinceMS, &f.Waiting)
		return f, err
	}, failingReceivers+condition+` ORDER BY r.account, r.id LIMIT $1`, args...)
	if err != nil {
		return nil, fmt.Errorf("read the failing receivers: %w", err)
	}
	return list, nil
}

// FailingTx returns up to limit failing receivers, ordered by account.
func FailingTx(tx *store.Tx, limit int) ([]Failing, error) { return failingTx(tx, "", limit) }

// UnreportedTx returns up to limit failing receivers whose oldest pending event is older than beforeMS,
// and whose failure was not recorded by ReportTx since their last success.
func UnreportedTx(tx *store.Tx, beforeMS int64, limit int) ([]Failing, error) {
	return failingTx(tx, ` AND d.created_ms < $2
		AND NOT EXISTS (SELECT 1 FROM webhook_report p WHERE p.receiver = r.id)`, limit, beforeMS)
}

// ReportTx records that the failures of receivers were reported. The next success of a receiver deletes
// its record.
func ReportTx(tx *store.Tx, failing []Failing) error {
	q := tx.Batch()
	for _, f := range failing {
		q.Exec(nil, `INSERT INTO webhook_report (receiver) VALUES ($1) ON CONFLICT (receiver) DO NOTHING`, f.Receiver)
	}
	if err := tx.Run(q); err != nil {
		return fmt.Errorf("record the failing receivers: %w", err)
	}
	return nil
}
