package job

import (
	"context"
	"errors"
	"slices"

	"tollgate/internal/job/row"
	"tollgate/internal/loop"
	"tollgate/internal/store"
)

// assign runs the transaction do, which assigns jobs to this node, and returns the workers of the
// assigned jobs. If the outcome of the commit is unknown, assign queries the database until the outcome
// is known. Otherwise a job could be assigned to this node without a worker.
func (j *Jobs) assign(ctx context.Context, do func(tx *store.Tx) error, workers func() []*worker) ([]*worker, error) {
	err := j.opts.DB.Update(ctx, do)
	if err == nil {
		return workers(), nil
	}
	for errors.Is(err, store.ErrUncertain) && len(workers()) > 0 {
		j.logOutage("the database has not confirmed whether a job was assigned to this node", workers()[0].rec.ID, err)
		var confirmed []*worker
		if confirmed, err = j.filterAssigned(ctx, workers()); err == nil {
			return confirmed, nil
		}
		if (!store.Refused(err) || store.Retryable(err)) && loop.Sleep(ctx, retryPause) {
			err = errors.Join(store.ErrUncertain, err) // the outcome is still unknown
		}
	}
	return nil, err
}

// filterAssigned returns the workers whose jobs are assigned to this node in the database. It writes
// each row before reading it: the write waits for the unfinished transaction, and the commit
// confirms the read (node.ConfirmState).
func (j *Jobs) filterAssigned(ctx context.Context, workers []*worker) ([]*worker, error) {
	ids := make([]string, len(workers))
	for i, w := range workers {
		ids[i] = w.rec.ID
	}
	slices.Sort(ids) // rows are locked in one order
	var confirmed []*worker
	err := j.opts.DB.Update(ctx, func(tx *store.Tx) error {
		confirmed = nil
		for _, id := range ids {
			if err := row.TouchTx(tx, id); err != nil {
				return err
			}
		}
		for _, w := range workers {
			_, p, err := row.ReadTx(tx, w.rec.ID)
			if err != nil {
				return err
			}
			if p != nil && p.Epoch == w.run.Epoch && p.Fence == w.run.Fence && p.State != row.StateQueued {
				confirmed = append(confirmed, w)
			}
		}
		return nil
	})
	return confirmed, err
}
