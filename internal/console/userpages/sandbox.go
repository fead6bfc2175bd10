package userpages

import (
	"tollgate/internal/account"
	"tollgate/internal/store"
)

// hiddenModelsTx returns the sandbox models hidden from an account and from its newest keys.
func (c *console) hiddenModelsTx(tx *store.Tx, of string) (map[string]bool, error) {
	now := c.Catalog.Current()
	sandbox := now.OpenSandbox()
	if len(sandbox) == 0 {
		return nil, nil
	}
	a, err := account.GetTx(tx, of)
	if err != nil {
		return nil, err
	}
	keys, _, err := account.NewestKeysTx(tx, of, maxKeys)
	var allowed []string
	for _, k := range keys {
		allowed = append(allowed, k.AllowedModels...)
	}
	hidden := map[string]bool{}
	for _, id := range sandbox {
		hidden[id] = now.HidesSandbox(id, a.Test, allowed)
	}
	return hidden, err
}
