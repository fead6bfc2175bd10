package job

import (
	"context"
	"fmt"
	"time"

	"tollgate/internal/store"
)

// recordOutage records an outage of the media store. The record extends the start limit on all
// nodes.
func (j *Jobs) recordOutage(ctx context.Context) error {
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
		return fmt.Errorf("record an outage of the media store: %w", err)
	}
	return nil
}

// startLimitTx returns the present start limit. Within StartLimit after an outage of the media store,
// it is longer by MediaRetry.
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
