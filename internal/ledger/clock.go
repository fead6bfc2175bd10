package ledger

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"time"

	"tollgate/internal/store"
)

// keepTimeEvery is how soon a jump is noticed at the latest, on a node that does
// nothing.
const keepTimeEvery = 10 * time.Second

// resumeTime lets the time of expiry go on where the service had brought it, so
// that a start while the clock is ahead deletes nothing.
func (l *Ledger) resumeTime(ctx context.Context) error {
	return l.db.View(ctx, func(tx *store.Tx) error {
		now, err := tx.NowMS()
		if err != nil {
			return err
		}
		var ms int64
		err = tx.QueryRow(`SELECT expiry_ms FROM ledger_clock WHERE id = 1`).Scan(&ms)
		if errors.Is(err, sql.ErrNoRows) {
			return nil
		}
		if err == nil {
			l.db.ResumeExpiry(ms, now)
		}
		return err
	})
}

// KeepTime looks at the clock, notes the time of expiry for the next start and,
// if the clock has jumped, takes what was written with a time of the future for
// written now: then it runs out as if it had been. It is one step of Run.
func (l *Ledger) KeepTime(ctx context.Context) error {
	var steps int64
	err := l.db.Update(ctx, func(tx *store.Tx) error {
		now, err := tx.NowMS()
		if err != nil {
			return err
		}
		_, err = tx.Exec(`INSERT INTO ledger_clock (id, expiry_ms) VALUES (1, $1)
			ON CONFLICT (id) DO UPDATE SET expiry_ms = excluded.expiry_ms`, l.db.Expiry(now))
		if steps = l.db.Steps(); err != nil || l.stepsSeen == steps {
			return err
		}
		if _, err := tx.Exec(`UPDATE ledger_hit SET at_ms = $1 WHERE at_ms > $1`, now); err != nil {
			return err
		}
		_, err = tx.Exec(`UPDATE ledger_once SET created_ms = $1 WHERE created_ms > $1`, now)
		return err
	})
	if err != nil {
		return fmt.Errorf("keep the time: %w", err)
	}
	l.stepsSeen = steps
	return nil
}
