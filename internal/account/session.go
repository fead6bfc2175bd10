package account

import (
	"crypto/rand"
	"crypto/sha256"
	"database/sql"
	"encoding/base64"
	"encoding/hex"
	"errors"
	"fmt"
	"strings"
	"time"
	"unicode"

	"tollgate/internal/mail"
	"tollgate/internal/store"
)

// SessionKind is the part of the console that a session opens. A cookie never opens the other part.
type SessionKind string

// The kinds of sessions.
const (
	UserSession     SessionKind = "user"     // the pages of an account's user
	OperatorSession SessionKind = "operator" // the operator's pages
)

// Halfway returns the kind of a session between the password and the code of the second factor. Such
// a session grants no access.
func (k SessionKind) Halfway() SessionKind { return k + "-halfway" }

// Maximum durations of sessions, without use and in total.
const (
	maxUserIdle, maxUserAge         = 14 * 24 * time.Hour, 30 * 24 * time.Hour
	maxOperatorIdle, maxOperatorAge = 12 * time.Hour, 24 * time.Hour
	maxHalfwayAge                   = 10 * time.Minute
)

// limits returns the maximum durations of a session without use and in total.
func (k SessionKind) limits() (idle, total time.Duration) {
	switch k {
	case UserSession:
		return maxUserIdle, maxUserAge
	case OperatorSession:
		return maxOperatorIdle, maxOperatorAge
	}
	return maxHalfwayAge, maxHalfwayAge
}

// maxSessions bounds a user's sessions of a kind, so that a script with repeated sign-ins does not
// fill the database. One more session ends the oldest.
const maxSessions = 1000

// touchPeriod is the maximum delay of a session's recorded last use.
const touchPeriod = 5 * time.Minute

// confirmWindow is the time for which a confirmation permits actions that need one.
const confirmWindow = 10 * time.Minute

// maxAgent bounds the stored User-Agent, in bytes.
const maxAgent = 200

// ErrNoSession means that a cookie's value is unknown, that its session ended, or that its user may
// not sign in any more.
var ErrNoSession = errors.New("no such session")

// ConsoleSession is the session of one browser, without its secret value.
type ConsoleSession struct {
	ID        string // sess_…
	Kind      SessionKind
	Address   string // address of the client at the sign-in
	Agent     string // the client's User-Agent, shortened
	CreatedMS int64
	SeenMS    int64 // the last use, up to five minutes late
	// Confirmed reports whether the user gave the password or a code, or signed in anew at a provider,
	// within confirmWindow.
	Confirmed bool
	// Accepted reports whether the user has accepted the version of the terms in SessionSettings.
	Accepted bool
	// User is the signed-in user, or the zero User for a sign-in by the operator's token.
	User User
	// Locale is the language that the user has chosen, or empty.
	Locale mail.Locale
}

// Role returns the role of the session's user. A session by the operator's token has the role of an
// owner, and the zero ConsoleSession has no role.
func (s ConsoleSession) Role() OperatorRole {
	if s.ID != "" && s.User.ID == "" {
		return Owner
	}
	return s.User.Role
}

// ended reports whether a session has ended by its age or by inactivity.
func (s ConsoleSession) ended(nowMS int64) bool {
	idle, total := s.Kind.limits()
	return nowMS-s.SeenMS >= idle.Milliseconds() || nowMS-s.CreatedMS >= total.Milliseconds()
}

// NewSession has the fields of a new session.
type NewSession struct {
	Kind SessionKind
	User string // id of the user; empty for a session by the operator's Token
	// Confirmed reports whether the user has just given the password or a code.
	Confirmed bool
	// Token is the operator's token; the session ends when the setting changes.
	Token          string
	Address, Agent string
}

const deleteOldest = `DELETE FROM account_session WHERE member = $1 AND kind = $2
	AND id <= (SELECT id FROM account_session WHERE member = $1 AND kind = $2 ORDER BY id DESC LIMIT 1 OFFSET $3)`

// OpenSessionTx creates a session and returns the session and its value for the cookie. The value
// has 256 random bits and is not stored. It is new for each sign-in, which defeats session fixation.
func OpenSessionTx(tx *store.Tx, n NewSession) (ConsoleSession, string, error) {
	now, err := tx.NowMS()
	if err != nil {
		return ConsoleSession{}, "", err
	}
	value := newToken()
	s := ConsoleSession{ID: newID("sess_", now), Kind: n.Kind, Address: n.Address, Agent: cutAgent(n.Agent), CreatedMS: now, SeenMS: now}
	if n.User != "" {
		if s.User, err = GetUserTx(tx, n.User); err != nil {
			return ConsoleSession{}, "", err
		}
		if _, err := tx.Exec(deleteOldest, n.User, string(n.Kind), maxSessions-1); err != nil {
			return ConsoleSession{}, "", fmt.Errorf("end the oldest session: %w", err)
		}
	}
	token, confirmedMS := "", int64(0)
	if n.User == "" {
		token = hashText(n.Token)
	}
	if s.Confirmed = n.Confirmed; n.Confirmed {
		confirmedMS = now
	}
	if _, err := tx.Exec(`INSERT INTO account_session (hash, id, kind, member, token, address, agent, created_ms, seen_ms, confirmed_ms)
		VALUES ($1, $2, $3, $4, $5, $6, $7, $8, $9, $10)`,
		hashText(value), s.ID, string(s.Kind), n.User, token, s.Address, s.Agent, s.CreatedMS, s.SeenMS, confirmedMS); err != nil {
		return ConsoleSession{}, "", fmt.Errorf("insert session: %w", err)
	}
	return s, value, nil
}

// SessionSettings are the current settings for SessionTx.
type SessionSettings struct {
	OperatorToken string
	TermsVersion  string
}

// isOperatorToken reports whether a hash is that of the operator's token.
func (s SessionSettings) isOperatorToken(hash string) bool {
	return s.OperatorToken != "" && hash == hashText(s.OperatorToken)
}

// SessionTx returns the session of a kind for a cookie's value. stale reports whether TouchSessionTx is due.
// Error: ErrNoSession.
func SessionTx(tx *store.Tx, kind SessionKind, value string, current SessionSettings) (s ConsoleSession, stale bool, err error) {
	var user User
	var member, token string
	var disabled, passwordless sql.NullBool
	var confirmedMS int64
	var account, email, role, locale sql.NullString
	var created, factor sql.NullInt64
	err = tx.QueryRow(`SELECT s.id, s.member, s.token, s.address, s.agent, s.created_ms, s.seen_ms, s.confirmed_ms,
		u.account, u.email, u.disabled, u.role, u.created_ms, u.totp_since_ms, u.password = $3, u.locale,
		EXISTS (SELECT 1 FROM account_acceptance WHERE member = s.member AND version = $4)
		FROM account_session s LEFT JOIN account_user u ON u.id = s.member WHERE s.hash = $1 AND s.kind = $2`,
		hashText(value), string(kind), noPassword, current.TermsVersion).Scan(&s.ID, &member, &token, &s.Address, &s.Agent,
		&s.CreatedMS, &s.SeenMS, &confirmedMS, &account, &email, &disabled, &role, &created, &factor, &passwordless,
		&locale, &s.Accepted)
	if errors.Is(err, sql.ErrNoRows) {
		return ConsoleSession{}, false, ErrNoSession
	}
	if err != nil {
		return ConsoleSession{}, false, fmt.Errorf("read session: %w", err)
	}
	s.Kind = kind
	now, err := tx.NowMS()
	if err != nil {
		return ConsoleSession{}, false, err
	}
	if member != "" {
		user = User{ID: member, Account: account.String, Email: email.String, Disabled: disabled.Bool,
			Role: OperatorRole(role.String), CreatedMS: created.Int64, FactorMS: factor.Int64,
			NoPassword: passwordless.Bool}
	}
	switch {
	case s.ended(now), member != "" && (!account.Valid || user.Disabled),
		(kind == OperatorSession || kind == OperatorSession.Halfway()) && member != "" && user.Role == "",
		member == "" && !current.isOperatorToken(token):
		return ConsoleSession{}, false, ErrNoSession
	}
	s.User, s.Locale = user, mail.Locale(locale.String)
	s.Confirmed = confirmedMS > now-confirmWindow.Milliseconds() && confirmedMS <= now
	return s, now-s.SeenMS >= touchPeriod.Milliseconds(), nil
}

// ConfirmSessionTx records that the user of a session gave the password or a code, or signed in anew at
// a provider.
func ConfirmSessionTx(tx *store.Tx, session string) error {
	now, err := tx.NowMS()
	if err != nil {
		return err
	}
	if _, err := tx.Exec(`UPDATE account_session SET confirmed_ms = $1 WHERE id = $2`, now, session); err != nil {
		return fmt.Errorf("confirm a session: %w", err)
	}
	return nil
}

// TouchSessionTx records a use of a session.
func TouchSessionTx(tx *store.Tx, session string) error {
	now, err := tx.NowMS()
	if err != nil {
		return err
	}
	if _, err := tx.Exec(`UPDATE account_session SET seen_ms = $1 WHERE id = $2 AND seen_ms < $1`, now, session); err != nil {
		return fmt.Errorf("note the use of a session: %w", err)
	}
	return nil
}

const sessionsPage = `SELECT id, kind, address, agent, created_ms, seen_ms FROM account_session
	WHERE member = $1 AND ($2 = '' OR id < $2) AND (kind = $3 AND seen_ms > $4 AND created_ms > $5
		OR kind = $6 AND seen_ms > $7 AND created_ms > $8)
	ORDER BY id DESC LIMIT $9`

// ListSessionsTx returns up to limit active sessions of a user, newest first, and reports whether
// there are more. If after is not empty, the list begins after the session with this id. An empty user
// means the sessions by the operator's token.
func ListSessionsTx(tx *store.Tx, user, after string, limit int) ([]ConsoleSession, bool, error) {
	now, err := tx.NowMS()
	if err != nil {
		return nil, false, err
	}
	return listTx(tx, limit, func(row store.Row) (s ConsoleSession, err error) {
		err = row.Scan(&s.ID, &s.Kind, &s.Address, &s.Agent, &s.CreatedMS, &s.SeenMS)
		return s, err
	}, sessionsPage, user, after,
		string(UserSession), now-maxUserIdle.Milliseconds(), now-maxUserAge.Milliseconds(),
		string(OperatorSession), now-maxOperatorIdle.Milliseconds(), now-maxOperatorAge.Milliseconds(), limit+1)
}

// EndSessionTx ends one session of a user. A session of another user is not found.
func EndSessionTx(tx *store.Tx, user, session string) error {
	deleted, err := tx.Exec(`DELETE FROM account_session WHERE member = $1 AND id = $2`, user, session)
	if err != nil {
		return fmt.Errorf("end session: %w", err)
	}
	if deleted == 0 {
		return notFound("session", session)
	}
	return nil
}

// EndSessionsTx ends all sessions of a user, of both kinds. If user is empty, it ends the sessions
// by the operator's token.
func EndSessionsTx(tx *store.Tx, user string) error {
	if _, err := tx.Exec(`DELETE FROM account_session WHERE member = $1`, user); err != nil {
		return fmt.Errorf("end sessions: %w", err)
	}
	return nil
}

// sweepSessionsTx deletes sessions unused for maxUserIdle. Sessions that ended earlier stay until
// then, but are invalid.
func sweepSessionsTx(tx *store.Tx, nowMS int64) error {
	if _, err := tx.Exec(`DELETE FROM account_session WHERE seen_ms < $1`, nowMS-maxUserIdle.Milliseconds()); err != nil {
		return fmt.Errorf("delete ended sessions: %w", err)
	}
	return nil
}

// tokenLength is the length of a token in bytes.
const tokenLength = 43

// newToken returns 256 random bits as text for cookies and URLs.
func newToken() string {
	var raw [32]byte
	rand.Read(raw[:]) // never fails (crypto/rand)
	return base64.RawURLEncoding.EncodeToString(raw[:])
}

// hashText returns the SHA-256 of a secret in hexadecimal, as it is stored.
func hashText(text string) string {
	sum := sha256.Sum256([]byte(text))
	return hex.EncodeToString(sum[:])
}

// cutAgent shortens a User-Agent to the stored length.
func cutAgent(agent string) string {
	agent = strings.ToValidUTF8(agent[:min(len(agent), maxAgent)], "")
	return strings.Map(func(r rune) rune {
		if unicode.IsControl(r) {
			return -1
		}
		return r
	}, agent)
}

// MaxSession returns the maximum duration of a session of a kind.
func MaxSession(kind SessionKind) time.Duration {
	_, total := kind.limits()
	return total
}
