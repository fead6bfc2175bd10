package account

import (
	"errors"
	"fmt"
	"sync"
	"sync/atomic"
	"testing"

	"tollgate/internal/fault"
	"tollgate/internal/store"
	"tollgate/internal/store/storetest"
)

func TestUserLife(t *testing.T) {
	t.Parallel()
	storetest.Each(t, func(t *testing.T, db *store.DB) {
		a := update(t, db, func(tx *store.Tx) (Account, error) {
			return CreateTx(tx, NewAccount{Name: "a", Email: "first@example.com", PasswordHash: "$one"})
		})
		second := createUser(t, db, a.ID, SignIn{Email: "Second@Example.com", PasswordHash: "$two", Role: Owner})
		if second.Email != "second@example.com" || second.Role != Owner || second.Disabled || second.Account != a.ID {
			t.Errorf("created %+v, want an enabled operator with the email second@example.com", second)
		}
		if got := getUser(t, db, second.ID); got != second {
			t.Errorf("GetUserTx = %+v, want %+v", got, second)
		}
		email, hash, yes := "new@example.com", "$three", true
		changed := changeUser(t, db, second.ID, UserChange{Email: &email, PasswordHash: &hash, Disabled: &yes, Role: ptr(OperatorRole(""))})
		want := second
		want.Email, want.Disabled, want.Role = email, true, ""
		if changed != want {
			t.Errorf("changed to %+v, want %+v", changed, want)
		}
		stored := update(t, db, func(tx *store.Tx) (s string, err error) {
			err = tx.QueryRow(`SELECT password FROM account_user WHERE id = $1`, second.ID).Scan(&s)
			return s, err
		})
		if stored != hash {
			t.Errorf("stored password %q, want %q", stored, hash)
		}
		storetest.Update(t, db, func(tx *store.Tx) error { return DeleteUserTx(tx, second.ID) })
		if remaining := listUsers(t, db, a.ID); len(remaining) != 1 || remaining[0].Email != "first@example.com" {
			t.Errorf("after the deletion the users are %+v, want only first@example.com", remaining)
		}
		// A deleted sign-in's email is free again.
		createUser(t, db, a.ID, SignIn{Email: email, PasswordHash: "$four"})
	})
}

func TestUserFaults(t *testing.T) {
	t.Parallel()
	storetest.Each(t, func(t *testing.T, db *store.DB) {
		a := createAccount(t, db, "a")
		add := func(email string) User {
			return createUser(t, db, a.ID, SignIn{Email: email, PasswordHash: "$h"})
		}
		first, second := add("one@example.com"), add("two@example.com")
		usedEmail, badEmail := "ONE@example.com", "one"
		tests := map[string]struct {
			do    func(tx *store.Tx) (User, error)
			code  fault.Code
			param string
		}{
			"no account": {func(tx *store.Tx) (User, error) {
				return CreateUserTx(tx, "acct_none", SignIn{Email: "x@example.com", PasswordHash: "$h"})
			}, fault.NotFound, ""},
			"no email": {func(tx *store.Tx) (User, error) { return CreateUserTx(tx, a.ID, SignIn{PasswordHash: "$h"}) },
				fault.InvalidRequest, "email"},
			"email taken": {func(tx *store.Tx) (User, error) {
				return CreateUserTx(tx, a.ID, SignIn{Email: usedEmail, PasswordHash: "$h"})
			}, fault.InvalidRequest, "email"},
			"change to taken email": {func(tx *store.Tx) (User, error) { return ChangeUserTx(tx, second.ID, UserChange{Email: &usedEmail}) },
				fault.InvalidRequest, "email"},
			"change to bad email": {func(tx *store.Tx) (User, error) { return ChangeUserTx(tx, second.ID, UserChange{Email: &badEmail}) },
				fault.InvalidRequest, "email"},
			"change unknown": {func(tx *store.Tx) (User, error) { return ChangeUserTx(tx, "user_none", UserChange{}) }, fault.NotFound, ""},
			"get unknown":    {func(tx *store.Tx) (User, error) { return GetUserTx(tx, "user_none") }, fault.NotFound, ""},
			"delete unknown": {func(tx *store.Tx) (User, error) { return User{}, DeleteUserTx(tx, "user_none") }, fault.NotFound, ""},
		}
		for name, test := range tests {
			t.Run(name, func(t *testing.T) {
				_, err := try(t, db, test.do)
				wantFault(t, err, test.code, test.param)
			})
		}
		// Setting the same email again is not a conflict.
		if same := changeUser(t, db, first.ID, UserChange{Email: &usedEmail}); same != first {
			t.Errorf("setting the same email changed %+v to %+v", first, same)
		}
	})
}

// TestBarredUser checks that a user disabled by an operator stays disabled until an operator
// enables it, whatever else changes.
func TestBarredUser(t *testing.T) {
	t.Parallel()
	storetest.Each(t, func(t *testing.T, db *store.DB) {
		a := createAccount(t, db, "a")
		u := createUser(t, db, a.ID, SignIn{Email: "u@example.com", PasswordHash: "$h", Disabled: true})
		for _, step := range []struct {
			change           UserChange
			disabled, barred bool
		}{
			{UserChange{}, true, true}, // only operators add disabled users
			{UserChange{Email: ptr("v@example.com"), PasswordHash: ptr("$i"), ByOperator: true}, true, true},
			{UserChange{Disabled: ptr(false), ByOperator: true}, false, false},
			{UserChange{Disabled: ptr(true)}, true, false},
			{UserChange{Role: ptr(OperatorRole("")), ByOperator: true}, true, false},
			{UserChange{Disabled: ptr(true), ByOperator: true}, true, true},
			{UserChange{Disabled: ptr(false)}, false, false},
		} {
			got := changeUser(t, db, u.ID, step.change)
			read := getUser(t, db, u.ID)
			if got != read || got.Disabled != step.disabled || got.Barred != step.barred {
				t.Errorf("%+v: changed to %+v, read %+v, want disabled %v, barred %v", step.change, got, read, step.disabled, step.barred)
			}
		}
		// A node of a former version enables the user without resetting barred.
		update(t, db, func(tx *store.Tx) (int64, error) {
			return tx.Exec(`UPDATE account_user SET barred = 1, disabled = 0 WHERE id = $1`, u.ID)
		})
		if got := getUser(t, db, u.ID); got.Barred {
			t.Errorf("the enabled user %+v is barred", got)
		}
	})
}

// TestUserEmailRace checks that only one of several concurrent creations and changes gets an email,
// and that the others get an error at email.
func TestUserEmailRace(t *testing.T) {
	t.Parallel()
	storetest.Each(t, func(t *testing.T, db *store.DB) {
		a := createAccount(t, db, "a")
		email := "wanted@example.com"
		var won atomic.Int64
		var all sync.WaitGroup
		race := func(want func(tx *store.Tx) (User, error)) {
			all.Go(func() {
				_, err := try(t, db, want)
				var f *fault.Error
				switch {
				case err == nil:
					won.Add(1)
				case !errors.As(err, &f) || f.Code != fault.InvalidRequest || f.Param != "email":
					t.Error(err)
				}
			})
		}
		for n := range 4 {
			u := createUser(t, db, a.ID, SignIn{Email: fmt.Sprintf("%d@example.com", n), PasswordHash: "$h"})
			race(func(tx *store.Tx) (User, error) { return ChangeUserTx(tx, u.ID, UserChange{Email: &email}) })
			race(func(tx *store.Tx) (User, error) {
				return CreateUserTx(tx, a.ID, SignIn{Email: email, PasswordHash: "$h"})
			})
		}
		all.Wait()
		if n := won.Load(); n != 1 {
			t.Errorf("%d users got the email, want 1", n)
		}
	})
}
