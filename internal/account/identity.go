package account

import (
	"database/sql"
	"errors"
	"fmt"
	"slices"

	"tollgate/internal/fault"
	"tollgate/internal/store"
)

// LinkedIdentity is the identity of a person at an identity provider, linked to the user who signs in with the
// identity. Issuer and Subject identify the person. An email never identifies a person, because people change
// their emails and other people get the old ones.
type LinkedIdentity struct {
	ID        string       // idn_…
	Issuer    string       // the issuer's URL, or the address of GitHub
	Subject   string       // the provider's id of the person
	User      string       // id of the user
	Email     string       // at the provider, for people only; may be empty
	Role      OperatorRole // by the provider's claim at the newest sign-in; empty for none
	CreatedMS int64
	UsedMS    int64 // the newest sign-in, or the link before the first
}

// maxIdentities bounds the identities of a user.
const maxIdentities = 10

const identityColumns = `id, issuer, subject, member, email, role, created_ms, used_ms`

func scanIdentity(row store.Row) (i LinkedIdentity, err error) {
	err = row.Scan(&i.ID, &i.Issuer, &i.Subject, &i.User, &i.Email, &i.Role, &i.CreatedMS, &i.UsedMS)
	return i, err
}

// IdentityTx returns the stored identity of a person at a provider, and locks the user's row. found
// is false if no user signs in with the identity.
func IdentityTx(tx *store.Tx, issuer, subject string) (i LinkedIdentity, found bool, err error) {
	read := func() (found bool, err error) {
		i, err = scanIdentity(tx.QueryRow(`SELECT `+identityColumns+` FROM account_identity WHERE issuer = $1 AND subject = $2`,
			issuer, subject))
		if errors.Is(err, sql.ErrNoRows) {
			return false, nil
		}
		if err != nil {
			return false, fmt.Errorf("read identity: %w", err)
		}
		return true, nil
	}
	if found, err = read(); err != nil || !found {
		return LinkedIdentity{}, false, err
	}
	if err := tx.Lock("account_user", "id", i.User); err != nil {
		return LinkedIdentity{}, false, err
	}
	// Another transaction may have removed the identity before the lock.
	found, err = read()
	return i, found, err
}

// IdentitiesTx returns the identities of users, oldest first.
func IdentitiesTx(tx *store.Tx, users ...string) ([]LinkedIdentity, error) {
	all, err := store.Collect(tx, scanIdentity, `SELECT `+identityColumns+` FROM account_identity WHERE `+tx.In("member", 1)+` ORDER BY id`,
		store.List(users))
	if err != nil {
		return nil, fmt.Errorf("read identities: %w", err)
	}
	return all, nil
}

// ErrIdentityTaken means that another user signs in with the identity.
var ErrIdentityTaken = errors.New("another user signs in with this identity")

// AddIdentityTx lets a user sign in with an identity. The caller must have checked that the visitor is
// both the user and the person at the provider. A repetition changes nothing. Errors: ErrIdentityTaken;
// *fault.Error if the user has too many identities.
func AddIdentityTx(tx *store.Tx, user string, i LinkedIdentity) (LinkedIdentity, error) {
	if err := tx.Serialize("account_identity " + i.Issuer + " " + i.Subject); err != nil {
		return LinkedIdentity{}, err
	}
	if _, err := LockUserTx(tx, user); err != nil {
		return LinkedIdentity{}, err
	}
	old, found, err := IdentityTx(tx, i.Issuer, i.Subject)
	switch {
	case err != nil:
		return LinkedIdentity{}, err
	case found && old.User != user:
		return LinkedIdentity{}, ErrIdentityTaken
	case found:
		return old, nil
	}
	own, err := IdentitiesTx(tx, user)
	if err != nil {
		return LinkedIdentity{}, err
	}
	if len(own) >= maxIdentities {
		return LinkedIdentity{}, fault.New(fault.InvalidRequest,
			"You have %d linked ways to sign in, which is the limit. Unlink one first.", len(own))
	}
	if i.CreatedMS, err = tx.NowMS(); err != nil {
		return LinkedIdentity{}, err
	}
	i.ID, i.User, i.Role, i.UsedMS = newID("idn_", i.CreatedMS), user, "", i.CreatedMS
	if _, err := tx.Exec(`INSERT INTO account_identity (`+identityColumns+`) VALUES ($1, $2, $3, $4, $5, $6, $7, $8)`,
		i.ID, i.Issuer, i.Subject, i.User, i.Email, string(i.Role), i.CreatedMS, i.UsedMS); err != nil {
		return LinkedIdentity{}, fmt.Errorf("insert identity: %w", err)
	}
	return i, nil
}

// UseIdentityTx records a sign-in with an identity, and the identity's current email and role.
func UseIdentityTx(tx *store.Tx, i LinkedIdentity) error {
	now, err := tx.NowMS()
	if err != nil {
		return err
	}
	if _, err := tx.Exec(`UPDATE account_identity SET email = $1, role = $2, used_ms = $3 WHERE id = $4`,
		i.Email, string(i.Role), now, i.ID); err != nil {
		return fmt.Errorf("record a sign-in with an identity: %w", err)
	}
	return nil
}

// RemoveIdentityTx removes an identity of a user and returns the identity. issuers are the issuers of the
// configured providers. If the user has no password and no other identity of these issuers, the error is a
// *fault.Error, because the identity is the user's only way to sign in.
func RemoveIdentityTx(tx *store.Tx, user, id string, issuers []string) (LinkedIdentity, error) {
	u, err := LockUserTx(tx, user)
	if err != nil {
		return LinkedIdentity{}, err
	}
	own, i, err := identityTx(tx, user, id)
	if err != nil {
		return LinkedIdentity{}, err
	}
	if u.NoPassword && !slices.ContainsFunc(own, func(i LinkedIdentity) bool { return i.ID != id && slices.Contains(issuers, i.Issuer) }) {
		return LinkedIdentity{}, fault.New(fault.InvalidRequest,
			"This is your only way to sign in, so it stays. Set a password or link another way first.")
	}
	return i, deleteIdentityTx(tx, i)
}

// identityTx returns all identities of a user, and the one with an id.
func identityTx(tx *store.Tx, user, id string) (own []LinkedIdentity, i LinkedIdentity, err error) {
	if own, err = IdentitiesTx(tx, user); err != nil {
		return nil, i, err
	}
	at := slices.IndexFunc(own, func(i LinkedIdentity) bool { return i.ID == id })
	if at < 0 {
		return nil, i, notFound("identity", id)
	}
	return own, own[at], nil
}

func deleteIdentityTx(tx *store.Tx, i LinkedIdentity) error {
	if _, err := tx.Exec(`DELETE FROM account_identity WHERE id = $1 AND member = $2`, i.ID, i.User); err != nil {
		return fmt.Errorf("delete identity: %w", err)
	}
	return nil
}

// DropIdentityTx removes an identity for an operator, even if it is the user's only way to sign in, and ends
// the user's sessions. DropIdentityTx locks the user's row first.
func DropIdentityTx(tx *store.Tx, id string) (LinkedIdentity, error) {
	var user string
	err := tx.QueryRow(`SELECT member FROM account_identity WHERE id = $1`, id).Scan(&user)
	if errors.Is(err, sql.ErrNoRows) {
		return LinkedIdentity{}, notFound("identity", id)
	}
	if err != nil {
		return LinkedIdentity{}, fmt.Errorf("read identity: %w", err)
	}
	if _, err := LockUserTx(tx, user); err != nil {
		return LinkedIdentity{}, err
	}
	_, i, err := identityTx(tx, user, id)
	if err != nil {
		return LinkedIdentity{}, err
	}
	return i, errors.Join(deleteIdentityTx(tx, i), EndSessionsTx(tx, user))
}

// AcceptInvitationTx lets the user of an invitation sign in with an identity, in place of a password,
// and uses the invitation up. linkHash is IdentityFlow.Link. Errors: ErrNoLink; as for AddIdentityTx.
func AcceptInvitationTx(tx *store.Tx, linkHash string, i LinkedIdentity) (User, LinkedIdentity, error) {
	l, err := linkOfTx(tx, linkHash)
	if err != nil {
		return User{}, LinkedIdentity{}, err
	}
	if err := tx.Lock("account_user", "id", l.User.ID); err != nil {
		return User{}, LinkedIdentity{}, err
	}
	if l, err = linkOfTx(tx, linkHash); err != nil {
		return User{}, LinkedIdentity{}, err
	}
	if l.Kind != Invitation {
		return User{}, LinkedIdentity{}, ErrNoLink
	}
	if i, err = AddIdentityTx(tx, l.User.ID, i); err != nil {
		return User{}, LinkedIdentity{}, err
	}
	return l.User, i, endLinkTx(tx, l.User.ID)
}
