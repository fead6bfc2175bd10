package job

import (
	"context"
	"errors"
	"slices"

	"tollgate/internal/job/row"
	"tollgate/internal/loop"
	"tollgate/internal/store"
)

// assign runs a transaction that puts workers into this node's hands, and returns
// those of them that are: where the answer to its commit was lost it asks until
// it knows. A job must not be left with a node that does not know of it.
func (j *Jobs) assign(ctx context.Context, do func(tx *store.Tx) error, workers func() []*worker) ([]*worker, error) {
	err := j.opts.DB.Update(ctx, do)
	if err == nil {
		return workers(), nil
	}
	for errors.Is(err, store.ErrUncertain) && len(workers()) > 0 {
		j.logAway("it is not known yet whether a job was taken", workers()[0].rec.ID, err)
		var mine []*worker
		if mine, err = j.assigned(ctx, workers()); err == nil {
			return mine, nil
		}
		if (!store.Refused(err) || store.Retryable(err)) && loop.Sleep(ctx, writeAgain) {
			err = errors.Join(store.ErrUncertain, err) // the question was lost too
		}
	}
	return nil, err
}

// assigned returns those of the workers whose rows say that they are this node's.
// It writes the rows before it reads them: that waits for a transaction that is
// still at it, and its own commit proves what was read (node.Prove).
func (j *Jobs) assigned(ctx context.Context, workers []*worker) ([]*worker, error) {
	ids := make([]string, len(workers))
	for i, w := range workers {
		ids[i] = w.rec.ID
	}
	slices.Sort(ids) // rows are locked in one order
	var mine []*worker
	err := j.opts.DB.Update(ctx, func(tx *store.Tx) error {
		mine = nil
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
				mine = append(mine, w)
			}
		}
		return nil
	})
	return mine, err
}
