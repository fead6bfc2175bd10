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
		owner := must(t, dir, "account", "create", "--name", "acme", "--email", "old@example.com", db)
		id, _ := owner["id"].(string)
		if owner = must(t, dir, "account", "change", id, "--email", "New@example.com", db); owner["email"] != "new@example.com" {
			t.Errorf("changed to %v", owner)
		}
		if owner = must(t, dir, "account", "change", id, "--name", "Acme", db); owner["email"] != "new@example.com" {
			t.Errorf("changed to %v", owner)
		}
		if owner = must(t, dir, "account", "change", id, "--email", "", db); owner["email"] != nil {
			t.Errorf("changed to %v", owner)
		}
		owner = must(t, dir, "account", "change", id, "--name", "-1st", "--overdraft-floor-usd", "-5", db)
		if owner["name"] != "-1st" || owner["overdraft_floor_usd"] != -5.0 {
			t.Errorf("changed to %v", owner)
		}
		if after := must(t, dir, "account", "credit", id, "-1.5", "--note", "-5 % of May", db); after["balance_usd"] != -1.5 {
			t.Errorf("%v", after)
		}
		if got := tollgate(t, dir, "account", "entries", id, "--json", db); !strings.Contains(got.out, `"-5 % of May"`) {
			t.Errorf("%+v", got)
		}
		if got := tollgate(t, dir, "account", "change", id, "--email", "x", db); got.code != 2 || !strings.Contains(got.errors, "--email") {
			t.Errorf("%+v", got)
		}
	})
}

func TestAccountPrices(t *testing.T) {
	t.Parallel()
	storetest.EachURL(t, func(t *testing.T, url string) {
		dir, db := t.TempDir(), "--database="+url
		owner := must(t, dir, "account", "create", "--name", "acme", "--price-factor", "0.9", "--prices", "swift-1=1, other=1.25", db)
		if owner["price_factor"] != 0.9 || !reflect.DeepEqual(owner["prices"], map[string]any{"swift-1": 1.0, "other": 1.25}) {
			t.Errorf("created %v", owner)
		}
		id, _ := owner["id"].(string)
		owner = must(t, dir, "account", "change", id, "--price-factor", "1", "--prices", "none", db)
		if owner["price_factor"] != 1.0 || !reflect.DeepEqual(owner["prices"], map[string]any{}) {
			t.Errorf("changed to %v", owner)
		}
		for _, flag := range []string{"--price-factor=0", "--price-factor=much", "--price-factor=0.0000001", "--prices=swift-1", "--prices=m=x",
			"--prices==1", "--prices=m=1,m=2", "--prices=m=1001"} {
			got := tollgate(t, dir, "account", "change", id, flag, db)
			name, _, _ := strings.Cut(flag, "=")
			if got.code != 2 || !strings.Contains(got.errors, name) {
				t.Errorf("%s: %+v", flag, got)
			}
		}
	})
}
