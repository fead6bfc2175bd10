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

// Bounds of writing the last uses of keys.
const (
	writePeriod  = time.Minute
	writeTimeout = 5 * time.Second // for all writes of one call
	writeChunk   = 100             // keys in one transaction
	maxUses      = 100_000         // keys between two writes; a use of a further key is not recorded
)

// uses keeps the last use of each key until WriteUses writes it, so that no request waits.
type uses struct {
	mu    sync.Mutex
	times map[string]time.Time // by key
}

// add records a use.
func (u *uses) add(key string, t time.Time) {
	u.mu.Lock()
	defer u.mu.Unlock()
	if u.times == nil {
		u.times = make(map[string]time.Time)
	}
	if last, known := u.times[key]; known && t.After(last) || !known && len(u.times) < maxUses {
		u.times[key] = t
	}
}

// take returns and clears all recorded times.
func (u *uses) take() map[string]time.Time {
	u.mu.Lock()
	defer u.mu.Unlock()
	times := u.times
	u.times = nil
	return times
}

// Run writes the last uses of keys once a minute, and when ctx ends.
func (k *Keys) Run(ctx context.Context) {
	loop.Run(ctx, loop.Loop{
		Room: "account", Does: "note when keys were last used", Log: k.options.Log, Period: writePeriod, Later: true, Step: k.WriteUses,
	})
	if err := k.WriteUses(context.WithoutCancel(ctx)); err != nil {
		k.options.Log.Warn("account: the last uses of keys are not noted", "error", err)
	}
}

// WriteUses writes the last use of each key since the previous call. If a write fails, the next
// call repeats it.
func (k *Keys) WriteUses(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(ctx, writeTimeout)
	defer cancel()
	pending := k.uses.take()
	for len(pending) > 0 {
		batch := make(map[string]time.Time, writeChunk)
		for key, lastUse := range pending {
			if batch[key] = lastUse; len(batch) == writeChunk {
				break
			}
		}
		maps.DeleteFunc(pending, func(key string, _ time.Time) bool { return !batch[key].IsZero() })
		err := k.options.DB.Update(ctx, func(tx *store.Tx) error {
			now, ago := k.now(), make(map[string]time.Duration, len(batch))
			for key, lastUse := range batch {
				ago[key] = max(0, now.Sub(lastUse))
			}
			return ledger.RecordUseTx(tx, ago)
		})
		if err == nil {
			continue
		}
		maps.Copy(pending, batch)
		for key, lastUse := range pending {
			k.uses.add(key, lastUse)
		}
		return fmt.Errorf("note when keys were used: %w", err)
	}
	return nil
}
