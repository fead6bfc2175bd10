package ledger

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"time"

	"tollgate/internal/store"
)

// keepTimeEvery is the longest time before an idle node notices a jump of the clock.
const keepTimeEvery = 10 * time.Second

// resumeTime continues the service's stored steady time, so that a start while the clock is ahead
// deletes nothing.
func (l *Ledger) resumeTime(ctx context.Context) error {
	return l.db.View(ctx, func(tx *store.Tx) error {
		if _, err := tx.NowMS(); err != nil { // starts the steady time if none is stored
			return err
		}
		var ms int64
		err := tx.QueryRow(`SELECT steady_ms FROM ledger_clock WHERE id = 1`).Scan(&ms)
		if errors.Is(err, sql.ErrNoRows) {
			return nil
		}
		if err == nil {
			l.db.ResumeSteady(ms)
		}
		return err
	})
}

// keepTime reads the clock and stores the steady time for the next start. If the clock has jumped,
// keepTime replaces future times in rows by now, so that the rows expire as if written now. It is
// one step of Run.
func (l *Ledger) keepTime(ctx context.Context) error {
	var steps int64
	err := l.db.Update(ctx, func(tx *store.Tx) error {
		now, err := tx.NowMS()
		if err != nil {
			return err
		}
		_, err = tx.Exec(`INSERT INTO ledger_clock (id, steady_ms) VALUES (1, $1)
			ON CONFLICT (id) DO UPDATE SET steady_ms = excluded.steady_ms`, l.db.Steady(now))
		if steps = l.db.Steps(); err != nil || l.stepsSeen == steps {
			return err
		}
		if _, err := tx.Exec(`UPDATE ledger_hit SET at_ms = $1 WHERE at_ms > $1`, now); err != nil {
			return err
		}
		_, err = tx.Exec(`UPDATE ledger_once SET created_ms = $1 WHERE created_ms > $2`, now, tx.Latest(now))
		return err
	})
	if err != nil {
		return fmt.Errorf("keep the time: %w", err)
	}
	l.stepsSeen = steps
	return nil
}
