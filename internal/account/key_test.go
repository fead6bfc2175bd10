package account

import (
	"fmt"
	"slices"
	"strings"
	"sync"
	"testing"

	"tollgate/internal/fault"
	"tollgate/internal/money"
	"tollgate/internal/store"
	"tollgate/internal/store/storetest"
)

// createdKey is the result of CreateKeyTx.
type createdKey struct {
	Key
	secret string
}

func createKey(t *testing.T, db *store.DB, account string, s KeySettings) createdKey {
	t.Helper()
	return update(t, db, func(tx *store.Tx) (createdKey, error) {
		k, secret, err := CreateKeyTx(tx, account, s)
		return createdKey{k, secret}, err
	})
}

func changeKey(t *testing.T, db *store.DB, key string, edit func(*KeySettings)) Key {
	t.Helper()
	return update(t, db, func(tx *store.Tx) (Key, error) {
		return ChangeKeyTx(tx, key, func(s *KeySettings) error { edit(s); return nil })
	})
}

func ptr[T any](v T) *T { return &v }

func TestKeyLife(t *testing.T) {
	t.Parallel()
	storetest.Each(t, func(t *testing.T, db *store.DB) {
		a := createAccount(t, db, "a")
		k := createKey(t, db, a.ID, KeySettings{Name: " ci ", RPM: ptr(int64(60)), DailyBudget: ptr(5 * money.USD),
			TotalLimit: ptr(50 * money.USD), AllowedModels: []string{"swift-1"}, AllowedIPs: []string{"::ffff:192.0.2.1", "10.1.1.1/8"}})
		if !strings.HasPrefix(k.ID, "key_") || k.Account != a.ID || k.Name != "ci" || k.CreatedMS == 0 || k.Ledger.Version != 1 {
			t.Errorf("created %+v, want the name ci, version 1 and account %s", k.Key, a.ID)
		}
		if got := ShowIPs(k.AllowedIPs); !slices.Equal(got, []string{"192.0.2.1", "10.0.0.0/8"}) {
			t.Errorf("got allowed_ips %q, want 192.0.2.1 and 10.0.0.0/8", got)
		}
		if !wellFormed(k.secret) || !strings.HasPrefix(k.secret, k.Hint[:7]) || !strings.HasSuffix(k.secret, k.Hint[len(k.Hint)-4:]) ||
			len(k.Hint) > 16 {
			t.Errorf("got the secret %q and the hint %q, want a hint with the start and end of the secret", k.secret, k.Hint)
		}

		changed := changeKey(t, db, k.ID, func(s *KeySettings) {
			s.Name, s.RPM, s.AllowedModels, s.DailyBudget, s.Disabled = "", nil, nil, ptr(money.USD), true
		})
		l := changed.Ledger.Limits
		if changed.Name != "" || l.RPM != nil || *l.DailyBudget != money.USD || *l.TotalLimit != 50*money.USD || !l.Disabled {
			t.Errorf("changed to the name %q and the limits %+v, want disabled with a daily budget of 1 USD", changed.Name, l)
		}
		if changed.AllowedModels != nil || len(changed.AllowedIPs) != 2 || changed.Ledger.Version != 2 {
			t.Errorf("changed to %+v, want version 2 without a model allowlist", changed)
		}
		renamed := changeKey(t, db, k.ID, func(s *KeySettings) { s.Name = "n" })
		if renamed.Ledger.Version != 3 || !renamed.Ledger.Limits.Disabled {
			t.Errorf("a rename changed the ledger's state to %+v, want version 3, disabled", renamed.Ledger)
		}

		storetest.Update(t, db, func(tx *store.Tx) error { return DeleteKeyTx(tx, k.ID) })
		for name, do := range map[string]func(tx *store.Tx) (Key, error){
			"get":    func(tx *store.Tx) (Key, error) { return GetKeyTx(tx, k.ID) },
			"change": func(tx *store.Tx) (Key, error) { return ChangeKeyTx(tx, k.ID, func(*KeySettings) error { return nil }) },
			"delete": func(tx *store.Tx) (Key, error) { return Key{}, DeleteKeyTx(tx, k.ID) },
		} {
			_, err := try(t, db, do)
			t.Run(name+" deleted", func(t *testing.T) { wantFault(t, err, fault.NotFound, "") })
		}
	})
}

// TestKeySecretIsNotStored checks that the database has the hash of a secret and no part of the
// secret itself except the hint.
func TestKeySecretIsNotStored(t *testing.T) {
	t.Parallel()
	storetest.Each(t, func(t *testing.T, db *store.DB) {
		a := createAccount(t, db, "a")
		k := createKey(t, db, a.ID, KeySettings{})
		stored := update(t, db, func(tx *store.Tx) (string, error) {
			var c [7]string
			err := tx.QueryRow(`SELECT id, account, hash, name, hint, allowed_models, allowed_ips FROM api_key`).
				Scan(&c[0], &c[1], &c[2], &c[3], &c[4], &c[5], &c[6])
			return fmt.Sprint(c), err
		})
		if strings.Contains(stored, k.secret[10:30]) || !strings.Contains(stored, digestOf(k.secret).String()) {
			t.Errorf("the row is %s, want the hash and no other part of the secret %s", stored, k.secret)
		}
	})
}

func TestKeyPages(t *testing.T) {
	t.Parallel()
	storetest.Each(t, func(t *testing.T, db *store.DB) {
		a, otherAccount := createAccount(t, db, "a"), createAccount(t, db, "b")
		createKey(t, db, otherAccount.ID, KeySettings{})
		var want []string
		for range 3 {
			want = append(want, createKey(t, db, a.ID, KeySettings{}).ID)
		}
		slices.Sort(want)
		deletedID := want[1]
		storetest.Update(t, db, func(tx *store.Tx) error { return DeleteKeyTx(tx, deletedID) })
		var got []string
		after := ""
		for more := true; more; {
			list := update(t, db, func(tx *store.Tx) (list []Key, err error) {
				list, more, err = ListKeysTx(tx, a.ID, after, 1)
				return list, err
			})
			if len(list) != 1 {
				t.Fatalf("got the page %v, want one key", list)
			}
			after = list[0].ID
			got = append(got, after)
		}
		if !slices.Equal(got, []string{want[0], want[2]}) {
			t.Errorf("got the keys %q, want %q without %s", got, want, deletedID)
		}
	})
}

func TestKeyFaults(t *testing.T) {
	t.Parallel()
	storetest.Each(t, func(t *testing.T, db *store.DB) {
		a := createAccount(t, db, "a")
		k := createKey(t, db, a.ID, KeySettings{Name: "good"})
		tests := map[string]struct {
			settings KeySettings
			param    string
		}{
			"long name":    {KeySettings{Name: strings.Repeat("x", 201)}, "name"},
			"line break":   {KeySettings{Name: "a\nb"}, "name"},
			"rpm 0":        {KeySettings{RPM: ptr(int64(0))}, "rpm"},
			"rpm negative": {KeySettings{RPM: ptr(int64(-1))}, "rpm"},
			"rpm huge":     {KeySettings{RPM: ptr(int64(1_000_001))}, "rpm"},
			"budget":       {KeySettings{DailyBudget: ptr(-money.NanoUSD)}, "daily_budget_usd"},
			"total":        {KeySettings{TotalLimit: ptr(-money.NanoUSD)}, "total_limit_usd"},
			"no models":    {KeySettings{AllowedModels: []string{}}, "allowed_models"},
			"empty model":  {KeySettings{AllowedModels: []string{"a", ""}}, "allowed_models[1]"},
			"no ips":       {KeySettings{AllowedIPs: []string{}}, "allowed_ips"},
			"bad ip":       {KeySettings{AllowedIPs: []string{"x"}}, "allowed_ips[0]"},
		}
		for name, test := range tests {
			t.Run(name, func(t *testing.T) {
				_, err := try(t, db, func(tx *store.Tx) (Key, error) {
					k, _, err := CreateKeyTx(tx, a.ID, test.settings)
					return k, err
				})
				wantFault(t, err, fault.InvalidRequest, test.param)
				_, err = try(t, db, func(tx *store.Tx) (Key, error) {
					return ChangeKeyTx(tx, k.ID, func(s *KeySettings) error { *s = test.settings; return nil })
				})
				wantFault(t, err, fault.InvalidRequest, test.param)
			})
		}
		_, err := try(t, db, func(tx *store.Tx) (Key, error) {
			k, _, err := CreateKeyTx(tx, "acct_none", KeySettings{})
			return k, err
		})
		wantFault(t, err, fault.NotFound, "")
		if now := update(t, db, func(tx *store.Tx) (Key, error) { return GetKeyTx(tx, k.ID) }); now.Name != "good" || now.Ledger.Version != 1 {
			t.Errorf("after the rejected changes the key is %+v, want it unchanged", now)
		}
	})
}

// TestKeyConcurrentChanges checks that concurrent changes of different fields are all stored.
func TestKeyConcurrentChanges(t *testing.T) {
	t.Parallel()
	storetest.Each(t, func(t *testing.T, db *store.DB) {
		a := createAccount(t, db, "a")
		k := createKey(t, db, a.ID, KeySettings{TotalLimit: ptr(money.Amount(0))})
		var all sync.WaitGroup
		const changes = 8
		for range changes {
			all.Go(func() {
				changeKey(t, db, k.ID, func(s *KeySettings) { s.TotalLimit = ptr(*s.TotalLimit + money.USD) })
			})
		}
		all.Wait()
		got := update(t, db, func(tx *store.Tx) (Key, error) { return GetKeyTx(tx, k.ID) }).Ledger
		if *got.Limits.TotalLimit != changes*money.USD || got.Version != 1+changes {
			t.Errorf("after %d changes by 1 USD the limit is %s at version %d, want all changes", changes, got.Limits.TotalLimit, got.Version)
		}
	})
}

func TestSecrets(t *testing.T) {
	t.Parallel()
	unique := make(map[string]bool)
	for range 1000 {
		s := newSecret()
		if !wellFormed(s) || unique[s] {
			t.Fatalf("newSecret returned %q, want a well-formed secret, each time another one", s)
		}
		unique[s] = true
	}
	valid := newSecret()
	for _, invalid := range []string{"", "sk-", valid[:19], strings.Repeat("x", 201), valid[:10] + " " + valid[11:], valid + "\x7f",
		valid[:10] + "é" + valid[12:]} {
		if wellFormed(invalid) {
			t.Errorf("wellFormed(%q) = true, want false", invalid)
		}
	}
	for _, imported := range []string{"sk-" + strings.Repeat("aZ09", 12), "sk-" + "A1b2-C3d4_E5f6-G7h8_Ij", strings.Repeat("x", 200)} {
		if !wellFormed(imported) {
			t.Errorf("wellFormed(%q) = false, want true for a secret of another program", imported)
		}
	}
}
