package job

import (
	"context"
	"fmt"
	"time"

	"tollgate/internal/store"
)

// Limits of Measure, which reads the oldest queued jobs along an index.
const (
	measureEvery = 10 * time.Second
	maxMeasured  = 10_000 // jobs
)

const measureQueues = `SELECT model, queued_ms FROM job_run WHERE state = 0 AND queued_ms > 0 ORDER BY queued_ms LIMIT $1`

// queueMeasure is the length of a model's queue and the wait of its oldest job.
type queueMeasure struct {
	length int64
	oldest time.Duration
}

// Measure updates the metrics of the queues of all nodes. It is one step of Run.
func (j *Jobs) Measure(ctx context.Context) error {
	queues := map[string]queueMeasure{}
	err := j.opts.DB.View(ctx, func(tx *store.Tx) error {
		clear(queues)
		now, err := tx.NowMS()
		if err != nil {
			return err
		}
		return tx.Each(func(r store.Row) error {
			var model string
			var sinceMS int64
			if err := r.Scan(&model, &sinceMS); err != nil {
				return err
			}
			q, ok := queues[model]
			if !ok {
				q.oldest = time.Duration(max(now-sinceMS, 0)) * time.Millisecond
			}
			q.length++
			queues[model] = q
			return nil
		}, measureQueues, maxMeasured)
	})
	if err != nil {
		return fmt.Errorf("measure the queues: %w", err)
	}
	for _, m := range j.opts.Catalog.Current().Models() {
		if _, ok := queues[m.ID]; !ok && m.Kind.IsJob() {
			queues[m.ID] = queueMeasure{}
		}
	}
	j.metrics.setQueues(queues)
	return nil
}
