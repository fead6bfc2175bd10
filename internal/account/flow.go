package account

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"net/netip"
	"time"

	"tollgate/internal/limit"
	"tollgate/internal/store"
)

// FlowAge is the lifetime of a flow.
const FlowAge = 10 * time.Minute

// maxAddressFlows bounds the flows begun from an IPv4 address or an IPv6 network of 64 bits in
// attemptWindow.
const maxAddressFlows = 60

// FlowPurpose is the purpose of a visit to an identity provider.
type FlowPurpose string

// The purposes of flows.
const (
	FlowSignIn     FlowPurpose = "sign_in"
	FlowInvitation FlowPurpose = "invitation" // to accept an invitation
	FlowLink       FlowPurpose = "link"       // to add a way to sign in
	FlowConfirm    FlowPurpose = "confirm"    // to show that the visitor is still the user of the session
	FlowSignUp     FlowPurpose = "sign_up"    // after the visit: an unknown person may create an account
)

// IdentityFlow is a browser's visit to an identity provider. It works once, in the browser with its cookie, on
// every node.
type IdentityFlow struct {
	Purpose  FlowPurpose
	Provider string      // name in the settings
	Kind     SessionKind // of the session to open
	Session  string      // id of the visitor's session, or empty without a session
	Link     string      // SHA-256 of an invitation's token, or empty without an invitation
	Next     string      // page to show afterwards
	Nonce    string      // of the ID token
	Verifier string      // of PKCE (RFC 7636)
	// Issuer, Subject and Email identify the person in a flow with FlowSignUp.
	Issuer, Subject, Email string
	CreatedMS              int64
}

// ErrNoFlow means that a cookie or state is unknown, used or expired, or that cookie and state belong to
// different flows.
var ErrNoFlow = errors.New("no such flow")

// InvitationHash returns IdentityFlow.Link for the token of an invitation.
func InvitationHash(token string) string { return hashText(token) }

// CountFlow records that an address is about to begin a flow. After too many
// flows, it returns a 429 with the time to wait.
func (s *SignIns) CountFlow(ctx context.Context, addr netip.Addr) error {
	return s.db.Update(ctx, func(tx *store.Tx) error {
		_, err := recordAttemptTx(tx, []subject{{name: "flow from " + limit.Network(addr).String(), maxCount: maxAddressFlows}})
		return err
	})
}

// CountIdentitySignUp records that an address is about to create an account with an identity. These
// accounts and sign-ups by mail share a limit. Above the limit, it returns a 429 with the time to wait.
func (s *SignIns) CountIdentitySignUp(ctx context.Context, addr netip.Addr) error {
	return s.db.Update(ctx, func(tx *store.Tx) error {
		_, err := recordAttemptTx(tx, []subject{addressSignUpSubject(addr)})
		return err
	})
}

// BeginFlowTx stores a flow for FlowAge with a new nonce and verifier. It returns the flow, the value of
// the browser's cookie, and the parameter state. Neither is stored.
func BeginFlowTx(tx *store.Tx, f IdentityFlow) (begun IdentityFlow, cookie, state string, err error) {
	if f.CreatedMS, err = tx.NowMS(); err != nil {
		return IdentityFlow{}, "", "", err
	}
	cookie, state = newToken(), newToken()
	f.Nonce, f.Verifier = newToken(), newToken()
	if _, err := tx.Exec(`INSERT INTO account_flow (hash, state, nonce, verifier, provider, purpose, kind, session, link, next,
		issuer, subject, email, created_ms, expires_ms) VALUES ($1, $2, $3, $4, $5, $6, $7, $8, $9, $10, $11, $12, $13, $14, $15)`,
		hashText(cookie), hashText(state), f.Nonce, f.Verifier, f.Provider, string(f.Purpose), string(f.Kind), f.Session, f.Link, f.Next,
		f.Issuer, f.Subject, f.Email, f.CreatedMS, f.CreatedMS+FlowAge.Milliseconds()); err != nil {
		return IdentityFlow{}, "", "", fmt.Errorf("insert flow: %w", err)
	}
	return f, cookie, state, nil
}

// TakeFlowTx returns the flow of a cookie and a state, and uses the flow up. One of several concurrent
// calls succeeds. The database compares hashes, so timing reveals nothing. Error: ErrNoFlow.
func TakeFlowTx(tx *store.Tx, cookie, state string) (IdentityFlow, error) {
	f, err := flowTx(tx, cookie, `state = $2`, hashText(state))
	if err != nil {
		return IdentityFlow{}, err
	}
	return f, endFlowTx(tx, cookie)
}

// SignUpFlowTx returns the flow with FlowSignUp of a cookie, and leaves the flow valid. Error: ErrNoFlow.
func SignUpFlowTx(tx *store.Tx, cookie string) (IdentityFlow, error) {
	return flowTx(tx, cookie, `purpose = $2`, string(FlowSignUp))
}

// TakeSignUpFlowTx is SignUpFlowTx and uses the flow up.
func TakeSignUpFlowTx(tx *store.Tx, cookie string) (IdentityFlow, error) {
	f, err := SignUpFlowTx(tx, cookie)
	if err != nil {
		return IdentityFlow{}, err
	}
	return f, endFlowTx(tx, cookie)
}

// flowTx returns the valid flow of a cookie under a condition on $2.
func flowTx(tx *store.Tx, cookie, condition string, arg any) (f IdentityFlow, err error) {
	now, err := tx.NowMS()
	if err != nil {
		return IdentityFlow{}, err
	}
	err = tx.QueryRow(`SELECT provider, purpose, kind, session, link, next, nonce, verifier, issuer, subject, email, created_ms
		FROM account_flow WHERE hash = $1 AND `+condition+` AND expires_ms > $3`, hashText(cookie), arg, now).
		Scan(&f.Provider, &f.Purpose, &f.Kind, &f.Session, &f.Link, &f.Next, &f.Nonce, &f.Verifier, &f.Issuer, &f.Subject, &f.Email,
			&f.CreatedMS)
	if errors.Is(err, sql.ErrNoRows) {
		return IdentityFlow{}, ErrNoFlow
	}
	if err != nil {
		return IdentityFlow{}, fmt.Errorf("read flow: %w", err)
	}
	return f, nil
}

// endFlowTx deletes the flow of a cookie. Error: ErrNoFlow if a concurrent call has deleted the flow.
func endFlowTx(tx *store.Tx, cookie string) error {
	deleted, err := tx.Exec(`DELETE FROM account_flow WHERE hash = $1`, hashText(cookie))
	if err != nil {
		return fmt.Errorf("delete flow: %w", err)
	}
	if deleted == 0 {
		return ErrNoFlow
	}
	return nil
}
