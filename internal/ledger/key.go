package ledger

import (
	"tollgate/internal/ledger/books"
	"tollgate/internal/money"
	"tollgate/internal/store"
)

// KeyLimits are the limits of a key. Nil means no limit.
type KeyLimits struct {
	RPM         *int64        // admitted requests in 60 seconds
	DailyBudget *money.Amount // charges and open holds of a UTC day
	TotalLimit  *money.Amount // charges and open holds over all time
	Disabled    bool
}

// KeyState is the money side of a key.
type KeyState struct {
	Account string
	Limits  KeyLimits
	// Version grows with every change of the key. Admission compares it with the version used by
	// the caller's checks.
	Version         int64
	Spent, Held     money.Amount
	SpentToday      money.Amount // charges of this UTC day
	LastUsedMS      int64        // 0 means never
	AccountDisabled bool
}

// noLimit is the stored value of an unset limit.
const noLimit = -1

func storeLimit[T ~int64](limit *T) int64 {
	if limit == nil {
		return noLimit
	}
	return int64(*limit)
}

func loadLimit[T ~int64](stored int64) *T {
	if stored == noLimit {
		return nil
	}
	v := T(stored)
	return &v
}

// OpenKeyTx opens a key of an account at version 1. OpenKeyTx and RecheckKeysTx of an account wait
// for each other.
func OpenKeyTx(tx *store.Tx, key, account string, limits KeyLimits) error {
	if err := tx.Lock("ledger_account", "id", account); err != nil {
		return err
	}
	_, err := tx.Exec(`INSERT INTO ledger_key (id, account, version, disabled, closed, rpm, daily_budget_nano, total_limit_nano,
		spent_nano, last_used_ms) VALUES ($1, $2, 1, $3, 0, $4, $5, $6, 0, 0)`,
		key, account, store.Bool(limits.Disabled), storeLimit(limits.RPM), storeLimit(limits.DailyBudget), storeLimit(limits.TotalLimit))
	return err
}

// ChangeKeyTx sets all limits of a key and raises its version, so that every node repeats its
// checks. Call it for every change of a key, including changes outside the ledger. It returns
// ErrNoKey if the key is unknown or closed.
func ChangeKeyTx(tx *store.Tx, key string, limits KeyLimits) error {
	return changeKeyTx(tx, key, func(before KeyState) (int64, error) {
		if err := openLimitTx(tx, key, before.Limits.DailyBudget != nil, limits.DailyBudget != nil); err != nil {
			return 0, err
		}
		return tx.Exec(`UPDATE ledger_key SET disabled = $1, rpm = $2, daily_budget_nano = $3, total_limit_nano = $4, version = version + 1
			WHERE id = $5 AND closed = 0`,
			store.Bool(limits.Disabled), storeLimit(limits.RPM), storeLimit(limits.DailyBudget), storeLimit(limits.TotalLimit), key)
	})
}

// RecheckKeysTx raises the version of all keys of an account, so that every node repeats its
// checks. Call it for every change that affects the checks or prices of an account's requests. No
// later request is admitted with the old data.
func RecheckKeysTx(tx *store.Tx, account string) error {
	if err := tx.Lock("ledger_account", "id", account); err != nil {
		return err
	}
	_, err := tx.Exec(`UPDATE ledger_key SET version = version + 1 WHERE account = $1 AND closed = 0`, account)
	return err
}

// CloseKeyTx disables a deleted key for ever; its row stays for the books.
func CloseKeyTx(tx *store.Tx, key string) error {
	return changeKeyTx(tx, key, func(KeyState) (int64, error) {
		return tx.Exec(`UPDATE ledger_key SET disabled = 1, closed = 1, version = version + 1 WHERE id = $1 AND closed = 0`, key)
	})
}

// openLimitTx creates the sums of a key that gets a daily budget from the key's charges, and deletes
// the sums of a key that loses its daily budget. The account must be locked.
func openLimitTx(tx *store.Tx, key string, before, after bool) error {
	if before == after {
		return nil
	}
	if _, err := tx.Exec(`DELETE FROM ledger_limit WHERE subject = $1`, key); err != nil || !after {
		return err
	}
	_, err := tx.Exec(openLimit, key)
	return err
}

var openLimit = `INSERT INTO ledger_limit (subject, day, spent_nano, used)
	SELECT CAST($1 AS TEXT), d.day, ` + store.Sum("d.cost_nano") + `, 0
	FROM ledger_series s JOIN ledger_day d ON d.series = s.id WHERE s.key = $1 GROUP BY d.day`

// changeKeyTx runs a change under the lock of the key's account.
func changeKeyTx(tx *store.Tx, key string, change func(before KeyState) (int64, error)) error {
	keys, err := KeysTx(tx, []string{key})
	if err != nil {
		return err
	}
	if _, ok := keys[key]; !ok {
		return ErrNoKey
	}
	if err := tx.Lock("ledger_account", "id", keys[key].Account); err != nil {
		return err
	}
	if keys, err = KeysTx(tx, []string{key}); err != nil { // now under the lock
		return err
	}
	n, err := change(keys[key])
	if err == nil && n == 0 {
		err = ErrNoKey
	}
	return err
}

// KeysTx returns the states of the existing keys; closed keys appear as disabled.
func KeysTx(tx *store.Tx, keys []string) (map[string]KeyState, error) {
	now, err := tx.NowMS()
	if err != nil {
		return nil, err
	}
	rows, err := tx.Query(`SELECT k.id, k.account, k.version, k.disabled, k.rpm, k.daily_budget_nano, k.total_limit_nano,
		k.spent_nano, (SELECT `+store.Sum("h.amount_nano")+` FROM ledger_hold h WHERE h.account = k.account AND h.key = k.id),
		(SELECT `+store.Sum("d.cost_nano")+` FROM ledger_series s JOIN ledger_day d ON d.series = s.id
			WHERE s.key = k.id AND d.day = $1), k.last_used_ms, a.disabled
		FROM ledger_key k JOIN ledger_account a ON a.id = k.account WHERE `+tx.In("k.id", 2), books.DayOf(now), store.List(keys))
	if err != nil {
		return nil, err
	}
	defer rows.Close()
	states := make(map[string]KeyState, len(keys))
	for rows.Next() {
		var key string
		var s KeyState
		var disabled, rpm, budget, limit, accountDisabled int64
		if err := rows.Scan(&key, &s.Account, &s.Version, &disabled, &rpm, &budget, &limit,
			&s.Spent, &s.Held, &s.SpentToday, &s.LastUsedMS, &accountDisabled); err != nil {
			return nil, err
		}
		s.LastUsedMS = min(s.LastUsedMS, now)
		s.AccountDisabled = accountDisabled != 0
		s.Limits = KeyLimits{
			RPM: loadLimit[int64](rpm), DailyBudget: loadLimit[money.Amount](budget), TotalLimit: loadLimit[money.Amount](limit),
			Disabled: disabled != 0,
		}
		states[key] = s
	}
	return states, rows.Err()
}
