package account

import (
	"context"
	"fmt"
	"maps"
	"sync"
	"time"

	"tollgate/internal/ledger"
	"tollgate/internal/loop"
	"tollgate/internal/store"
)

// Bounds of noting when keys were used.
const (
	noteEvery   = time.Minute
	noteTimeout = 5 * time.Second // for all writes of one call
	noteAtOnce  = 100             // keys in one transaction
	maxUses     = 100_000         // keys between two notes; the use of one more is not noted
)

// uses holds the times of last use until they are written, so that no request waits.
type uses struct {
	mu sync.Mutex
	at map[string]time.Time // by key
}

// add remembers a use.
func (u *uses) add(key string, at time.Time) {
	u.mu.Lock()
	defer u.mu.Unlock()
	if u.at == nil {
		u.at = make(map[string]time.Time)
	}
	if last, known := u.at[key]; known && at.After(last) || !known && len(u.at) < maxUses {
		u.at[key] = at
	}
}

// take returns and clears all recorded times.
func (u *uses) take() map[string]time.Time {
	u.mu.Lock()
	defer u.mu.Unlock()
	taken := u.at
	u.at = nil
	return taken
}

// Run notes once a minute, and when ctx ends, when keys were last used.
func (k *Keys) Run(ctx context.Context) {
	loop.Run(ctx, loop.Loop{
		Room: "account", Does: "note when keys were last used", Log: k.options.Log, Period: noteEvery, Later: true, Step: k.NoteUses,
	})
	if err := k.NoteUses(context.WithoutCancel(ctx)); err != nil {
		k.options.Log.Warn("account: the last uses of keys are not noted", "error", err)
	}
}

// NoteUses writes the last use of each key since the previous call. If a write fails, the next call
// repeats it.
func (k *Keys) NoteUses(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(ctx, noteTimeout)
	defer cancel()
	used := k.uses.take()
	for len(used) > 0 {
		some := make(map[string]time.Time, noteAtOnce)
		for key, at := range used {
			if some[key] = at; len(some) == noteAtOnce {
				break
			}
		}
		maps.DeleteFunc(used, func(key string, _ time.Time) bool { return !some[key].IsZero() })
		err := k.options.DB.Update(ctx, func(tx *store.Tx) error {
			now, ago := k.now(), make(map[string]time.Duration, len(some))
			for key, at := range some {
				ago[key] = max(0, now.Sub(at))
			}
			return ledger.RecordUseTx(tx, ago)
		})
		if err == nil {
			continue
		}
		maps.Copy(used, some)
		for key, at := range used {
			k.uses.add(key, at)
		}
		return fmt.Errorf("note when keys were used: %w", err)
	}
	return nil
}
