package main

import (
	"reflect"
	"strings"
	"testing"

	"tollgate/internal/store/storetest"
)

func TestAccountChange(t *testing.T) {
	t.Parallel()
	storetest.EachURL(t, func(t *testing.T, url string) {
		dir, db := t.TempDir(), "--database="+url
		account := must(t, dir, "account", "create", "--name", "acme", "--email", "old@example.com", db)
		id, _ := account["id"].(string)
		if account = must(t, dir, "account", "change", id, "--email", "New@example.com", db); account["email"] != "new@example.com" {
			t.Errorf("after a new email the account is %v, want new@example.com", account)
		}
		if account = must(t, dir, "account", "change", id, "--name", "Acme", db); account["email"] != "new@example.com" {
			t.Errorf("after a new name the account is %v, want new@example.com", account)
		}
		if account = must(t, dir, "account", "change", id, "--email", "", db); account["email"] != nil {
			t.Errorf("after an empty email the account is %v, want no email", account)
		}
		account = must(t, dir, "account", "change", id, "--name", "-1st", "--overdraft-floor-usd", "-5", db)
		if account["name"] != "-1st" || account["overdraft_floor_usd"] != -5.0 {
			t.Errorf("changed the account to %v, want the name -1st and the floor -5", account)
		}
		if got := must(t, dir, "account", "credit", id, "-1.5", "--note", "-5 % of May", db); got["balance_usd"] != -1.5 {
			t.Errorf("after the credit of -1.5 USD got %v, want the balance -1.5", got)
		}
		if got := tollgate(t, dir, "account", "entries", id, "--json", db); !strings.Contains(got.out, `"-5 % of May"`) {
			t.Errorf("account entries ended with %+v, want the note", got)
		}
		if got := tollgate(t, dir, "account", "change", id, "--email", "x", db); got.code != 2 || !strings.Contains(got.errors, "--email") {
			t.Errorf("an invalid email ended with %+v, want exit 2 and --email", got)
		}
	})
}

// TestAccountPrices checks the flags for the prices of an account.
func TestAccountPrices(t *testing.T) {
	t.Parallel()
	storetest.EachURL(t, func(t *testing.T, url string) {
		dir, db := t.TempDir(), "--database="+url
		account := must(t, dir, "account", "create", "--name", "acme", "--price-factor", "0.9", "--prices", "swift-1=1, other=1.25", db)
		if account["price_factor"] != 0.9 || !reflect.DeepEqual(account["prices"], map[string]any{"swift-1": 1.0, "other": 1.25}) {
			t.Errorf("created the account %v, want the factor 0.9 and two prices", account)
		}
		id, _ := account["id"].(string)
		account = must(t, dir, "account", "change", id, "--price-factor", "1", "--prices", "none", db)
		if account["price_factor"] != 1.0 || !reflect.DeepEqual(account["prices"], map[string]any{}) {
			t.Errorf("changed the account to %v, want the factor 1 and no prices", account)
		}
		for _, flag := range []string{"--price-factor=0", "--price-factor=much", "--price-factor=0.0000001", "--prices=swift-1", "--prices=m=x",
			"--prices==1", "--prices=m=1,m=2", "--prices=m=1001"} {
			got := tollgate(t, dir, "account", "change", id, flag, db)
			name, _, _ := strings.Cut(flag, "=")
			if got.code != 2 || !strings.Contains(got.errors, name) {
				t.Errorf("account change %s ended with %+v, want exit 2 and %s", flag, got, name)
			}
		}
	})
}
