package account

import (
	"fmt"
	"slices"
	"strings"

	"tollgate/internal/fault"
	"tollgate/internal/store"
)

// OperatorRole is the role of a user in the operator's part of the console. A user without a role, the zero
// value, may not use that part.
type OperatorRole string

// The roles. Each role may do everything that the next one may do.
const (
	Owner    OperatorRole = "owner"    // everything, including the roles and sign-ins of operators
	Operator OperatorRole = "operator" // everything else: money, keys, catalog, lines
	Support  OperatorRole = "support"  // sees everything, but may only resend and check things
)

// Roles returns all roles, the most powerful first.
func Roles() []OperatorRole { return []OperatorRole{Owner, Operator, Support} }

// Includes reports whether r may do everything that needed may do. It returns false if either is the zero
// value.
func (r OperatorRole) Includes(needed OperatorRole) bool {
	rank, neededRank := slices.Index(Roles(), r), slices.Index(Roles(), needed)
	return rank >= 0 && rank <= neededRank
}

// ParseRole returns the role with a name. The error is at the parameter role.
func ParseRole(name string) (OperatorRole, error) {
	if !slices.Contains(Roles(), OperatorRole(name)) {
		names := make([]string, 0, len(Roles()))
		for _, r := range Roles() {
			names = append(names, string(r))
		}
		return "", fault.At(fault.InvalidRequest, "role", "{param} must be one of %s.", strings.Join(names, ", "))
	}
	return OperatorRole(name), nil
}

// KeepOwnerTx returns an error if no enabled user is an owner. Call KeepOwnerTx after a change that removes
// an owner. Concurrent calls wait for each other, so the last two owners cannot remove each other.
func KeepOwnerTx(tx *store.Tx) error {
	if err := tx.Serialize("account_user owner"); err != nil {
		return err
	}
	var owners int
	if err := tx.QueryRow(`SELECT count(*) FROM account_user WHERE role = $1 AND disabled = 0`, string(Owner)).Scan(&owners); err != nil {
		return fmt.Errorf("count owners: %w", err)
	}
	if owners == 0 {
		return fault.At(fault.InvalidRequest, "role", "This is the last owner, and one must stay. Make another user an owner first.")
	}
	return nil
}

// IsLastOwnerTx reports whether no other enabled user is an owner. Concurrent calls wait for each other, as
// for KeepOwnerTx.
func IsLastOwnerTx(tx *store.Tx, user string) (isLast bool, err error) {
	if err := tx.Serialize("account_user owner"); err != nil {
		return false, err
	}
	err = tx.QueryRow(`SELECT NOT EXISTS (SELECT 1 FROM account_user WHERE role = $1 AND disabled = 0 AND id <> $2)`, string(Owner), user).
		Scan(&isLast)
	if err != nil {
		return false, fmt.Errorf("look for another owner: %w", err)
	}
	return isLast, nil
}

const operatorsPage = `SELECT ` + userColumns + ` FROM account_user WHERE role <> '' AND id > $1 ORDER BY id LIMIT $2`

// ListOperatorsTx returns up to limit users with a role in the order of their creation, beginning after
// the identifier in after, and reports whether there are more.
func ListOperatorsTx(tx *store.Tx, after string, limit int) ([]User, bool, error) {
	return listTx(tx, limit, scanUser, operatorsPage, after, limit+1)
}
