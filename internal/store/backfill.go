package store

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"slices"
	"sync/atomic"
	"time"
)

// Backfill changes old rows in steps while nodes serve, for example to fill a new column. The steps
// run after the start of a node, on one node at a time, until no row is left. A migration with the
// comment "-- needs backfill: NAME" runs only after the last step.
//
// Every compatible binary must already write new rows in the new way. So a backfill comes one
// release later than the code for new rows, and its migration sets compatible_since to the earlier
// release. Steps wait until no older binary runs.
type Backfill struct {
	// Name identifies the backfill forever.
	Name string
	// Step changes up to limit rows after position in the order of a key. It returns the
	// position of the last row, or "" if no row follows. The first position is "". Step must
	// have no effect outside the transaction.
	Step func(tx *Tx, position string, limit int) (next string, changed int, err error)
	// Rows is the limit of a step. The rows of a step stay locked until its commit. Zero means 500.
	Rows int
}

// BackfillProgress is the state of an incomplete backfill.
type BackfillProgress struct {
	Name    string
	Changed int64 // rows so far
}

// backfill is a registered backfill and its state in this process.
type backfill struct {
	Backfill
	done   atomic.Bool  // the database has recorded the end
	logged atomic.Int64 // monotonic time of the last progress in the log
}

// record is the row of a backfill. A backfill without a row has not begun.
type record struct {
	done     bool
	position string
	changed  int64
}

// StepBackfills runs one step of the first incomplete backfill. It reports whether
// another step may follow at once: it returns false if all backfills are complete, while another
// node runs a step, and while an older binary runs.
func (db *DB) StepBackfills(ctx context.Context) (more bool, err error) {
	for _, b := range db.backfills {
		if b.done.Load() {
			continue
		}
		stepped, err := db.stepBackfill(ctx, b)
		if err != nil {
			return false, fmt.Errorf("backfill %s: %w", b.Name, err)
		}
		if stepped || !b.done.Load() {
			return stepped, nil
		}
	}
	return false, nil
}

// stepBackfill runs the next step of b, unless b is complete or must wait for another node. It reports
// whether a step ran.
func (db *DB) stepBackfill(ctx context.Context, b *backfill) (stepped bool, err error) {
	var before, after record
	err = db.Update(ctx, func(tx *Tx) error {
		stepped = false
		free, err := tx.lockBackfills()
		if err != nil || !free {
			return err
		}
		if before, err = tx.backfillRecord(b.Name); err != nil || before.done {
			after = before
			return err
		}
		after, err = b.stepTx(tx, before)
		stepped = err == nil
		return err
	})
	if err != nil {
		return false, err
	}
	if stepped {
		db.logBackfill(b, before, after)
	}
	if after.done {
		b.done.Store(true)
	}
	return stepped, nil
}

// stepTx runs the step after the state before, and records the new state.
func (b Backfill) stepTx(tx *Tx, before record) (after record, err error) {
	limit := b.Rows
	if limit <= 0 {
		limit = 500
	}
	next, changed, err := b.Step(tx, before.position, limit)
	if err != nil {
		return after, err
	}
	after = record{done: next == "", position: next, changed: before.changed + int64(changed)}
	_, err = tx.Exec(`INSERT INTO store_backfill (name, position, changed, done) VALUES ($1, $2, $3, $4)
		ON CONFLICT (name) DO UPDATE SET position = excluded.position, changed = excluded.changed, done = excluded.done`,
		b.Name, after.position, after.changed, Bool(after.done))
	return after, err
}

// lockBackfills reports whether this transaction may run a step. If so, no other transaction may run a
// step until this transaction ends.
func (tx *Tx) lockBackfills() (bool, error) {
	if tx.db.dialect == SQLite {
		return true, nil // one process, with one writer
	}
	var free bool
	var number int64
	err := tx.QueryRow(`SELECT pg_try_advisory_xact_lock(hashtextextended('backfill', 0)), compatible_since
		FROM store_schema, set_config('lock_timeout', $1, true) WHERE id = 'current'`, migrationLockTimeout).Scan(&free, &number)
	if err != nil || !free || tx.db.oldestBinary == nil {
		return free, err
	}
	oldest, err := tx.db.oldestBinary(tx)
	return oldest >= number, err
}

const readBackfill = `SELECT done, position, changed FROM store_backfill WHERE name = $1`

func (tx *Tx) backfillRecord(name string) (record, error) {
	return scanRecord(tx.QueryRow(readBackfill, name))
}

func scanRecord(row *sql.Row) (r record, err error) {
	var done int64
	err = row.Scan(&done, &r.position, &r.changed)
	if errors.Is(err, sql.ErrNoRows) {
		err = nil
	}
	r.done = done != 0
	return r, err
}

// backfillPeriod is the time between two lines of the log about a running backfill.
const backfillPeriod = 30 * time.Second

// logBackfill logs the beginning and the end of a backfill, and its progress from time to time.
func (db *DB) logBackfill(b *backfill, before, after record) {
	now := db.clock.begin()
	message := "a backfill goes on"
	switch {
	case after.done:
		message = "a backfill is complete"
	case before.position == "":
		message = "a backfill begins: it changes old rows in steps while requests are served"
	case now-time.Duration(b.logged.Load()) < backfillPeriod:
		return
	}
	b.logged.Store(int64(now))
	db.log.Info("store: "+message, "backfill", b.Name, "rows", after.changed)
}

// unfinishedBackfills returns the progress of this version's incomplete backfills.
func (db *DB) unfinishedBackfills(ctx context.Context) (list []BackfillProgress, err error) {
	if exists, err := db.hasTable(ctx, "store_backfill"); err != nil || !exists {
		return nil, err
	}
	for _, b := range db.backfills {
		r, err := scanRecord(db.read.QueryRowContext(ctx, readBackfill, b.Name))
		if err != nil {
			return nil, err
		}
		if !r.done {
			list = append(list, BackfillProgress{b.Name, r.changed})
		}
	}
	return list, nil
}

// finishBackfill runs the backfill of m.needs to its end.
func (db *DB) finishBackfill(ctx context.Context, m migration) error {
	i := slices.IndexFunc(db.backfills, func(b *backfill) bool { return b.Name == m.needs })
	if i < 0 {
		r, err := scanRecord(db.read.QueryRowContext(ctx, readBackfill, m.needs))
		if err == nil && !r.done {
			err = fmt.Errorf("%s needs the backfill %s, which this version does not have: "+
				"start an earlier version and wait until its log has \"a backfill is complete\"", m.file, m.needs)
		}
		return err
	}
	for b, tries := db.backfills[i], 0; ; tries++ {
		stepped, err := db.stepBackfill(ctx, b)
		switch {
		case b.done.Load():
			return nil
		case err != nil && (!Retryable(err) || tries == backfillTries):
			return fmt.Errorf("%s needs the backfill %s: %w", m.file, b.Name, err)
		case stepped:
			tries = -1
			continue
		case tries == backfillTries:
			return fmt.Errorf("%s needs the backfill %s, which waits for nodes of an older version: stop them", m.file, b.Name)
		}
		if !sleep(ctx, migrationWait()) {
			return ctx.Err()
		}
	}
}

// backfillTries is the number of tries in migrationTimeout.
const backfillTries = int(migrationTimeout / migrationPause)
