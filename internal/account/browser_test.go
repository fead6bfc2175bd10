package account

import (
	"context"
	"errors"
	"fmt"
	"net/netip"
	"strings"
	"testing"
	"time"

	"tollgate/internal/fault"
	"tollgate/internal/store"
	"tollgate/internal/store/storetest"
)

// signInScene has a user, ada@example.com, for one test.
type signInScene struct {
	*SignIns
	t     *testing.T
	clock *storetest.Clock
	user  User
	waits []time.Duration
}

const rightPassword = "right horse"

func eachSignInScene(t *testing.T, test func(g *signInScene)) {
	t.Helper()
	storetest.EachClock(t, func(t *testing.T, db *store.DB, clock *storetest.Clock) {
		passwords := NewPasswords()
		g := &signInScene{SignIns: NewSignIns(db, passwords, nil), t: t, clock: clock}
		g.wait = func(_ context.Context, d time.Duration) { g.waits = append(g.waits, d) }
		a := createAccount(t, db, "a")
		g.user = g.add(a.ID, "ada@example.com")
		test(g)
	})
}

func (s *signInScene) add(account, email string) User {
	s.t.Helper()
	hash, err := s.passwords.Hash(s.t.Context(), rightPassword)
	if err != nil {
		s.t.Fatal(err)
	}
	return createUser(s.t, s.db, account, SignIn{Email: email, PasswordHash: hash})
}

func (s *signInScene) mark(user string) string {
	s.t.Helper()
	return update(s.t, s.db, func(tx *store.Tx) (string, error) { return MarkBrowserTx(tx, user) })
}

// fill records n failed attempts as Password would, without hashing, each in its own transaction.
func (s *signInScene) fill(n int, email string, addr func(i int) string) {
	s.t.Helper()
	for i := range n {
		client := netip.MustParseAddr(addr(i))
		update(s.t, s.db, func(tx *store.Tx) ([]string, error) {
			return recordAttemptTx(tx, append(subjectsOf(email, client), addressSubject(client, maxAddressAttempts)))
		})
	}
}

// checkAttempt checks that an attempt with the right password succeeds, or gets a 429 if want is
// false.
func (s *signInScene) checkAttempt(want bool, name, email, addr string, marks ...string) {
	s.t.Helper()
	_, err := s.Password(s.t.Context(), email, rightPassword, netip.MustParseAddr(addr), marks...)
	if want && err != nil || !want && (err == nil || fault.Of(err).Code != fault.RateLimitExceeded) {
		s.t.Errorf("%s: got the error %v, want success %v", name, err, want)
	}
}

// TestFailuresWithAnEmailCountByNetwork checks that failures with an email lock out only the client's
// network.
func TestFailuresWithAnEmailCountByNetwork(t *testing.T) {
	t.Parallel()
	eachSignInScene(t, func(g *signInScene) {
		const ada = "ada@example.com"
		g.fill(10, ada, func(int) string { return "192.0.2.1" })
		g.fill(10, ada, func(int) string { return "::ffff:192.0.2.9" })
		g.fill(10, ada, func(i int) string { return fmt.Sprintf("2606:4700::%x", i) })
		g.checkAttempt(false, "from the attacker's address", ada, "192.0.2.1")
		g.checkAttempt(false, "an attacker's address as IPv6", ada, "::ffff:192.0.2.1")
		g.checkAttempt(false, "an attacker's mapped address", ada, "192.0.2.9")
		g.checkAttempt(false, "another address of the attacker's /64", ada, "2606:4700::ffff")
		g.checkAttempt(true, "the next IPv4 address", ada, "192.0.2.2")
		g.checkAttempt(true, "the next /64", ada, "2606:4700:0:1::1")
		g.checkAttempt(true, "another IPv6 network", ada, "2001:4860::1")
		g.checkAttempt(false, "the attacker, with capitals", " ADA@example.com", "192.0.2.1")
		g.clock.Advance(attemptWindow)
		g.checkAttempt(true, "the attacker's address after the window", ada, "192.0.2.1")

		g.fill(maxSiteAttempts, ada, func(i int) string { return fmt.Sprintf("2606:4700:0:%x::1", i) })
		g.checkAttempt(false, "an IPv6 site that spreads over its networks", ada, "2606:4700:0:ffff::1")
		g.checkAttempt(true, "another site", ada, "2606:4700:1::1")
	})
}

// TestOneNetworkOverManyEmailsIsBounded checks that one network cannot try one password with every
// email.
func TestOneNetworkOverManyEmailsIsBounded(t *testing.T) {
	t.Parallel()
	eachSignInScene(t, func(g *signInScene) {
		for i := range maxAddressAttempts {
			g.fill(1, fmt.Sprintf("user%d@example.com", i), func(int) string { return fmt.Sprintf("2606:4700::%x", i) })
		}
		g.checkAttempt(false, "the network", "ada@example.com", "2606:4700::1")
		g.checkAttempt(true, "another network", "ada@example.com", "192.0.2.1")
		g.checkAttempt(true, "a known browser in the network", "ada@example.com", "2606:4700::1", g.mark(g.user.ID))
	})
}

// TestManyFailuresDelayTheNextAttempt checks that failures from all addresses together delay the
// next attempt, except from a known browser.
func TestManyFailuresDelayTheNextAttempt(t *testing.T) {
	t.Parallel()
	eachSignInScene(t, func(g *signInScene) {
		const ada = "ada@example.com"
		addr := func(i int) string { return fmt.Sprintf("198.51.%d.%d", i/250, i%250) }
		wantWait := func(name string, want time.Duration, address string, marks ...string) {
			t := g.t
			t.Helper()
			g.waits = nil
			g.checkAttempt(true, name, ada, address, marks...)
			if want == 0 && len(g.waits) != 0 || want > 0 && (len(g.waits) != 1 || g.waits[0] != want) {
				t.Errorf("%s: the attempt waited %v, want %s", name, g.waits, want)
			}
		}
		g.fill(delayAfter, ada, addr)
		wantWait("few failures", 0, "192.0.2.1")
		g.fill(5, ada, func(i int) string { return addr(100 + i) })
		wantWait("five failures too many", 5*delayStep, "192.0.2.1")
		g.fill(500, ada, func(i int) string { return addr(200 + i) })
		wantWait("very many failures", maxDelay, "192.0.2.1")
		wantWait("a known browser", 0, "192.0.2.1", g.mark(g.user.ID))
		g.clock.Advance(attemptWindow)
		wantWait("after the window", 0, "192.0.2.1")
	})
}

// TestFailuresOfKnownBrowsersCountByBrowser checks that a known browser is locked out only by its own
// failures, and locks out no other browser.
func TestFailuresOfKnownBrowsersCountByBrowser(t *testing.T) {
	t.Parallel()
	eachSignInScene(t, func(g *signInScene) {
		const ada, home = "ada@example.com", "192.0.2.1"
		mark, second := g.mark(g.user.ID), g.mark(g.user.ID)
		g.fill(10, ada, func(int) string { return home })
		g.checkAttempt(false, "an unknown browser at home", ada, home)
		g.checkAttempt(true, "the known browser at home", ada, home, mark)
		g.checkAttempt(true, "the known browser with invalid marks too", ada, home, "x", "a.b.c", mark)
		otherNode := NewSignIns(g.db, g.passwords, nil)
		for range maxEmailAttempts {
			if _, err := otherNode.Password(t.Context(), ada, "wrong horse", netip.MustParseAddr(home), mark); !errors.Is(err, ErrWrongSignIn) {
				g.t.Fatal("a wrong password of the known browser:", err)
			}
		}
		g.checkAttempt(false, "the known browser after ten failures on another node", ada, home, mark)
		g.checkAttempt(false, "the known browser in another network", ada, "203.0.113.1", mark)
		g.checkAttempt(true, "another known browser", ada, home, second)
		g.checkAttempt(true, "an unknown browser elsewhere", ada, "203.0.113.1")
		g.clock.Advance(attemptWindow)
		g.checkAttempt(true, "15 minutes later", ada, home, mark)
	})
}

// TestMarksAreValidForOneUser checks that every mark except the user's own is rejected.
func TestMarksAreValidForOneUser(t *testing.T) {
	t.Parallel()
	eachSignInScene(t, func(g *signInScene) {
		const ada, home = "ada@example.com", "192.0.2.1"
		bob := g.add(g.user.Account, "bob@example.com")
		mark := g.mark(g.user.ID)
		parts := strings.Split(mark, ".")
		g.fill(10, ada, func(int) string { return home })
		g.fill(10, "nobody@example.com", func(int) string { return home })
		oldMark := g.mark(g.user.ID)
		for name, mark := range map[string]string{
			"another user's":          g.mark(bob.ID),
			"another browser":         strings.Join([]string{newToken(), parts[1], parts[2]}, "."),
			"another time":            strings.Join([]string{parts[0], parts[1] + "0", parts[2]}, "."),
			"another signature":       strings.Join([]string{parts[0], parts[1], strings.Repeat("0", 64)}, "."),
			"no signature":            strings.Join(parts[:2], "."),
			"a character too short":   mark[:len(mark)-1],
			"a character too long":    mark + "0",
			"empty":                   "",
			"only dots":               "..",
			"signed without password": strings.Join([]string{parts[0], parts[1], signMark("", g.user.ID, parts[0], parts[1])}, "."),
		} {
			g.checkAttempt(false, name, ada, home, mark)
		}
		g.checkAttempt(false, "a user's mark with an unknown email", "nobody@example.com", home, mark)
		insertRows := make([]string, MaxMarks, MaxMarks+1)
		g.checkAttempt(false, "a valid mark after MaxMarks others", ada, home, append(insertRows, mark)...)
		g.checkAttempt(true, "a valid mark", ada, home, mark)

		hash, err := g.passwords.Hash(t.Context(), rightPassword)
		if err != nil {
			g.t.Fatal(err)
		}
		changeUser(g.t, g.db, g.user.ID, UserChange{PasswordHash: &hash})
		g.checkAttempt(false, "a mark from before the password changed", ada, home, mark)
		newMark := g.mark(g.user.ID)
		g.checkAttempt(true, "a new mark", ada, home, newMark)
		g.clock.Advance(MarkLifetime)
		g.fill(10, ada, func(int) string { return home })
		g.checkAttempt(false, "an expired mark", ada, home, newMark)
		g.checkAttempt(false, "an expired mark of another password", ada, home, oldMark)
	})
}
