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

// lastUsed returns the last use of a key and the database's time, in milliseconds.
func lastUsed(t *testing.T, db *store.DB, key string) (lastUse, now int64) {
	t.Helper()
	storetest.Update(t, db, func(tx *store.Tx) error {
		states, err := ledger.KeysTx(tx, []string{key})
		if err != nil {
			return err
		}
		lastUse = states[key].LastUsedMS
		now, err = tx.NowMS()
		return err
	})
	return lastUse, now
}

// TestWriteUses checks that WriteUses writes the time at which a key was accepted, and that a
// rejected key is not used.
func TestWriteUses(t *testing.T) {
	t.Parallel()
	storetest.Each(t, func(t *testing.T, db *store.DB) {
		a := createAccount(t, db, "a")
		w := newCountingKeys(t, db)
		usedKey, unusedKey, disabledKey := createKey(t, db, a.ID, KeySettings{}), createKey(t, db, a.ID, KeySettings{}),
			createKey(t, db, a.ID, KeySettings{Disabled: true})
		w.wantAccepted(t, usedKey, true)
		w.wantRejected(t, disabledKey.secret)
		if lastUse, _ := lastUsed(t, db, usedKey.ID); lastUse != 0 {
			t.Error("the use was written before WriteUses")
		}
		w.clock.Advance(20 * time.Second)
		if err := w.WriteUses(t.Context()); err != nil {
			t.Fatal(err)
		}
		lastUse, now := lastUsed(t, db, usedKey.ID)
		if age := now - lastUse; age < 20_000 || age > 50_000 {
			t.Errorf("the last use was %d ms ago, want 20 to 50 s", age)
		}
		for _, k := range []createdKey{unusedKey, disabledKey} {
			if lastUse, _ := lastUsed(t, db, k.ID); lastUse != 0 {
				t.Errorf("the unused key %s has the last use %d, want 0", k.ID, lastUse)
			}
		}
		if err := w.WriteUses(t.Context()); err != nil {
			t.Fatal(err)
		}
		if newUse, _ := lastUsed(t, db, usedKey.ID); newUse != lastUse {
			t.Error("WriteUses without a use changed the time")
		}
		storetest.Update(t, db, func(tx *store.Tx) error {
			return ledger.RecordUseTx(tx, map[string]time.Duration{usedKey.ID: time.Hour, "key_nobody": 0})
		})
		if newUse, _ := lastUsed(t, db, usedKey.ID); newUse != lastUse {
			t.Error("an earlier use replaced a later one")
		}
	})
}

// TestFailedWritesOfUsesAreRepeated checks that WriteUses writes all uses of a failed call, in
// several transactions.
func TestFailedWritesOfUsesAreRepeated(t *testing.T) {
	t.Parallel()
	storetest.Each(t, func(t *testing.T, db *store.DB) {
		w := newCountingKeys(t, db)
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
		canceled, cancel := context.WithCancel(t.Context())
		cancel()
		if err := w.WriteUses(canceled); err == nil {
			t.Fatal("WriteUses succeeded without a database")
		}
		if err := w.WriteUses(t.Context()); err != nil {
			t.Fatal(err)
		}
		for _, k := range keys {
			if lastUse, _ := lastUsed(t, db, k.ID); lastUse == 0 {
				t.Fatalf("the use of %s is lost", k.ID)
			}
		}
	})
}

// TestUsesAreBounded checks that at most maxUses keys are recorded, and the latest use of each key.
func TestUsesAreBounded(t *testing.T) {
	t.Parallel()
	var u uses
	start := time.Unix(1_800_000_000, 0)
	for i := range maxUses + 10 {
		u.add(fmt.Sprint(i), start)
	}
	u.add("0", start.Add(time.Second))
	u.add("0", start.Add(-time.Second))
	times := u.take()
	if len(times) != maxUses || !times["0"].Equal(start.Add(time.Second)) || len(u.take()) != 0 {
		t.Errorf("got %d keys and the last use %v of key 0, want %d keys and the latest use", len(times), times["0"], maxUses)
	}
}

// TestRunWritesUsesAtItsEnd checks that Run writes the recorded uses when its context ends.
func TestRunWritesUsesAtItsEnd(t *testing.T) {
	t.Parallel()
	db := storetest.Open(t, storetest.SQLite(t), store.Options{})
	a := createAccount(t, db, "a")
	k := createKey(t, db, a.ID, KeySettings{})
	w := newCountingKeys(t, db)
	w.wantAccepted(t, k, true)
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	w.Run(ctx)
	if lastUse, _ := lastUsed(t, db, k.ID); lastUse == 0 {
		t.Error("the use is lost")
	}
}
