package account

import (
	"testing"
	"time"

	"tollgate/internal/store"
	"tollgate/internal/store/storetest"
)

// TestAcceptances checks that a session knows the acceptance of the current version alone, that users have the
// newest one with its first time, and that a deleted user leaves none.
func TestAcceptances(t *testing.T) {
	t.Parallel()
	storetest.EachClock(t, func(t *testing.T, db *store.DB, clock *storetest.Clock) {
		a := createAccount(t, db, "a")
		u := createUser(t, db, a.ID, SignIn{Email: "a@example.com", PasswordHash: "$h"})
		value := openSession(t, db, NewSession{Kind: UserSession, User: u.ID})
		var times []int64
		for _, version := range []string{"1", "2", "2", "0"} {
			storetest.Update(t, db, func(tx *store.Tx) error { return AcceptTermsTx(tx, u.ID, version, linkAddress) })
			got, err := try(t, db, func(tx *store.Tx) (User, error) { return GetUserTx(tx, u.ID) })
			if err != nil || got.TermsVersion != version {
				t.Fatalf("the user has %+v, %v, want version %s", got, err, version)
			}
			times = append(times, got.TermsMS)
			s, _, err := findSession(t, db, UserSession, value, "")
			if err != nil || s.Accepted != (version != "1") { // findSession asks for version 2
				t.Errorf("after version %s: the session is %+v, %v", version, s, err)
			}
			clock.Advance(time.Minute)
		}
		if times[0] == 0 || times[1] == times[0] || times[2] != times[1] || times[3] == times[2] {
			t.Errorf("the times are %v, want a new one for each version", times)
		}
		storetest.Update(t, db, func(tx *store.Tx) error { return DeleteUserTx(tx, u.ID) })
		if n := count(t, db, `SELECT COUNT(*) FROM account_acceptance`); n != 0 {
			t.Errorf("%d acceptances are left", n)
		}
	})
}
