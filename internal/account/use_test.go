package account

import (
	"context"
	"fmt"
	"testing"
	"time"

	"tollgate/internal/ledger"
	"tollgate/internal/store"
	"tollgate/internal/store/storetest"
)

// lastUsed reads the last use of a key, and the database's time.
func lastUsed(t *testing.T, db *store.DB, key string) (at, now int64) {
	t.Helper()
	storetest.Update(t, db, func(tx *store.Tx) error {
		states, err := ledger.KeysTx(tx, []string{key})
		if err != nil {
			return err
		}
		at = states[key].LastUsedMS
		now, err = tx.NowMS()
		return err
	})
	return at, now
}

// TestUses checks that every accepted use of a key counts, and a rejected key does not. The use is
// written later, with its own time.
func TestUses(t *testing.T) {
	t.Parallel()
	storetest.Each(t, func(t *testing.T, db *store.DB) {
		a := createAccount(t, db, "a")
		w := watch(t, db)
		used, idle, disabled := createKey(t, db, a.ID, KeySettings{}), createKey(t, db, a.ID, KeySettings{}),
			createKey(t, db, a.ID, KeySettings{Disabled: true})
		w.good(t, used, true)
		w.refused(t, disabled.secret)
		if at, _ := lastUsed(t, db, used.ID); at != 0 {
			t.Error("a request waited for the record of its use")
		}
		w.clock.Advance(20 * time.Second)
		if err := w.WriteUses(t.Context()); err != nil {
			t.Fatal(err)
		}
		at, now := lastUsed(t, db, used.ID)
		if age := now - at; age < 20_000 || age > 50_000 {
			t.Errorf("used %d ms ago, want 20 s", age)
		}
		for _, k := range []createdKey{idle, disabled} {
			if at, _ := lastUsed(t, db, k.ID); at != 0 {
				t.Errorf("key %s was not used, but counts as used", k.ID)
			}
		}
		if err := w.WriteUses(t.Context()); err != nil {
			t.Fatal(err)
		}
		if again, _ := lastUsed(t, db, used.ID); again != at {
			t.Error("WriteUses without a use changed the time")
		}
		storetest.Update(t, db, func(tx *store.Tx) error {
			return ledger.RecordUseTx(tx, map[string]time.Duration{used.ID: time.Hour, "key_nobody": 0})
		})
		if again, _ := lastUsed(t, db, used.ID); again != at {
			t.Error("an earlier use replaced a later one")
		}
	})
}

// TestUsesWaitForTheDatabase checks that failed writes are repeated, even many.
func TestUsesWaitForTheDatabase(t *testing.T) {
	t.Parallel()
	storetest.Each(t, func(t *testing.T, db *store.DB) {
		w := watch(t, db)
		var keys []createdKey
		for i := range 3 {
			a := createAccount(t, db, fmt.Sprint("a", i))
			for range writeChunk/2 + 1 {
				keys = append(keys, createKey(t, db, a.ID, KeySettings{}))
			}
		}
		for _, k := range keys {
			w.uses.add(k.ID, w.clock.Now())
		}
		away, cancel := context.WithCancel(t.Context())
		cancel()
		if err := w.WriteUses(away); err == nil {
			t.Fatal("WriteUses succeeded without a database")
		}
		if err := w.WriteUses(t.Context()); err != nil {
			t.Fatal(err)
		}
		for _, k := range keys {
			if at, _ := lastUsed(t, db, k.ID); at == 0 {
				t.Fatalf("the use of %s is lost", k.ID)
			}
		}
	})
}

// TestUsesAreBounded checks that the memory has a limit and that the latest use of a key wins.
func TestUsesAreBounded(t *testing.T) {
	t.Parallel()
	var u uses
	at := time.Unix(1_800_000_000, 0)
	for i := range maxUses + 10 {
		u.add(fmt.Sprint(i), at)
	}
	u.add("0", at.Add(time.Second))
	u.add("0", at.Add(-time.Second))
	times := u.take()
	if len(times) != maxUses || !times["0"].Equal(at.Add(time.Second)) || len(u.take()) != 0 {
		t.Errorf("%d keys, the first used at %v", len(times), times["0"])
	}
}

// TestRunWritesAtItsEnd checks that a stopping process loses no use.
func TestRunWritesAtItsEnd(t *testing.T) {
	t.Parallel()
	db := storetest.Open(t, storetest.SQLite(t), store.Options{})
	a := createAccount(t, db, "a")
	k := createKey(t, db, a.ID, KeySettings{})
	w := watch(t, db)
	w.good(t, k, true)
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	w.Run(ctx)
	if at, _ := lastUsed(t, db, k.ID); at == 0 {
		t.Error("the use is lost")
	}
}
