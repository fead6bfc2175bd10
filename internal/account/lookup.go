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

// readKeys looks digests up in one snapshot. A digest without a good key in the result belongs to
// no usable key.
//
// The database compares digests, not secrets: its timing could only reveal something about the
// SHA-256 of the client's text, and nothing about a secret.
func readKeys(ctx context.Context, db *store.DB, asked []digest) (map[digest]finding, error) {
	var found map[digest]finding
	err := db.View(ctx, func(tx *store.Tx) (err error) {
		found, err = readKeysTx(tx, asked)
		return err
	})
	if err != nil {
		return nil, fmt.Errorf("look up keys: %w", err)
	}
	return found, nil
}

// Named returns the current rights of a key, for a known user of the account who names the key
// instead of sending it. Errors are those of Authenticate, and 401 for a key of another account.
func (k *Keys) Named(ctx context.Context, account, key string) (Principal, error) {
	var found finding
	err := k.options.DB.View(ctx, func(tx *store.Tx) error {
		var err error
		found, err = namedTx(tx, account, key)
		return err
	})
	switch {
	case isTold(err):
		return Principal{}, err
	case err != nil:
		return Principal{}, fault.TryAgain(fmt.Errorf("look up a key: %w", err))
	case !found.good:
		return Principal{}, unknownKey()
	}
	k.uses.add(key, k.now())
	return found.principal, nil
}

// row is one api_key row of a look-up.
type row struct {
	hash, key, models, ips string
	factor                 any
	prices                 string
	test                   int64
}

// selectKeys begins the queries for keys.
const selectKeys = `SELECT k.hash, k.id, k.allowed_models, k.allowed_ips, a.price_factor, a.prices, a.test
	FROM api_key k JOIN account a ON a.id = k.account WHERE k.deleted = 0 AND `

func (r *row) dest() []any {
	return []any{&r.hash, &r.key, &r.models, &r.ips, &r.factor, &r.prices, &r.test}
}

func readKeysTx(tx *store.Tx, asked []digest) (map[digest]finding, error) {
	rows, err := tx.Query(selectKeys+tx.In("k.hash", 1), store.List(ids(asked, digest.String)))
	if err != nil {
		return nil, err
	}
	list, err := collect(rows, func(scan func(...any) error) (r row, err error) {
		err = scan(r.dest()...)
		return r, err
	})
	if err != nil || len(list) == 0 {
		return nil, err
	}
	states, err := ledger.KeysTx(tx, ids(list, func(r row) string { return r.key }))
	if err != nil {
		return nil, err
	}
	found := make(map[digest]finding, len(list))
	for _, r := range list {
		var d digest
		if _, err := hex.Decode(d[:], []byte(r.hash)); err != nil {
			return nil, fmt.Errorf("key %s: %w", r.key, err)
		}
		state, ok := states[r.key]
		found[d] = judge(r, state, ok)
	}
	return found, nil
}

// namedTx reads and judges a key by its id.
func namedTx(tx *store.Tx, account, key string) (finding, error) {
	var r row
	err := tx.QueryRow(selectKeys+`k.id = $1 AND k.account = $2`, key, account).Scan(r.dest()...)
	if errors.Is(err, sql.ErrNoRows) {
		return finding{}, nil
	}
	if err != nil {
		return finding{}, err
	}
	states, err := ledger.KeysTx(tx, []string{r.key})
	if err != nil {
		return finding{}, err
	}
	state, ok := states[r.key]
	found := judge(r, state, ok)
	return found, found.err
}

// NamedTx returns the current rights of a key. ok is false if the key is unknown, or if the key or
// its account is disabled.
func NamedTx(tx *store.Tx, account, key string) (p Principal, ok bool, err error) {
	found, err := namedTx(tx, account, key)
	return found.principal, found.good, err
}

// judge decides whether an existing key may be used.
func judge(r row, state ledger.KeyState, ok bool) finding {
	if !ok {
		return finding{err: fmt.Errorf("key %s: %w", r.key, ledger.ErrNoKey)}
	}
	if state.Limits.Disabled || state.AccountDisabled {
		return finding{}
	}
	models, addresses, err := loadAllowlists(r.models, r.ips)
	if err != nil {
		return finding{err: fmt.Errorf("key %s: %w", r.key, err)}
	}
	prices := loadPrices(r.factor, r.prices)
	if err := prices.errUnreadable(); err != nil {
		return finding{err: err}
	}
	return finding{good: true, principal: Principal{Account: state.Account, Key: r.key, Version: state.Version,
		Test: r.test != 0, Prices: prices, AllowedModels: models, AllowedIPs: addresses}}
}
