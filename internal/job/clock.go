package job

import (
	"context"
	"fmt"
	"time"

	"tollgate/internal/store"
)

// maxWait is longer than any wait between two attempts of a job.
const maxWait = time.Hour

// fixFutureTimes lowers times written while the clock was ahead. Otherwise jobs would wait and
// records would stay until the clock reaches these times. It is a no-op if the clock has not
// jumped.
func (j *Jobs) fixFutureTimes(ctx context.Context) error {
	steps := j.opts.DB.Steps()
	if steps == j.clockSteps {
		return nil
	}
	err := j.opts.DB.Update(ctx, func(tx *store.Tx) error {
		now, err := tx.NowMS()
		if err != nil {
			return err
		}
		latest := tx.Latest(now)
		if _, err := tx.Exec(`UPDATE job_run SET wake_ms = $1 WHERE state = 0 AND wake_ms > $2`, now, latest+maxWait.Milliseconds()); err != nil {
			return err
		}
		if _, err := tx.Exec(`UPDATE job_run SET queued_ms = $1 WHERE state = 0 AND queued_ms > 0 AND queued_ms > $2`, now, latest); err != nil {
			return err
		}
		_, err = tx.Exec(`UPDATE job SET ended_ms = $1 WHERE ended_ms > 0 AND ended_ms > $2`, now, latest)
		return err
	})
	if err != nil {
		return fmt.Errorf("lower times in the future: %w", err)
	}
	j.clockSteps = steps
	return nil
}
