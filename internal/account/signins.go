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
	attemptWindow       = 15 * time.Minute
	maxEmailAttempts    = 10 // with an email from one network, or from one known browser of the user
	maxSiteAttempts     = 50 // with an email from an IPv6 network of 48 bits
	maxAddressAttempts  = 30 // with any email from an IPv4 address or an IPv6 network of 64 bits
	maxOperatorAttempts = 10 // at the operator's token from an address
	maxCodeAttempts     = 5  // at a user's second factor, after the password
)

// After delayAfter failed attempts with an email in attemptWindow, each further failure delays the
// next attempt by another delayStep, up to maxDelay. Attempts of known browsers are not counted or
// delayed.
const (
	delayAfter = 30
	delayStep  = 100 * time.Millisecond
	maxDelay   = 5 * time.Second
)

// maxConcurrent bounds the attempts in progress; Passwords hashes two at a time. A single address
// has a smaller bound, so that it cannot block all users. Attempts above the smaller bound wait.
// Attempts at the operator's token, which need no hashing, and attempts of known browsers have
// maxConcurrent slots of their own, so that other attempts cannot block them.
const (
	maxConcurrent            = 22
	maxConcurrentFromAddress = 4
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
	signUps     chan struct{} // a slot for each sign-up
	perAddress  *limit.Semaphores[netip.Prefix]
	wait        func(ctx context.Context, d time.Duration)
}

// NewSignIns returns a SignIns with users and attempts in db. The caller must call Run. If log is
// nil, nothing is logged.
func NewSignIns(db *store.DB, passwords *Passwords, log *slog.Logger) *SignIns {
	if log == nil {
		log = slog.New(slog.DiscardHandler)
	}
	salt, hash := make([]byte, argonSalt), make([]byte, argonHash)
	rand.Read(salt) // never fails (crypto/rand)
	rand.Read(hash)
	return &SignIns{db: db, passwords: passwords, log: log, unknownHash: phcText(salt, hash), slots: make(chan struct{}, maxConcurrent),
		tokens: make(chan struct{}, maxConcurrent), browsers: make(chan struct{}, maxConcurrent),
		signUps:    make(chan struct{}, maxSignUps),
		perAddress: limit.NewSemaphores[netip.Prefix](maxConcurrentFromAddress),
		wait:       func(ctx context.Context, d time.Duration) { loop.Sleep(ctx, d) }}
}

// Password returns the user with an email and a password. It takes the same time whether or not the
// email is known. marks are the browser's marks (MarkBrowserTx). If the user has signed in with the
// browser before, failed attempts count for that browser only, so that nobody else can lock the
// browser out. Errors: ErrWrongSignIn; 429 with the time to wait after too many failures, before any
// hashing; 503 if too many attempts are in progress.
func (s *SignIns) Password(ctx context.Context, email, password string, addr netip.Addr, marks ...string) (User, error) {
	if canonical, err := readEmail(email); err == nil {
		email = canonical
	}
	browser, err := s.markedBrowser(ctx, email, marks)
	if err != nil {
		return User{}, err
	}
	slots, subjects := s.browsers, []subject{{name: "browser " + browser, maxCount: maxEmailAttempts}}
	if browser == "" {
		slots, subjects = s.slots, append(subjectsOf(email, addr), addressSubject(addr, maxAddressAttempts))
		if err := s.slowDown(ctx, subjects[0]); err != nil {
			return User{}, err
		}
	}
	var user User
	err = s.attemptIn(ctx, slots, addr, subjects, func() (bool, error) {
		u, hash, err := s.find(ctx, email)
		if err != nil {
			return false, err
		}
		matches, err := s.passwords.Verify(ctx, hash, password)
		user = u
		return matches && u.ID != "" && !u.Disabled, err
	})
	if err != nil {
		return User{}, err
	}
	return user, nil
}

// Confirm checks the password of a signed-in user before an action that needs the password again.
// Errors as for Password.
func (s *SignIns) Confirm(ctx context.Context, user User, password string, addr netip.Addr, marks ...string) error {
	current, err := s.Password(ctx, user.Email, password, addr, marks...)
	if err == nil && current.ID != user.ID { // the email now belongs to another user
		return ErrWrongSignIn
	}
	return err
}

// Token limits the sign-ins by the operator's token. matches is the result of comparing the token.
// Errors as for Password.
func (s *SignIns) Token(ctx context.Context, matches bool, addr netip.Addr) error {
	operator := addressSubject(addr, maxOperatorAttempts)
	operator.name = "operator " + operator.name
	return s.attemptIn(ctx, s.tokens, addr, []subject{operator}, func() (bool, error) { return matches, nil })
}

// find returns a user by email with the hash of the password. For an unknown email it returns the
// zero User and unknownHash.
func (s *SignIns) find(ctx context.Context, email string) (u User, hash string, err error) {
	err = s.db.View(ctx, func(tx *store.Tx) error {
		err := tx.QueryRow(`SELECT `+userColumns+`, password FROM account_user WHERE email = $1`, email).
			Scan(append(u.columns(), &hash)...)
		if errors.Is(err, sql.ErrNoRows) {
			u, hash, err = User{}, s.unknownHash, nil
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

	// extraWindow extends the time window beyond attemptWindow. Attempts are stored with a time that
	// is later by extraWindow, so that Sweep can ignore extraWindow.
	extraWindow time.Duration
	message     string // beginning of the message at the limit, before the time to wait; default: Too many attempts.
}

// subjectsOf returns the subjects of an email in canonical form: for all addresses, and for the
// networks of addr.
func subjectsOf(email string, addr netip.Addr) []subject {
	subjects := []subject{{name: "email " + email},
		{name: "email " + email + " from " + limit.Network(addr).String(), maxCount: maxEmailAttempts}}
	if site, ok := limit.Site(addr); ok {
		subjects = append(subjects, subject{name: "email " + email + " from " + site.String(), maxCount: maxSiteAttempts})
	}
	return subjects
}

func addressSubject(addr netip.Addr, maxCount int) subject {
	return subject{name: "address " + limit.Network(addr).String(), maxCount: maxCount}
}

// attempt makes a sign-in attempt; check reports whether the attempt succeeds. The attempt is recorded
// as failed before check runs, so that concurrent attempts cannot exceed the limit, and the record
// is deleted after a success.
func (s *SignIns) attempt(ctx context.Context, addr netip.Addr, subjects []subject, check func() (bool, error)) error {
	return s.attemptIn(ctx, s.slots, addr, subjects, check)
}

// attemptIn is attempt with the given slots.
func (s *SignIns) attemptIn(
	ctx context.Context, slots chan struct{}, addr netip.Addr, subjects []subject, check func() (bool, error),
) error {
	leave, err := s.enter(ctx, slots, addr)
	if err != nil {
		return err
	}
	defer leave()
	ids, err := store.Write(ctx, s.db, func(tx *store.Tx) ([]string, error) { return recordAttemptTx(tx, subjects) })
	if err != nil {
		return err
	}
	usable, err := check()
	if err != nil {
		return err
	}
	if !usable {
		return ErrWrongSignIn
	}
	return s.db.Update(ctx, func(tx *store.Tx) error {
		_, err := tx.Exec(`DELETE FROM account_attempt WHERE `+tx.In("id", 1), store.List(ids))
		return err
	})
}

// enter takes a slot, and one of the address's own slots. The caller must call leave.
func (s *SignIns) enter(ctx context.Context, slots chan struct{}, addr netip.Addr) (leave func(), err error) {
	busy := fault.New(fault.ServiceUnavailable, "Too many people are signing in at this moment. Try again in a few seconds.")
	busy.RetryAfter = 5 * time.Second
	release, err := s.perAddress.Acquire(ctx, limit.Network(addr))
	if err != nil {
		return nil, busy
	}
	select {
	case slots <- struct{}{}:
		return func() { <-slots; release() }, nil
	default:
		release()
		return nil, busy
	}
}

// slowDown delays an attempt with an email if many attempts with that email have failed, from any
// address. The delayed attempt takes no slot.
func (s *SignIns) slowDown(ctx context.Context, email subject) error {
	var failed int
	err := s.db.View(ctx, func(tx *store.Tx) error {
		now, err := tx.NowMS()
		if err != nil {
			return err
		}
		return tx.QueryRow(`SELECT COUNT(*) FROM (SELECT 1 FROM account_attempt WHERE subject = $1 AND at_ms > $2 AND at_ms <= $3
			LIMIT $4) AS failures`, hashText(email.name), now-attemptWindow.Milliseconds(), now, delayAfter+int(maxDelay/delayStep)).Scan(&failed)
	})
	if err != nil {
		return fmt.Errorf("count attempts to sign in: %w", err)
	}
	if delay := min(time.Duration(failed-delayAfter)*delayStep, maxDelay); delay > 0 {
		s.wait(ctx, delay)
	}
	return ctx.Err()
}

// recordAttemptTx records one attempt of each subject and returns the ids of the records, or returns
// a 429 with the time to wait. Concurrent attempts of a subject wait for each other.
func recordAttemptTx(tx *store.Tx, subjects []subject) (ids []string, err error) {
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
			now+s.extraWindow.Milliseconds()); err != nil {
			return nil, fmt.Errorf("note an attempt to sign in: %w", err)
		}
		ids = append(ids, id)
	}
	return ids, nil
}

// checkAttemptsTx returns a 429 if the attempts of a subject have failed too often.
func checkAttemptsTx(tx *store.Tx, s subject, nowMS int64) error {
	if s.maxCount == 0 {
		return nil
	}
	var atMS int64
	// Attempts with a future time, after the clock was set back, do not count.
	err := tx.QueryRow(`SELECT at_ms FROM account_attempt WHERE subject = $1 AND at_ms > $2 AND at_ms <= $3
		ORDER BY at_ms DESC LIMIT 1 OFFSET $4`,
		hashText(s.name), nowMS-attemptWindow.Milliseconds(), nowMS+s.extraWindow.Milliseconds(), s.maxCount-1).Scan(&atMS)
	if errors.Is(err, sql.ErrNoRows) {
		return nil
	}
	if err != nil {
		return fmt.Errorf("count attempts to sign in: %w", err)
	}
	wait := time.Duration(atMS-nowMS)*time.Millisecond + attemptWindow
	f := fault.New(fault.RateLimitExceeded, "%s Try again in %s.", cmp.Or(s.message, "Too many attempts."), waitText(wait))
	f.RetryAfter = wait
	return f
}

// waitText formats a time to wait for people.
func waitText(d time.Duration) string {
	if n := int(math.Ceil(d.Hours())); n > 2 {
		return fmt.Sprintf("%d hours", n)
	}
	if n := int(math.Ceil(d.Minutes())); n > 1 {
		return fmt.Sprintf("%d minutes", n)
	}
	return "a minute"
}

// SignInsTx reports whether any user can sign in, and whether any operator can.
func SignInsTx(tx *store.Tx) (users, operators bool, err error) {
	err = tx.QueryRow(`SELECT EXISTS (SELECT 1 FROM account_user WHERE disabled = 0),
		EXISTS (SELECT 1 FROM account_user WHERE role <> '' AND disabled = 0)`).Scan(&users, &operators)
	if err != nil {
		return false, false, fmt.Errorf("look for sign-ins: %w", err)
	}
	return users, operators, nil
}

// sweepPeriod is the time between two sweeps.
const sweepPeriod = 10 * time.Minute

// Run calls Sweep every sweepPeriod until ctx ends.
func (s *SignIns) Run(ctx context.Context) {
	loop.Run(ctx, loop.Loop{Room: "account", Does: "delete ended sessions", Log: s.log, Period: sweepPeriod, Step: s.Sweep})
}

// Sweep deletes expired sessions, links, new addresses, sign-ups, flows and attempts.
func (s *SignIns) Sweep(ctx context.Context) error {
	return s.db.Update(ctx, func(tx *store.Tx) error {
		now, err := tx.ExpiryMS()
		if err != nil {
			return err
		}
		if err := sweepSessionsTx(tx, now); err != nil {
			return err
		}
		if _, err := tx.Exec(`DELETE FROM account_link WHERE expires_ms <= $1`, now); err != nil {
			return fmt.Errorf("delete expired links: %w", err)
		}
		if _, err := tx.Exec(`DELETE FROM account_address WHERE expires_ms <= $1`, now); err != nil {
			return fmt.Errorf("delete expired new addresses: %w", err)
		}
		if _, err := tx.Exec(`DELETE FROM account_signup WHERE expires_ms <= $1`, now); err != nil {
			return fmt.Errorf("delete expired sign-ups: %w", err)
		}
		if _, err := tx.Exec(`DELETE FROM account_flow WHERE expires_ms <= $1`, now); err != nil {
			return fmt.Errorf("delete expired visits to providers: %w", err)
		}
		if _, err := tx.Exec(`DELETE FROM account_attempt WHERE at_ms < $1`, now-attemptWindow.Milliseconds()); err != nil {
			return fmt.Errorf("delete attempts to sign in: %w", err)
		}
		return nil
	})
}
