package account

import (
	"errors"
	"testing"

	"tollgate/internal/store"
	"tollgate/internal/store/storetest"
)

// countHashes returns Passwords with a counter of hashes. read returns the count and ends the counter.
func countHashes() (p *Passwords, read func() int) {
	p = &Passwords{slots: make(chan struct{})}
	stop, result := make(chan struct{}), make(chan int)
	go func() {
		for n := 0; ; n++ {
			select {
			case <-p.slots: // a hash begins
				p.slots <- struct{}{} // and ends
			case <-stop:
				result <- n
				return
			}
		}
	}()
	return p, func() int { close(stop); return <-result }
}

// TestTimeRevealsNoEmail checks that sign-ins, sign-ups, new passwords and new addresses take the same time
// for emails with and without a user: each sign-in and sign-up makes one hash, and each request for a mail waits.
func TestTimeRevealsNoEmail(t *testing.T) {
	t.Parallel()
	eachSignUpScene(t, func(t *testing.T, s *signUpScene) {
		hash, err := NewPasswords().Hash(t.Context(), "right horse")
		if err != nil {
			t.Fatal(err)
		}
		a := createAccount(t, s.db, "a")
		ada := createUser(t, s.db, a.ID, SignIn{Email: "known@example.com", PasswordHash: hash})
		createUser(t, s.db, a.ID, SignIn{Email: "off@example.com", PasswordHash: hash, Disabled: true})
		createUser(t, s.db, a.ID, SignIn{Email: "invited@example.com"})
		for _, email := range []string{"known@example.com", "off@example.com", "invited@example.com", "unknown@example.com"} {
			for name, c := range map[string]struct {
				do     func() error
				hashes int
				wait   bool
			}{
				"sign-in": {func() error {
					_, err := s.signIns.Password(t.Context(), email, "wrong horse", linkAddress)
					if errors.Is(err, ErrWrongSignIn) {
						err = nil
					}
					return err
				}, 1, false},
				"sign-up": {func() error { _, err := s.request(email, linkAddress.String()); return err }, 1, true},
				"reset": {func() error {
					return s.signIns.RequestReset(t.Context(), email, linkAddress, func(*store.Tx, PasswordLink, string) error { return nil })
				}, 0, true},
				"new address": {func() error {
					return s.signIns.RequestAddress(t.Context(), ada.ID, email, func(*store.Tx, AddressChange, string) error { return nil })
				}, 0, true},
			} {
				passwords, hashes := countHashes()
				s.signIns.passwords, s.waited = passwords, 0
				if err := c.do(); err != nil {
					t.Errorf("%s of %s: %v", name, email, err)
				}
				if n := hashes(); n != c.hashes || c.wait != (s.waited == answerTime) {
					t.Errorf("%s of %s: %d hashes and a wait of %v, want %d and a wait: %v", name, email, n, s.waited, c.hashes, c.wait)
				}
				storetest.Exec(t, s.db, `DELETE FROM account_attempt`)
			}
		}
	})
}
