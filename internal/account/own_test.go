package account

import (
	"errors"
	"fmt"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"tollgate/internal/fault"
	"tollgate/internal/store"
	"tollgate/internal/store/storetest"
)

// insertRows inserts n rows of an account with the statement insert, which selects the numbers 1 to n
// from n (i).
func insertRows(t *testing.T, db *store.DB, account, insert string, n int) {
	t.Helper()
	update(t, db, func(tx *store.Tx) (int64, error) {
		return tx.Exec(strings.Replace(insert, "SELECT", `WITH RECURSIVE n (i) AS
			(SELECT CAST(1 AS BIGINT) UNION ALL SELECT i + 1 FROM n WHERE i < $2) SELECT`, 1), account, n)
	})
}

// TestOwnKeysAndUsersAreBounded checks that only one of several concurrent creations reaches the
// limit, and that a deletion makes room for one more. Operators must not be limited.
func TestOwnKeysAndUsersAreBounded(t *testing.T) {
	t.Parallel()
	const (
		keys = `INSERT INTO api_key (id, account, hash, name, hint, allowed_models, allowed_ips, created_ms, deleted)
			SELECT 'key_' || CAST(i AS TEXT), CAST($1 AS TEXT), CAST(i AS TEXT), '', '', '', '', 0, 0 FROM n`
		users = `INSERT INTO account_user (id, account, email, password, disabled, role, created_ms)
			SELECT 'user_' || CAST(i AS TEXT), CAST($1 AS TEXT), 'u' || CAST(i AS TEXT) || '@example.com', '', 0, '', 0 FROM n`
	)
	for name, test := range map[string]struct {
		insert    string
		maxCount  int
		create    func(tx *store.Tx, account string, n int64, role string) error
		freeQuery string
		message   string
	}{
		"keys": {keys, maxOwnKeys, func(tx *store.Tx, account string, _ int64, role string) error {
			create := CreateOwnKeyTx
			if role == "operator" {
				create = CreateKeyTx
			}
			_, _, err := create(tx, account, KeySettings{})
			return err
		}, `UPDATE api_key SET deleted = 1 WHERE id IN ('key_1', 'key_2')`, "This account has 1000 keys"},
		"users": {users, maxOwnUsers, func(tx *store.Tx, account string, n int64, role string) error {
			create := CreateOwnUserTx
			if role == "operator" {
				create = CreateUserTx
			}
			_, err := create(tx, account, SignIn{Email: fmt.Sprintf("new%d@example.com", n)})
			return err
		}, `DELETE FROM account_user WHERE id IN ('user_1', 'user_2')`, "This account has 100 users"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			storetest.Each(t, func(t *testing.T, db *store.DB) {
				a, otherAccount := createAccount(t, db, "a"), createAccount(t, db, "other")
				var attempts atomic.Int64
				create := func(account, role string) error {
					n := attempts.Add(1)
					_, err := try(t, db, func(tx *store.Tx) (bool, error) { return true, test.create(tx, account, n, role) })
					return err
				}
				// race runs eight concurrent creations and returns the number of successful ones.
				race := func() (created int64) {
					t.Helper()
					var all sync.WaitGroup
					var successes atomic.Int64
					start := make(chan struct{})
					for range 8 {
						all.Go(func() {
							<-start
							err := create(a.ID, "user")
							var f *fault.Error
							switch {
							case err == nil:
								successes.Add(1)
							case !errors.As(err, &f) || f.Code != fault.InvalidRequest || !strings.HasPrefix(f.Message(), test.message):
								t.Error(err)
							}
						})
					}
					close(start)
					all.Wait()
					return successes.Load()
				}
				insertRows(t, db, a.ID, test.insert, test.maxCount-1)
				if created := race(); created != 1 {
					t.Errorf("%d of 8 creations succeeded, want 1 because the limit leaves room for one more", created)
				}
				if err := create(otherAccount.ID, "user"); err != nil {
					t.Error("creation in another account:", err)
				}
				if err := create(a.ID, "operator"); err != nil {
					t.Error("creation by an operator:", err)
				}
				update(t, db, func(tx *store.Tx) (int64, error) { return tx.Exec(test.freeQuery) })
				if created := race(); created != 1 {
					t.Errorf("%d of 8 creations succeeded, want 1 because a deletion made room for one more", created)
				}
			})
		})
	}
}

// TestDeletedKeysCountForADay checks that an account's users can create at most 1,000 keys a day,
// including deleted keys.
func TestDeletedKeysCountForADay(t *testing.T) {
	t.Parallel()
	storetest.EachClock(t, func(t *testing.T, db *store.DB, clock *storetest.Clock) {
		a, otherAccount := createAccount(t, db, "a"), createAccount(t, db, "other")
		now := update(t, db, func(tx *store.Tx) (int64, error) { return tx.NowMS() })
		insertRows(t, db, a.ID, fmt.Sprintf(`INSERT INTO api_key (id, account, hash, name, hint, allowed_models, allowed_ips, created_ms, deleted)
			SELECT 'key_' || CAST(i AS TEXT), CAST($1 AS TEXT), CAST(i AS TEXT), '', '', '', '', %d, 1 FROM n`, now), maxOwnKeys-1)
		createAndDelete := func(account string) error {
			_, err := try(t, db, func(tx *store.Tx) (Key, error) {
				k, _, err := CreateOwnKeyTx(tx, account, KeySettings{})
				if err != nil {
					return k, err
				}
				return k, DeleteKeyTx(tx, k.ID)
			})
			return err
		}
		if err := createAndDelete(a.ID); err != nil {
			t.Fatal("creation 1000 of a day:", err)
		}
		for _, wait := range []time.Duration{keyWindow - time.Minute, 2 * time.Minute} {
			err := createAndDelete(a.ID)
			wantFault(t, err, fault.InvalidRequest, "")
			if text := fault.Of(err).Message(); !strings.HasPrefix(text, "1000 keys of this account were made within a day, deleted ones too") {
				t.Error("got the message", text)
			}
			clock.Advance(wait)
		}
		if err := createAndDelete(otherAccount.ID); err != nil {
			t.Error("creation in another account:", err)
		}
		createKey(t, db, a.ID, KeySettings{}) // operators have no limit
		if err := createAndDelete(a.ID); err != nil {
			t.Error("creation a day later:", err)
		}
	})
}

// TestUserAddsAreLimited checks that all nodes together allow 20 adds within a day, also after
// sweeps, and that sweeps delete expired rows.
func TestUserAddsAreLimited(t *testing.T) {
	t.Parallel()
	storetest.EachClock(t, func(t *testing.T, db *store.DB, clock *storetest.Clock) {
		first, second := NewSignIns(db, NewPasswords(), nil), NewSignIns(db, NewPasswords(), nil)
		for i := range maxAdds {
			e := first
			if i%2 == 0 {
				e = second
			}
			if err := e.CountUserAdd(t.Context(), "acct_a"); err != nil {
				t.Fatalf("add %d: %v", i, err)
			}
			clock.Advance(time.Hour)
			if err := first.Sweep(t.Context()); err != nil {
				t.Fatal(err)
			}
		}
		wantLimit := func(wait time.Duration, message string) {
			t.Helper()
			err := first.CountUserAdd(t.Context(), "acct_a")
			wantFault(t, err, fault.RateLimitExceeded, "")
			if f := fault.Of(err); f.RetryAfter != wait || !strings.HasSuffix(f.Message(), message) ||
				!strings.HasPrefix(f.Message(), "The users of this account have tried to add 20 others within a day.") {
				t.Errorf("got the message %q and the wait %s, want %q and %s", f.Message(), f.RetryAfter, message, wait)
			}
		}
		wantLimit(4*time.Hour, "Try again in 4 hours.")
		if err := first.CountUserAdd(t.Context(), "acct_b"); err != nil {
			t.Error("add in another account:", err)
		}
		clock.Advance(4*time.Hour - time.Minute)
		wantLimit(time.Minute, "Try again in a minute.")
		clock.Advance(time.Minute)
		if err := first.CountUserAdd(t.Context(), "acct_a"); err != nil {
			t.Error("add a day after the first:", err)
		}
		wantLimit(time.Hour, "Try again in 60 minutes.")
		clock.Advance(-48 * time.Hour) // rows with a future time do not count
		for i := range maxAdds {
			if err := first.CountUserAdd(t.Context(), "acct_a"); err != nil {
				t.Fatalf("add %d after the clock was set back: %v", i, err)
			}
		}
		wantLimit(addWindow, "Try again in 24 hours.")
		clock.Advance(4 * 24 * time.Hour)
		if err := first.Sweep(t.Context()); err != nil {
			t.Fatal(err)
		}
		if remaining := count(t, db, `SELECT count(*) FROM account_attempt`); remaining != 0 {
			t.Errorf("after the last sweep there are %d rows, want 0", remaining)
		}
	})
}
