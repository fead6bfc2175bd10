package operator

import (
	"tollgate/internal/account"
	"tollgate/internal/store"
)

// CreateCodesTx creates a batch of redeem codes and returns them with their texts. The texts are
// not stored.
func CreateCodesTx(tx *store.Tx, by Actor, n account.NewCodes) ([]account.RedeemCode, []string, error) {
	codes, texts, err := account.CreateCodesTx(tx, n)
	if err != nil {
		return nil, nil, err
	}
	after := Details{"usd": n.Value, "count": n.Count}
	if n.ExpiresMS != 0 {
		after["expires"] = n.ExpiresMS / 1000
	}
	return codes, texts, writeLogTx(tx, by, LogRow{Act: CodeCreate, Object: codes[0].Batch, After: after})
}

// VoidCodeTx voids a code. It returns an error if the code was redeemed. Voiding a code again is a
// no-op.
func VoidCodeTx(tx *store.Tx, by Actor, code string) (account.RedeemCode, error) {
	before, err := account.GetCodeTx(tx, code)
	if err != nil {
		return before, err
	}
	c, err := account.VoidCodeTx(tx, code)
	if err != nil || before.VoidedMS != 0 {
		return c, err
	}
	return c, writeLogTx(tx, by, LogRow{Act: CodeVoid, Object: code, Before: Details{"state": before.State(c.VoidedMS)},
		After: Details{"state": account.CodeVoid}})
}
