package commit

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

// isDamage reports whether err means that rows needed for an ending are damaged, so that every
// retry fails.
func isDamage(err error) bool {
	return errors.Is(err, books.ErrDamaged) || errors.Is(err, books.ErrImplausible) || errors.Is(err, store.ErrColumn)
}

// failedEnds holds the endings that failed although each was alone in its batch. The committer
// adds them, and the sweep handles them.
type failedEnds struct {
	mu    sync.Mutex
	holds map[string]failedEnd // by id
}

// failedEnd is the reason for a failed ending. hold is set for a chat request of this node, because
// only this node tries the ending again.
type failedEnd struct {
	cause error
	hold  *OpenHold
}

func (d *failedEnds) add(id string, r failedEnd) {
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.holds == nil {
		d.holds = map[string]failedEnd{}
	}
	d.holds[id] = r
}

func (d *failedEnds) take() map[string]failedEnd {
	d.mu.Lock()
	defer d.mu.Unlock()
	holds := d.holds
	d.holds = nil
	return holds
}

// quarantineFailedEnds moves damaged holds to the quarantine. The other endings failed for a reason
// that may pass; their requests were answered with an error, so their holds are released once more.
// It returns the number of holds left for the next sweep.
func (c *Committer) quarantineFailedEnds(ctx context.Context) (left int, err error) {
	for id, r := range c.failedEnds.take() {
		found, moveErr := c.quarantine(ctx, id, r.cause)
		switch {
		case moveErr != nil:
			c.failedEnds.add(id, r)
			left, err = left+1, moveErr
		case found == holdSound && r.hold != nil:
			c.End(r.hold, books.End{Outcome: books.Failed, Status: 503, Code: string(fault.ServiceUnavailable)})
		}
	}
	return left, err
}

// holdState is the state of a hold for quarantine.
type holdState int

const (
	holdGone    holdState = iota // the hold has ended
	holdSound                    // the hold is not damaged
	holdDamaged                  // the hold was damaged and is now in the quarantine
)

// quarantine moves a hold to the quarantine if its rows are damaged: a receipt exists already, the
// account or key is missing, figures are out of range, or a row is unreadable. The hold's amount is
// no longer held, nothing is charged, and the audit reports the hold.
func (c *Committer) quarantine(ctx context.Context, hold string, cause error) (found holdState, err error) {
	err = c.opts.DB.Update(ctx, func(tx *store.Tx) error {
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
		if receipts == 0 && accounts == 1 && keys == 1 && !isDamage(cause) {
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
		_, err = tx.Exec(`DELETE FROM ledger_hold WHERE id = $1`, hold)
		return err
	})
	if err != nil {
		return found, fmt.Errorf("move the damaged hold %s to the quarantine: %w", hold, err)
	}
	if found == holdDamaged {
		c.opts.Log.Error("ledger: a damaged hold was moved to the quarantine; the audit shows it", "request", hold, "cause", cause)
		if c.opts.Observer.Quarantined != nil {
			c.opts.Observer.Quarantined()
		}
	}
	return found, nil
}

// freePlaceTx returns a hold's place to its free quota, unless a receipt records the place. The
// account must be locked, and the hold's row must still exist.
func freePlaceTx(tx *store.Tx, hold, account string) error {
	var model string
	var day int64
	err := tx.QueryRow(`SELECT model, day FROM ledger_hold WHERE id = $1 AND free = 1
		AND NOT EXISTS (SELECT 1 FROM ledger_receipt WHERE id = $1 AND outcome <> 4)`, hold).Scan(&model, &day)
	if errors.Is(err, sql.ErrNoRows) {
		return nil
	}
	if err == nil {
		_, err = tx.Exec(`UPDATE ledger_limit SET used = used - 1 WHERE subject = $1 AND day = $2 AND used > 0`,
			books.FreeSubject(account, model), day)
	}
	return err
}
