package account

import (
	"context"
	"errors"
	"log/slog"
	"net/netip"
	"sync"
	"sync/atomic"
	"time"

	"tollgate/internal/fault"
	"tollgate/internal/store"
)

// Ages and sizes of the key cache.
const (
	maxAge     = 2 * time.Second // of an entry used without a check at admission
	maxCallAge = time.Minute     // of an entry for AuthenticateCall
	samples    = 8               // entries compared to find an entry to drop
)

// defaultMax is the default of KeysOptions.Max.
const defaultMax = 10_000

// KeysOptions configure the key cache.
type KeysOptions struct {
	DB  *store.DB
	Now func() time.Time // if nil, time.Now
	Log *slog.Logger     // if nil, nothing is logged
	Max int              // keys in memory, about 500 bytes each; 0 means 10,000
}

// Keys finds the key of a request, from memory if that is safe.
//
// Keys caches usable keys only. A request with an unknown key waits for the database, so a key works
// on every node from its creation on. A flood of invalid keys never blocks a usable key, because one
// batched read is in flight at a time, and addresses with many recent unknown keys wait behind the
// others (see lookupQueue). If the database is unavailable, a cached key still works, because
// admission decides about money anyway; any other key gets 503, never 401.
//
// Keys records when each key was last accepted, whatever the result of the request; Run writes the
// times to the database.
type Keys struct {
	options KeysOptions
	now     func() time.Time
	lookups *lookupQueue
	uses    uses

	mu      sync.RWMutex
	entries map[digest]*entry
	forgets uint64 // number of calls of forget
}

// entry is a key, usable when it was loaded.
type entry struct {
	principal Principal
	loaded    time.Time
	lastUse   atomic.Int64 // Unix seconds
}

// NewKeys returns an empty cache. Close it after the servers.
func NewKeys(o KeysOptions) *Keys {
	if o.Now == nil {
		o.Now = time.Now
	}
	if o.Log == nil {
		o.Log = slog.New(slog.DiscardHandler)
	}
	if o.Max == 0 {
		o.Max = defaultMax
	}
	k := &Keys{options: o, now: o.Now, entries: make(map[digest]*entry)}
	k.lookups = newLookupQueue(o.Now, func(ctx context.Context, digests []digest) (map[digest]keyResult, error) {
		return k.lookUp(ctx, o.DB, digests)
	})
	return k
}

// Authenticate returns the principal of secret, from a database read at most two seconds ago or, if
// fresh is set, after the call. addr is the client's address, for the fair order of unknown keys;
// the caller checks the key's address allowlist. Errors are *fault.Error: 401 invalid_api_key if
// the key is unknown, deleted or disabled or its account is disabled; 503 if the database cannot
// answer.
func (k *Keys) Authenticate(ctx context.Context, secret string, addr netip.Addr, fresh bool) (Principal, error) {
	if fresh {
		return k.authenticate(ctx, secret, addr, 0)
	}
	return k.authenticate(ctx, secret, addr, maxAge)
}

// AuthenticateCall is Authenticate for a request that goes through admission. It accepts an older
// cache entry, because admission checks the key's version in its own transaction. Call Authenticate
// with fresh after ledger.ErrKeyChanged, and before rejecting a request by a cached allowlist,
// because the allowlist may have changed.
func (k *Keys) AuthenticateCall(ctx context.Context, secret string, addr netip.Addr) (Principal, error) {
	return k.authenticate(ctx, secret, addr, maxCallAge)
}

func (k *Keys) authenticate(ctx context.Context, secret string, addr netip.Addr, age time.Duration) (Principal, error) {
	p, err := k.find(ctx, secret, addr, age)
	if err == nil {
		k.uses.add(p.Key, k.now())
	}
	return p, err
}

// find returns the principal of secret, from a cache entry younger than age.
func (k *Keys) find(ctx context.Context, secret string, addr netip.Addr, age time.Duration) (Principal, error) {
	if !wellFormed(secret) {
		return Principal{}, unknownKey()
	}
	d := digestOf(secret)
	cached, loaded, isCached := k.cached(d)
	if isCached && k.now().Sub(loaded) < age {
		return cached, nil
	}
	result, err := k.lookups.lookUp(ctx, d, addr, isCached)
	switch {
	case isUnavailable(err):
		unavailable, _ := errors.AsType[*fault.Error](err)
		return Principal{}, unavailable
	case err != nil && isCached && age > 0 && ctx.Err() == nil:
		return cached, nil // the database is unavailable
	case err != nil:
		return Principal{}, fault.TryAgain(err)
	case !result.usable:
		return Principal{}, unknownKey()
	}
	return result.principal, nil
}

// Forget drops a key from the cache. Call Forget right after the commit of a change to the key, so
// that later requests see the change.
func (k *Keys) Forget(key string) {
	k.forget(func(p Principal) bool { return p.Key == key })
}

// ForgetAccount is Forget for all keys of an account.
func (k *Keys) ForgetAccount(account string) {
	k.forget(func(p Principal) bool { return p.Account == account })
}

// Close waits for the read in flight, at most its time limit. Later requests get 503.
func (k *Keys) Close() { k.lookups.close() }

func (k *Keys) forget(match func(Principal) bool) {
	k.mu.Lock()
	defer k.mu.Unlock()
	k.forgets++
	for d, e := range k.entries {
		if match(e.principal) {
			delete(k.entries, d)
		}
	}
}

func (k *Keys) cached(d digest) (p Principal, loaded time.Time, ok bool) {
	k.mu.RLock()
	e := k.entries[d]
	k.mu.RUnlock()
	if e == nil {
		return Principal{}, time.Time{}, false
	}
	if now := k.now().Unix(); e.lastUse.Load() != now { // at most one write a second, because readers share the cache line
		e.lastUse.Store(now)
	}
	return e.principal, e.loaded, true
}

// lookUp reads digests in the database and caches the usable keys.
func (k *Keys) lookUp(ctx context.Context, db *store.DB, digests []digest) (map[digest]keyResult, error) {
	k.mu.RLock()
	forgets := k.forgets
	k.mu.RUnlock()
	now := k.now()
	results, err := readKeys(ctx, db, digests)
	if err != nil {
		return nil, err
	}
	k.store(digests, results, forgets, now)
	return results, nil
}

// store replaces the cache entries of digests by the results at now. forgets is Keys.forgets before
// the read. If forget was called since, the results may be stale and are not cached.
func (k *Keys) store(digests []digest, results map[digest]keyResult, forgets uint64, now time.Time) {
	k.mu.Lock()
	defer k.mu.Unlock()
	for _, d := range digests {
		delete(k.entries, d)
		if result := results[d]; result.usable && k.forgets == forgets {
			k.makeRoom()
			e := &entry{principal: result.principal, loaded: now}
			e.lastUse.Store(now.Unix())
			k.entries[d] = e
		}
	}
}

// makeRoom drops an entry if the cache is full. It compares a few entries in the map's random order
// and drops the least recently used.
func (k *Keys) makeRoom() {
	if len(k.entries) < k.options.Max {
		return
	}
	var oldest digest
	var oldestUse int64
	compared := 0
	for d, entry := range k.entries {
		if lastUse := entry.lastUse.Load(); compared == 0 || lastUse < oldestUse {
			oldest, oldestUse = d, lastUse
		}
		if compared++; compared == samples {
			break
		}
	}
	delete(k.entries, oldest)
}

// unknownKey returns the same error for every rejected key, so that the error reveals nothing.
func unknownKey() error {
	return fault.New(fault.InvalidAPIKey,
		"This API key is not valid: it does not exist, was deleted or is disabled, or its account is disabled. Check the key, "+
			"or create a new one in the console.")
}

// isUnavailable reports whether err is a 503 with a message for the client.
func isUnavailable(err error) bool { return hasCode(err, fault.ServiceUnavailable) }
