package job

import (
	"context"
	"fmt"
	"time"

	"tollgate/internal/store"
)

// noteOutage writes that the media store is down, for the start limit of all nodes.
func (j *Jobs) noteOutage(ctx context.Context) error {
	if _, down := j.opts.Media.Down(); !down {
		return nil
	}
	err := j.opts.DB.Update(ctx, func(tx *store.Tx) error {
		now, err := tx.NowMS()
		if err != nil {
			return err
		}
		_, err = tx.Exec(upsertOutage, now)
		return err
	})
	if err != nil {
		return fmt.Errorf("note an outage of the media store: %w", err)
	}
	return nil
}

// startLimitTx returns how long a job may wait for its start now. After an outage of
// the media store jobs have that time anew, and MediaRetry more in all.
func (j *Jobs) startLimitTx(tx *store.Tx, nowMS int64) (time.Duration, error) {
	var seenMS int64
	if err := tx.QueryRow(selectOutage).Scan(&seenMS); err != nil {
		return 0, err
	}
	if seenMS > nowMS-j.opts.StartLimit.Milliseconds() {
		return j.opts.StartLimit + j.opts.MediaRetry, nil
	}
	return j.opts.StartLimit, nil
}
