package account

import (
	"fmt"
	"net/netip"

	"tollgate/internal/store"
)

// AcceptTermsTx records that a user accepts a version of the shop's terms. A repetition changes nothing.
func AcceptTermsTx(tx *store.Tx, user, version string, addr netip.Addr) error {
	now, err := tx.NowMS()
	if err != nil {
		return err
	}
	if _, err := tx.Exec(`INSERT INTO account_acceptance (member, version, address, at_ms) VALUES ($1, $2, $3, $4)
		ON CONFLICT (member, version) DO NOTHING`, user, version, addr.String(), now); err != nil {
		return fmt.Errorf("record an acceptance of the terms: %w", err)
	}
	return nil
}

// acceptanceColumns has the version and the time of a user's newest acceptance, as columns of account_user.
const acceptanceColumns = `COALESCE((SELECT MAX(version) FROM account_acceptance WHERE member = account_user.id
	AND at_ms = ` + acceptedMS + `), ''), COALESCE(` + acceptedMS + `, 0)`

const acceptedMS = `(SELECT MAX(at_ms) FROM account_acceptance WHERE member = account_user.id)`

// forgetAcceptancesTx deletes the acceptances of a user.
func forgetAcceptancesTx(tx *store.Tx, user string) error {
	if _, err := tx.Exec(`DELETE FROM account_acceptance WHERE member = $1`, user); err != nil {
		return fmt.Errorf("delete acceptances of the terms: %w", err)
	}
	return nil
}
