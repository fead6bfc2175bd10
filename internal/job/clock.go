package job

import (
	"context"
	"fmt"
	"time"

	"tollgate/internal/store"
)

// maxRest is more than any wait between two attempts of a job.
const maxRest = time.Hour

// keepTime lets jobs and records that were written while the clock was ahead
// wait and end as if that were now: else they would until that date. It does
// nothing while the clock has not jumped.
func (j *Jobs) keepTime(ctx context.Context) error {
	steps := j.opts.DB.Steps()
	if steps == j.stepsSeen {
		return nil
	}
	err := j.opts.DB.Update(ctx, func(tx *store.Tx) error {
		now, err := tx.NowMS()
		if err != nil {
			return err
		}
		latest := tx.Latest(now)
		if _, err := tx.Exec(`UPDATE job_run SET wake_ms = $1 WHERE state = 0 AND wake_ms > $2`, now, latest+maxRest.Milliseconds()); err != nil {
			return err
		}
		if _, err := tx.Exec(`UPDATE job_run SET queued_ms = $1 WHERE state = 0 AND queued_ms > 0 AND queued_ms > $2`, now, latest); err != nil {
			return err
		}
		_, err = tx.Exec(`UPDATE job SET ended_ms = $1 WHERE ended_ms > 0 AND ended_ms > $2`, now, latest)
		return err
	})
	if err != nil {
		return fmt.Errorf("mend times of the future: %w", err)
	}
	j.stepsSeen = steps
	return nil
}
