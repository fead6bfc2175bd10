package account

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"net/netip"
	"time"

	"tollgate/internal/fault"
	"tollgate/internal/store"
)

// How long a link is good.
const (
	invitationMost = 7 * 24 * time.Hour
	resetMost      = 24 * time.Hour
)

// LinkKind says what a link is for.
type LinkKind string

// The kinds of links.
const (
	Invitation LinkKind = "invitation" // of a user who has no password yet
	Reset      LinkKind = "reset"      // of a user who has lost it
)

// PasswordLink is what lets somebody set a user's password, once. Its token is not in it.
type PasswordLink struct {
	Kind      LinkKind
	User      User
	ExpiresMS int64
}

// ErrNoLink means that a token is good for nothing: it was never given out, was used,
// has run out or was replaced, or its user or account is disabled. Which of them is
// told to nobody.
var ErrNoLink = errors.New("no such link")

// MakeLinkTx makes a link for a user and returns it with its token, 256 random bits,
// which is known to nobody afterwards. The user's link before is void. A *fault.Error
// says that the user, or the account, is disabled.
func MakeLinkTx(tx *store.Tx, user string) (PasswordLink, string, error) {
	if err := tx.Lock("account_user", "id", user); err != nil {
		return PasswordLink{}, "", err
	}
	u, err := GetUserTx(tx, user)
	if err != nil {
		return PasswordLink{}, "", err
	}
	may, err := mayEnterTx(tx, u)
	if err != nil {
		return PasswordLink{}, "", err
	}
	if !may {
		return PasswordLink{}, "", fault.New(fault.InvalidRequest,
			"%s, or the account, is disabled, so that a link would let nobody in. Enable it first.", clip(u.Email))
	}
	now, err := tx.NowMS()
	if err != nil {
		return PasswordLink{}, "", err
	}
	l := linkOf(u, now)
	token := newToken()
	if _, err := tx.Exec(`INSERT INTO account_link (member, hash, expires_ms) VALUES ($1, $2, $3)
		ON CONFLICT (member) DO UPDATE SET hash = excluded.hash, expires_ms = excluded.expires_ms`,
		u.ID, hashText(token), l.ExpiresMS); err != nil {
		return PasswordLink{}, "", fmt.Errorf("insert link: %w", err)
	}
	return l, token, nil
}

// linkOf is a link for a user that is made now.
func linkOf(u User, nowMS int64) PasswordLink {
	if u.NoPassword {
		return PasswordLink{Kind: Invitation, User: u, ExpiresMS: nowMS + invitationMost.Milliseconds()}
	}
	return PasswordLink{Kind: Reset, User: u, ExpiresMS: nowMS + resetMost.Milliseconds()}
}

// mayEnterTx tells whether neither a user nor its account is disabled.
func mayEnterTx(tx *store.Tx, u User) (bool, error) {
	a, err := GetTx(tx, u.Account)
	return err == nil && !u.Disabled && !a.Money.Disabled, err
}

// linkTx returns the link of a token, or ErrNoLink. The database compares hashes, so
// that its timing tells nothing of a token.
func linkTx(tx *store.Tx, token string) (PasswordLink, error) {
	var member string
	var expires int64
	err := tx.QueryRow(`SELECT member, expires_ms FROM account_link WHERE hash = $1`, hashText(token)).Scan(&member, &expires)
	if errors.Is(err, sql.ErrNoRows) {
		return PasswordLink{}, ErrNoLink
	}
	if err != nil {
		return PasswordLink{}, fmt.Errorf("read link: %w", err)
	}
	now, err := tx.NowMS()
	if err != nil {
		return PasswordLink{}, err
	}
	u, err := GetUserTx(tx, member)
	if err != nil {
		return PasswordLink{}, err
	}
	may, err := mayEnterTx(tx, u)
	if err != nil {
		return PasswordLink{}, err
	}
	if !may || now >= expires {
		return PasswordLink{}, ErrNoLink
	}
	l := linkOf(u, now)
	l.ExpiresMS = expires
	return l, nil
}

// useLinkTx sets the password of a link's user, whose sessions end, and uses the link
// up: of those who have its token at the same moment one does. The wait after failed
// sign-ins with this email from the same network is over; that after wrong codes goes on, since a link says
// nothing of who has the second factor.
func useLinkTx(tx *store.Tx, l PasswordLink, token, passwordHash string, from netip.Addr) error {
	if err := tx.Lock("account_user", "id", l.User.ID); err != nil {
		return err
	}
	current, err := linkTx(tx, token)
	if err != nil {
		return err
	}
	if current.User != l.User { // a second factor was turned on, say, whose code nobody has asked for
		return ErrNoLink
	}
	if _, err := ChangeUserTx(tx, l.User.ID, UserChange{PasswordHash: &passwordHash}); err != nil {
		return err
	}
	for _, s := range attemptsAt(l.User.Email, from) {
		if _, err := tx.Exec(`DELETE FROM account_attempt WHERE subject = $1`, hashText(s.name)); err != nil {
			return fmt.Errorf("forget failed attempts to sign in: %w", err)
		}
	}
	return nil
}

// endLinkTx makes a user's link void, if there is one.
func endLinkTx(tx *store.Tx, user string) error {
	if _, err := tx.Exec(`DELETE FROM account_link WHERE member = $1`, user); err != nil {
		return fmt.Errorf("delete link: %w", err)
	}
	return nil
}

// Link returns what a token is good for, and uses nothing up. Wrong tokens are counted
// as wrong passwords are, by address; what has not the shape of one is none without
// asking anybody. Errors: ErrNoLink, else as Password.
func (e *Entrance) Link(ctx context.Context, token string, from netip.Addr) (l PasswordLink, err error) {
	if len(token) != tokenLength {
		return l, ErrNoLink
	}
	err = e.judge(ctx, from, []subject{addressOf(from, attemptsOfAddress)}, func() (bool, error) {
		err := e.db.View(ctx, func(tx *store.Tx) (err error) {
			l, err = linkTx(tx, token)
			return err
		})
		if errors.Is(err, ErrNoLink) {
			return false, nil
		}
		return err == nil, err
	})
	if errors.Is(err, ErrWrongSignIn) {
		err = ErrNoLink
	}
	return l, err
}

// UseLink sets the password of the user whose link Link has returned for a token, and
// uses it up. Of a user with a second factor it wants a code as well, without which
// nothing changes. Errors: as Link; *fault.Error at `password` or `code`.
func (e *Entrance) UseLink(ctx context.Context, l PasswordLink, token, password, code string, from netip.Addr) error {
	if err := CheckPassword(password); err != nil {
		return err
	}
	if l.User.FactorMS != 0 {
		err := e.Code(ctx, l.User.ID, code, from)
		if errors.Is(err, ErrWrongSignIn) {
			return fault.At(fault.InvalidRequest, "code", "That code is not right, or was used already. Type the one that your app shows now.")
		}
		if err != nil {
			return err
		}
	}
	hash, err := e.passwords.Hash(ctx, password)
	if err != nil {
		return err
	}
	return e.db.Update(ctx, func(tx *store.Tx) error { return useLinkTx(tx, l, token, hash, from) })
}
