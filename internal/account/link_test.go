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

// linkScene has a user and the sign-ins that check the user's links.
type linkScene struct {
	t     *testing.T
	db    *store.DB
	clock *storetest.Clock
	door  *SignIns
	user  User
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
	got, err := l.door.Link(l.t.Context(), token, linkAddress)
	if err != nil {
		return err
	}
	return l.door.UseLink(l.t.Context(), got, token, password, code, linkAddress)
}

func (l *linkScene) wantInvalid(token, name string) {
	l.t.Helper()
	if got, err := l.door.Link(l.t.Context(), token, linkAddress); !errors.Is(err, ErrNoLink) || got != (PasswordLink{}) {
		l.t.Errorf("%s: the link is valid: %+v, %v", name, got, err)
	}
	if err := l.use(token, "another long one", ""); !errors.Is(err, ErrNoLink) {
		l.t.Errorf("%s: the link was used: %v", name, err)
	}
}

func (l *linkScene) change(c UserChange) {
	l.t.Helper()
	l.user = changeUser(l.t, l.db, l.user.ID, c)
}

// wantPassword checks the result of a sign-in with a password.
func (l *linkScene) wantPassword(password string, want error) {
	l.t.Helper()
	if _, err := l.door.Password(l.t.Context(), l.user.Email, password, linkAddress); !errors.Is(err, want) {
		l.t.Errorf("sign-in with %q: %v, want %v", password, err, want)
	}
}

func TestLinkLife(t *testing.T) {
	t.Parallel()
	eachLinkScene(t, func(t *testing.T, l *linkScene) {
		if !l.user.NoPassword {
			t.Error("the user has a password")
		}
		l.wantPassword("", ErrWrongSignIn)
		l.wantPassword("a long password", ErrWrongSignIn)
		link, token := l.make()
		if link.Kind != Invitation || link.User != l.user || link.ExpiresMS != l.clock.Now().UnixMilli()+invitationMost.Milliseconds() {
			t.Errorf("created %+v", link)
		}
		if got, err := l.door.Link(t.Context(), token, linkAddress); err != nil || got != link {
			t.Errorf("found %+v, %v", got, err)
		}
		wantFault(t, l.use(token, "short", ""), fault.InvalidRequest, "password")
		l.clock.Advance(invitationMost - time.Millisecond)
		if err := l.use(token, "the first password", ""); err != nil {
			t.Fatal(err)
		}
		l.wantPassword("the first password", nil)
		l.wantInvalid(token, "used")

		// Lost: all sessions end, and so does the wait after failed sign-ins.
		session := openSession(t, l.db, NewSession{Kind: UserSession, User: l.user.ID})
		for range attemptsOfEmail {
			l.wantPassword("a wrong password", ErrWrongSignIn)
		}
		_, err := l.door.Password(t.Context(), l.user.Email, "the first password", netip.MustParseAddr("192.0.2.1"))
		wantFault(t, err, fault.RateLimitExceeded, "")
		link, token = l.make()
		if link.Kind != Reset || link.ExpiresMS != l.clock.Now().UnixMilli()+resetMost.Milliseconds() || link.User.NoPassword {
			t.Errorf("created %+v", link)
		}
		if err := l.use(token, "the second password", ""); err != nil {
			t.Fatal(err)
		}
		wantNobody(t, l.db, UserSession, session, "", "from before the link was used")
		l.wantPassword("the second password", nil)
		l.wantPassword("the first password", ErrWrongSignIn)
	})
}

// TestVoidLinks checks everything that makes a link invalid.
func TestVoidLinks(t *testing.T) {
	t.Parallel()
	eachLinkScene(t, func(t *testing.T, l *linkScene) {
		yes, no, hash := true, false, "$h"
		old, token := "ada@example.com", ""
		l.wantInvalid("", "no token")
		l.wantInvalid(strings.Repeat("A", tokenLength), "never made")

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
		if _, err := l.door.Link(t.Context(), token, linkAddress); err != nil {
			t.Error("the account works again:", err)
		}

		l.change(UserChange{Disabled: &yes})
		l.wantInvalid(token, "of a disabled user")
		_, err = try(t, l.db, func(tx *store.Tx) (string, error) { _, token, err := CreateLinkTx(tx, l.user.ID); return token, err })
		wantFault(t, err, fault.InvalidRequest, "")
		l.change(UserChange{Disabled: &no})
		l.wantInvalid(token, "of a user who was disabled since")

		_, token = l.make()
		l.change(UserChange{Email: &old, Operator: &yes})
		if _, err := l.door.Link(t.Context(), token, linkAddress); err != nil {
			t.Error("with the same email:", err)
		}
		other := "other@example.com"
		l.change(UserChange{Email: &other})
		l.wantInvalid(token, "it went to another address")

		_, token = l.make()
		l.change(UserChange{PasswordHash: &hash})
		l.wantInvalid(token, "there is a newer password")

		_, token = l.make()
		l.clock.Advance(resetMost)
		l.wantInvalid(token, "it has run out")
		if err := l.door.Sweep(t.Context()); err != nil {
			t.Error(err)
		}
		if left := count(t, l.db, `SELECT COUNT(*) FROM account_link`); left != 0 {
			t.Errorf("%d links are left after the sweep", left)
		}

		_, token = l.make()
		storetest.Update(t, l.db, func(tx *store.Tx) error { return DeleteUserTx(tx, l.user.ID) })
		l.wantInvalid(token, "its user is deleted")
		if left := count(t, l.db, `SELECT COUNT(*) FROM account_link`); left != 0 {
			t.Errorf("%d links of deleted users", left)
		}
		_, err = try(t, l.db, func(tx *store.Tx) (string, error) { _, token, err := CreateLinkTx(tx, l.user.ID); return token, err })
		wantFault(t, err, fault.NotFound, "")
	})
}

// TestLinkIsStoredAsHash checks that a reader of the table cannot use a link.
func TestLinkIsStoredAsHash(t *testing.T) {
	t.Parallel()
	eachLinkScene(t, func(t *testing.T, l *linkScene) {
		_, token := l.make()
		stored := update(t, l.db, func(tx *store.Tx) (stored string, err error) {
			return stored, tx.QueryRow(`SELECT member || ' ' || hash FROM account_link`).Scan(&stored)
		})
		if len(token) != tokenLength || strings.Contains(stored, token) || stored != l.user.ID+" "+hashText(token) {
			t.Errorf("%q is stored as %q", token, stored)
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

// TestLinkWantsTheSecondFactor checks that a link has no effect without the code of the second
// factor, and that a new link does not reset the limit on wrong codes.
func TestLinkWantsTheSecondFactor(t *testing.T) {
	t.Parallel()
	storetest.EachClock(t, func(t *testing.T, db *store.DB, clock *storetest.Clock) {
		u, secret, recovery := withFactor(t, db, clock)
		l := &linkScene{t, db, clock, NewSignIns(db, NewPasswords(), nil), u}
		_, token := l.make()
		for _, code := range []string{"", "123", codeNow(t, clock, secret, 0)} { // the last was used when it was set up
			wantFault(t, l.use(token, "a long password", code), fault.InvalidRequest, "code")
		}
		if err := l.use(token, "a long password", codeNow(t, clock, secret, 1)); err != nil {
			t.Fatal(err)
		}
		l.wantPassword("a long password", nil)
		_, token = l.make()
		for range attemptsOfCode - 3 {
			wantFault(t, l.use(token, "another password", "123"), fault.InvalidRequest, "code")
		}
		wantFault(t, l.use(token, "another password", recovery[0]), fault.RateLimitExceeded, "")
		clock.Advance(attemptWindow)
		if err := l.use(token, "another password", recovery[0]); err != nil {
			t.Error(err)
		}
		// A second factor turned on since the form was opened counts too.
		_, token = l.make()
		before, err := l.door.Link(t.Context(), token, linkAddress)
		if err != nil {
			t.Fatal(err)
		}
		before.User.FactorMS = 0
		use := func(tx *store.Tx) (int, error) { return 0, useLinkTx(tx, before, token, "$h", netip.Addr{}) }
		if _, err := try(t, db, use); !errors.Is(err, ErrNoLink) {
			t.Error("used without a code:", err)
		}
	})
}

// TestLinksAreThrottled checks that an address with many wrong tokens must wait, even with a right
// token.
func TestLinksAreThrottled(t *testing.T) {
	t.Parallel()
	eachLinkScene(t, func(t *testing.T, l *linkScene) {
		_, token := l.make()
		for range 2 * attemptsOfAddress { // good ones do not count
			if _, err := l.door.Link(t.Context(), token, linkAddress); err != nil {
				t.Fatal(err)
			}
		}
		for range 2 * attemptsOfAddress { // texts that cannot be tokens do not count
			if _, err := l.door.Link(t.Context(), "guess", linkAddress); !errors.Is(err, ErrNoLink) {
				t.Fatal(err)
			}
		}
		for range attemptsOfAddress {
			if _, err := l.door.Link(t.Context(), strings.Repeat("A", tokenLength), linkAddress); !errors.Is(err, ErrNoLink) {
				t.Fatal(err)
			}
		}
		_, err := l.door.Link(t.Context(), token, linkAddress)
		wantFault(t, err, fault.RateLimitExceeded, "")
		wantFault(t, l.use(token, "a long password", ""), fault.RateLimitExceeded, "")
		if _, err := l.door.Link(t.Context(), token, netip.MustParseAddr("192.0.2.2")); err != nil {
			t.Error("another address:", err)
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
		t.Errorf("%+v, %v", h, err)
	}
}
