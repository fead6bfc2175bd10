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

// damaged tells whether err is about the rows that an ending meets, so that it
// will fail again whenever it is tried.
func damaged(err error) bool {
	return errors.Is(err, books.ErrDamaged) || errors.Is(err, books.ErrImplausible) || errors.Is(err, store.ErrColumn)
}

// damages are the holds whose ending was refused although it stood alone in its
// batch. The committer adds to them, the sweep looks at them.
type damages struct {
	mu    sync.Mutex
	holds map[string]refusedEnd // by id
}

// refusedEnd is why an ending was refused, and the hold if it is a request's of
// this node: nobody else tries again for it.
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

// lookAtDamage looks at the holds whose ending was refused. Damaged ones are
// moved to the quarantine; the others were refused for a reason that may pass, so
// their requests, which were answered with an error, are given back once more. It
// returns how many it could not look at: the next sweep does.
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

// condition is what the quarantine finds a hold to be.
type condition int

const (
	holdGone    condition = iota // it has been ended
	holdSound                    // nothing is wrong with it
	holdDamaged                  // it was, and is in the quarantine
)

// quarantine moves a hold away if the rows around it are damaged: it has its
// receipt already, its account or key is gone, its figures are out of range, or
// one of the rows cannot be read. Nothing is held for it any more, nobody is
// charged for it, and the audit shows it.
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

// freePlaceTx gives the place of a hold in a free quota back, unless a receipt
// says what became of it. The account is locked, and the hold still there.
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

// sumHeldTx sets what an account and a key show as held to the sum of their open
// holds. The account is locked.
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
