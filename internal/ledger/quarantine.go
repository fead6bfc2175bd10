package ledger

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"sync"

	"tollgate/internal/store"
)

// errDamaged marks an open hold whose account or key the ledger does not have.
var errDamaged = errors.New("the account or the key of the hold is gone")

// damages are the holds that a batch could not end by themselves. The committer
// adds to them, the sweep moves them to the quarantine.
type damages struct {
	mu    sync.Mutex
	holds map[string]error // by id: why
}

func (d *damages) add(id string, cause error) {
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.holds == nil {
		d.holds = map[string]error{}
	}
	d.holds[id] = cause
}

func (d *damages) take() map[string]error {
	d.mu.Lock()
	defer d.mu.Unlock()
	holds := d.holds
	d.holds = nil
	return holds
}

// damaged tells whether err is about the rows that an ending meets, so that it
// will fail again whenever it is tried.
func damaged(err error) bool { return errors.Is(err, errPoisoned) || errors.Is(err, errDamaged) }

// quarantineAll moves away what batches could not end. What it does not come to is
// taken up by the next sweep.
func (l *Ledger) quarantineAll(ctx context.Context) error {
	var errs []error
	for hold, cause := range l.damages.take() {
		if err := l.quarantineHold(ctx, hold, cause); err != nil {
			l.damages.add(hold, cause)
			errs = append(errs, err)
		}
	}
	return errors.Join(errs...)
}

// quarantineHold moves a damaged hold to the quarantine: nothing is held for it any more,
// nobody is charged for it, and the audit shows it. It does nothing if the hold
// has been ended.
func (l *Ledger) quarantineHold(ctx context.Context, hold string, cause error) error {
	moved := false
	err := l.db.Update(ctx, func(tx *store.Tx) error {
		moved = false
		var account, key string
		err := tx.QueryRow(`SELECT account, key FROM ledger_hold WHERE id = $1`, hold).Scan(&account, &key)
		if errors.Is(err, sql.ErrNoRows) {
			return nil
		}
		if err != nil {
			return err
		}
		if err := tx.Lock("ledger_account", "id", account); err != nil {
			return err
		}
		now, err := tx.NowMS()
		if err != nil {
			return err
		}
		n, err := tx.Exec(`INSERT INTO ledger_quarantine (id, epoch, account, key, model, endpoint, job, day, amount_nano, cost_nano, created_ms, cause, at_ms)
			SELECT id, epoch, account, key, model, endpoint, job, day, amount_nano, cost_nano, created_ms, CAST($1 AS TEXT), CAST($2 AS BIGINT)
			FROM ledger_hold WHERE id = $3`, cause.Error(), now, hold)
		if err != nil {
			return err
		}
		moved = n > 0
		if _, err := tx.Exec(`DELETE FROM ledger_hold WHERE id = $1`, hold); err != nil {
			return err
		}
		return sumHeldTx(tx, account, key)
	})
	if err != nil {
		return fmt.Errorf("move the damaged hold %s to the quarantine: %w", hold, err)
	}
	if moved {
		l.log.Error("ledger: a damaged hold was moved to the quarantine; the audit shows it", "request", hold, "cause", cause)
		if l.opts.Observer.Quarantined != nil {
			l.opts.Observer.Quarantined()
		}
	}
	return nil
}

// sumHeldTx sets what an account and a key show as held to the sum of their open
// holds. The account is locked.
func sumHeldTx(tx *store.Tx, account, key string) error {
	if _, err := tx.Exec(`UPDATE ledger_account SET held_nano = (SELECT CAST(COALESCE(SUM(h.amount_nano), 0) AS BIGINT) FROM ledger_hold h WHERE h.account = $1)
		WHERE id = $1`, account); err != nil {
		return err
	}
	_, err := tx.Exec(`UPDATE ledger_key SET
		held_nano = (SELECT CAST(COALESCE(SUM(h.amount_nano), 0) AS BIGINT) FROM ledger_hold h WHERE h.key = $1),
		day_held_nano = (SELECT CAST(COALESCE(SUM(h.amount_nano), 0) AS BIGINT) FROM ledger_hold h WHERE h.key = $1 AND h.day = ledger_key.day)
		WHERE id = $1`, key)
	return err
}
