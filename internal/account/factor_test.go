package account

import (
	"errors"
	"net/netip"
	"testing"
	"time"

	"tollgate/internal/fault"
	"tollgate/internal/store"
	"tollgate/internal/store/storetest"
)

// rfcSecret is the secret of RFC 6238, Appendix B, for SHA-1.
const rfcSecret = "12345678901234567890"

// TestTOTPVectors checks the test vectors of RFC 6238, Appendix B, with the last six of the eight
// digits.
func TestTOTPVectors(t *testing.T) {
	t.Parallel()
	for second, want := range map[int64]string{
		59: "287082", 1111111109: "081804", 1111111111: "050471", 1234567890: "005924", 2000000000: "279037", 20000000000: "353130",
	} {
		if got := totpCode([]byte(rfcSecret), second*1000/totpStepMS); got != want {
			t.Errorf("the code at second %d is %s, want %s", second, got, want)
		}
	}
}

func TestTOTPMatch(t *testing.T) {
	t.Parallel()
	const now = 1_800_000_000_000
	step := int64(now / totpStepMS)
	for _, c := range []struct {
		name               string
		codeStep, lastStep int64
		nowMS              int64
		wantStep           int64
		wantOK             bool
	}{
		{"current step", step, 0, now, step, true},
		{"previous step", step - 1, 0, now, step - 1, true},
		{"next step", step + 1, 0, now, step + 1, true},
		{"two steps before", step - 2, 0, now, 0, false},
		{"two steps ahead", step + 2, 0, now, 0, false},
		{"last millisecond of the step", step, 0, now + totpStepMS - 1, step, true},
		{"used step", step, step, now, 0, false},
		{"step before the used step", step - 1, step, now, 0, false},
		{"step after the used step", step + 1, step, now, step + 1, true},
	} {
		got, ok := totpMatch([]byte(rfcSecret), totpCode([]byte(rfcSecret), c.codeStep), c.nowMS, c.lastStep)
		if ok != c.wantOK || got != c.wantStep {
			t.Errorf("%s: totpMatch = %d, %v, want %d, %v", c.name, got, ok, c.wantStep, c.wantOK)
		}
	}
	for _, code := range []string{"", "1", "12345", "1234567", "abcdef", "２８７０８２"} {
		if _, ok := totpMatch([]byte(rfcSecret), code, now, 0); ok {
			t.Errorf("totpMatch accepts the code %q", code)
		}
	}
}

// codeNow returns the app's code for a secret, ahead steps from now.
func codeNow(t *testing.T, c *storetest.Clock, secret string, ahead int64) string {
	t.Helper()
	raw, err := totpEncoding.DecodeString(secret)
	if err != nil || len(raw) != totpSecret {
		t.Fatalf("the secret %q has %d bytes (%v), want %d", secret, len(raw), err, totpSecret)
	}
	return totpCode(raw, c.Now().UnixMilli()/totpStepMS+ahead)
}

// withFactor creates a user with a second factor and returns the secret and the recovery codes.
func withFactor(t *testing.T, db *store.DB, clock *storetest.Clock) (u User, secret string, recovery []string) {
	t.Helper()
	a := createAccount(t, db, "a")
	u = createUser(t, db, a.ID, SignIn{Email: "a@example.com", PasswordHash: "$h"})
	secret = update(t, db, func(tx *store.Tx) (string, error) { return BeginFactorTx(tx, u.ID) })
	recovery = update(t, db, func(tx *store.Tx) ([]string, error) { return ConfirmFactorTx(tx, u.ID, codeNow(t, clock, secret, 0)) })
	return getUser(t, db, u.ID), secret, recovery
}

func TestBeginAndConfirmFactor(t *testing.T) {
	t.Parallel()
	storetest.EachClock(t, func(t *testing.T, db *store.DB, clock *storetest.Clock) {
		a := createAccount(t, db, "a")
		u := createUser(t, db, a.ID, SignIn{Email: "a@example.com", PasswordHash: "$h"})
		confirm := func(code string) ([]string, error) {
			return try(t, db, func(tx *store.Tx) ([]string, error) { return ConfirmFactorTx(tx, u.ID, code) })
		}
		_, err := confirm("123456")
		wantFault(t, err, fault.InvalidRequest, "")
		begin := func(tx *store.Tx) (string, error) { return BeginFactorTx(tx, u.ID) }
		first, second := update(t, db, begin), update(t, db, begin)
		if first == second {
			t.Error("the second secret is the same as the first")
		}
		_, err = confirm(codeNow(t, clock, first, 0))
		wantFault(t, err, fault.InvalidRequest, "code")
		if got := getUser(t, db, u.ID); got.FactorMS != 0 {
			t.Error("the second factor is on although it was not confirmed")
		}
		session := openSession(t, db, NewSession{Kind: UserSession, User: u.ID})
		code := codeNow(t, clock, second, 0)
		recovery, err := confirm(code[:3] + " " + code[3:])
		if err != nil || len(recovery) != recoveryCodes {
			t.Fatalf("got %d recovery codes, %v, want %d", len(recovery), err, recoveryCodes)
		}
		wantNoSession(t, db, UserSession, session, "", "from before the second factor")
		if got := getUser(t, db, u.ID); got.FactorMS != clock.Now().UnixMilli() {
			t.Errorf("the second factor is on since %d, want %d", got.FactorMS, clock.Now().UnixMilli())
		}
		_, err = try(t, db, begin)
		wantFault(t, err, fault.InvalidRequest, "")
		_, err = confirm(codeNow(t, clock, second, 1))
		wantFault(t, err, fault.InvalidRequest, "")
	})
}

func TestCodesAreValidOnce(t *testing.T) {
	t.Parallel()
	storetest.EachClock(t, func(t *testing.T, db *store.DB, clock *storetest.Clock) {
		u, secret, recovery := withFactor(t, db, clock)
		e := NewSignIns(db, NewPasswords(), nil)
		checkCode := func(name, code string, want error) {
			t.Helper()
			if err := e.Code(t.Context(), u.ID, code, netip.MustParseAddr("192.0.2.1")); !errors.Is(err, want) {
				t.Errorf("%s: got the error %v, want %v", name, err, want)
			}
		}
		checkCode("the code of the confirmation", codeNow(t, clock, secret, 0), ErrWrongSignIn)
		checkCode("the next code", codeNow(t, clock, secret, 1), nil)
		checkCode("the next code again", codeNow(t, clock, secret, 1), ErrWrongSignIn)
		clock.Advance(attemptWindow)
		checkCode("a later code", codeNow(t, clock, secret, 0), nil)
		checkCode("the code before the later code", codeNow(t, clock, secret, -1), ErrWrongSignIn)
		checkCode("a recovery code", recovery[0], nil)
		checkCode("the recovery code again", recovery[0], ErrWrongSignIn)
		checkCode("a recovery code with blanks", " "+recovery[1][:5]+" "+recovery[1][6:], nil)
		clock.Advance(attemptWindow)
		unused := update(t, db, func(tx *store.Tx) (int64, error) { return CountRecoveryTx(tx, u.ID) })
		if unused != recoveryCodes-2 {
			t.Errorf("%d recovery codes are unused, want %d", unused, recoveryCodes-2)
		}
		otherUser := createUser(t, db, u.Account, SignIn{Email: "b@example.com", PasswordHash: "$h"})
		if err := e.Code(t.Context(), otherUser.ID, recovery[2], netip.Addr{}); !errors.Is(err, ErrWrongSignIn) {
			t.Errorf("a recovery code of another user: got the error %v, want ErrWrongSignIn", err)
		}
		storetest.Update(t, db, func(tx *store.Tx) error { return EndFactorTx(tx, u.ID) })
		checkCode("a code without a second factor", codeNow(t, clock, secret, 0), ErrWrongSignIn)
		checkCode("a recovery code without a second factor", recovery[3], ErrWrongSignIn)
	})
}

// TestRenewRecovery checks that new recovery codes void the former recovery codes, and that the
// app's codes stay valid.
func TestRenewRecovery(t *testing.T) {
	t.Parallel()
	storetest.EachClock(t, func(t *testing.T, db *store.DB, clock *storetest.Clock) {
		u, secret, old := withFactor(t, db, clock)
		renew := func(tx *store.Tx) ([]string, error) { return RenewRecoveryTx(tx, u.ID) }
		renewed := update(t, db, renew)
		count := func(tx *store.Tx) (int64, error) { return CountRecoveryTx(tx, u.ID) }
		if unused := update(t, db, count); len(renewed) != recoveryCodes || unused != recoveryCodes {
			t.Errorf("created %d recovery codes, of which %d are unused, want %[3]d and %[3]d", len(renewed), unused, recoveryCodes)
		}
		e := NewSignIns(db, NewPasswords(), nil)
		for code, want := range map[string]error{old[0]: ErrWrongSignIn, renewed[0]: nil, codeNow(t, clock, secret, 1): nil} {
			if err := e.Code(t.Context(), u.ID, code, netip.Addr{}); !errors.Is(err, want) {
				t.Errorf("Code(%q) = %v, want %v", code, err, want)
			}
		}
		storetest.Update(t, db, func(tx *store.Tx) error { return EndFactorTx(tx, u.ID) })
		_, err := try(t, db, renew)
		wantFault(t, err, fault.InvalidRequest, "")
		if unused := update(t, db, count); unused != 0 {
			t.Errorf("a user without a second factor has %d recovery codes, want 0", unused)
		}
	})
}

// TestCodesAreThrottled checks that somebody who knows the password cannot guess the code, and that
// codes are accepted again after attemptWindow.
func TestCodesAreThrottled(t *testing.T) {
	t.Parallel()
	storetest.EachClock(t, func(t *testing.T, db *store.DB, clock *storetest.Clock) {
		u, secret, recovery := withFactor(t, db, clock)
		clock.Advance(time.Hour)
		nodes := []*SignIns{NewSignIns(db, NewPasswords(), nil), NewSignIns(db, NewPasswords(), nil)}
		for i := range maxCodeAttempts {
			addr := netip.AddrFrom4([4]byte{192, 0, 2, byte(i)})
			if err := nodes[i%2].Code(t.Context(), u.ID, "not a code", addr); !errors.Is(err, ErrWrongSignIn) {
				t.Fatalf("attempt %d with a wrong code: got the error %v, want ErrWrongSignIn", i, err)
			}
		}
		for _, code := range []string{codeNow(t, clock, secret, 0), recovery[0]} {
			err := nodes[0].Code(t.Context(), u.ID, code, netip.MustParseAddr("192.0.2.99"))
			wantFault(t, err, fault.RateLimitExceeded, "")
		}
		clock.Advance(attemptWindow)
		for _, code := range []string{codeNow(t, clock, secret, 0), recovery[0]} {
			if err := nodes[0].Code(t.Context(), u.ID, code, netip.MustParseAddr("192.0.2.99")); err != nil {
				t.Error("15 minutes later:", err)
			}
		}
	})
}

func TestHalfwaySessions(t *testing.T) {
	t.Parallel()
	storetest.EachClock(t, func(t *testing.T, db *store.DB, clock *storetest.Clock) {
		u, _, _ := withFactor(t, db, clock)
		pending := UserSession.Halfway()
		value := openSession(t, db, NewSession{Kind: pending, User: u.ID})
		if s, _, err := findSession(t, db, pending, value, ""); err != nil || s.User != u {
			t.Errorf("got the session %+v, %v, want one of user %+v", s, err, u)
		}
		for _, kind := range []SessionKind{UserSession, OperatorSession, OperatorSession.Halfway()} {
			wantNoSession(t, db, kind, value, "", "halfway as "+string(kind))
		}
		if list := listSessions(t, db, u.ID); len(list) != 0 {
			t.Errorf("the pending session is in the list: %+v", list)
		}
		operators := openSession(t, db, NewSession{Kind: OperatorSession.Halfway(), User: u.ID})
		wantNoSession(t, db, OperatorSession.Halfway(), operators, "", "of a user who is no operator")
		clock.Advance(maxHalfwayAge)
		wantNoSession(t, db, pending, value, "", "after ten minutes")
	})
}
