package account

import (
	"context"
	"errors"
	"net/netip"
	"sync"
	"testing"
	"time"

	"tollgate/internal/fault"
	"tollgate/internal/ledger/audit"
	"tollgate/internal/money"
	"tollgate/internal/store"
	"tollgate/internal/store/storetest"
)

// signUpScene signs people up. Its waits take no time.
type signUpScene struct {
	t       *testing.T
	db      *store.DB
	clock   *storetest.Clock
	signIns *SignIns
	waited  time.Duration
}

func eachSignUpScene(t *testing.T, test func(t *testing.T, s *signUpScene)) {
	t.Helper()
	storetest.EachClock(t, func(t *testing.T, db *store.DB, clock *storetest.Clock) {
		s := &signUpScene{t: t, db: db, clock: clock, signIns: NewSignIns(db, NewPasswords(), nil)}
		s.signIns.wait = func(_ context.Context, d time.Duration) { s.waited += d }
		test(t, s)
	})
}

// signedUp is the result of a sign-up: the mailed token, and the browser's cookie.
type signedUp struct{ token, browser, account string }

// request signs up with an email from a network.
func (s *signUpScene) request(email, addr string) (got signedUp, err error) {
	got.browser, err = s.signIns.RequestSignUp(s.t.Context(), SignUpRules{Mode: SignUpOpen}, SignUpRequest{
		Email: email, Password: "first password", Addr: netip.MustParseAddr(addr), Allow: func(context.Context) error { return nil },
		MailTx: func(_ *store.Tx, _ SignUp, token, account string) error {
			got.token, got.account = token, account
			return nil
		}})
	return got, err
}

// mustRequest is request without an error.
func (s *signUpScene) mustRequest(email string) signedUp {
	s.t.Helper()
	got, err := s.request(email, linkAddress.String())
	if err != nil {
		s.t.Fatal(err)
	}
	return got
}

// verify opens an account for the sign-up of a token.
func (s *signUpScene) verify(token, browser, password string) error {
	return s.signIns.VerifySignUp(s.t.Context(), token, browser, password, linkAddress, func(tx *store.Tx, in SignIn) error {
		a, err := CreateTx(tx, NewAccount{Name: in.Email})
		if err == nil {
			_, err = CreateUserTx(tx, a.ID, in)
		}
		return err
	})
}

// wantSignIn checks the result of a sign-in.
func (s *signUpScene) wantSignIn(email, password string, want error) {
	s.t.Helper()
	if _, err := s.signIns.Password(s.t.Context(), email, password, linkAddress); !errors.Is(err, want) {
		s.t.Errorf("sign-in with %q: got the error %v, want %v", password, err, want)
	}
}

// TestSignUpLife checks that no user exists before the verification, that a link works once, and that
// expired and replaced sign-ups leave nothing.
func TestSignUpLife(t *testing.T) {
	t.Parallel()
	eachSignUpScene(t, func(t *testing.T, s *signUpScene) {
		first, second := s.mustRequest("ada@example.com"), s.mustRequest("Ada@Example.com")
		s.wantSignIn("ada@example.com", "first password", ErrWrongSignIn)
		for range 2 { // reading a link does not use it up
			got, err := s.signIns.SignUp(t.Context(), first.token, first.browser, linkAddress)
			if err != nil || got.Email != "ada@example.com" || !got.SameBrowser {
				t.Fatalf("SignUp = %+v, %v, want ada's in the same browser", got, err)
			}
		}
		if err := s.verify(first.token, first.browser, ""); err != nil {
			t.Fatal(err)
		}
		s.wantSignIn("ada@example.com", "first password", nil)
		for _, old := range []signedUp{first, second} {
			if err := s.verify(old.token, old.browser, ""); !errors.Is(err, ErrNoLink) {
				t.Errorf("a link after the verification: got the error %v, want ErrNoLink", err)
			}
		}
		known := s.mustRequest("ada@example.com")
		if known.token != "" || known.account == "" || known.browser == "" {
			t.Errorf("a sign-up with a user's email: got %+v, want no token, the account and a cookie", known)
		}
		late := s.mustRequest("late@example.com")
		s.clock.Advance(maxSignUpAge)
		if err := s.verify(late.token, late.browser, ""); !errors.Is(err, ErrNoLink) {
			t.Errorf("an expired link: got the error %v, want ErrNoLink", err)
		}
		if err := s.signIns.Sweep(t.Context()); err != nil {
			t.Fatal(err)
		}
		if n := count(t, s.db, `SELECT COUNT(*) FROM account_signup`); n != 0 {
			t.Errorf("%d sign-ups are left after their end, want 0", n)
		}
		if want := 4 * answerTime; s.waited != want {
			t.Errorf("four sign-ups waited %v, want %v", s.waited, want)
		}
	})
}

// TestPasswordOfOtherBrowserDies checks that the password of a sign-up, chosen before the address was
// verified, is replaced if another browser verifies the address, and that a user who is created otherwise
// ends the sign-up.
func TestPasswordOfOtherBrowserDies(t *testing.T) {
	t.Parallel()
	eachSignUpScene(t, func(t *testing.T, s *signUpScene) {
		attack := s.mustRequest("victim@example.com")
		if got, err := s.signIns.SignUp(t.Context(), attack.token, "", linkAddress); err != nil || got.SameBrowser {
			t.Fatalf("SignUp in another browser = %+v, %v, want another browser", got, err)
		}
		if err := s.verify(attack.token, "", ""); !fault.Is(err, fault.InvalidRequest) {
			t.Errorf("verifying in another browser without a password: got the error %v, want a 400", err)
		}
		if err := s.verify(attack.token, newToken(), "victim's password"); err != nil {
			t.Fatal(err)
		}
		s.wantSignIn("victim@example.com", "first password", ErrWrongSignIn)
		s.wantSignIn("victim@example.com", "victim's password", nil)

		attack = s.mustRequest("other@example.com")
		a := createAccount(t, s.db, "a")
		createUser(t, s.db, a.ID, SignIn{Email: "other@example.com"})
		if err := s.verify(attack.token, attack.browser, ""); !errors.Is(err, ErrNoLink) {
			t.Errorf("a link after the address got a user: got the error %v, want ErrNoLink", err)
		}
	})
}

// TestSignUpLimits checks the limits by mailbox and network, which count known emails too, and that
// refused sign-ups send no mail.
func TestSignUpLimits(t *testing.T) {
	t.Parallel()
	eachSignUpScene(t, func(t *testing.T, s *signUpScene) {
		a := createAccount(t, s.db, "a")
		createUser(t, s.db, a.ID, SignIn{Email: "known@example.com"})
		for _, emails := range [][4]string{
			{"known@example.com", "known@example.com", "KNOWN@example.com", "known@example.com"},
			{"a.b@gmail.com", "ab+1@gmail.com", "A.B+2@googlemail.com", "ab@gmail.com"},
		} {
			for i, email := range emails {
				got, err := s.request(email, linkAddress.String())
				if refused := fault.Is(err, fault.RateLimitExceeded); refused != (i == maxEmailSignUps) || refused && got != (signedUp{}) {
					t.Errorf("sign-up %d with %s: got %+v, %v, want a 429 after %d", i+1, email, got, err, maxEmailSignUps)
				}
			}
		}
		for i := range maxAddressSignUps + 1 {
			_, err := s.request(string(rune('a'+i))+"@example.com", "2001:db8::1")
			if fault.Is(err, fault.RateLimitExceeded) != (i == maxAddressSignUps) {
				t.Errorf("sign-up %d from a network: got the error %v, want a 429 after %d", i+1, err, maxAddressSignUps)
			}
		}
		s.clock.Advance(attackerWait)
		if _, err := s.request("ab@gmail.com", "2001:db8::1"); err != nil {
			t.Errorf("a sign-up after the window: got the error %v", err)
		}
	})
}

const attackerWait = attemptWindow + time.Second

// TestSignUpRules checks the domains, which do not include subdomains, and the faults of both fields.
func TestSignUpRules(t *testing.T) {
	t.Parallel()
	rules := SignUpRules{Mode: SignUpDomains, Domains: []string{"example.com"}}
	for email, want := range map[string]bool{"a@example.com": true, "a@sub.example.com": false, "a@example.com.evil.example": false,
		"a@evilexample.com": false} {
		if err := rules.CheckEmail(email); (err == nil) != want {
			t.Errorf("%s: got the error %v, want accepted %v", email, err, want)
		}
	}
	for mode, want := range map[SignUpMode]bool{"": false, SignUpClosed: false, SignUpDomains: true, SignUpOpen: true} {
		if got := (SignUpRules{Mode: mode}).On(); got != want {
			t.Errorf("%q is on: %v, want %v", mode, got, want)
		}
	}
}

func TestFoldEmail(t *testing.T) {
	t.Parallel()
	for email, want := range map[string]string{
		"a.b.c+shop@gmail.com": "abc@gmail.com", "abc@googlemail.com": "abc@gmail.com", "a.b+1@outlook.com": "a.b@outlook.com",
		"a+1@me.com": "a@icloud.com", "a.b+1@pm.me": "ab@proton.me", "+@gmail.com": "+@gmail.com", "...@gmail.com": "...@gmail.com",
		"a.b+1@example.com": "a.b@example.com", "+1@example.com": "+1@example.com",
	} {
		if got := foldEmail(email); got != want {
			t.Errorf("%s: got %s, want %s", email, got, want)
		}
	}
}

// TestTrialCredit checks that a mailbox gets one trial credit, that all of a day stay within the budget
// while several nodes grant them, and that the audit compares them with their movements.
func TestTrialCredit(t *testing.T) {
	t.Parallel()
	eachSignUpScene(t, func(t *testing.T, s *signUpScene) {
		trial := Trial{Credit: money.USD, DailyBudget: 3 * money.USD}
		grant := func(email string, trial Trial) money.Amount {
			return update(t, s.db, func(tx *store.Tx) (money.Amount, error) {
				a, err := CreateTx(tx, NewAccount{Name: email})
				if err != nil {
					return 0, err
				}
				granted, err := GrantTrialTx(tx, a.ID, email, trial)
				if a, readErr := GetTx(tx, a.ID); readErr != nil || a.Money.Balance != granted {
					t.Errorf("%s: balance %s, %v, want %s", email, a.Money.Balance, readErr, granted)
				}
				return granted, err
			})
		}
		for _, c := range []struct {
			email string
			trial Trial
			want  money.Amount
		}{
			{"a@example.com", Trial{}, 0},
			{"a@example.com", trial, money.USD},
			{"ab@gmail.com", trial, money.USD},
			{"a.b+2@googlemail.com", trial, 0},
			{"a+2@example.com", trial, 0},
		} {
			if got := grant(c.email, c.trial); got != c.want {
				t.Errorf("%s: granted %s, want %s", c.email, got, c.want)
			}
		}
		var nodes sync.WaitGroup
		grants := make(chan money.Amount, 4)
		for i := range 4 {
			nodes.Go(func() { grants <- grant(string(rune('p'+i))+"@example.com", trial) })
		}
		nodes.Wait()
		close(grants)
		var sum money.Amount
		for g := range grants {
			sum += g
		}
		if sum != money.USD {
			t.Errorf("the rest of the day's budget: granted %s, want 1", sum)
		}
		s.clock.Advance(24 * time.Hour)
		if got := grant("next@example.com", trial); got != money.USD {
			t.Errorf("the next day: granted %s, want 1", got)
		}
		if report, err := audit.Run(t.Context(), s.db, AuditTx); err != nil || !report.OK {
			t.Fatalf("the audit of correct rows returned %v, %+v, want no differences", err, report.Differences)
		}
		update(t, s.db, func(tx *store.Tx) (int64, error) {
			return tx.Exec(`DELETE FROM account_trial WHERE account = (SELECT MIN(account) FROM account_trial)`)
		})
		if report, err := audit.Run(t.Context(), s.db, AuditTx); err != nil || report.OK {
			t.Errorf("the audit of a trial credit without its grant returned %v, OK %v, want a difference", err, report.OK)
		}
	})
}
