// Package holding owns the sums on hold, as operators watch them.
//
// Invariant: a report covers all nodes, in one snapshot.
package holding

import (
	"context"
	"fmt"
	"log/slog"
	"time"

	"tollgate/internal/loop"
	"tollgate/internal/money"
	"tollgate/internal/store"
)

// Holding is a held sum.
type Holding struct {
	Holds  int64
	Amount money.Amount
}

// Watch adds up the open holds periodically. Their number is that of unfinished requests and jobs,
// so the read is short.
type Watch struct {
	DB *store.DB
	// Tell receives the sums held for requests and for jobs.
	Tell func(requests, jobs Holding)
	Log  *slog.Logger
}

const every = 15 * time.Second

// Run tells of the open holds until ctx ends.
func (w *Watch) Run(ctx context.Context) {
	loop.Run(ctx, loop.Loop{Room: "ledger", Does: "add up the open holds", Log: w.Log, Period: every, Step: w.Add})
}

var sums = `SELECT CASE WHEN job = '' THEN 0 ELSE 1 END AS of_job, COUNT(*), ` + store.Sum("amount_nano") + `
	FROM ledger_hold GROUP BY CASE WHEN job = '' THEN 0 ELSE 1 END`

// Add adds up the open holds and tells of them. It is the step of Run.
func (w *Watch) Add(ctx context.Context) error {
	var requests, jobs Holding
	err := w.DB.View(ctx, func(tx *store.Tx) (err error) {
		requests, jobs, err = SumsTx(tx)
		return err
	})
	if err != nil {
		return err
	}
	w.Tell(requests, jobs)
	return nil
}

// SumsTx adds up the open holds, those of requests and those of jobs.
func SumsTx(tx *store.Tx) (requests, jobs Holding, err error) {
	var held [2]Holding
	rows, err := tx.Query(sums)
	if err != nil {
		return requests, jobs, fmt.Errorf("add up the open holds: %w", err)
	}
	defer rows.Close()
	for rows.Next() {
		var ofJob int
		var h Holding
		if err := rows.Scan(&ofJob, &h.Holds, &h.Amount); err != nil {
			return requests, jobs, fmt.Errorf("add up the open holds: %w", err)
		}
		held[ofJob] = h
	}
	if err := rows.Err(); err != nil {
		return requests, jobs, fmt.Errorf("add up the open holds: %w", err)
	}
	return held[0], held[1], nil
}
