package response

import (
	"context"
	"database/sql"
	"errors"
	"slices"
	"strings"

	"tollgate/internal/store"
)

const (
	addAccount = `INSERT INTO response_account (account, bytes) VALUES ($1, 0) ON CONFLICT (account) DO NOTHING`
	readBytes  = `SELECT bytes FROM response_account WHERE account = $1`
	addBytes   = `UPDATE response_account SET bytes = bytes + $1 WHERE account = $2`
	findStored = `SELECT chain FROM response WHERE id = $1 AND account = $2`
	useChain   = `UPDATE response SET used_ms = $1 WHERE id = $2`
	insertTurn = `INSERT INTO response (id, account, chain, previous, created_ms, used_ms, deleted, bytes, context, input, output, object)
		VALUES ($1, $2, $3, $4, $5, $6, 0, $7, $8, $9, $10, $11) ON CONFLICT (id) DO NOTHING`
)

// lockTx locks the responses of accounts.
func lockTx(tx *store.Tx, accounts ...string) error {
	return tx.Lock("response_account", "account", accounts...)
}

// saveTx writes turns of any accounts. The outcome of each is in its err.
func saveTx(tx *store.Tx, saves []*save) error {
	slices.SortStableFunc(saves, func(a, b *save) int { return strings.Compare(a.Account, b.Account) })
	var accounts []string
	for _, s := range saves {
		if n := len(accounts); n > 0 && accounts[n-1] == s.Account {
			continue
		}
		accounts = append(accounts, s.Account)
		if _, err := tx.Exec(addAccount, s.Account); err != nil {
			return err
		}
	}
	if err := lockTx(tx, accounts...); err != nil {
		return err
	}
	now, err := tx.NowMS()
	if err != nil {
		return err
	}
	for _, s := range saves {
		s.err, s.over = nil, 0
		err := s.writeTx(tx, now)
		if errors.Is(err, ErrFull) || errors.Is(err, ErrNotFound) {
			s.err, err = err, nil
		}
		if err != nil {
			return err
		}
	}
	return nil
}

// writeTx writes one turn. ErrFull and ErrNotFound leave the transaction usable.
func (s *save) writeTx(tx *store.Tx, now int64) error {
	chain, previous, used := s.ID, "", now
	if s.Previous != nil {
		previous, used = s.Previous.ID, 0
		err := tx.QueryRow(findStored, previous, s.Account).Scan(&chain)
		if errors.Is(err, sql.ErrNoRows) {
			return ErrNotFound
		}
		if err != nil {
			return err
		}
	}
	var bytes int64
	if err := tx.QueryRow(readBytes, s.Account).Scan(&bytes); err != nil {
		return err
	}
	if s.over = bytes + s.size() - s.storage; s.over > 0 {
		return ErrFull
	}
	n, err := tx.Exec(insertTurn, s.ID, s.Account, chain, previous, now, used, s.size(), s.context(), s.Input, s.Output, s.Object)
	if err != nil || n == 0 { // 0: an earlier attempt was committed
		return err
	}
	if _, err := tx.Exec(addBytes, s.size(), s.Account); err != nil {
		return err
	}
	if previous != "" {
		_, err = tx.Exec(useChain, now, chain)
	}
	return err
}

// slack is a divisor: makeRoom frees 1/slack of the storage in addition, so that not every save of an
// account with full storage deletes.
const slack = 32

// makeRoom deletes conversations of t's account to free a number of bytes, the least recently used
// first. It never deletes t's own conversation. It returns the freed bytes, or 0 if there is nothing
// to delete.
func (r *Responses) makeRoom(ctx context.Context, t *NewTurn, bytes int64) (freed int64, err error) {
	own := ""
	if t.Previous != nil {
		own = t.Previous.chain
	}
	bytes += r.opts.Storage / slack
	for freed < bytes {
		var d deletion
		err := r.opts.DB.Update(ctx, func(tx *store.Tx) (err error) {
			if err := lockTx(tx, t.Account); err != nil {
				return err
			}
			chains, err := store.Column[string](tx, oldestOwn, t.Account, own, maxDeleted)
			if err != nil {
				return err
			}
			d, err = deleteChainsTx(tx, chains, bytes-freed)
			return err
		})
		if err != nil {
			return freed, err
		}
		if d.rows == 0 {
			break
		}
		freed += d.bytes
	}
	return freed, nil
}
