package ledger

import (
	"maps"
	"slices"
	"time"

	"tollgate/internal/store"
)

// RecordUseTx records how long ago keys were last used, unless a later use is recorded. It skips
// missing keys. The end of an admitted request records the use of its key without RecordUseTx.
func RecordUseTx(tx *store.Tx, ago map[string]time.Duration) error {
	keys := slices.Sorted(maps.Keys(ago))
	states, err := KeysTx(tx, keys)
	if err != nil {
		return err
	}
	now, err := tx.NowMS()
	if err != nil {
		return err
	}
	usedMS := func(key string) int64 { return now - ago[key].Milliseconds() }
	var accounts []string
	keys = slices.DeleteFunc(keys, func(key string) bool {
		state, ok := states[key]
		return !ok || state.LastUsedMS >= usedMS(key)
	})
	for _, key := range keys {
		accounts = append(accounts, states[key].Account)
	}
	if len(keys) == 0 {
		return nil
	}
	// The committer writes keys under the locks of their accounts.
	if err := tx.Lock("ledger_account", "id", accounts...); err != nil {
		return err
	}
	for _, key := range keys {
		if _, err := tx.Exec(`UPDATE ledger_key SET last_used_ms = $1 WHERE id = $2 AND last_used_ms < $1`, usedMS(key), key); err != nil {
			return err
		}
	}
	return nil
}
