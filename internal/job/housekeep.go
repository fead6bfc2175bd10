package job

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"sync/atomic"
	"time"

	"tollgate/internal/fault"
	"tollgate/internal/job/row"
	"tollgate/internal/ledger"
	"tollgate/internal/store"
)

// Housekeep fails jobs that have waited too long or belong to disabled accounts, and deletes
// expired records and spooled results. A failed task does not stop the other tasks. Housekeep is one
// step of Run.
func (j *Jobs) Housekeep(ctx context.Context) error {
	if err := j.fixFutureTimes(ctx); err != nil {
		return err
	}
	errs := []error{j.recordOutage(ctx)}
	for _, step := range []func(context.Context) (bool, error){j.failOverdue, j.failDisabled, j.deleteRecords, j.cleanSpool} {
		for more := true; more && ctx.Err() == nil; {
			var err error
			if more, err = step(ctx); err != nil {
				errs = append(errs, err)
				break
			}
		}
	}
	return errors.Join(errs...)
}

// failOverdue fails queued jobs past the start limit (interface.md, States and transitions). For a
// started job that waits for another line, the limit begins again.
func (j *Jobs) failOverdue(ctx context.Context) (bool, error) {
	var limit time.Duration
	return j.failQueued(ctx, func(tx *store.Tx, nowMS int64) (ids []string, err error) {
		if limit, err = j.startLimitTx(tx, nowMS); err != nil {
			return nil, err
		}
		return store.Column[string](tx, overdueJobs, nowMS-limit.Milliseconds(), maxStarts)
	}, func(_ *row.Job, p *row.Run, nowMS int64) bool {
		return p.Overdue(nowMS, limit)
	}, j.startLimitError())
}

func (j *Jobs) startLimitError() row.JobError {
	return row.JobError{Code: fault.UpstreamError,
		Message: fmt.Sprintf("The job waited %s without starting. You were not charged. Submit it again later.", j.opts.StartLimit)}
}

// failDisabled fails queued jobs of disabled accounts.
func (j *Jobs) failDisabled(ctx context.Context) (bool, error) {
	return j.failQueued(ctx, func(tx *store.Tx, _ int64) ([]string, error) {
		models, err := row.DistinctTx(tx, nextQueuedModel)
		if err != nil {
			return nil, err
		}
		for _, model := range models {
			accounts, err := row.DistinctTx(tx, nextQueuedAccount, model)
			if err != nil {
				return nil, err
			}
			states, err := ledger.AccountsTx(tx, accounts)
			if err != nil {
				return nil, err
			}
			for _, account := range accounts {
				if states[account].Disabled {
					return store.Column[string](tx, accountQueue, model, account, maxStarts)
				}
			}
		}
		return nil, nil
	}, func(*row.Job, *row.Run, int64) bool { return true }, disabledError())
}

func disabledError() row.JobError {
	return row.JobError{Code: fault.UpstreamError,
		Message: "The account was disabled before the job started. You were not charged. Ask the operator."}
}

// maxDeleted bounds the records deleted by one transaction.
const maxDeleted = 500

// deleteRecords deletes the records of jobs past the retention.
func (j *Jobs) deleteRecords(ctx context.Context) (bool, error) {
	var deleted int64
	err := j.opts.DB.Update(ctx, func(tx *store.Tx) error {
		now, err := tx.NowMS()
		if err != nil {
			return err
		}
		ids, err := store.Column[string](tx, pastRecords, j.retentionStart(now), maxDeleted)
		if err != nil || len(ids) == 0 {
			deleted = 0
			return err
		}
		deleted, err = tx.Exec(`DELETE FROM job WHERE `+tx.In("id", 1), store.List(ids))
		return err
	})
	return deleted == maxDeleted, err
}

// failUnserved fails queued jobs of a model that is not in the current catalog.
func (j *Jobs) failUnserved(ctx context.Context, model string) (bool, error) {
	return j.failQueued(ctx, func(tx *store.Tx, _ int64) ([]string, error) {
		return store.Column[string](tx, modelQueue, model, maxStarts)
	}, func(rec *row.Job, _ *row.Run, _ int64) bool {
		// The job may be from a newer catalog than this node's.
		snapshot := j.opts.Catalog.Current()
		return rec.Revision <= snapshot.Revision && !inCatalog(snapshot, model)
	}, row.JobError{Code: fault.UpstreamError,
		Message: "The model is no longer served. You were not charged. Submit the job with another model."})
}

// failQueued fails a batch of queued jobs and reports whether there may be more.
func (j *Jobs) failQueued(ctx context.Context, find func(tx *store.Tx, nowMS int64) ([]string, error),
	applies func(rec *row.Job, p *row.Run, nowMS int64) bool, failure row.JobError) (bool, error) {
	var ends []*ending
	found := 0
	err := j.opts.DB.View(ctx, func(tx *store.Tx) error {
		ends = nil
		now, err := tx.NowMS()
		if err != nil {
			return err
		}
		ids, err := find(tx, now)
		if err != nil {
			return err
		}
		found = len(ids)
		for _, id := range ids {
			rec, p, err := row.ReadTx(tx, id)
			if err != nil {
				return err
			}
			if rec == nil || p.State != row.StateQueued || !applies(rec, p, now) {
				continue
			}
			e := j.newEnding(rec, nil, p.Fence, failure)
			e.condition = func(p *row.Run, nowMS int64) bool { return p.State == row.StateQueued && applies(rec, p, nowMS) }
			ends = append(ends, e)
		}
		return nil
	})
	if err != nil {
		return false, err
	}
	return j.endAll(ctx, ends) && found == maxStarts, nil
}

// endAll commits endings concurrently, so that the ledger can commit them together. It reports
// whether at least one job has ended. If the database is unavailable, a later step tries again.
func (j *Jobs) endAll(ctx context.Context, ends []*ending) bool {
	ctx, cancel := context.WithTimeout(ctx, writeWait)
	defer cancel()
	var ended atomic.Bool
	var wg sync.WaitGroup
	for _, e := range ends {
		wg.Go(func() {
			if j.end(ctx, e) {
				ended.Store(true)
			}
		})
	}
	wg.Wait()
	return ended.Load()
}
