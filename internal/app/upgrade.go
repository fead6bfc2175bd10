package app

import (
	"context"
	"errors"
	"fmt"
	"time"

	"tollgate/internal/loop"
	"tollgate/internal/store"
)

// backfills returns the backfills of all rooms, in the order in which they run. This version has
// none.
func backfills() []store.Backfill { return nil }

// checkSchema refuses a database that this version can neither serve nor migrate.
func (r *rooms) checkSchema(ctx context.Context) error {
	var schema store.Schema
	err := waitUntilUp(ctx, "database", r.settings.StartWait, r.log, func(ctx context.Context) (err error) {
		schema, err = r.db.Schema(ctx)
		return err
	})
	if err != nil {
		return startError("database", err)
	}
	if err := schemaError(r.settings, schema); err != nil && !errors.Is(err, store.ErrOlderSchema) {
		return err
	}
	return nil
}

// Times of the loops of an upgrade.
const (
	schemaPeriod   = 2 * time.Second       // between two looks at the schema
	backfillPeriod = 10 * time.Second      // between two tries while there is nothing to do
	backfillPause  = 20 * time.Millisecond // between two steps
)

// startUpgrade starts a loop that changes old rows in the background. Unless only one process can use
// the database, it also starts watchSchema.
func (r *rooms) startUpgrade(context.Context) error {
	var more bool
	loops := []loop.Loop{{
		Room: "store", Does: "change old rows", Log: r.log, Period: backfillPeriod,
		Step: func(ctx context.Context) (err error) {
			more, err = r.db.StepBackfills(ctx)
			return err
		},
		Next: func() time.Duration {
			if more {
				return backfillPause
			}
			return backfillPeriod
		},
	}}
	if !r.db.OneProcess() { // only another process can migrate while this one serves
		loops = append(loops, loop.Loop{
			Room: "store", Does: "read the schema's version", Log: r.log, Period: schemaPeriod, Step: r.watchSchema,
		})
	}
	r.life.loop("upgrade", func(ctx context.Context) { loop.Run(ctx, loops...) })
	return nil
}

// watchSchema stops this process if a newer version has changed the schema so that this version can
// no longer serve the database.
func (r *rooms) watchSchema(ctx context.Context) error {
	err := r.db.CheckCompatible(ctx)
	if !errors.Is(err, store.ErrNewerSchema) {
		return err
	}
	select {
	case r.outdated <- &SettingError{"database", fmt.Errorf("%s: %w", databaseName(r.settings), err)}:
	default: // it stops already
	}
	return nil
}
