package response

import (
	"context"
	"database/sql"
	"errors"
	"slices"
	"time"

	"tollgate/internal/loop"
	"tollgate/internal/store"
)

const (
	hasNext    = `SELECT EXISTS (SELECT 1 FROM response WHERE chain = $1 AND previous = $2)`
	hideTurn   = `UPDATE response SET deleted = 1, object = $1, bytes = bytes - LENGTH(object) WHERE id = $2`
	objectSize = `SELECT LENGTH(object) FROM response WHERE id = $1`
	deleteTurn = `DELETE FROM response WHERE id = $1`
	hiddenTurn = `SELECT chain, previous, bytes FROM response WHERE id = $1 AND deleted = 1`
	turnBytes  = `SELECT bytes FROM response WHERE id = $1`

	oldestOwn    = `SELECT id FROM response WHERE account = $1 AND used_ms > 0 AND id <> $2 ORDER BY used_ms LIMIT $3`
	oldestChains = `SELECT id FROM response WHERE used_ms > 0 AND used_ms < $1 ORDER BY used_ms LIMIT $2`
	rewindChains = `UPDATE response SET used_ms = $1 WHERE used_ms > 0 AND used_ms > $2`
)

// maxDeleted bounds the rows deleted by one transaction.
const maxDeleted = 500

// Delete deletes a response. The items of its turn stay for later responses of the conversation, and
// are deleted with the last of them. It returns ErrNotFound if the response is not visible.
func (r *Responses) Delete(ctx context.Context, account, id string) error {
	next := id
	for first := true; next != ""; first = false {
		if err := r.opts.DB.Update(ctx, func(tx *store.Tx) (err error) {
			next = id
			if err := lockTx(tx, account); err != nil {
				return err
			}
			if first {
				next, err = r.deleteTx(tx, account, id)
				return err
			}
			next, err = deleteHiddenTx(tx, account, id)
			return err
		}); err != nil {
			return err
		}
		id = next
	}
	return nil
}

// deleteTx deletes a response, or hides it if a later turn needs its items. next is a hidden response
// to delete in another transaction, or "".
func (r *Responses) deleteTx(tx *store.Tx, account, id string) (next string, err error) {
	c, err := r.findTx(tx, account, id)
	if err != nil {
		return "", err
	}
	var needed bool
	if err := tx.QueryRow(hasNext, c.chain, id).Scan(&needed); err != nil {
		return "", err
	}
	var bytes int64
	if needed {
		if err := tx.QueryRow(objectSize, id).Scan(&bytes); err != nil {
			return "", err
		}
		if _, err := tx.Exec(hideTurn, []byte{}, id); err != nil {
			return "", err
		}
		_, err := tx.Exec(addBytes, -bytes, account)
		return "", err
	}
	if err := tx.QueryRow(turnBytes, id).Scan(&bytes); err != nil {
		return "", err
	}
	if _, err := tx.Exec(deleteTurn, id); err != nil {
		return "", err
	}
	if _, err := tx.Exec(addBytes, -bytes, account); err != nil {
		return "", err
	}
	return deleteHiddenTx(tx, account, c.previous)
}

// deleteHiddenTx deletes a hidden response if no later turn needs it, and then in the same way the
// hidden responses before it, up to maxDeleted. next is the response to continue with, or "".
func deleteHiddenTx(tx *store.Tx, account, id string) (next string, err error) {
	for range maxDeleted {
		if id == "" {
			return "", nil
		}
		var chain, previous string
		var bytes int64
		err := tx.QueryRow(hiddenTurn, id).Scan(&chain, &previous, &bytes)
		if errors.Is(err, sql.ErrNoRows) {
			return "", nil
		}
		if err != nil {
			return "", err
		}
		var needed bool
		if err := tx.QueryRow(hasNext, chain, id).Scan(&needed); err != nil || needed {
			return "", err
		}
		if _, err := tx.Exec(deleteTurn, id); err != nil {
			return "", err
		}
		if _, err := tx.Exec(addBytes, -bytes, account); err != nil {
			return "", err
		}
		id = previous
	}
	return id, nil
}

// deletion is the result of deleteChainsTx.
type deletion struct {
	rows  int
	bytes int64
}

// deleteChainsTx deletes whole conversations in the order of chains, up to maxDeleted rows and until
// it has deleted enough bytes. The first response of a chain is deleted last, because chains are
// found by it. The caller has the locks of their accounts.
func deleteChainsTx(tx *store.Tx, chains []string, enough int64) (d deletion, err error) {
	byAccount := map[string]int64{}
	var ids []string
	if len(chains) == 0 {
		return d, nil
	}
	if err := tx.ByIndex(); err != nil {
		return d, err
	}
	for _, chain := range chains {
		rows := 0
		err := tx.Each(func(row store.Row) error {
			var id, account string
			var bytes int64
			if err := row.Scan(&id, &account, &bytes); err != nil {
				return err
			}
			ids = append(ids, id)
			byAccount[account] += bytes
			d.bytes += bytes
			rows++
			return nil
		}, `SELECT id, account, bytes FROM response WHERE chain = $1 ORDER BY previous DESC LIMIT $2`, chain, maxDeleted-len(ids))
		if err != nil {
			return d, err
		}
		if len(ids) >= maxDeleted || d.bytes >= enough {
			break
		}
	}
	d.rows = len(ids)
	if d.rows == 0 {
		return d, nil
	}
	if _, err := tx.Exec(`DELETE FROM response WHERE `+tx.In("id", 1), store.List(ids)); err != nil {
		return d, err
	}
	for account, bytes := range byAccount {
		if _, err := tx.Exec(addBytes, -bytes, account); err != nil {
			return d, err
		}
	}
	return d, nil
}

const (
	// grace is how long the turns of an expired conversation stay, for requests that began before.
	grace      = time.Hour
	sweepEvery = time.Minute
)

// Run deletes conversations past the retention until ctx ends. Several nodes may call Run at the
// same time.
func (r *Responses) Run(ctx context.Context) {
	loop.Run(ctx, loop.Loop{Room: "response", Does: "delete stored responses past their retention", Log: r.opts.Log,
		Period: sweepEvery, Step: r.Sweep})
}

// Sweep deletes the conversations past the retention, in transactions of up to maxDeleted rows. It
// deletes all of them if the retention is 0. It is one step of Run.
func (r *Responses) Sweep(ctx context.Context) error {
	if err := r.correctTimes(ctx); err != nil {
		return err
	}
	for {
		rows, err := r.sweepSome(ctx)
		if err != nil || rows == 0 {
			return err
		}
	}
}

// dueTx returns up to maxDeleted conversations past the retention.
func (r *Responses) dueTx(tx *store.Tx) ([]string, error) {
	now, err := tx.ExpiryMS()
	if err != nil {
		return nil, err
	}
	before := now + 1
	if r.opts.Retention > 0 {
		before -= (r.opts.Retention + grace).Milliseconds()
	}
	return store.Column[string](tx, oldestChains, before, maxDeleted)
}

// sweepSome deletes up to maxDeleted rows. It only reads if there is nothing to delete: an idle
// service does not write.
func (r *Responses) sweepSome(ctx context.Context) (rows int, err error) {
	due, err := store.Read(ctx, r.opts.DB, r.dueTx)
	if err != nil || len(due) == 0 {
		return 0, err
	}
	err = r.opts.DB.Update(ctx, func(tx *store.Tx) error {
		rows = 0
		if err := tx.Serialize("response sweep"); err != nil {
			return err
		}
		accounts, err := store.Column[string](tx, `SELECT DISTINCT account FROM response WHERE `+tx.In("id", 1), store.List(due))
		if err != nil || len(accounts) == 0 {
			return err
		}
		slices.Sort(accounts)
		if err := lockTx(tx, accounts...); err != nil {
			return err
		}
		still, err := r.dueTx(tx)
		if err != nil {
			return err
		}
		known := make(map[string]bool, len(due))
		for _, id := range due {
			known[id] = true
		}
		still = slices.DeleteFunc(still, func(id string) bool { return !known[id] })
		d, err := deleteChainsTx(tx, still, 1<<62)
		rows = d.rows
		return err
	})
	return rows, err
}

// correctTimes corrects the times of conversations used while the clock was ahead. Otherwise they
// would stay until that date. It is a no-op unless the clock has jumped.
func (r *Responses) correctTimes(ctx context.Context) error {
	steps := r.opts.DB.Steps()
	if steps == r.clockSteps {
		return nil
	}
	err := r.opts.DB.Update(ctx, func(tx *store.Tx) error {
		now, err := tx.NowMS()
		if err != nil {
			return err
		}
		_, err = tx.Exec(rewindChains, now, tx.Latest(now)+grace.Milliseconds())
		return err
	})
	if err == nil {
		r.clockSteps = steps
	}
	return err
}
