package userpages

import (
	"tollgate/internal/account"
	"tollgate/internal/store"
)

// hiddenModelsTx returns the sandbox models closed to an account and to its newest keys.
func (c *console) hiddenModelsTx(tx *store.Tx, of string) (map[string]bool, error) {
	closed := c.Catalog.Current().OpenSandbox()
	if len(closed) == 0 {
		return nil, nil
	}
	a, err := account.GetTx(tx, of)
	if err != nil || a.Test {
		return nil, err
	}
	hidden := make(map[string]bool, len(closed))
	for _, id := range closed {
		hidden[id] = true
	}
	keys, _, err := account.NewestKeysTx(tx, of, maxKeys)
	for _, k := range keys {
		for _, id := range k.AllowedModels {
			delete(hidden, id)
		}
	}
	return hidden, err
}
