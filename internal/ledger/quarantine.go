package ledger

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"sync"

	"tollgate/internal/fault"
	"tollgate/internal/ledger/books"
	"tollgate/internal/store"
)

// damaged reports whether err is about rows needed by an ending, so that every retry fails again.
func damaged(err error) bool {
	return errors.Is(err, books.ErrDamaged) || errors.Is(err, books.ErrImplausible) || errors.Is(err, store.ErrColumn)
}

// damages are the holds whose ending was refused although it stood alone in its batch. The
// committer adds to them, and the sweep handles them.
type damages struct {
	mu    sync.Mutex
	holds map[string]refusedEnd // by id
}

// refusedEnd is the reason for a refused ending, and the hold if it is a request's of this node,
// because only this node tries again.
type refusedEnd struct {
	cause error
	hold  *Hold
}

func (d *damages) add(id string, r refusedEnd) {
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.holds == nil {
		d.holds = map[string]refusedEnd{}
	}
	d.holds[id] = r
}

func (d *damages) take() map[string]refusedEnd {
	d.mu.Lock()
	defer d.mu.Unlock()
	holds := d.holds
	d.holds = nil
	return holds
}

// lookAtDamage handles the holds whose ending was refused. It moves damaged ones to the quarantine.
// The others were refused for a reason that may pass; their requests were answered with an error,
// so it releases them once more. It returns how many holds are left for the next sweep.
func (l *Ledger) lookAtDamage(ctx context.Context) (left int, err error) {
	for id, r := range l.damages.take() {
		found, failed := l.quarantine(ctx, id, r.cause)
		switch {
		case failed != nil:
			l.damages.add(id, r)
			left, err = left+1, failed
		case found == holdSound && r.hold != nil:
			l.queue.push(r.hold.endOp(End{Outcome: Failed, Status: 503, Code: string(fault.ServiceUnavailable)}))
		}
	}
	return left, err
}

// condition is the quarantine's finding about a hold.
type condition int

const (
	holdGone    condition = iota // it has been ended
	holdSound                    // nothing is wrong with it
	holdDamaged                  // it was, and is in the quarantine
)

// quarantine moves a hold away if the rows around it are damaged: it already has its receipt, its
// account or key is gone, its figures are out of range, or one of the rows is unreadable. Nothing
// is held or charged for it any more, and the audit shows it.
func (l *Ledger) quarantine(ctx context.Context, hold string, cause error) (found condition, err error) {
	err = l.db.Update(ctx, func(tx *store.Tx) error {
		found = holdGone
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
		var receipts, accounts, keys int64
		if err := tx.QueryRow(`SELECT (SELECT COUNT(*) FROM ledger_receipt WHERE id = $1), (SELECT COUNT(*) FROM ledger_account WHERE id = $2),
			(SELECT COUNT(*) FROM ledger_key WHERE id = $3)`, hold, account, key).Scan(&receipts, &accounts, &keys); err != nil {
			return err
		}
		if receipts == 0 && accounts == 1 && keys == 1 && !damaged(cause) {
			found = holdSound
			return nil
		}
		now, err := tx.NowMS()
		if err != nil {
			return err
		}
		n, err := tx.Exec(`INSERT INTO ledger_quarantine (id, epoch, account, key, model, endpoint, job, day, amount_nano, cost_nano,
			created_ms, cause, at_ms)
			SELECT id, epoch, account, key, model, endpoint, job, day, amount_nano, cost_nano, created_ms, CAST($1 AS TEXT), CAST($2 AS BIGINT)
			FROM ledger_hold WHERE id = $3`, cause.Error(), now, hold)
		if err != nil {
			return err
		}
		if n > 0 {
			found = holdDamaged
		}
		if err := freePlaceTx(tx, hold, account); err != nil {
			return err
		}
		if _, err := tx.Exec(`DELETE FROM ledger_hold WHERE id = $1`, hold); err != nil {
			return err
		}
		return sumHeldTx(tx, account, key)
	})
	if err != nil {
		return found, fmt.Errorf("move the damaged hold %s to the quarantine: %w", hold, err)
	}
	if found == holdDamaged {
		l.log.Error("ledger: a damaged hold was moved to the quarantine; the audit shows it", "request", hold, "cause", cause)
		if l.opts.Observer.Quarantined != nil {
			l.opts.Observer.Quarantined()
		}
	}
	return found, nil
}

// freePlaceTx returns the place of a hold in a free quota, unless a receipt records the place. The
// account is locked, and the hold still exists.
func freePlaceTx(tx *store.Tx, hold, account string) error {
	for _, table := range []string{"ledger_free", "ledger_free_day"} {
		_, err := tx.Exec(`UPDATE `+table+` SET used = used - 1 WHERE account = $1 AND used > 0
			AND model = (SELECT model FROM ledger_hold WHERE id = $2 AND free = 1) AND day = (SELECT day FROM ledger_hold WHERE id = $2)
			AND NOT EXISTS (SELECT 1 FROM ledger_receipt WHERE id = $2 AND outcome <> 4)`, account, hold)
		if err != nil {
			return err
		}
	}
	return nil
}

var sumHeld = store.Sum("h.amount_nano")

// sumHeldTx sets the held sums of an account and a key to the sums of their open holds. The account
// is locked.
func sumHeldTx(tx *store.Tx, account, key string) error {
	if _, err := tx.Exec(
		`UPDATE ledger_account SET held_nano = (SELECT `+sumHeld+` FROM ledger_hold h WHERE h.account = $1)
		WHERE id = $1`, account); err != nil {
		return err
	}
	_, err := tx.Exec(`UPDATE ledger_key SET
		held_nano = (SELECT `+sumHeld+` FROM ledger_hold h WHERE h.key = $1),
		day_held_nano = (SELECT `+sumHeld+` FROM ledger_hold h WHERE h.key = $1 AND h.day = ledger_key.day)
		WHERE id = $1`, key)
	if err != nil {
		return err
	}
	_, err = tx.Exec(`UPDATE ledger_key_day SET
		held_nano = (SELECT `+sumHeld+` FROM ledger_hold h WHERE h.key = $1 AND h.day = ledger_key_day.day)
		WHERE key = $1`, key)
	return err
}
