package account

import (
	"sync"
	"testing"

	"tollgate/internal/fault"
	"tollgate/internal/store"
	"tollgate/internal/store/storetest"
)

func TestRoleIncludes(t *testing.T) {
	t.Parallel()
	for _, test := range []struct {
		role, needed OperatorRole
		want         bool
	}{
		{Owner, Owner, true}, {Owner, Support, true}, {Operator, Owner, false}, {Operator, Operator, true}, {Operator, Support, true},
		{Support, Operator, false}, {Support, Support, true},
		{"", Support, false}, {"", "", false}, {Owner, "", false}, {"root", Support, false}, {Owner, "root", false},
	} {
		if got := test.role.Includes(test.needed); got != test.want {
			t.Errorf("role %q includes %q: %v, want %v", test.role, test.needed, got, test.want)
		}
	}
	for _, name := range []string{"", "Owner", "root"} {
		_, err := ParseRole(name)
		wantFault(t, err, fault.InvalidRequest, "role")
	}
}

// TestLastOwnersCannotRemoveOneAnother checks that of two owners that lose their role at the same time, one
// stays, and that a disabled owner does not count.
func TestLastOwnersCannotRemoveOneAnother(t *testing.T) {
	t.Parallel()
	storetest.Each(t, func(t *testing.T, db *store.DB) {
		a := createAccount(t, db, "a")
		owners := []User{createUser(t, db, a.ID, SignIn{Email: "a@example.com", Role: Owner}),
			createUser(t, db, a.ID, SignIn{Email: "b@example.com", Role: Owner})}
		createUser(t, db, a.ID, SignIn{Email: "c@example.com", Role: Owner, Disabled: true})
		errs := make([]error, len(owners))
		var wg sync.WaitGroup
		for i, u := range owners {
			wg.Go(func() {
				errs[i] = db.Update(t.Context(), func(tx *store.Tx) error {
					if _, err := ChangeUserTx(tx, u.ID, UserChange{Role: ptr(Support)}); err != nil {
						return err
					}
					return KeepOwnerTx(tx)
				})
			})
		}
		wg.Wait()
		if (errs[0] == nil) == (errs[1] == nil) {
			t.Fatalf("the changes of the two owners returned %v and %v, want one error", errs[0], errs[1])
		}
		for i, err := range errs {
			want := Support
			if err != nil {
				wantFault(t, err, fault.InvalidRequest, "role")
				want = Owner
			}
			if got := getUser(t, db, owners[i].ID).Role; got != want {
				t.Errorf("owner %d has the role %q, want %q", i, got, want)
			}
		}
	})
}
