package job

import (
	"context"
	"fmt"
	"time"

	"tollgate/internal/catalog"
	"tollgate/internal/store"
)

// How the queues are measured for the metrics: along the index of what waits, the
// oldest first, so that many jobs cost no more than measured of them.
const (
	measureEvery = 10 * time.Second
	measured     = 10_000
)

const measureQueues = `SELECT model, queued_ms FROM job_run WHERE state = 0 AND queued_ms > 0 ORDER BY queued_ms LIMIT $1`

// queueMeasure is how many jobs wait for a model, and how long the oldest does.
type queueMeasure struct {
	length int64
	oldest time.Duration
}

// Measure shows the queues of all models on all nodes in the metrics. It is one step
// of Run.
func (j *Jobs) Measure(ctx context.Context) error {
	queues := map[string]queueMeasure{}
	err := j.opts.DB.View(ctx, func(tx *store.Tx) error {
		clear(queues)
		now, err := tx.NowMS()
		if err != nil {
			return err
		}
		rows, err := tx.Query(measureQueues, measured)
		if err != nil {
			return err
		}
		defer rows.Close()
		for rows.Next() {
			var model string
			var sinceMS int64
			if err := rows.Scan(&model, &sinceMS); err != nil {
				return err
			}
			q, known := queues[model]
			if !known {
				q.oldest = time.Duration(max(now-sinceMS, 0)) * time.Millisecond
			}
			q.length++
			queues[model] = q
		}
		return rows.Err()
	})
	if err != nil {
		return fmt.Errorf("measure the queues: %w", err)
	}
	for _, m := range j.opts.Catalog.Current().Models() {
		if _, waits := queues[m.ID]; !waits && m.Kind != catalog.KindChat {
			queues[m.ID] = queueMeasure{}
		}
	}
	j.metrics.waiting(queues)
	return nil
}
