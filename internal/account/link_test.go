package account

import (
	"errors"
	"net/netip"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"tollgate/internal/fault"
	"tollgate/internal/store"
	"tollgate/internal/store/storetest"
)

// linkScene has a user and the sign-ins for the user's links.
type linkScene struct {
	t       *testing.T
	db      *store.DB
	clock   *storetest.Clock
	signIns *SignIns
	user    User
}

var linkAddress = netip.MustParseAddr("192.0.2.1")

// eachLinkScene runs a test with a user without a password, on both databases.
func eachLinkScene(t *testing.T, test func(t *testing.T, l *linkScene)) {
	t.Helper()
	storetest.EachClock(t, func(t *testing.T, db *store.DB, clock *storetest.Clock) {
		a := createAccount(t, db, "a")
		u := createUser(t, db, a.ID, SignIn{Email: "ada@example.com"})
		test(t, &linkScene{t, db, clock, NewSignIns(db, NewPasswords(), nil), u})
	})
}

// make creates a link and returns the link with its token.
func (l *linkScene) make() (link PasswordLink, token string) {
	l.t.Helper()
	link = update(l.t, l.db, func(tx *store.Tx) (m PasswordLink, err error) {
		m, token, err = CreateLinkTx(tx, l.user.ID)
		return m, err
	})
	return link, token
}

func (l *linkScene) use(token, password, code string) error {
	l.t.Helper()
	got, err := l.signIns.Link(l.t.Context(), token, linkAddress)
	if err != nil {
		return err
	}
	return l.signIns.UseLink(l.t.Context(), got, token, password, code, linkAddress)
}

func (l *linkScene) wantInvalid(token, name string) {
	l.t.Helper()
	if got, err := l.signIns.Link(l.t.Context(), token, linkAddress); !errors.Is(err, ErrNoLink) || got != (PasswordLink{}) {
		l.t.Errorf("%s: Link = %+v, %v, want ErrNoLink", name, got, err)
	}
	if err := l.use(token, "another long one", ""); !errors.Is(err, ErrNoLink) {
		l.t.Errorf("%s: using the link returned %v, want ErrNoLink", name, err)
	}
}

func (l *linkScene) change(c UserChange) {
	l.t.Helper()
	l.user = changeUser(l.t, l.db, l.user.ID, c)
}

// wantPassword checks the result of a sign-in with a password.
func (l *linkScene) wantPassword(password string, want error) {
	l.t.Helper()
	if _, err := l.signIns.Password(l.t.Context(), l.user.Email, password, linkAddress); !errors.Is(err, want) {
		l.t.Errorf("sign-in with %q: got the error %v, want %v", password, err, want)
	}
}

func TestLinkLife(t *testing.T) {
	t.Parallel()
	eachLinkScene(t, func(t *testing.T, l *linkScene) {
		if !l.user.NoPassword {
			t.Error("the new user has a password")
		}
		l.wantPassword("", ErrWrongSignIn)
		l.wantPassword("a long password", ErrWrongSignIn)
		link, token := l.make()
		if link.Kind != Invitation || link.User != l.user || link.ExpiresMS != l.clock.Now().UnixMilli()+maxInvitationAge.Milliseconds() {
			t.Errorf("created the link %+v, want an invitation for the user", link)
		}
		if got, err := l.signIns.Link(t.Context(), token, linkAddress); err != nil || got != link {
			t.Errorf("Link = %+v, %v, want %+v", got, err, link)
		}
		wantFault(t, l.use(token, "short", ""), fault.InvalidRequest, "password")
		l.clock.Advance(maxInvitationAge - time.Millisecond)
		if err := l.use(token, "the first password", ""); err != nil {
			t.Fatal(err)
		}
		l.wantPassword("the first password", nil)
		l.wantInvalid(token, "used")

		// Using a reset link ends all sessions, and the wait after failed sign-ins.
		session := openSession(t, l.db, NewSession{Kind: UserSession, User: l.user.ID})
		for range maxEmailAttempts {
			l.wantPassword("a wrong password", ErrWrongSignIn)
		}
		_, err := l.signIns.Password(t.Context(), l.user.Email, "the first password", netip.MustParseAddr("192.0.2.1"))
		wantFault(t, err, fault.RateLimitExceeded, "")
		link, token = l.make()
		if link.Kind != Reset || link.ExpiresMS != l.clock.Now().UnixMilli()+maxResetAge.Milliseconds() || link.User.NoPassword {
			t.Errorf("created the link %+v, want a reset", link)
		}
		if err := l.use(token, "the second password", ""); err != nil {
			t.Fatal(err)
		}
		wantNoSession(t, l.db, UserSession, session, "", "from before the link was used")
		l.wantPassword("the second password", nil)
		l.wantPassword("the first password", ErrWrongSignIn)
	})
}

// TestVoidLinks checks every change that makes a link invalid.
func TestVoidLinks(t *testing.T) {
	t.Parallel()
	eachLinkScene(t, func(t *testing.T, l *linkScene) {
		yes, no, hash := true, false, "$h"
		email, token := "ada@example.com", ""
		l.wantInvalid("", "no token")
		l.wantInvalid(strings.Repeat("A", tokenLength), "unknown token")

		_, first := l.make()
		_, token = l.make()
		l.wantInvalid(first, "replaced")

		disable := func(disabled *bool) {
			update(t, l.db, func(tx *store.Tx) (Account, error) { return ChangeTx(tx, l.user.Account, Patch{Disabled: disabled}) })
		}
		disable(&yes)
		l.wantInvalid(token, "of a disabled account")
		_, err := try(t, l.db, func(tx *store.Tx) (string, error) { _, token, err := CreateLinkTx(tx, l.user.ID); return token, err })
		wantFault(t, err, fault.InvalidRequest, "")
		disable(&no)
		if _, err := l.signIns.Link(t.Context(), token, linkAddress); err != nil {
			t.Error("after enabling the account, Link returned the error", err)
		}

		l.change(UserChange{Disabled: &yes})
		l.wantInvalid(token, "of a disabled user")
		_, err = try(t, l.db, func(tx *store.Tx) (string, error) { _, token, err := CreateLinkTx(tx, l.user.ID); return token, err })
		wantFault(t, err, fault.InvalidRequest, "")
		l.change(UserChange{Disabled: &no})
		l.wantInvalid(token, "of a user who was disabled and enabled again")

		_, token = l.make()
		l.change(UserChange{Email: &email, Role: ptr(Owner)})
		if _, err := l.signIns.Link(t.Context(), token, linkAddress); err != nil {
			t.Error("after setting the same email, Link returned the error", err)
		}
		otherEmail := "other@example.com"
		l.change(UserChange{Email: &otherEmail})
		l.wantInvalid(token, "sent to a former address")

		_, token = l.make()
		l.change(UserChange{PasswordHash: &hash})
		l.wantInvalid(token, "older than the password")

		_, token = l.make()
		l.clock.Advance(maxResetAge)
		l.wantInvalid(token, "expired")
		if err := l.signIns.Sweep(t.Context()); err != nil {
			t.Error(err)
		}
		if remaining := count(t, l.db, `SELECT COUNT(*) FROM account_link`); remaining != 0 {
			t.Errorf("after the sweep there are %d links, want 0", remaining)
		}

		_, token = l.make()
		storetest.Update(t, l.db, func(tx *store.Tx) error { return DeleteUserTx(tx, l.user.ID) })
		l.wantInvalid(token, "of a deleted user")
		if remaining := count(t, l.db, `SELECT COUNT(*) FROM account_link`); remaining != 0 {
			t.Errorf("after the deletion of the user there are %d links, want 0", remaining)
		}
		_, err = try(t, l.db, func(tx *store.Tx) (string, error) { _, token, err := CreateLinkTx(tx, l.user.ID); return token, err })
		wantFault(t, err, fault.NotFound, "")
	})
}

// TestLinkIsStoredAsHash checks that the table has no token, so that its readers cannot use a link.
func TestLinkIsStoredAsHash(t *testing.T) {
	t.Parallel()
	eachLinkScene(t, func(t *testing.T, l *linkScene) {
		_, token := l.make()
		stored := update(t, l.db, func(tx *store.Tx) (stored string, err error) {
			return stored, tx.QueryRow(`SELECT member || ' ' || hash FROM account_link`).Scan(&stored)
		})
		if len(token) != tokenLength || strings.Contains(stored, token) || stored != l.user.ID+" "+hashText(token) {
			t.Errorf("the token %q is stored as %q, want the user's id and the hash of the token", token, stored)
		}
	})
}

// TestLinkIsUsedOnce checks that one of several concurrent uses succeeds.
func TestLinkIsUsedOnce(t *testing.T) {
	t.Parallel()
	eachLinkScene(t, func(t *testing.T, l *linkScene) {
		_, token := l.make()
		var used atomic.Int64
		var all sync.WaitGroup
		for range 4 {
			all.Go(func() {
				switch err := l.use(token, "a long password", ""); {
				case err == nil:
					used.Add(1)
				case !errors.Is(err, ErrNoLink):
					t.Error(err)
				}
			})
		}
		all.Wait()
		if n := used.Load(); n != 1 {
			t.Errorf("the link was used %d times, want 1", n)
		}
	})
}

// TestLinkNeedsTheSecondFactor checks that a link has no effect without the code of the second
// factor, and that a new link does not reset the limit on wrong codes.
func TestLinkNeedsTheSecondFactor(t *testing.T) {
	t.Parallel()
	storetest.EachClock(t, func(t *testing.T, db *store.DB, clock *storetest.Clock) {
		u, secret, recovery := withFactor(t, db, clock)
		l := &linkScene{t, db, clock, NewSignIns(db, NewPasswords(), nil), u}
		_, token := l.make()
		for _, code := range []string{"", "123", codeNow(t, clock, secret, 0)} { // the setup used the last code
			wantFault(t, l.use(token, "a long password", code), fault.InvalidRequest, "code")
		}
		if err := l.use(token, "a long password", codeNow(t, clock, secret, 1)); err != nil {
			t.Fatal(err)
		}
		l.wantPassword("a long password", nil)
		_, token = l.make()
		for range maxCodeAttempts - 3 {
			wantFault(t, l.use(token, "another password", "123"), fault.InvalidRequest, "code")
		}
		wantFault(t, l.use(token, "another password", recovery[0]), fault.RateLimitExceeded, "")
		clock.Advance(attemptWindow)
		if err := l.use(token, "another password", recovery[0]); err != nil {
			t.Error(err)
		}
		// A second factor is also required if it was turned on after Link.
		_, token = l.make()
		link, err := l.signIns.Link(t.Context(), token, linkAddress)
		if err != nil {
			t.Fatal(err)
		}
		link.User.FactorMS = 0
		use := func(tx *store.Tx) (int, error) { return 0, useLinkTx(tx, link, token, "$h", netip.Addr{}) }
		if _, err := try(t, db, use); !errors.Is(err, ErrNoLink) {
			t.Errorf("useLinkTx without a code returned %v, want ErrNoLink", err)
		}
	})
}

// TestLinksAreThrottled checks that an address with many wrong tokens must wait, even with a right
// token.
func TestLinksAreThrottled(t *testing.T) {
	t.Parallel()
	eachLinkScene(t, func(t *testing.T, l *linkScene) {
		_, token := l.make()
		for range 2 * maxAddressAttempts { // valid tokens do not count
			if _, err := l.signIns.Link(t.Context(), token, linkAddress); err != nil {
				t.Fatal(err)
			}
		}
		for range 2 * maxAddressAttempts { // texts of another length do not count
			if _, err := l.signIns.Link(t.Context(), "guess", linkAddress); !errors.Is(err, ErrNoLink) {
				t.Fatal(err)
			}
		}
		for range maxAddressAttempts {
			if _, err := l.signIns.Link(t.Context(), strings.Repeat("A", tokenLength), linkAddress); !errors.Is(err, ErrNoLink) {
				t.Fatal(err)
			}
		}
		_, err := l.signIns.Link(t.Context(), token, linkAddress)
		wantFault(t, err, fault.RateLimitExceeded, "")
		wantFault(t, l.use(token, "a long password", ""), fault.RateLimitExceeded, "")
		if _, err := l.signIns.Link(t.Context(), token, netip.MustParseAddr("192.0.2.2")); err != nil {
			t.Error("Link from another address returned the error", err)
		}
	})
}

// TestNoPasswordIsAValidHash checks that the hash of a user without a password has the usual format
// and cost, so that timing does not reveal the user.
func TestNoPasswordIsAValidHash(t *testing.T) {
	t.Parallel()
	h, err := parsePHC(noPassword)
	if err != nil || h.memoryKiB != argonMemoryKiB || h.passes != argonPasses || h.lanes != argonLanes || len(h.hash) != argonHash ||
		len(h.salt) != argonSalt {
		t.Errorf("parsePHC(noPassword) = %+v, %v, want the parameters of Hash", h, err)
	}
}
