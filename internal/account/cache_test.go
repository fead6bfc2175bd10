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

// countingKeys is a cache with a counter of its reads. If unavailable is set, the reads fail.
type countingKeys struct {
	*Keys
	clock       *storetest.Clock
	reads       atomic.Int64
	unavailable atomic.Bool
}

func newCountingKeys(t *testing.T, db *store.DB) *countingKeys {
	t.Helper()
	w := &countingKeys{clock: new(storetest.Clock)}
	w.Keys = NewKeys(KeysOptions{DB: db, Now: w.clock.Now})
	read := w.lookups.read
	w.lookups.read = func(ctx context.Context, digests []digest) (map[digest]keyResult, error) {
		w.reads.Add(1)
		if w.unavailable.Load() {
			return nil, errors.New("the database is unavailable")
		}
		return read(ctx, digests)
	}
	t.Cleanup(w.Close)
	return w
}

// wantReads checks the number of reads since the last call.
func (k *countingKeys) wantReads(t *testing.T, want int64) {
	t.Helper()
	if got := k.reads.Swap(0); got != want {
		t.Errorf("got %d reads since the last call, want %d", got, want)
	}
}

func (k *countingKeys) wantAccepted(t *testing.T, key createdKey, fresh bool) Principal {
	t.Helper()
	p, err := k.Authenticate(context.Background(), key.secret, customer, fresh)
	if err != nil || p.Key != key.ID || p.Account != key.Account {
		t.Fatalf("got the principal %+v, %v, want key %s of account %s", p, err, key.ID, key.Account)
	}
	return p
}

func (k *countingKeys) wantRejected(t *testing.T, secret string) {
	t.Helper()
	_, err := k.Authenticate(context.Background(), secret, customer, false)
	wantFault(t, err, fault.InvalidAPIKey, "")
}

// TestKeysCacheAges checks that a cached key is used for maxAge, or maxCallAge by AuthenticateCall,
// and never with fresh.
func TestKeysCacheAges(t *testing.T) {
	t.Parallel()
	storetest.Each(t, func(t *testing.T, db *store.DB) {
		a := createAccount(t, db, "a")
		k := createKey(t, db, a.ID, KeySettings{AllowedModels: []string{"m"}, AllowedIPs: []string{"192.0.2.0/24"}})
		w := newCountingKeys(t, db)

		p := w.wantAccepted(t, k, false)
		if p.Version != 1 || !p.AllowsModel("m") || p.AllowsModel("n") || !p.AllowsAddress(customer) || p.AllowsAddress(stranger) {
			t.Errorf("got the principal %+v, want version 1 and the key's allowlists", p)
		}
		for range 5 {
			w.wantAccepted(t, k, false)
		}
		w.wantReads(t, 1)
		w.wantAccepted(t, k, true)
		w.wantReads(t, 1)

		w.clock.Advance(maxAge)
		if _, err := w.AuthenticateCall(context.Background(), k.secret, customer); err != nil {
			t.Fatal(err)
		}
		w.wantReads(t, 0)
		w.wantAccepted(t, k, false)
		w.wantAccepted(t, k, false)
		w.wantReads(t, 1)
		w.clock.Advance(maxCallAge)
		if _, err := w.AuthenticateCall(context.Background(), k.secret, customer); err != nil {
			t.Fatal(err)
		}
		w.wantReads(t, 1)
	})
}

func TestKeysRejected(t *testing.T) {
	t.Parallel()
	storetest.Each(t, func(t *testing.T, db *store.DB) {
		a, b := createAccount(t, db, "a"), createAccount(t, db, "b")
		disabledKey, deletedKey, accountDisabledKey := createKey(t, db, a.ID, KeySettings{}), createKey(t, db, a.ID, KeySettings{}),
			createKey(t, db, b.ID, KeySettings{})
		w := newCountingKeys(t, db)
		for _, k := range []createdKey{disabledKey, deletedKey, accountDisabledKey} {
			w.wantAccepted(t, k, false)
		}
		changeKey(t, db, disabledKey.ID, func(s *KeySettings) { s.Disabled = true })
		storetest.Update(t, db, func(tx *store.Tx) error { return DeleteKeyTx(tx, deletedKey.ID) })
		update(t, db, func(tx *store.Tx) (Account, error) { return ChangeTx(tx, b.ID, Patch{Disabled: ptr(true)}) })

		// A change by another node takes effect after two seconds, or at once with fresh.
		_, err := w.Authenticate(context.Background(), disabledKey.secret, customer, true)
		wantFault(t, err, fault.InvalidAPIKey, "")
		w.wantAccepted(t, deletedKey, false)
		w.wantAccepted(t, accountDisabledKey, false)
		w.clock.Advance(maxAge)
		for _, k := range []createdKey{disabledKey, deletedKey, accountDisabledKey} {
			w.wantRejected(t, k.secret)
		}
		w.wantRejected(t, newSecret())
		w.reads.Store(0)
		w.wantRejected(t, "")
		w.wantRejected(t, "sk-short")
		w.wantReads(t, 0)
		if n := len(w.entries); n != 0 {
			t.Errorf("%d rejected keys are cached, want 0", n)
		}

		// A rejected key works as soon as it is enabled.
		changeKey(t, db, disabledKey.ID, func(s *KeySettings) { s.Disabled = false })
		update(t, db, func(tx *store.Tx) (Account, error) { return ChangeTx(tx, b.ID, Patch{Disabled: ptr(false)}) })
		w.wantAccepted(t, disabledKey, false)
		w.wantAccepted(t, accountDisabledKey, false)
	})
}

func TestKeysForget(t *testing.T) {
	t.Parallel()
	storetest.Each(t, func(t *testing.T, db *store.DB) {
		a := createAccount(t, db, "a")
		firstKey, secondKey := createKey(t, db, a.ID, KeySettings{}), createKey(t, db, a.ID, KeySettings{})
		w := newCountingKeys(t, db)
		w.wantAccepted(t, firstKey, false)
		w.wantAccepted(t, secondKey, false)
		changeKey(t, db, firstKey.ID, func(s *KeySettings) { s.Disabled = true })
		w.Forget(firstKey.ID)
		w.reads.Store(0)
		w.wantRejected(t, firstKey.secret)
		w.wantAccepted(t, secondKey, false)
		w.wantReads(t, 1)
		update(t, db, func(tx *store.Tx) (Account, error) { return ChangeTx(tx, a.ID, Patch{Disabled: ptr(true)}) })
		w.ForgetAccount(a.ID)
		w.wantRejected(t, secondKey.secret)
	})
}

// TestKeysForgetDuringRead checks that a read does not restore the old state if it began before the
// commit of a change and ended after Forget.
func TestKeysForgetDuringRead(t *testing.T) {
	t.Parallel()
	storetest.Each(t, func(t *testing.T, db *store.DB) {
		a := createAccount(t, db, "a")
		k := createKey(t, db, a.ID, KeySettings{})
		w := newCountingKeys(t, db)
		k2 := NewKeys(KeysOptions{DB: db, Now: w.clock.Now})
		t.Cleanup(k2.Close)
		k2.lookups.read = func(ctx context.Context, digests []digest) (map[digest]keyResult, error) {
			k2.mu.RLock()
			forgets := k2.forgets
			k2.mu.RUnlock()
			results, err := readKeys(ctx, db, digests)
			if err != nil {
				return nil, err
			}
			changeKey(t, db, k.ID, func(s *KeySettings) { s.Disabled = true })
			k2.Forget(k.ID)
			k2.store(digests, results, forgets, w.clock.Now())
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

func TestKeysWithoutDatabase(t *testing.T) {
	t.Parallel()
	storetest.Each(t, func(t *testing.T, db *store.DB) {
		a := createAccount(t, db, "a")
		k, uncached := createKey(t, db, a.ID, KeySettings{}), createKey(t, db, a.ID, KeySettings{})
		w := newCountingKeys(t, db)
		w.wantAccepted(t, k, false)
		w.unavailable.Store(true)
		w.clock.Advance(time.Hour)
		w.wantAccepted(t, k, false)
		for _, test := range []struct {
			secret string
			fresh  bool
		}{{uncached.secret, false}, {newSecret(), false}, {k.secret, true}} {
			_, err := w.Authenticate(context.Background(), test.secret, customer, test.fresh)
			wantFault(t, err, fault.ServiceUnavailable, "")
			if f := fault.Of(err); f.RetryAfter <= 0 {
				t.Errorf("got the Retry-After %s, want more than 0", f.RetryAfter)
			}
		}
		w.unavailable.Store(false)
		w.wantAccepted(t, uncached, false)
		w.wantRejected(t, newSecret())
	})
}

// TestKeysFlood checks that a flood of invalid keys gets only 401s, and that valid keys, cached or
// new, keep working from the same address and from others.
func TestKeysFlood(t *testing.T) {
	t.Parallel()
	storetest.Each(t, func(t *testing.T, db *store.DB) {
		a := createAccount(t, db, "a")
		w := newCountingKeys(t, db)
		var unexpected atomic.Int64
		var group sync.WaitGroup
		for range 8 {
			group.Go(func() {
				for range 50 {
					_, err := w.Authenticate(context.Background(), newSecret(), stranger, false)
					if fault.Of(err).Code != fault.InvalidAPIKey {
						unexpected.Add(1)
					}
				}
			})
		}
		for _, addr := range []netip.Addr{stranger, customer} {
			k := createKey(t, db, a.ID, KeySettings{})
			for range 3 {
				if _, err := w.Authenticate(context.Background(), k.secret, addr, false); err != nil {
					t.Errorf("a valid key from %s: %v", addr, err)
				}
			}
		}
		group.Wait()
		if n := unexpected.Load(); n != 0 {
			t.Errorf("%d of 400 invalid keys did not get a 401", n)
		}
		if w.lookups.misses.below(stranger) {
			t.Error("after the flood, the address is still below its burst of unknown keys")
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
		k.store([]digest{d}, map[digest]keyResult{d: {usable: true}}, 0, clock.Now())
		clock.Advance(time.Second)
		k.cached(testDigest(0)) // always the last used
	}
	if len(k.entries) != size {
		t.Errorf("the cache has %d entries, want %d", len(k.entries), size)
	}
	if _, _, ok := k.cached(testDigest(0)); !ok {
		t.Error("a key in use was dropped instead of an idle key")
	}
}

// TestKeysDamagedRow checks that a damaged row fails only its own key, with a 503.
func TestKeysDamagedRow(t *testing.T) {
	t.Parallel()
	storetest.Each(t, func(t *testing.T, db *store.DB) {
		a := createAccount(t, db, "a")
		damaged, intact := createKey(t, db, a.ID, KeySettings{}), createKey(t, db, a.ID, KeySettings{})
		update(t, db, func(tx *store.Tx) (int64, error) {
			return tx.Exec(`UPDATE api_key SET allowed_ips = '[]' WHERE id = $1`, damaged.ID)
		})
		results, err := readKeys(context.Background(), db, []digest{digestOf(damaged.secret), digestOf(intact.secret)})
		if err != nil || !results[digestOf(intact.secret)].usable || results[digestOf(damaged.secret)].err == nil {
			t.Errorf("readKeys returned %+v, %v, want an error of the damaged key only", results, err)
		}
		_, err = newCountingKeys(t, db).Authenticate(context.Background(), damaged.secret, customer, false)
		wantFault(t, err, fault.ServiceUnavailable, "")
	})
}

// TestKeysHitAllocatesNothing checks that a cache hit allocates no memory.
func TestKeysHitAllocatesNothing(t *testing.T) {
	clock := new(storetest.Clock)
	k := NewKeys(KeysOptions{Now: clock.Now})
	secret := newSecret()
	d := digestOf(secret)
	k.store([]digest{d}, map[digest]keyResult{d: {usable: true, principal: Principal{Key: "key_1", AllowedModels: []string{"m"}}}}, 0,
		clock.Now())
	ctx := context.Background()
	if n := testing.AllocsPerRun(100, func() {
		if p, err := k.AuthenticateCall(ctx, secret, customer); err != nil || !p.AllowsModel("m") {
			t.Fatal(p, err)
		}
	}); n != 0 {
		t.Errorf("a cached key costs %v allocations, want 0", n)
	}
}

func BenchmarkKeysHit(b *testing.B) {
	k := NewKeys(KeysOptions{})
	secret := newSecret()
	d := digestOf(secret)
	k.store([]digest{d}, map[digest]keyResult{d: {usable: true}}, 0, time.Now().Add(24*time.Hour))
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
