package account

import (
	"context"
	"errors"
	"net/netip"
	"slices"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"tollgate/internal/fault"
	"tollgate/internal/store"
	"tollgate/internal/store/storetest"
)

// signedIn returns the session of a value, or ErrNoSession.
func findSession(t *testing.T, db *store.DB, kind SessionKind, value, token string) (s ConsoleSession, stale bool, err error) {
	t.Helper()
	viewed := db.View(context.Background(), func(tx *store.Tx) error {
		s, stale, err = SessionTx(tx, kind, value, SessionSettings{OperatorToken: token, TermsVersion: "2"})
		return nil
	})
	return s, stale, errors.Join(viewed, err)
}

func wantNoSession(t *testing.T, db *store.DB, kind SessionKind, value, token, name string) {
	t.Helper()
	if s, _, err := findSession(t, db, kind, value, token); !errors.Is(err, ErrNoSession) {
		t.Errorf("%s: got the session %+v, %v, want ErrNoSession", name, s, err)
	}
}

func TestSessionLife(t *testing.T) {
	t.Parallel()
	storetest.EachClock(t, func(t *testing.T, db *store.DB, clock *storetest.Clock) {
		a := createAccount(t, db, "a")
		u := createUser(t, db, a.ID, SignIn{Email: "a@example.com", PasswordHash: "$h", Role: Owner})
		open := func(n NewSession) string {
			return openSession(t, db, n)
		}
		user := NewSession{Kind: UserSession, User: u.ID, Address: "192.0.2.1", Agent: strings.Repeat("é\x00", 200)}
		first := open(user)
		if len(first) != 43 || first == open(user) {
			t.Errorf("the value %q does not have 43 random characters", first)
		}
		s, stale, err := findSession(t, db, UserSession, first, "")
		if err != nil || stale || s.User != u || s.Address != "192.0.2.1" || len(s.Agent) > maxAgent || strings.ContainsRune(s.Agent, 0) {
			t.Errorf("got the session %+v, stale %v, %v, want a fresh session with a short User-Agent", s, stale, err)
		}
		wantNoSession(t, db, OperatorSession, first, "", "a user's session on the operator's pages")
		wantNoSession(t, db, UserSession, s.ID, "", "the id instead of the value")
		wantNoSession(t, db, UserSession, hashText(first), "", "the hash instead of the value")

		clock.Advance(touchPeriod)
		if _, stale, _ = findSession(t, db, UserSession, first, ""); !stale {
			t.Error("the session is not stale after five minutes")
		}
		storetest.Update(t, db, func(tx *store.Tx) error { return TouchSessionTx(tx, s.ID) })
		clock.Advance(maxUserIdle - time.Millisecond)
		if _, _, err = findSession(t, db, UserSession, first, ""); err != nil {
			t.Error("a session used just under 14 days ago:", err)
		}
		clock.Advance(time.Millisecond)
		wantNoSession(t, db, UserSession, first, "", "idle for 14 days")

		dailyUsed := open(user)
		s, _, _ = findSession(t, db, UserSession, dailyUsed, "")
		for range 29 {
			clock.Advance(24 * time.Hour)
			storetest.Update(t, db, func(tx *store.Tx) error { return TouchSessionTx(tx, s.ID) })
		}
		if _, _, err = findSession(t, db, UserSession, dailyUsed, ""); err != nil {
			t.Error("a session used daily for 29 days:", err)
		}
		clock.Advance(24 * time.Hour)
		wantNoSession(t, db, UserSession, dailyUsed, "", "30 days old")

		operator := open(NewSession{Kind: OperatorSession, User: u.ID})
		byToken := open(NewSession{Kind: OperatorSession, Token: "secret"})
		if s, _, err = findSession(t, db, OperatorSession, byToken, "secret"); err != nil || s.User.ID != "" {
			t.Errorf("got the session by the token %+v, %v, want one without a user", s, err)
		}
		wantNoSession(t, db, OperatorSession, byToken, "changed", "after a change of the token")
		wantNoSession(t, db, OperatorSession, byToken, "", "after the removal of the token")
		wantNoSession(t, db, UserSession, operator, "", "an operator's session on a user's pages")
		clock.Advance(maxOperatorIdle)
		wantNoSession(t, db, OperatorSession, operator, "", "an operator's session idle for 12 hours")

		// A new password and disabling end all sessions of the user.
		yes, no, hash := true, false, "$new"
		for name, change := range map[string]UserChange{"a new password": {PasswordHash: &hash}, "disabled": {Disabled: &yes}} {
			value := open(user)
			changeUser(t, db, u.ID, change)
			changeUser(t, db, u.ID, UserChange{Disabled: &no})
			wantNoSession(t, db, UserSession, value, "", name)
		}
		operator = open(NewSession{Kind: OperatorSession, User: u.ID})
		changeUser(t, db, u.ID, UserChange{Role: ptr(OperatorRole(""))})
		wantNoSession(t, db, OperatorSession, operator, "", "no operator any more")

		firstOfTwo, secondOfTwo := open(user), open(user)
		list := listSessions(t, db, u.ID)
		s, _, _ = findSession(t, db, UserSession, firstOfTwo, "")
		if len(list) != 3 || !slices.ContainsFunc(list, func(l ConsoleSession) bool { return l.ID == s.ID }) {
			t.Errorf("got the sessions %+v, want three including %s", list, s.ID)
		}
		if _, err := try(t, db, func(tx *store.Tx) (int, error) { return 0, EndSessionTx(tx, "user_other", s.ID) }); err == nil {
			t.Error("another user ended the session")
		}
		storetest.Update(t, db, func(tx *store.Tx) error { return EndSessionTx(tx, u.ID, s.ID) })
		wantNoSession(t, db, UserSession, firstOfTwo, "", "ended")
		if _, _, err = findSession(t, db, UserSession, secondOfTwo, ""); err != nil {
			t.Error("after ending one session, another session of the user:", err)
		}
		storetest.Update(t, db, func(tx *store.Tx) error { return DeleteUserTx(tx, u.ID) })
		wantNoSession(t, db, UserSession, secondOfTwo, "", "a session of a deleted user")
	})
}

// TestSessionsOfAUserAreBounded checks that one session too many ends the oldest of its kind, and
// no session of another user.
func TestSessionsOfAUserAreBounded(t *testing.T) {
	t.Parallel()
	storetest.EachClock(t, func(t *testing.T, db *store.DB, clock *storetest.Clock) {
		a := createAccount(t, db, "a")
		user := func(email string) string {
			return createUser(t, db, a.ID, SignIn{Email: email, PasswordHash: "$h", Role: Owner}).ID
		}
		open := func(user string, kind SessionKind) (value string) {
			clock.Advance(time.Millisecond)
			return update(t, db, func(tx *store.Tx) (value string, err error) {
				_, value, err = OpenSessionTx(tx, NewSession{Kind: kind, User: user})
				return value, err
			})
		}
		// fill adds n open sessions, each newer than those before.
		fill := func(user string, kind SessionKind, n int) {
			clock.Advance(time.Millisecond)
			update(t, db, func(tx *store.Tx) (int64, error) {
				now, err := tx.NowMS()
				if err != nil {
					return 0, err
				}
				return tx.Exec(`INSERT INTO account_session (hash, id, kind, member, token, address, agent, created_ms, seen_ms)
					WITH RECURSIVE n (i) AS (SELECT CAST(1 AS BIGINT) UNION ALL SELECT i + 1 FROM n WHERE i < $5)
					SELECT $1 || CAST(i AS TEXT), $1 || CAST(100000 + i AS TEXT), $2, $3, '', '', '', $4, $4 FROM n`,
					newID("sess_", now), string(kind), user, now, n)
			})
		}
		u, colleague := user("u@example.com"), user("c@example.com")
		oldest, second := open(u, UserSession), open(u, UserSession)
		want := map[string]SessionKind{second: UserSession, open(colleague, UserSession): UserSession,
			open(u, OperatorSession): OperatorSession}
		fill(u, UserSession.Halfway(), maxSessions+1)
		fill(u, UserSession, maxSessions-2)
		if _, _, err := findSession(t, db, UserSession, oldest, ""); err != nil {
			t.Error("the oldest of 1000 sessions:", err)
		}
		newest := open(u, UserSession)
		wantNoSession(t, db, UserSession, oldest, "", "the oldest of 1001 sessions")
		want[newest] = UserSession
		for value, kind := range want {
			if _, _, err := findSession(t, db, kind, value, ""); err != nil {
				t.Errorf("another session of kind %s: %v", kind, err)
			}
		}
	})
}

func TestSweepDeletesExpiredRows(t *testing.T) {
	t.Parallel()
	storetest.EachClock(t, func(t *testing.T, db *store.DB, clock *storetest.Clock) {
		e := NewSignIns(db, NewPasswords(), nil)
		rows := func() int {
			return count(t, db, `SELECT (SELECT COUNT(*) FROM account_session) + (SELECT COUNT(*) FROM account_attempt)`)
		}
		openSession(t, db, NewSession{Kind: OperatorSession, Token: "x"})
		if err := e.Token(t.Context(), false, netip.Addr{}); !errors.Is(err, ErrWrongSignIn) {
			t.Fatal(err)
		}
		for _, step := range []struct {
			advance  time.Duration
			wantRows int
		}{{0, 2}, {attemptWindow + time.Second, 1}, {maxUserIdle, 0}} {
			clock.Advance(step.advance)
			if err := e.Sweep(t.Context()); err != nil {
				t.Fatal(err)
			}
			if n := rows(); n != step.wantRows {
				t.Errorf("after another %s there are %d rows, want %d", step.advance, n, step.wantRows)
			}
		}
	})
}

func TestPasswordAndConfirm(t *testing.T) {
	t.Parallel()
	storetest.EachClock(t, func(t *testing.T, db *store.DB, clock *storetest.Clock) {
		passwords := NewPasswords()
		hash, err := passwords.Hash(t.Context(), "right horse")
		if err != nil {
			t.Fatal(err)
		}
		a := createAccount(t, db, "a")
		u := createUser(t, db, a.ID, SignIn{Email: "a@example.com", PasswordHash: hash})
		disabled := createUser(t, db, a.ID, SignIn{Email: "off@example.com", PasswordHash: hash, Disabled: true})
		e := NewSignIns(db, passwords, nil)
		alice, bob := netip.MustParseAddr("192.0.2.1"), netip.MustParseAddr("192.0.2.2")
		for range maxEmailAttempts + 2 { // a success does not count as a failure
			if got, err := e.Password(t.Context(), " A@Example.com ", "right horse", alice); err != nil || got != u {
				t.Fatalf("Password with the right password = %+v, %v, want %+v", got, err, u)
			}
		}
		for _, wrong := range [][2]string{
			{"a@example.com", "wrong horse"}, {disabled.Email, "right horse"}, {"b@example.com", "right horse"}, {"", ""},
		} {
			if got, err := e.Password(t.Context(), wrong[0], wrong[1], bob); !errors.Is(err, ErrWrongSignIn) || got.ID != "" {
				t.Errorf("Password(%q) = %+v, %v, want ErrWrongSignIn", wrong, got, err)
			}
		}
		for range maxEmailAttempts - 1 {
			_, _ = e.Password(t.Context(), "a@example.com", "wrong horse", bob)
		}
		_, err = e.Password(t.Context(), "a@example.com", "right horse", bob)
		wantFault(t, err, fault.RateLimitExceeded, "")
		if f := fault.Of(err); f.RetryAfter != attemptWindow || f.Message() != "Too many attempts. Try again in 15 minutes." {
			t.Errorf("got the message %q and the wait %s, want 15 minutes", f.Message(), f.RetryAfter)
		}
		clock.Advance(attemptWindow)
		if _, err := e.Password(t.Context(), "a@example.com", "right horse", alice); err != nil {
			t.Error("15 minutes later:", err)
		}
		if err := e.Confirm(t.Context(), u, "right horse", alice); err != nil {
			t.Error(err)
		}
	})
}

// TestAttemptsAreCountedOverAllNodes checks that several nodes together allow no more concurrent
// attempts from a network than the limit.
func TestAttemptsAreCountedOverAllNodes(t *testing.T) {
	t.Parallel()
	storetest.EachClock(t, func(t *testing.T, db *store.DB, clock *storetest.Clock) {
		nodes := []*SignIns{NewSignIns(db, NewPasswords(), nil), NewSignIns(db, NewPasswords(), nil)}
		var checked atomic.Int64
		var all sync.WaitGroup
		for i := range 4 * maxOperatorAttempts {
			all.Go(func() {
				err := nodes[i%2].Token(context.Background(), false, netip.MustParseAddr("2001:db8::1"))
				if errors.Is(err, ErrWrongSignIn) {
					checked.Add(1)
				}
			})
		}
		all.Wait()
		if n := checked.Load(); n != maxOperatorAttempts {
			t.Errorf("%d attempts were checked, want %d", n, maxOperatorAttempts)
		}
		err := nodes[0].Token(t.Context(), true, netip.MustParseAddr("2001:db8::ffff:1"))
		wantFault(t, err, fault.RateLimitExceeded, "")
		if err := nodes[0].Token(t.Context(), true, netip.MustParseAddr("2001:db8:0:1::1")); err != nil {
			t.Error("an attempt from another network:", err)
		}
	})
}

// TestOneAddressCannotTakeAllSlots checks that attempts of other addresses get a slot, even if many
// attempts of one address run or wait.
func TestOneAddressCannotTakeAllSlots(t *testing.T) {
	t.Parallel()
	storetest.Each(t, func(t *testing.T, db *store.DB) {
		e := NewSignIns(db, NewPasswords(), nil)
		alice, bob := netip.MustParseAddr("192.0.2.1"), netip.MustParseAddr("192.0.2.2")
		checking, release := make(chan struct{}, 2*maxConcurrent), make(chan struct{})
		var attempts sync.WaitGroup
		for i := range 2 * maxConcurrent {
			attempts.Go(func() {
				if err := e.attempt(t.Context(), alice, subjectsOf(strconv.Itoa(i), alice), func() (bool, error) {
					checking <- struct{}{}
					<-release
					return true, nil
				}); err != nil {
					t.Error(err)
				}
			})
		}
		for range maxConcurrentFromAddress {
			<-checking
		}
		if err := e.Token(t.Context(), true, bob); err != nil {
			t.Error("an attempt from another address:", err)
		}
		if n := len(checking); n > 0 {
			t.Errorf("%d more attempts of one address are in progress, want 0", n)
		}
		close(release)
		attempts.Wait()
	})
}

func TestSignInsTx(t *testing.T) {
	t.Parallel()
	storetest.Each(t, func(t *testing.T, db *store.DB) {
		a := createAccount(t, db, "a")
		signIns := func() [2]bool {
			return update(t, db, func(tx *store.Tx) ([2]bool, error) {
				users, operators, err := SignInsTx(tx)
				return [2]bool{users, operators}, err
			})
		}
		if got := signIns(); got != [2]bool{} {
			t.Errorf("without users: SignInsTx = %v, want false and false", got)
		}
		add := func(s SignIn) { createUser(t, db, a.ID, s) }
		add(SignIn{Email: "a@example.com", PasswordHash: "$h", Role: Owner, Disabled: true})
		if got := signIns(); got != [2]bool{} {
			t.Errorf("with a disabled user: SignInsTx = %v, want false and false", got)
		}
		add(SignIn{Email: "b@example.com", PasswordHash: "$h"})
		if got := signIns(); got != [2]bool{true, false} {
			t.Errorf("with a user: SignInsTx = %v, want true and false", got)
		}
		add(SignIn{Email: "c@example.com", PasswordHash: "$h", Role: Owner})
		if got := signIns(); got != [2]bool{true, true} {
			t.Errorf("with an operator: SignInsTx = %v, want true and true", got)
		}
	})
}

// TestOperatorTokenHasItsOwnSlots checks that the operator's token works while password sign-ins
// take every slot.
func TestOperatorTokenHasItsOwnSlots(t *testing.T) {
	t.Parallel()
	storetest.Each(t, func(t *testing.T, db *store.DB) {
		e := NewSignIns(db, NewPasswords(), nil)
		for range maxConcurrent {
			e.slots <- struct{}{}
		}
		addr := netip.MustParseAddr("192.0.2.7")
		if _, err := e.Password(t.Context(), "ada@example.com", "right horse", addr); fault.Of(err).Code != fault.ServiceUnavailable {
			t.Errorf("Password without a slot returned %v, want a 503", err)
		}
		if err := e.Token(t.Context(), true, addr); err != nil {
			t.Errorf("Token with the right token returned %v", err)
		}
		if err := e.Token(t.Context(), false, addr); !errors.Is(err, ErrWrongSignIn) {
			t.Errorf("Token with a wrong token returned %v, want ErrWrongSignIn", err)
		}
	})
}
