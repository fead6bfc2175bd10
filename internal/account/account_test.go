package account

import (
	"context"
	"errors"
	"reflect"
	"strings"
	"testing"

	"tollgate/internal/fault"
	"tollgate/internal/money"
	"tollgate/internal/store"
	"tollgate/internal/store/storetest"
)

// update runs fn in a transaction and returns its result. Any error fails the test.
func update[T any](t *testing.T, db *store.DB, fn func(tx *store.Tx) (T, error)) T {
	t.Helper()
	out, err := try(t, db, fn)
	if err != nil {
		t.Fatal(err)
	}
	return out
}

// count returns the result of a query for a number.
func count(t *testing.T, db *store.DB, query string) int {
	t.Helper()
	return update(t, db, func(tx *store.Tx) (n int, err error) {
		err = tx.QueryRow(query).Scan(&n)
		return n, err
	})
}

func try[T any](t *testing.T, db *store.DB, fn func(tx *store.Tx) (T, error)) (out T, err error) {
	t.Helper()
	err = db.Update(context.Background(), func(tx *store.Tx) error {
		out, err = fn(tx)
		return err
	})
	return out, err
}

// wantFault checks that err is the client-visible error with a code and field.
func wantFault(t *testing.T, err error, code fault.Code, param string) {
	t.Helper()
	var f *fault.Error
	if !errors.As(err, &f) {
		t.Fatalf("got the error %v, want a fault %s", err, code)
	}
	if f.Code != code || f.Param != param || f.Message() == "" {
		t.Fatalf("got %s at %q (%q), want %s at %q", f.Code, f.Param, f.Message(), code, param)
	}
}

func createAccount(t *testing.T, db *store.DB, name string) Account {
	t.Helper()
	return update(t, db, func(tx *store.Tx) (Account, error) { return CreateTx(tx, NewAccount{Name: name}) })
}

func createUser(t *testing.T, db *store.DB, account string, s SignIn) User {
	t.Helper()
	return update(t, db, func(tx *store.Tx) (User, error) { return CreateUserTx(tx, account, s) })
}

func getUser(t *testing.T, db *store.DB, user string) User {
	t.Helper()
	return update(t, db, func(tx *store.Tx) (User, error) { return GetUserTx(tx, user) })
}

func changeUser(t *testing.T, db *store.DB, user string, c UserChange) User {
	t.Helper()
	return update(t, db, func(tx *store.Tx) (User, error) { return ChangeUserTx(tx, user, c) })
}

func openSession(t *testing.T, db *store.DB, n NewSession) (value string) {
	t.Helper()
	return update(t, db, func(tx *store.Tx) (string, error) {
		_, value, err := OpenSessionTx(tx, n)
		return value, err
	})
}

func listUsers(t *testing.T, db *store.DB, account string) []User {
	t.Helper()
	return update(t, db, func(tx *store.Tx) ([]User, error) {
		list, _, err := ListUsersTx(tx, account, "", 10)
		return list, err
	})
}

func listSessions(t *testing.T, db *store.DB, user string) []ConsoleSession {
	t.Helper()
	return update(t, db, func(tx *store.Tx) ([]ConsoleSession, error) {
		list, _, err := ListSessionsTx(tx, user, "", 10)
		return list, err
	})
}

func TestAccountLife(t *testing.T) {
	t.Parallel()
	storetest.Each(t, func(t *testing.T, db *store.DB) {
		created := update(t, db, func(tx *store.Tx) (Account, error) {
			return CreateTx(tx, NewAccount{Name: "  Ada  ", Email: "Ada@Example.COM", Floor: -5 * money.USD})
		})
		if !strings.HasPrefix(created.ID, "acct_") || created.Name != "Ada" || created.Email != "ada@example.com" || created.CreatedMS == 0 {
			t.Errorf("created %+v, want the name Ada and the email ada@example.com", created)
		}
		if created.Money.Floor != -5*money.USD || created.Money.Balance != 0 || created.Money.Disabled {
			t.Errorf("created with %+v, want the floor -5 USD", created.Money)
		}
		name, yes, floor := "Grace", true, money.Amount(0)
		changed := update(t, db, func(tx *store.Tx) (Account, error) {
			return ChangeTx(tx, created.ID, Patch{Name: &name, Disabled: &yes, Floor: &floor})
		})
		if changed.Name != "Grace" || !changed.Money.Disabled || changed.Money.Floor != 0 || changed.Email != created.Email ||
			changed.CreatedMS != created.CreatedMS {
			t.Errorf("changed to %+v, want the name Grace, disabled, with the floor 0", changed)
		}
		unchanged := update(t, db, func(tx *store.Tx) (Account, error) { return ChangeTx(tx, created.ID, Patch{}) })
		if !reflect.DeepEqual(unchanged, changed) {
			t.Errorf("an empty change returned %+v, want %+v", unchanged, changed)
		}
		if users := listUsers(t, db, created.ID); len(users) != 0 {
			t.Errorf("an email without a password created the sign-ins %v", users)
		}
	})
}

func TestAccountFaults(t *testing.T) {
	t.Parallel()
	storetest.Each(t, func(t *testing.T, db *store.DB) {
		a := createAccount(t, db, "first")
		update(t, db, func(tx *store.Tx) (Account, error) {
			return CreateTx(tx, NewAccount{Name: "second", Email: "taken@example.com", PasswordHash: "$hash"})
		})
		blank, positive := " ", money.USD
		tests := map[string]struct {
			do    func(tx *store.Tx) (Account, error)
			code  fault.Code
			param string
		}{
			"no name": {func(tx *store.Tx) (Account, error) { return CreateTx(tx, NewAccount{}) }, fault.InvalidRequest, "name"},
			"long name": {func(tx *store.Tx) (Account, error) { return CreateTx(tx, NewAccount{Name: strings.Repeat("ä", 201)}) },
				fault.InvalidRequest, "name"},
			"control character in name": {func(tx *store.Tx) (Account, error) { return CreateTx(tx, NewAccount{Name: "a\x00b"}) },
				fault.InvalidRequest, "name"},
			"positive floor": {func(tx *store.Tx) (Account, error) { return CreateTx(tx, NewAccount{Name: "x", Floor: 1}) }, fault.InvalidRequest,
				"overdraft_floor_usd"},
			"bad email": {func(tx *store.Tx) (Account, error) { return CreateTx(tx, NewAccount{Name: "x", Email: "x"}) },
				fault.InvalidRequest, "email"},
			"password without email": {func(tx *store.Tx) (Account, error) { return CreateTx(tx, NewAccount{Name: "x", PasswordHash: "$hash"}) },
				fault.InvalidRequest, "email"},
			"email taken": {func(tx *store.Tx) (Account, error) {
				return CreateTx(tx, NewAccount{Name: "x", Email: "TAKEN@example.com", PasswordHash: "$hash"})
			}, fault.InvalidRequest, "email"},
			"unknown":        {func(tx *store.Tx) (Account, error) { return GetTx(tx, "acct_none") }, fault.NotFound, ""},
			"change unknown": {func(tx *store.Tx) (Account, error) { return ChangeTx(tx, "acct_none", Patch{}) }, fault.NotFound, ""},
			"rename blank": {func(tx *store.Tx) (Account, error) { return ChangeTx(tx, a.ID, Patch{Name: &blank}) },
				fault.InvalidRequest, "name"},
			"raise floor": {func(tx *store.Tx) (Account, error) { return ChangeTx(tx, a.ID, Patch{Floor: &positive}) }, fault.InvalidRequest,
				"overdraft_floor_usd"},
		}
		for name, test := range tests {
			t.Run(name, func(t *testing.T) {
				_, err := try(t, db, test.do)
				wantFault(t, err, test.code, test.param)
			})
		}
		list, _ := listAccounts(t, db, "", 10)
		if len(list) != 2 {
			t.Errorf("after the rejected creations there are %d accounts, want 2", len(list))
		}
	})
}

func listAccounts(t *testing.T, db *store.DB, after string, limit int) (list []Account, more bool) {
	t.Helper()
	list = update(t, db, func(tx *store.Tx) (list []Account, err error) {
		list, more, err = ListTx(tx, after, limit)
		return list, err
	})
	return list, more
}

func TestAccountPages(t *testing.T) {
	t.Parallel()
	storetest.Each(t, func(t *testing.T, db *store.DB) {
		created := make(map[string]bool)
		for range 5 {
			created[createAccount(t, db, "n").ID] = true
		}
		seen, after := make(map[string]bool), ""
		for pages := 1; ; pages++ {
			list, more := listAccounts(t, db, after, 2)
			for _, a := range list {
				if seen[a.ID] || !created[a.ID] || a.ID <= after {
					t.Fatalf("page %d has %s twice or out of order", pages, a.ID)
				}
				seen[a.ID], after = true, a.ID
			}
			if !more {
				if pages != 3 || len(seen) != 5 {
					t.Fatalf("%d accounts on %d pages, want 5 on 3", len(seen), pages)
				}
				break
			}
		}
		if list, more := listAccounts(t, db, "zzz", 2); len(list) != 0 || more {
			t.Errorf("after the last account: got %v and more %v, want no accounts", list, more)
		}
	})
}
