package account

import (
	"context"
	"errors"
	"net/netip"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"tollgate/internal/fault"
	"tollgate/internal/store"
	"tollgate/internal/store/storetest"
)

// countingKeys is a cache that counts its reads, with a database that can fail.
type countingKeys struct {
	*Keys
	clock *storetest.Clock
	reads atomic.Int64
	away  atomic.Bool
}

func watch(t *testing.T, db *store.DB) *countingKeys {
	t.Helper()
	w := &countingKeys{clock: new(storetest.Clock)}
	w.Keys = NewKeys(KeysOptions{DB: db, Now: w.clock.Now})
	read := w.lookups.read
	w.lookups.read = func(ctx context.Context, digests []digest) (map[digest]keyResult, error) {
		w.reads.Add(1)
		if w.away.Load() {
			return nil, errors.New("the database is away")
		}
		return read(ctx, digests)
	}
	t.Cleanup(w.Close)
	return w
}

// wantReads checks the number of reads since the last call.
func (w *countingKeys) wantReads(t *testing.T, want int64) {
	t.Helper()
	if got := w.reads.Swap(0); got != want {
		t.Errorf("%d reads, want %d", got, want)
	}
}

func (w *countingKeys) good(t *testing.T, k createdKey, fresh bool) Principal {
	t.Helper()
	p, err := w.Authenticate(context.Background(), k.secret, customer, fresh)
	if err != nil || p.Key != k.ID || p.Account != k.Account {
		t.Fatalf("got %+v, %v", p, err)
	}
	return p
}

func (w *countingKeys) refused(t *testing.T, secret string) {
	t.Helper()
	_, err := w.Authenticate(context.Background(), secret, customer, false)
	wantFault(t, err, fault.InvalidAPIKey, "")
}

func TestKeysRemember(t *testing.T) {
	t.Parallel()
	storetest.Each(t, func(t *testing.T, db *store.DB) {
		a := createAccount(t, db, "a")
		k := createKey(t, db, a.ID, KeySettings{AllowedModels: []string{"m"}, AllowedIPs: []string{"192.0.2.0/24"}})
		w := watch(t, db)

		p := w.good(t, k, false)
		if p.Version != 1 || !p.AllowsModel("m") || p.AllowsModel("n") || !p.AllowsAddress(customer) || p.AllowsAddress(stranger) {
			t.Errorf("got %+v", p)
		}
		for range 5 {
			w.good(t, k, false)
		}
		w.wantReads(t, 1)
		w.good(t, k, true)
		w.wantReads(t, 1)

		w.clock.Advance(maxAge)
		if _, err := w.AuthenticateCall(context.Background(), k.secret, customer); err != nil {
			t.Fatal(err)
		}
		w.wantReads(t, 0)
		w.good(t, k, false)
		w.good(t, k, false)
		w.wantReads(t, 1)
		w.clock.Advance(maxCallAge)
		if _, err := w.AuthenticateCall(context.Background(), k.secret, customer); err != nil {
			t.Fatal(err)
		}
		w.wantReads(t, 1)
	})
}

func TestKeysRefuse(t *testing.T) {
	t.Parallel()
	storetest.Each(t, func(t *testing.T, db *store.DB) {
		a, b := createAccount(t, db, "a"), createAccount(t, db, "b")
		disabled, deleted, orphan := createKey(t, db, a.ID, KeySettings{}), createKey(t, db, a.ID, KeySettings{}),
			createKey(t, db, b.ID, KeySettings{})
		w := watch(t, db)
		for _, k := range []createdKey{disabled, deleted, orphan} {
			w.good(t, k, false)
		}
		changeKey(t, db, disabled.ID, func(s *KeySettings) { s.Disabled = true })
		storetest.Update(t, db, func(tx *store.Tx) error { return DeleteKeyTx(tx, deleted.ID) })
		update(t, db, func(tx *store.Tx) (Account, error) { return ChangeTx(tx, b.ID, Patch{Disabled: ptr(true)}) })

		// Another node's change takes effect two seconds later, or with fresh.
		_, err := w.Authenticate(context.Background(), disabled.secret, customer, true)
		wantFault(t, err, fault.InvalidAPIKey, "")
		w.good(t, deleted, false)
		w.good(t, orphan, false)
		w.clock.Advance(maxAge)
		for _, k := range []createdKey{disabled, deleted, orphan} {
			w.refused(t, k.secret)
		}
		w.refused(t, newSecret())
		w.reads.Store(0)
		w.refused(t, "")
		w.refused(t, "sk-short")
		w.wantReads(t, 0)
		if n := len(w.entries); n != 0 {
			t.Errorf("%d rejected keys are cached", n)
		}

		// A rejected key works the moment it is enabled.
		changeKey(t, db, disabled.ID, func(s *KeySettings) { s.Disabled = false })
		update(t, db, func(tx *store.Tx) (Account, error) { return ChangeTx(tx, b.ID, Patch{Disabled: ptr(false)}) })
		w.good(t, disabled, false)
		w.good(t, orphan, false)
	})
}

func TestKeysForget(t *testing.T) {
	t.Parallel()
	storetest.Each(t, func(t *testing.T, db *store.DB) {
		a := createAccount(t, db, "a")
		k, other := createKey(t, db, a.ID, KeySettings{}), createKey(t, db, a.ID, KeySettings{})
		w := watch(t, db)
		w.good(t, k, false)
		w.good(t, other, false)
		changeKey(t, db, k.ID, func(s *KeySettings) { s.Disabled = true })
		w.Forget(k.ID)
		w.reads.Store(0)
		w.refused(t, k.secret)
		w.good(t, other, false)
		w.wantReads(t, 1)
		update(t, db, func(tx *store.Tx) (Account, error) { return ChangeTx(tx, a.ID, Patch{Disabled: ptr(true)}) })
		w.ForgetAccount(a.ID)
		w.refused(t, other.secret)
	})
}

// TestKeysForgetDuringRead checks that a read does not restore the old state if it began before the
// commit of a change and ended after Forget.
func TestKeysForgetDuringRead(t *testing.T) {
	t.Parallel()
	storetest.Each(t, func(t *testing.T, db *store.DB) {
		a := createAccount(t, db, "a")
		k := createKey(t, db, a.ID, KeySettings{})
		w := watch(t, db)
		k2 := NewKeys(KeysOptions{DB: db, Now: w.clock.Now})
		t.Cleanup(k2.Close)
		k2.lookups.read = func(ctx context.Context, digests []digest) (map[digest]keyResult, error) {
			k2.mu.RLock()
			before := k2.forgets
			k2.mu.RUnlock()
			results, err := readKeys(ctx, db, digests)
			if err != nil {
				return nil, err
			}
			changeKey(t, db, k.ID, func(s *KeySettings) { s.Disabled = true })
			k2.Forget(k.ID)
			k2.store(digests, results, before, w.clock.Now())
			return results, nil
		}
		if _, err := k2.Authenticate(context.Background(), k.secret, customer, false); err != nil {
			t.Fatal(err) // the read began before the change
		}
		if _, _, ok := k2.cached(digestOf(k.secret)); ok {
			t.Error("the state before the change is cached")
		}
	})
}

func TestKeysDatabaseAway(t *testing.T) {
	t.Parallel()
	storetest.Each(t, func(t *testing.T, db *store.DB) {
		a := createAccount(t, db, "a")
		k, unseen := createKey(t, db, a.ID, KeySettings{}), createKey(t, db, a.ID, KeySettings{})
		w := watch(t, db)
		w.good(t, k, false)
		w.away.Store(true)
		w.clock.Advance(time.Hour)
		w.good(t, k, false)
		for _, test := range []struct {
			secret string
			fresh  bool
		}{{unseen.secret, false}, {newSecret(), false}, {k.secret, true}} {
			_, err := w.Authenticate(context.Background(), test.secret, customer, test.fresh)
			wantFault(t, err, fault.ServiceUnavailable, "")
			if f := fault.Of(err); f.RetryAfter <= 0 {
				t.Error("no Retry-After")
			}
		}
		w.away.Store(false)
		w.good(t, unseen, false)
		w.refused(t, newSecret())
	})
}

// TestKeysFlood checks that a flood of invalid keys gets only 401s, and that valid keys, cached or
// new, keep working from the same address and from others.
func TestKeysFlood(t *testing.T) {
	t.Parallel()
	storetest.Each(t, func(t *testing.T, db *store.DB) {
		a := createAccount(t, db, "a")
		w := watch(t, db)
		var wrong atomic.Int64
		var all sync.WaitGroup
		for range 8 {
			all.Go(func() {
				for range 50 {
					_, err := w.Authenticate(context.Background(), newSecret(), stranger, false)
					if fault.Of(err).Code != fault.InvalidAPIKey {
						wrong.Add(1)
					}
				}
			})
		}
		for _, from := range []netip.Addr{stranger, customer} {
			k := createKey(t, db, a.ID, KeySettings{})
			for range 3 {
				if _, err := w.Authenticate(context.Background(), k.secret, from, false); err != nil {
					t.Errorf("a valid key from %s: %v", from, err)
				}
			}
		}
		all.Wait()
		if n := wrong.Load(); n != 0 {
			t.Errorf("%d made-up keys were not answered 401", n)
		}
		if w.lookups.misses.below(stranger) {
			t.Error("the flood did not use up the allowance of the address")
		}
	})
}

func TestKeysSize(t *testing.T) {
	t.Parallel()
	clock := new(storetest.Clock)
	const size = 700
	k := NewKeys(KeysOptions{Now: clock.Now, Max: size})
	for n := range size + 500 {
		d := testDigest(n)
		k.store([]digest{d}, map[digest]keyResult{d: {good: true}}, 0, clock.Now())
		clock.Advance(time.Second)
		k.cached(testDigest(0)) // in use all the time
	}
	if len(k.entries) != size {
		t.Errorf("%d entries", len(k.entries))
	}
	if _, _, ok := k.cached(testDigest(0)); !ok {
		t.Error("a key in use was dropped for idle ones")
	}
}

// TestKeysDamagedRow checks that a damaged row fails only its own key, with a 503.
func TestKeysDamagedRow(t *testing.T) {
	t.Parallel()
	storetest.Each(t, func(t *testing.T, db *store.DB) {
		a := createAccount(t, db, "a")
		bad, good := createKey(t, db, a.ID, KeySettings{}), createKey(t, db, a.ID, KeySettings{})
		update(t, db, func(tx *store.Tx) (int64, error) {
			return tx.Exec(`UPDATE api_key SET allowed_ips = '[]' WHERE id = $1`, bad.ID)
		})
		results, err := readKeys(context.Background(), db, []digest{digestOf(bad.secret), digestOf(good.secret)})
		if err != nil || !results[digestOf(good.secret)].good || results[digestOf(bad.secret)].err == nil {
			t.Errorf("found %+v, %v", results, err)
		}
		_, err = watch(t, db).Authenticate(context.Background(), bad.secret, customer, false)
		wantFault(t, err, fault.ServiceUnavailable, "")
	})
}

// TestKeysHitAllocatesNothing checks that a cache hit allocates no memory.
func TestKeysHitAllocatesNothing(t *testing.T) {
	clock := new(storetest.Clock)
	k := NewKeys(KeysOptions{Now: clock.Now})
	secret := newSecret()
	d := digestOf(secret)
	k.store([]digest{d}, map[digest]keyResult{d: {good: true, principal: Principal{Key: "key_1", AllowedModels: []string{"m"}}}}, 0,
		clock.Now())
	ctx := context.Background()
	if n := testing.AllocsPerRun(100, func() {
		if p, err := k.AuthenticateCall(ctx, secret, customer); err != nil || !p.AllowsModel("m") {
			t.Fatal(p, err)
		}
	}); n != 0 {
		t.Errorf("a cached key costs %v allocations", n)
	}
}

func BenchmarkKeysHit(b *testing.B) {
	k := NewKeys(KeysOptions{})
	secret := newSecret()
	d := digestOf(secret)
	k.store([]digest{d}, map[digest]keyResult{d: {good: true}}, 0, time.Now().Add(24*time.Hour))
	ctx := context.Background()
	b.ReportAllocs()
	b.RunParallel(func(pb *testing.PB) {
		for pb.Next() {
			if _, err := k.AuthenticateCall(ctx, secret, customer); err != nil {
				b.Fatal(err)
			}
		}
	})
}
