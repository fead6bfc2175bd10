package ledger

import (
	"context"
	"fmt"
	"time"

	"tollgate/internal/ledger/books"
	"tollgate/internal/store"
)

// OpenHolds is the number and the sum of open holds.
type OpenHolds = books.OpenHolds

// heldPeriod is the time between two reports of the open holds. There is one hold for each
// unfinished request or job, so the query is fast.
const heldPeriod = 15 * time.Second

var selectHeld = `SELECT CASE WHEN job = '' THEN 0 ELSE 1 END AS of_job, COUNT(*), ` + store.Sum("amount_nano") + `
	FROM ledger_hold GROUP BY CASE WHEN job = '' THEN 0 ELSE 1 END`

// observeHeld reports the open holds of all nodes. It is one step of Run.
func (l *Ledger) observeHeld(ctx context.Context) error {
	if l.opts.Observer.Held == nil {
		return nil
	}
	return l.db.View(ctx, func(tx *store.Tx) error {
		requests, jobs, err := HeldTx(tx)
		if err == nil {
			l.opts.Observer.Held(requests, jobs)
		}
		return err
	})
}

// HeldTx returns the open holds of chat requests and of jobs, on all nodes.
func HeldTx(tx *store.Tx) (requests, jobs OpenHolds, err error) {
	var held [2]OpenHolds
	rows, err := tx.Query(selectHeld)
	if err != nil {
		return requests, jobs, fmt.Errorf("add up the open holds: %w", err)
	}
	defer rows.Close()
	for rows.Next() {
		var ofJob int
		var h OpenHolds
		if err := rows.Scan(&ofJob, &h.Holds, &h.Amount); err != nil {
			return requests, jobs, fmt.Errorf("add up the open holds: %w", err)
		}
		held[ofJob] = h
	}
	return held[0], held[1], rows.Err()
}
