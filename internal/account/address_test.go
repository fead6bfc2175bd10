package account

import (
	"errors"
	"testing"

	"tollgate/internal/fault"
	"tollgate/internal/store"
)

// askAddress asks for a new email of a user and returns the mailed token.
func (s *signUpScene) askAddress(user User, email string) (token string, err error) {
	s.t.Helper()
	err = s.signIns.RequestAddress(s.t.Context(), user.ID, email, func(_ *store.Tx, c AddressChange, mailed string) error {
		if c.User != user || c.Email != "new@example.com" && mailed != "" {
			s.t.Errorf("the mail is about %+v, want %+v", c, user)
		}
		token = mailed
		return nil
	})
	return token, err
}

// TestNewAddress checks that a new email is the user's only after its verification by the same user, that
// a link works once, ends after a day, is replaced by a newer one, and dies with the password that was
// used to ask for it.
func TestNewAddress(t *testing.T) {
	t.Parallel()
	eachSignUpScene(t, func(t *testing.T, s *signUpScene) {
		a := createAccount(t, s.db, "a")
		ada, bob := createUser(t, s.db, a.ID, SignIn{Email: "ada@example.com"}), createUser(t, s.db, a.ID, SignIn{Email: "bob@example.com"})
		must := func(email string) string {
			t.Helper()
			token, err := s.askAddress(ada, email)
			if err != nil {
				t.Fatal(err)
			}
			s.clock.Advance(attemptWindow)
			return token
		}
		verify := func(user User, token string) error {
			_, err := try(t, s.db, func(tx *store.Tx) (struct{}, error) { return struct{}{}, VerifyAddressTx(tx, user.ID, token) })
			return err
		}
		invalid := func(user User, token, why string) {
			t.Helper()
			if err := verify(user, token); !errors.Is(err, ErrNoLink) {
				t.Errorf("%s: got the error %v, want ErrNoLink", why, err)
			}
		}
		if token := must("bob@example.com"); token != "" {
			t.Errorf("a user's email: got the token %q, want none", token)
		}
		replaced, token := must("new@example.com"), must("new@example.com")
		invalid(ada, replaced, "a replaced link")
		invalid(bob, token, "another user's link")
		if email, err := s.signIns.Address(t.Context(), ada.ID, token, linkAddress); err != nil || email != "new@example.com" {
			t.Errorf("Address = %q, %v, want new@example.com", email, err)
		}
		if got := getUser(t, s.db, ada.ID).Email; got != "ada@example.com" {
			t.Errorf("the email before the verification is %s, want ada@example.com", got)
		}
		attack := s.mustRequest("new@example.com")
		if err := verify(ada, token); err != nil {
			t.Fatal(err)
		}
		if got := getUser(t, s.db, ada.ID).Email; got != "new@example.com" {
			t.Errorf("the email is %s, want new@example.com", got)
		}
		if err := s.verify(attack.token, attack.browser, ""); !errors.Is(err, ErrNoLink) {
			t.Errorf("a sign-up with the address: got the error %v, want ErrNoLink", err)
		}
		invalid(ada, token, "a used link")

		ada = changeUser(t, s.db, ada.ID, UserChange{Email: new("ada@example.com")})
		late := must("new@example.com")
		s.clock.Advance(maxAddressAge)
		invalid(ada, late, "an expired link")
		stolen := must("new@example.com")
		hash := noPassword
		changeUser(t, s.db, ada.ID, UserChange{PasswordHash: &hash})
		invalid(ada, stolen, "a link after a new password")
		ada = getUser(t, s.db, ada.ID)
		taken := must("new@example.com")
		createUser(t, s.db, a.ID, SignIn{Email: "new@example.com"})
		invalid(ada, taken, "a link to an address that another user has got")
	})
}

// TestNewAddressLimit checks the limit of a user's new addresses.
func TestNewAddressLimit(t *testing.T) {
	t.Parallel()
	eachSignUpScene(t, func(t *testing.T, s *signUpScene) {
		a := createAccount(t, s.db, "a")
		ada := createUser(t, s.db, a.ID, SignIn{Email: "ada@example.com"})
		createUser(t, s.db, a.ID, SignIn{Email: "new@example.com"})
		for i, email := range []string{"new@example.com", "new@example.com", "new@example.com", "new@example.com"} {
			if _, err := s.askAddress(ada, email); fault.Is(err, fault.RateLimitExceeded) != (i == maxAddressChanges) {
				t.Errorf("request %d: got the error %v, want a 429 after %d", i+1, err, maxAddressChanges)
			}
		}
	})
}
