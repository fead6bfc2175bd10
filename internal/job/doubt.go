package job

import (
	"context"
	"errors"
	"slices"

	"tollgate/internal/store"
)

// assign runs a transaction that puts tasks into this node's hands, and returns
// those of them that are: where the answer to its commit was lost it asks until
// it knows. A job must not be left with a node that does not know of it.
func (j *Jobs) assign(ctx context.Context, do func(tx *store.Tx) error, tasks func() []*task) ([]*task, error) {
	err := j.opts.DB.Update(ctx, do)
	if err == nil {
		return tasks(), nil
	}
	for errors.Is(err, store.ErrUncertain) && len(tasks()) > 0 {
		j.away("it is not known yet whether a job was taken", tasks()[0].rec.id, err)
		var mine []*task
		if mine, err = j.assigned(ctx, tasks()); err == nil {
			return mine, nil
		}
		if (!store.Refused(err) || store.Retryable(err)) && pause(ctx, writeAgain) {
			err = errors.Join(store.ErrUncertain, err) // the question was lost too
		}
	}
	return nil, err
}

// assigned returns those of the tasks whose rows say that they are this node's.
// It writes the rows before it reads them: that waits for a transaction that is
// still at it, and its own commit proves what was read (store.Batch.ProveNode).
func (j *Jobs) assigned(ctx context.Context, tasks []*task) ([]*task, error) {
	ids := make([]string, len(tasks))
	for i, t := range tasks {
		ids[i] = t.rec.id
	}
	slices.Sort(ids) // rows are locked in one order
	var mine []*task
	err := j.opts.DB.Update(ctx, func(tx *store.Tx) error {
		mine = nil
		for _, id := range ids {
			if err := touchTx(tx, id); err != nil {
				return err
			}
		}
		for _, t := range tasks {
			_, p, err := readTx(tx, t.rec.id)
			if err != nil {
				return err
			}
			if p != nil && p.epoch == t.run.epoch && p.fence == t.run.fence && p.state != stateQueued {
				mine = append(mine, t)
			}
		}
		return nil
	})
	return mine, err
}
