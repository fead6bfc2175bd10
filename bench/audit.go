package main

import (
	"context"
	"fmt"
	"runtime"
	"time"

	"tollgate/internal/ledger/audit"
	"tollgate/internal/store"
)

// benchAudit prints how long the audit of many receipts takes.
func benchAudit(o options) error {
	fmt.Printf("### Audit: %d receipts of %d accounts over %d days\n\n", o.receipts, bookAccounts, bookDays)
	out := newTable("database", "seconds", "CPU s of this process", "peak MiB of Go's heap", "differences")
	err := o.onEngines(func(engine string) error {
		return onFresh(o, engine, func(ctx context.Context, db *store.DB) error { return benchAuditOn(ctx, o, engine, db, out) })
	})
	out.print()
	return err
}

func benchAuditOn(ctx context.Context, o options, engine string, db *store.DB, out *table) error {
	began := time.Now()
	if err := writeBooks(ctx, db, int64(o.receipts), bookAccounts); err != nil {
		return fmt.Errorf("write the books: %w", err)
	}
	fmt.Printf("%s: the books were written in %.0f s\n", engine, time.Since(began).Seconds())
	for range o.rounds {
		cpu, err := ownCPU()
		if err != nil {
			return err
		}
		began := time.Now()
		peak, stop := watchHeap()
		report, err := audit.Run(ctx, db)
		stop()
		if err != nil {
			return err
		}
		elapsed := time.Since(began)
		cpuAfter, err := ownCPU()
		if err != nil {
			return err
		}
		out.add(engine, fmt.Sprintf("%.1f", elapsed.Seconds()), fmt.Sprintf("%.1f", (cpuAfter-cpu).Seconds()),
			fmt.Sprint(*peak>>20), fmt.Sprint(len(report.Differences)))
		if !report.OK {
			return fmt.Errorf("the books do not agree: %+v", report.Differences[:min(10, len(report.Differences))])
		}
	}
	return nil
}

// watchHeap samples the size of Go's heap ten times a second until stop is called. peak is valid
// after stop.
func watchHeap() (peak *uint64, stop func()) {
	peak = new(uint64)
	done, ended := make(chan struct{}), make(chan struct{})
	go func() {
		defer close(ended)
		tick := time.NewTicker(100 * time.Millisecond)
		defer tick.Stop()
		for {
			select {
			case <-done:
				return
			case <-tick.C:
			}
			var m runtime.MemStats
			runtime.ReadMemStats(&m)
			*peak = max(*peak, m.HeapAlloc)
		}
	}()
	return peak, func() { close(done); <-ended }
}
