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

// TestVectors checks the test vectors of RFC 6238, Appendix B, with the last six of the eight
// digits.
func TestVectors(t *testing.T) {
	t.Parallel()
	for second, want := range map[int64]string{
		59: "287082", 1111111109: "081804", 1111111111: "050471", 1234567890: "005924", 2000000000: "279037", 20000000000: "353130",
	} {
		if got := totpCode([]byte(rfcSecret), second*1000/totpStepMS); got != want {
			t.Errorf("at %d: %s, want %s", second, got, want)
		}
	}
}

func TestCodesNextToNow(t *testing.T) {
	t.Parallel()
	const now = 1_800_000_000_000
	step := int64(now / totpStepMS)
	for _, c := range []struct {
		what         string
		of, used     int64
		nowMS        int64
		wantsStep    int64
		wantsToMatch bool
	}{
		{"of now", step, 0, now, step, true},
		{"of the step before", step - 1, 0, now, step - 1, true},
		{"of the next step", step + 1, 0, now, step + 1, true},
		{"of two steps before", step - 2, 0, now, 0, false},
		{"of two steps ahead", step + 2, 0, now, 0, false},
		{"of now, at its last millisecond", step, 0, now + totpStepMS - 1, step, true},
		{"used", step, step, now, 0, false},
		{"older than one that was used", step - 1, step, now, 0, false},
		{"newer than one that was used", step + 1, step, now, step + 1, true},
	} {
		got, ok := totpMatch([]byte(rfcSecret), totpCode([]byte(rfcSecret), c.of), c.nowMS, c.used)
		if ok != c.wantsToMatch || got != c.wantsStep {
			t.Errorf("%s: step %d, %v", c.what, got, ok)
		}
	}
	for _, code := range []string{"", "1", "12345", "1234567", "abcdef", "２８７０８２"} {
		if _, ok := totpMatch([]byte(rfcSecret), code, now, 0); ok {
			t.Errorf("%q is accepted as a code", code)
		}
	}
}

// codeNow returns the app's code for a secret, some steps from now.
func codeNow(t *testing.T, c *storetest.Clock, secret string, ahead int64) string {
	t.Helper()
	raw, err := totpEncoding.DecodeString(secret)
	if err != nil || len(raw) != totpSecret {
		t.Fatalf("the secret %q has %d bytes, %v", secret, len(raw), err)
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

func TestFactorIsBegunAndConfirmed(t *testing.T) {
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
			t.Error("two secrets are the same")
		}
		_, err = confirm(codeNow(t, clock, first, 0))
		wantFault(t, err, fault.InvalidRequest, "code")
		if got := getUser(t, db, u.ID); got.FactorMS != 0 {
			t.Error("the second factor is on before it is confirmed")
		}
		session := openSession(t, db, NewSession{Kind: UserSession, User: u.ID})
		code := codeNow(t, clock, second, 0)
		recovery, err := confirm(code[:3] + " " + code[3:])
		if err != nil || len(recovery) != recoveryCodes {
			t.Fatalf("%d recovery codes, %v", len(recovery), err)
		}
		wantNobody(t, db, UserSession, session, "", "from before the second factor")
		if got := getUser(t, db, u.ID); got.FactorMS != clock.Now().UnixMilli() {
			t.Errorf("the second factor is on since %d", got.FactorMS)
		}
		_, err = try(t, db, begin)
		wantFault(t, err, fault.InvalidRequest, "")
		_, err = confirm(codeNow(t, clock, second, 1))
		wantFault(t, err, fault.InvalidRequest, "")
	})
}

func TestCodesAreGoodOnce(t *testing.T) {
	t.Parallel()
	storetest.EachClock(t, func(t *testing.T, db *store.DB, clock *storetest.Clock) {
		u, secret, recovery := withFactor(t, db, clock)
		e := NewSignIns(db, NewPasswords(), nil)
		judge := func(what, code string, want error) {
			t.Helper()
			if err := e.Code(t.Context(), u.ID, code, netip.MustParseAddr("192.0.2.1")); !errors.Is(err, want) {
				t.Errorf("%s: %v, want %v", what, err, want)
			}
		}
		judge("that of the confirmation", codeNow(t, clock, secret, 0), ErrWrongSignIn)
		judge("the next one", codeNow(t, clock, secret, 1), nil)
		judge("it again", codeNow(t, clock, secret, 1), ErrWrongSignIn)
		clock.Advance(attemptWindow)
		judge("a later one", codeNow(t, clock, secret, 0), nil)
		judge("one before it", codeNow(t, clock, secret, -1), ErrWrongSignIn)
		judge("a recovery code", recovery[0], nil)
		judge("it again", recovery[0], ErrWrongSignIn)
		judge("another, as a person writes it", " "+recovery[1][:5]+" "+recovery[1][6:], nil)
		clock.Advance(attemptWindow)
		left := update(t, db, func(tx *store.Tx) (int64, error) { return RecoveryTx(tx, u.ID) })
		if left != recoveryCodes-2 {
			t.Errorf("%d recovery codes are left", left)
		}
		other := createUser(t, db, u.Account, SignIn{Email: "b@example.com", PasswordHash: "$h"})
		if err := e.Code(t.Context(), other.ID, recovery[2], netip.Addr{}); !errors.Is(err, ErrWrongSignIn) {
			t.Errorf("the recovery code of another user: %v", err)
		}
		storetest.Update(t, db, func(tx *store.Tx) error { return EndFactorTx(tx, u.ID) })
		judge("after it was turned off", codeNow(t, clock, secret, 0), ErrWrongSignIn)
		judge("a recovery code after it was turned off", recovery[3], ErrWrongSignIn)
	})
}

// TestRecoveryIsRenewed checks that new recovery codes void the former recovery codes, and that the
// app's codes stay valid.
func TestRecoveryIsRenewed(t *testing.T) {
	t.Parallel()
	storetest.EachClock(t, func(t *testing.T, db *store.DB, clock *storetest.Clock) {
		u, secret, before := withFactor(t, db, clock)
		renew := func(tx *store.Tx) ([]string, error) { return RenewRecoveryTx(tx, u.ID) }
		after := update(t, db, renew)
		count := func(tx *store.Tx) (int64, error) { return RecoveryTx(tx, u.ID) }
		if left := update(t, db, count); len(after) != recoveryCodes || left != recoveryCodes {
			t.Errorf("%d recovery codes created, %d left", len(after), left)
		}
		e := NewSignIns(db, NewPasswords(), nil)
		for code, want := range map[string]error{before[0]: ErrWrongSignIn, after[0]: nil, codeNow(t, clock, secret, 1): nil} {
			if err := e.Code(t.Context(), u.ID, code, netip.Addr{}); !errors.Is(err, want) {
				t.Errorf("%q: %v, want %v", code, err, want)
			}
		}
		storetest.Update(t, db, func(tx *store.Tx) error { return EndFactorTx(tx, u.ID) })
		_, err := try(t, db, renew)
		wantFault(t, err, fault.InvalidRequest, "")
		if left := update(t, db, count); left != 0 {
			t.Errorf("%d codes without a second factor", left)
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
		for i := range attemptsOfCode {
			from := netip.AddrFrom4([4]byte{192, 0, 2, byte(i)})
			if err := nodes[i%2].Code(t.Context(), u.ID, "not a code", from); !errors.Is(err, ErrWrongSignIn) {
				t.Fatalf("attempt %d: %v", i, err)
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

func TestHalfway(t *testing.T) {
	t.Parallel()
	storetest.EachClock(t, func(t *testing.T, db *store.DB, clock *storetest.Clock) {
		u, _, _ := withFactor(t, db, clock)
		pending := UserSession.Halfway()
		value := openSession(t, db, NewSession{Kind: pending, User: u.ID})
		if s, _, err := signedIn(t, db, pending, value, ""); err != nil || s.User != u {
			t.Errorf("%+v, %v", s, err)
		}
		for _, kind := range []SessionKind{UserSession, OperatorSession, OperatorSession.Halfway()} {
			wantNobody(t, db, kind, value, "", "halfway as "+string(kind))
		}
		if list := listSessions(t, db, u.ID); len(list) != 0 {
			t.Errorf("the pending session is in the list: %+v", list)
		}
		operators := openSession(t, db, NewSession{Kind: OperatorSession.Halfway(), User: u.ID})
		wantNobody(t, db, OperatorSession.Halfway(), operators, "", "who is no operator")
		clock.Advance(halfwayMost)
		wantNobody(t, db, pending, value, "", "after ten minutes")
	})
}
