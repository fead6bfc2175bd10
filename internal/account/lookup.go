package account

import (
	"context"
	"database/sql"
	"encoding/hex"
	"errors"
	"fmt"

	"tollgate/internal/fault"
	"tollgate/internal/ledger"
	"tollgate/internal/store"
)

// readKeys looks digests up in one snapshot. The result has no entry for unknown and deleted keys.
//
// The database compares digests, not secrets, so its timing could only reveal something about the
// SHA-256 of the client's text.
func readKeys(ctx context.Context, db *store.DB, digests []digest) (map[digest]keyResult, error) {
	result, err := store.Read(ctx, db, func(tx *store.Tx) (map[digest]keyResult, error) { return readKeysTx(tx, digests) })
	if err != nil {
		return nil, fmt.Errorf("look up keys: %w", err)
	}
	return result, nil
}

// ByID returns the principal of a key by its id, for a signed-in user of the account. Errors are
// those of Authenticate, and 401 for a key of another account.
func (k *Keys) ByID(ctx context.Context, account, key string) (Principal, error) {
	result, err := store.Read(ctx, k.options.DB, func(tx *store.Tx) (keyResult, error) { return keyByIDTx(tx, account, key) })
	switch {
	case isUnavailable(err):
		return Principal{}, err
	case err != nil:
		return Principal{}, fault.TryAgain(fmt.Errorf("look up a key: %w", err))
	case !result.usable:
		return Principal{}, unknownKey()
	}
	k.uses.add(key, k.now())
	return result.principal, nil
}

// keyRow is a row of selectKeys.
type keyRow struct {
	hash, key, models, ips string
	factor                 any
	prices                 string
	test, wait             int64
}

// selectKeys is the beginning of the queries for keys.
const selectKeys = `SELECT k.hash, k.id, k.allowed_models, k.allowed_ips, a.price_factor, a.prices, a.test, k.wait_pictures
	FROM api_key k JOIN account a ON a.id = k.account WHERE k.deleted = 0 AND `

func (r *keyRow) dest() []any {
	return []any{&r.hash, &r.key, &r.models, &r.ips, &r.factor, &r.prices, &r.test, &r.wait}
}

func readKeysTx(tx *store.Tx, digests []digest) (map[digest]keyResult, error) {
	list, err := store.Collect(tx, func(row store.Row) (r keyRow, err error) {
		err = row.Scan(r.dest()...)
		return r, err
	}, selectKeys+tx.In("k.hash", 1), store.List(ids(digests, digest.String)))
	if err != nil || len(list) == 0 {
		return nil, err
	}
	states, err := ledger.KeysTx(tx, ids(list, func(r keyRow) string { return r.key }))
	if err != nil {
		return nil, err
	}
	result := make(map[digest]keyResult, len(list))
	for _, r := range list {
		var d digest
		if _, err := hex.Decode(d[:], []byte(r.hash)); err != nil {
			return nil, fmt.Errorf("key %s: %w", r.key, err)
		}
		state, ok := states[r.key]
		result[d] = resultOf(r, state, ok)
	}
	return result, nil
}

// keyByIDTx reads a key by its id.
func keyByIDTx(tx *store.Tx, account, key string) (keyResult, error) {
	var r keyRow
	err := tx.QueryRow(selectKeys+`k.id = $1 AND k.account = $2`, key, account).Scan(r.dest()...)
	if errors.Is(err, sql.ErrNoRows) {
		return keyResult{}, nil
	}
	if err != nil {
		return keyResult{}, err
	}
	states, err := ledger.KeysTx(tx, []string{r.key})
	if err != nil {
		return keyResult{}, err
	}
	state, ok := states[r.key]
	result := resultOf(r, state, ok)
	return result, result.err
}

// PrincipalTx returns the principal of a key. ok is false if the key is unknown, or if the key or its
// account is disabled.
func PrincipalTx(tx *store.Tx, account, key string) (p Principal, ok bool, err error) {
	result, err := keyByIDTx(tx, account, key)
	return result.principal, result.usable, err
}

// resultOf returns the result for a row. ok is false if the key has no state in the ledger.
func resultOf(r keyRow, state ledger.KeyState, ok bool) keyResult {
	if !ok {
		return keyResult{err: fmt.Errorf("key %s: %w", r.key, ledger.ErrNoKey)}
	}
	if state.Limits.Disabled || state.AccountDisabled {
		return keyResult{}
	}
	models, addresses, err := loadAllowlists(r.models, r.ips)
	if err != nil {
		return keyResult{err: fmt.Errorf("key %s: %w", r.key, err)}
	}
	prices := loadPrices(r.factor, r.prices)
	if err := prices.errUnreadable(); err != nil {
		return keyResult{err: err}
	}
	return keyResult{usable: true, principal: Principal{Account: state.Account, Key: r.key, Version: state.Version,
		Test: r.test != 0, Prices: prices, AllowedModels: models, AllowedIPs: addresses,
		WaitForPictures: r.wait == 1}}
}
