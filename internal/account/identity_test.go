package account

import (
	"errors"
	"fmt"
	"sync"
	"testing"
	"time"

	"tollgate/internal/store"
	"tollgate/internal/store/storetest"
)

// flowOf begins a flow and returns its cookie and state.
func flowOf(t *testing.T, db *store.DB, f IdentityFlow) (cookie, state string) {
	t.Helper()
	update(t, db, func(tx *store.Tx) (_ IdentityFlow, err error) {
		f, cookie, state, err = BeginFlowTx(tx, f)
		return f, err
	})
	return cookie, state
}

// TestFlowLife checks that a flow needs its cookie and state, works once, ends after ten minutes, and
// leaves no row then; and that the database has neither the cookie nor the state.
func TestFlowLife(t *testing.T) {
	t.Parallel()
	storetest.EachClock(t, func(t *testing.T, db *store.DB, clock *storetest.Clock) {
		take := func(cookie, state string) (IdentityFlow, error) {
			return store.Write(t.Context(), db, func(tx *store.Tx) (IdentityFlow, error) { return TakeFlowTx(tx, cookie, state) })
		}
		want := IdentityFlow{Purpose: FlowLink, Provider: "corp", Kind: UserSession, Session: "sess_1", Next: "/console/settings"}
		cookie, state := flowOf(t, db, want)
		other, otherState := flowOf(t, db, want)
		for _, pair := range [][2]string{{cookie, "x"}, {"x", state}, {"", ""}, {cookie, otherState}, {cookie, hashText(state)}} {
			if _, err := take(pair[0], pair[1]); !errors.Is(err, ErrNoFlow) {
				t.Errorf("TakeFlowTx with a foreign pair: got the error %v, want %v", err, ErrNoFlow)
			}
		}
		got, err := take(cookie, state)
		if got.Nonce == "" || got.Verifier == "" || got.Nonce == got.Verifier || got.CreatedMS != clock.Now().UnixMilli() {
			t.Errorf("TakeFlowTx = %+v, want a nonce, a verifier and the time", got)
		}
		got.Nonce, got.Verifier, got.CreatedMS = "", "", 0
		if err != nil || got != want {
			t.Errorf("TakeFlowTx = %+v, %v, want %+v", got, err, want)
		}
		if _, err := take(cookie, state); !errors.Is(err, ErrNoFlow) {
			t.Errorf("TakeFlowTx for the second time: got the error %v, want %v", err, ErrNoFlow)
		}
		clock.Advance(FlowAge)
		if _, err := take(other, otherState); !errors.Is(err, ErrNoFlow) {
			t.Errorf("TakeFlowTx after ten minutes: got the error %v, want %v", err, ErrNoFlow)
		}
		clock.Advance(time.Hour)
		if err := NewSignIns(db, NewPasswords(), nil).Sweep(t.Context()); err != nil {
			t.Fatal(err)
		}
		rows := update(t, db, func(tx *store.Tx) (n int, err error) {
			err = tx.QueryRow(`SELECT count(*) FROM account_flow`).Scan(&n)
			return n, err
		})
		if rows != 0 {
			t.Errorf("after the sweep there are %d flows, want none", rows)
		}
	})
}

// TestIdentityHasOneUser checks that one of several users gets an identity at the same time, that a
// repetition changes nothing, and that a user's number of identities is bounded.
func TestIdentityHasOneUser(t *testing.T) {
	t.Parallel()
	storetest.Each(t, func(t *testing.T, db *store.DB) {
		a := createAccount(t, db, "a")
		person := LinkedIdentity{Issuer: "https://idp.example", Subject: "1", Email: "x@example.com"}
		var wg sync.WaitGroup
		errs := make([]error, 4)
		users := make([]User, len(errs))
		for i := range errs {
			users[i] = createUser(t, db, a.ID, SignIn{Email: fmt.Sprintf("u%d@example.com", i)})
		}
		for i := range errs {
			wg.Go(func() {
				errs[i] = db.Update(t.Context(), func(tx *store.Tx) error { _, err := AddIdentityTx(tx, users[i].ID, person); return err })
			})
		}
		wg.Wait()
		winner := -1
		for i, err := range errs {
			switch {
			case err == nil && winner < 0:
				winner = i
			case err == nil || !errors.Is(err, ErrIdentityTaken):
				t.Errorf("AddIdentityTx of user %d: got the error %v, want one user with the identity", i, err)
			}
		}
		if winner < 0 {
			t.Fatal("no user has the identity")
		}
		first := update(t, db, func(tx *store.Tx) (LinkedIdentity, error) { return AddIdentityTx(tx, users[winner].ID, person) })
		again := update(t, db, func(tx *store.Tx) (LinkedIdentity, error) { return AddIdentityTx(tx, users[winner].ID, person) })
		if first != again {
			t.Errorf("a repetition gives %+v, want %+v", again, first)
		}
		for i := 2; i <= maxIdentities; i++ {
			person.Subject = fmt.Sprint(i)
			update(t, db, func(tx *store.Tx) (LinkedIdentity, error) { return AddIdentityTx(tx, users[winner].ID, person) })
		}
		person.Subject = "more"
		if err := db.Update(t.Context(), func(tx *store.Tx) error {
			_, err := AddIdentityTx(tx, users[winner].ID, person)
			return err
		}); err == nil {
			t.Errorf("a user got more than %d identities", maxIdentities)
		}
		update(t, db, func(tx *store.Tx) (bool, error) { return true, DeleteUserTx(tx, users[winner].ID) })
		person.Subject = "1"
		if update(t, db, func(tx *store.Tx) (found bool, err error) {
			_, found, err = IdentityTx(tx, person.Issuer, person.Subject)
			return found, err
		}) {
			t.Error("an identity of a deleted user is found")
		}
	})
}

// TestLastWayStays checks that a user keeps a password or an identity at a configured provider.
func TestLastWayStays(t *testing.T) {
	t.Parallel()
	storetest.Each(t, func(t *testing.T, db *store.DB) {
		a := createAccount(t, db, "a")
		u := createUser(t, db, a.ID, SignIn{Email: "u@example.com"})
		if !u.Invited() {
			t.Error("a user without password and identity is not invited")
		}
		var ids []string
		for _, issuer := range []string{"https://one.example", "https://gone.example"} {
			i := update(t, db, func(tx *store.Tx) (LinkedIdentity, error) {
				return AddIdentityTx(tx, u.ID, LinkedIdentity{Issuer: issuer, Subject: "1"})
			})
			ids = append(ids, i.ID)
		}
		remove := func(id string, issuers ...string) error {
			return db.Update(t.Context(), func(tx *store.Tx) error { _, err := RemoveIdentityTx(tx, u.ID, id, issuers); return err })
		}
		if err := remove(ids[0], "https://one.example"); err == nil {
			t.Error("the last identity at a configured provider was removed")
		}
		if err := remove(ids[1], "https://one.example"); err != nil {
			t.Errorf("removing an identity at a provider that is gone: %v, want no error", err)
		}
		if err := remove(ids[0], "https://one.example"); err == nil {
			t.Error("the last identity was removed")
		}
		update(t, db, func(tx *store.Tx) (User, error) {
			return ChangeUserTx(tx, u.ID, UserChange{PasswordHash: new("a hash")})
		})
		if err := remove(ids[0], "https://one.example"); err != nil {
			t.Errorf("removing the identity of a user with a password: %v, want no error", err)
		}
	})
}

// TestMarksWithoutPassword checks that nobody can make a mark of a user without a password, and that a
// mark ends when the user gets one.
func TestMarksWithoutPassword(t *testing.T) {
	t.Parallel()
	eachSignInScene(t, func(s *signInScene) {
		a := createAccount(t, s.db, "b")
		u := createUser(t, s.db, a.ID, SignIn{Email: "u@example.com"})
		mark := s.mark(u.ID)
		knows := func(mark string) bool {
			return update(t, s.db, func(tx *store.Tx) (bool, error) { return KnowsBrowserTx(tx, u.ID, []string{mark}) })
		}
		if !knows(mark) {
			t.Error("the mark of a user without a password is not valid")
		}
		browser, createdMS := newToken(), fmt.Sprint(s.clock.Now().UnixMilli())
		for _, key := range []string{"", noPassword} {
			if knows(browser + "." + createdMS + "." + signMark(key, u.ID, browser, createdMS)) {
				t.Errorf("a mark signed with %q is valid", key)
			}
		}
		update(t, s.db, func(tx *store.Tx) (User, error) {
			return ChangeUserTx(tx, u.ID, UserChange{PasswordHash: new("a hash")})
		})
		if knows(mark) {
			t.Error("a mark is valid after the password has changed")
		}
	})
}

// TestConfirmedSession checks that a session is confirmed for ten minutes, and not by a clock that was
// ahead.
func TestConfirmedSession(t *testing.T) {
	t.Parallel()
	storetest.EachClock(t, func(t *testing.T, db *store.DB, clock *storetest.Clock) {
		a := createAccount(t, db, "a")
		u := createUser(t, db, a.ID, SignIn{Email: "u@example.com"})
		var value string
		session := update(t, db, func(tx *store.Tx) (s ConsoleSession, err error) {
			s, value, err = OpenSessionTx(tx, NewSession{Kind: UserSession, User: u.ID})
			return s, err
		})
		check := func(want bool) {
			t.Helper()
			got := update(t, db, func(tx *store.Tx) (ConsoleSession, error) {
				s, _, err := SessionTx(tx, UserSession, value, SessionSettings{})
				return s, err
			})
			if got.Confirmed != want || !got.User.NoPassword {
				t.Errorf("the session is %+v, want confirmed: %v, without a password", got, want)
			}
		}
		check(false)
		update(t, db, func(tx *store.Tx) (bool, error) { return true, ConfirmSessionTx(tx, session.ID) })
		check(true)
		clock.Advance(confirmWindow - time.Millisecond)
		check(true)
		clock.Advance(time.Millisecond)
		check(false)
		clock.Advance(-time.Hour)
		check(false)
	})
}
