package operator

import (
	"testing"

	"tollgate/internal/account"
	"tollgate/internal/fault"
	"tollgate/internal/store"
	"tollgate/internal/store/storetest"
)

// TestOnlyOwnersChangeOperators checks each act on a sign-in with a role, and on its role, for each role of
// the actor. A rejected act changes nothing.
func TestOnlyOwnersChangeOperators(t *testing.T) {
	t.Parallel()
	storetest.Each(t, func(t *testing.T, db *store.DB) {
		acts := map[string]func(tx *store.Tx, by Actor, customer, helper string) error{
			"create": func(tx *store.Tx, by Actor, _, _ string) error {
				_, err := InviteOperatorTx(tx, by, nil, "", account.SignIn{Email: "new@example.com", Role: account.Support})
				return err
			},
			"promote": func(tx *store.Tx, by Actor, customer, _ string) error {
				_, err := SetRoleTx(tx, by, customer, account.Support)
				return err
			},
			"promote more": func(tx *store.Tx, by Actor, _, helper string) error {
				_, err := SetRoleTx(tx, by, helper, account.Owner)
				return err
			},
			"demote": func(tx *store.Tx, by Actor, _, helper string) error {
				_, err := SetRoleTx(tx, by, helper, "")
				return err
			},
			"password": func(tx *store.Tx, by Actor, _, helper string) error {
				_, err := ChangeUserTx(tx, by, helper, account.UserChange{PasswordHash: new("$x")})
				return err
			},
			"link": func(tx *store.Tx, by Actor, _, helper string) error {
				_, err := CreateLinkTx(tx, by, nil, "", helper)
				return err
			},
			"delete": func(tx *store.Tx, by Actor, _, helper string) error { return DeleteUserTx(tx, by, helper) },
			"disable": func(tx *store.Tx, by Actor, _, helper string) error {
				_, err := ChangeUserTx(tx, by, helper, account.UserChange{Disabled: new(true)})
				return err
			},
			"second factor": func(tx *store.Tx, by Actor, _, helper string) error {
				_, err := ChangeUserTx(tx, by, helper, account.UserChange{NoFactor: true})
				return err
			},
			"unlink": func(tx *store.Tx, by Actor, _, helper string) error {
				i, err := account.AddIdentityTx(tx, helper, account.LinkedIdentity{Issuer: "https://corp.example", Subject: "1"})
				if err != nil {
					return err
				}
				_, err = DropIdentityTx(tx, i.ID, func(issuer string) string { return issuer }, IdentityNews{By: by})
				return err
			},
		}
		for name, act := range acts {
			for _, role := range append(account.Roles(), "") {
				storetest.Exec(t, db, `DELETE FROM account_user`)
				by := Actor{Way: Console, Name: "me@example.com", Role: role}
				var customer, helper account.User
				var rows int
				storetest.Update(t, db, func(tx *store.Tx) error {
					a, err := account.CreateTx(tx, account.NewAccount{Name: "a"})
					if err != nil {
						return err
					}
					if customer, err = account.CreateUserTx(tx, a.ID, account.SignIn{Email: "customer@example.com"}); err != nil {
						return err
					}
					if helper, err = account.CreateUserTx(tx, a.ID, account.SignIn{Email: "helper@example.com", Role: account.Operator}); err != nil {
						return err
					}
					return tx.QueryRow(`SELECT count(*) FROM operator_log`).Scan(&rows)
				})
				err := db.Update(t.Context(), func(tx *store.Tx) error { return act(tx, by, customer.ID, helper.ID) })
				if role == account.Owner {
					if err != nil {
						t.Errorf("%s as owner: %v, want no error", name, err)
					}
					continue
				}
				if !fault.Is(err, fault.PermissionDenied) {
					t.Errorf("%s as %q: %v, want permission_denied", name, role, err)
				}
				var after, users int
				storetest.Update(t, db, func(tx *store.Tx) error {
					return tx.QueryRow(`SELECT (SELECT count(*) FROM operator_log),
						(SELECT count(*) FROM account_user WHERE role = '' OR role = 'operator')`).
						Scan(&after, &users)
				})
				if after != rows || users != 2 {
					t.Errorf("%s as %q: %d new log rows and %d unchanged users, want 0 and 2", name, role, after-rows, users)
				}
			}
		}
	})
}

// TestLastOwnerStays checks that the last owner cannot be removed in any way.
func TestLastOwnerStays(t *testing.T) {
	t.Parallel()
	storetest.Each(t, func(t *testing.T, db *store.DB) {
		var last account.User
		storetest.Update(t, db, func(tx *store.Tx) error {
			a, err := account.CreateTx(tx, account.NewAccount{Name: "a"})
			if err != nil {
				return err
			}
			last, err = account.CreateUserTx(tx, a.ID, account.SignIn{Email: "last@example.com", Role: account.Owner})
			return err
		})
		for name, change := range map[string]account.UserChange{"demote": {Role: new(account.Operator)}, "disable": {Disabled: new(true)}} {
			err := db.Update(t.Context(), func(tx *store.Tx) error {
				_, err := ChangeUserTx(tx, Actor{Way: Console, Role: account.Owner}, last.ID, change)
				return err
			})
			if !fault.Is(err, fault.InvalidRequest) {
				t.Errorf("%s in the console: %v, want invalid_request", name, err)
			}
		}
		remove := func(way Way) error {
			return db.Update(t.Context(), func(tx *store.Tx) error { return DeleteUserTx(tx, Actor{Way: way, Role: account.Owner}, last.ID) })
		}
		if err := remove(Console); !fault.Is(err, fault.InvalidRequest) {
			t.Errorf("delete in the console: %v, want invalid_request", err)
		}
		if err := remove(Token); !fault.Is(err, fault.InvalidRequest) {
			t.Errorf("delete by the operator API: %v, want invalid_request", err)
		}
		storetest.Update(t, db, func(tx *store.Tx) error {
			u, kept, err := ClaimRoleTx(tx, Actor{Way: Settings}, last, account.LinkedIdentity{}, account.Support)
			if !kept || u.Role != account.Owner {
				t.Errorf("a claim of support makes the last owner %q, kept %v, want owner, true", u.Role, kept)
			}
			return err
		})
	})
}
