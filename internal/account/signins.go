package account

import (
	"cmp"
	"context"
	"crypto/rand"
	"database/sql"
	"errors"
	"fmt"
	"log/slog"
	"math"
	"net/netip"
	"slices"
	"time"

	"tollgate/internal/fault"
	"tollgate/internal/limit"
	"tollgate/internal/loop"
	"tollgate/internal/store"
)

// Limits of failed sign-in attempts in a window of time. Attempts are counted in the database, so
// the limits apply to all nodes together. After a wait the user may try again; no user is locked
// out for good.
const (
	attemptWindow      = 15 * time.Minute
	attemptsOfEmail    = 10 // with an email from one network, or from one browser known for its user
	attemptsOfSite     = 50 // with an email from an IPv6 network of 48 bits
	attemptsOfAddress  = 30 // of an IPv6 network of 64 bits
	attemptsOfOperator = 10 // at the operator's token, by address
	attemptsOfCode     = 5  // at a user's second factor, after the password
)

// Failed attempts with an email in attemptWindow, except those of known browsers, do not lock the
// user out, but delay the next attempt: by slowStep for each above slowAfter, up to slowest.
const (
	slowAfter = 30
	slowStep  = 100 * time.Millisecond
	slowest   = 5 * time.Second
)

// maxAttempts bounds the attempts in progress or waiting; two are hashed at a time (Passwords). A
// single address has a smaller bound; its other attempts wait, so that it cannot block all users.
// The operator's token needs no hashing and has its own maxAttempts slots. Known browsers have
// separate slots too, so that other addresses cannot block them.
const (
	maxAttempts            = 22
	maxAttemptsFromAddress = 4
)

// ErrWrongSignIn means that the email is unknown, the password is wrong, or the user is disabled.
// The answer never reveals the reason.
var ErrWrongSignIn = errors.New("email or password is not right")

// SignIns checks sign-ins to the console and limits failed attempts.
type SignIns struct {
	db          *store.DB
	passwords   *Passwords
	log         *slog.Logger
	unknownHash string        // compared if the email is unknown; it matches no password
	slots       chan struct{} // a slot for each attempt by password or code
	tokens      chan struct{} // a slot for each attempt at the operator's token
	browsers    chan struct{} // a slot for each attempt of a known browser
	from        *limit.Semaphores[netip.Prefix]
	wait        func(ctx context.Context, d time.Duration)
}

// NewSignIns returns sign-ins of a database. Call Run. A nil log discards messages.
func NewSignIns(db *store.DB, passwords *Passwords, log *slog.Logger) *SignIns {
	if log == nil {
		log = slog.New(slog.DiscardHandler)
	}
	salt, hash := make([]byte, argonSalt), make([]byte, argonHash)
	rand.Read(salt) // never fails (crypto/rand)
	rand.Read(hash)
	return &SignIns{db: db, passwords: passwords, log: log, unknownHash: phcText(salt, hash), slots: make(chan struct{}, maxAttempts),
		tokens: make(chan struct{}, maxAttempts), browsers: make(chan struct{}, maxAttempts),
		from: limit.NewSemaphores[netip.Prefix](maxAttemptsFromAddress), wait: func(ctx context.Context, d time.Duration) { loop.Sleep(ctx, d) }}
}

// Password returns the user with an email and a password. It takes the same time whether or not the
// email is known. marks are the browser's marks (MarkBrowserTx): if the user has signed in with the
// browser before, its attempts count for that browser only, so that nobody else can lock it out.
// Errors: ErrWrongSignIn; 429 with the time to wait after too many failures, before any hashing;
// 503 if too many attempts wait.
func (e *SignIns) Password(ctx context.Context, email, password string, from netip.Addr, marks ...string) (User, error) {
	if canonical, err := readEmail(email); err == nil {
		email = canonical
	}
	browser, err := e.browserOf(ctx, email, marks)
	if err != nil {
		return User{}, err
	}
	slots, subjects := e.browsers, []subject{{name: "browser " + browser, maxCount: attemptsOfEmail}}
	if browser == "" {
		slots, subjects = e.slots, append(subjectsOf(email, from), addressSubject(from, attemptsOfAddress))
		if err := e.slowDown(ctx, subjects[0]); err != nil {
			return User{}, err
		}
	}
	var user User
	err = e.attemptIn(ctx, slots, from, subjects, func() (bool, error) {
		known, hash, err := e.find(ctx, email)
		if err != nil {
			return false, err
		}
		right, err := e.passwords.Verify(ctx, hash, password)
		user = known
		return right && known.ID != "" && !known.Disabled, err
	})
	if err != nil {
		return User{}, err
	}
	return user, nil
}

// Confirm checks the password of a signed-in user before an action that needs the password again.
// Errors as for Password.
func (e *SignIns) Confirm(ctx context.Context, user User, password string, from netip.Addr, marks ...string) error {
	known, err := e.Password(ctx, user.Email, password, from, marks...)
	if err == nil && known.ID != user.ID { // the email now belongs to another user
		return ErrWrongSignIn
	}
	return err
}

// Token checks a sign-in by the operator's token; right is the result of the comparison. Errors as
// for Password.
func (e *SignIns) Token(ctx context.Context, right bool, from netip.Addr) error {
	s := addressSubject(from, attemptsOfOperator)
	s.name = "operator " + s.name
	return e.attemptIn(ctx, e.tokens, from, []subject{s}, func() (bool, error) { return right, nil })
}

// find returns a user by email with the hash of the password. For an unknown email it returns the
// zero User and unknownHash.
func (e *SignIns) find(ctx context.Context, email string) (u User, hash string, err error) {
	err = e.db.View(ctx, func(tx *store.Tx) error {
		err := tx.QueryRow(`SELECT `+userColumns+`, password FROM account_user WHERE email = $1`, email).
			Scan(append(u.columns(), &hash)...)
		if errors.Is(err, sql.ErrNoRows) {
			u, hash, err = User{}, e.unknownHash, nil
		}
		return err
	})
	if err != nil {
		return User{}, "", fmt.Errorf("read user: %w", err)
	}
	return u, hash, nil
}

// subject is a counter of failed attempts.
type subject struct {
	name     string
	maxCount int // in the time window; 0 means that attempts only delay the next ones

	// longer extends the time window beyond attemptWindow. The attempts are stored with a time
	// later by longer, so that code for expiry need not know about longer.
	longer time.Duration
	full   string // beginning of the message at the limit, before the time to wait; default: Too many attempts.
}

// subjectsOf returns the subjects of an email in canonical form: from all addresses, and from an
// address's network.
func subjectsOf(email string, from netip.Addr) []subject {
	subjects := []subject{{name: "email " + email},
		{name: "email " + email + " from " + limit.Network(from).String(), maxCount: attemptsOfEmail}}
	if site, ok := limit.Site(from); ok {
		subjects = append(subjects, subject{name: "email " + email + " from " + site.String(), maxCount: attemptsOfSite})
	}
	return subjects
}

func addressSubject(from netip.Addr, maxCount int) subject {
	return subject{name: "address " + limit.Network(from).String(), maxCount: maxCount}
}

// attempt runs right, which decides a sign-in. The attempt is recorded as failed before the
// decision, so that concurrent attempts cannot exceed the limit, and deleted after a success.
func (e *SignIns) attempt(ctx context.Context, from netip.Addr, subjects []subject, right func() (bool, error)) error {
	return e.attemptIn(ctx, e.slots, from, subjects, right)
}

// attemptIn is attempt with the given slots.
func (e *SignIns) attemptIn(
	ctx context.Context, slots chan struct{}, from netip.Addr, subjects []subject, right func() (bool, error),
) error {
	busy := fault.New(fault.ServiceUnavailable, "Too many people are signing in at this moment. Try again in a few seconds.")
	busy.RetryAfter = 5 * time.Second
	leave, err := e.from.Acquire(ctx, limit.Network(from))
	if err != nil {
		return busy
	}
	defer leave()
	select {
	case slots <- struct{}{}:
		defer func() { <-slots }()
	default:
		return busy
	}
	recorded, err := store.Write(ctx, e.db, func(tx *store.Tx) ([]string, error) { return recordAttemptTx(tx, subjects) })
	if err != nil {
		return err
	}
	good, err := right()
	if err != nil {
		return err
	}
	if !good {
		return ErrWrongSignIn
	}
	return e.db.Update(ctx, func(tx *store.Tx) error {
		_, err := tx.Exec(`DELETE FROM account_attempt WHERE `+tx.In("id", 1), store.List(recorded))
		return err
	})
}

// slowDown delays an attempt with an email if many others with it have failed, from any address.
// The attempt takes no slot meanwhile.
func (e *SignIns) slowDown(ctx context.Context, email subject) error {
	var failed int
	err := e.db.View(ctx, func(tx *store.Tx) error {
		now, err := tx.NowMS()
		if err != nil {
			return err
		}
		return tx.QueryRow(`SELECT COUNT(*) FROM (SELECT 1 FROM account_attempt WHERE subject = $1 AND at_ms > $2 AND at_ms <= $3
			LIMIT $4) AS failures`, hashText(email.name), now-attemptWindow.Milliseconds(), now, slowAfter+int(slowest/slowStep)).Scan(&failed)
	})
	if err != nil {
		return fmt.Errorf("count attempts to sign in: %w", err)
	}
	if delay := min(time.Duration(failed-slowAfter)*slowStep, slowest); delay > 0 {
		e.wait(ctx, delay)
	}
	return ctx.Err()
}

// recordAttemptTx records one attempt of each subject, or returns a 429 with the time to wait.
// Attempts of a subject wait for each other.
func recordAttemptTx(tx *store.Tx, subjects []subject) (recorded []string, err error) {
	subjects = slices.Clone(subjects)
	slices.SortFunc(subjects, func(a, b subject) int { return slices.Compare([]byte(a.name), []byte(b.name)) })
	for _, s := range subjects {
		if err := tx.Serialize("account_attempt " + s.name); err != nil {
			return nil, err
		}
	}
	now, err := tx.NowMS()
	if err != nil {
		return nil, err
	}
	for _, s := range subjects {
		if err := checkAttemptsTx(tx, s, now); err != nil {
			return nil, err
		}
	}
	for _, s := range subjects {
		id := newID("try_", now)
		if _, err := tx.Exec(`INSERT INTO account_attempt (id, subject, at_ms) VALUES ($1, $2, $3)`, id, hashText(s.name),
			now+s.longer.Milliseconds()); err != nil {
			return nil, fmt.Errorf("note an attempt to sign in: %w", err)
		}
		recorded = append(recorded, id)
	}
	return recorded, nil
}

// checkAttemptsTx returns a 429 if a subject has failed too often.
func checkAttemptsTx(tx *store.Tx, s subject, nowMS int64) error {
	if s.maxCount == 0 {
		return nil
	}
	var at int64
	// Attempts with a future time, after the clock was set back, do not count.
	err := tx.QueryRow(`SELECT at_ms FROM account_attempt WHERE subject = $1 AND at_ms > $2 AND at_ms <= $3
		ORDER BY at_ms DESC LIMIT 1 OFFSET $4`,
		hashText(s.name), nowMS-attemptWindow.Milliseconds(), nowMS+s.longer.Milliseconds(), s.maxCount-1).Scan(&at)
	if errors.Is(err, sql.ErrNoRows) {
		return nil
	}
	if err != nil {
		return fmt.Errorf("count attempts to sign in: %w", err)
	}
	wait := time.Duration(at-nowMS)*time.Millisecond + attemptWindow
	f := fault.New(fault.RateLimitExceeded, "%s Try again in %s.", cmp.Or(s.full, "Too many attempts."), waitText(wait))
	f.RetryAfter = wait
	return f
}

// waitText returns a time to wait for people.
func waitText(d time.Duration) string {
	if n := int(math.Ceil(d.Hours())); n > 2 {
		return fmt.Sprintf("%d hours", n)
	}
	if n := int(math.Ceil(d.Minutes())); n > 1 {
		return fmt.Sprintf("%d minutes", n)
	}
	return "a minute"
}

// SignInsTx reports whether anybody can sign in at all, and whether an operator can.
func SignInsTx(tx *store.Tx) (users, operators bool, err error) {
	err = tx.QueryRow(`SELECT EXISTS (SELECT 1 FROM account_user WHERE disabled = 0),
		EXISTS (SELECT 1 FROM account_user WHERE operator = 1 AND disabled = 0)`).Scan(&users, &operators)
	if err != nil {
		return false, false, fmt.Errorf("look for sign-ins: %w", err)
	}
	return users, operators, nil
}

// sweepEvery is how often expired rows are deleted.
const sweepEvery = 10 * time.Minute

// Run deletes expired sessions, links and attempts, until ctx ends.
func (e *SignIns) Run(ctx context.Context) {
	loop.Run(ctx, loop.Loop{Room: "account", Does: "delete ended sessions", Log: e.log, Period: sweepEvery, Step: e.Sweep})
}

// Sweep deletes expired sessions, links and attempts.
func (e *SignIns) Sweep(ctx context.Context) error {
	return e.db.Update(ctx, func(tx *store.Tx) error {
		now, err := tx.ExpiryMS()
		if err != nil {
			return err
		}
		if err := sweepSessionsTx(tx, now); err != nil {
			return err
		}
		if _, err := tx.Exec(`DELETE FROM account_link WHERE expires_ms <= $1`, now); err != nil {
			return fmt.Errorf("delete links that have run out: %w", err)
		}
		if _, err := tx.Exec(`DELETE FROM account_attempt WHERE at_ms < $1`, now-attemptWindow.Milliseconds()); err != nil {
			return fmt.Errorf("delete attempts to sign in: %w", err)
		}
		return nil
	})
}
