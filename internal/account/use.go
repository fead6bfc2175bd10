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

// uses has the times of last use until they are written, so that no request waits.
type uses struct {
	mu sync.Mutex
	at map[string]time.Time // by key
}

// add records a use.
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
	times := u.at
	u.at = nil
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
	used := k.uses.take()
	for len(used) > 0 {
		batch := make(map[string]time.Time, writeChunk)
		for key, at := range used {
			if batch[key] = at; len(batch) == writeChunk {
				break
			}
		}
		maps.DeleteFunc(used, func(key string, _ time.Time) bool { return !batch[key].IsZero() })
		err := k.options.DB.Update(ctx, func(tx *store.Tx) error {
			now, ago := k.now(), make(map[string]time.Duration, len(batch))
			for key, at := range batch {
				ago[key] = max(0, now.Sub(at))
			}
			return ledger.RecordUseTx(tx, ago)
		})
		if err == nil {
			continue
		}
		maps.Copy(used, batch)
		for key, at := range used {
			k.uses.add(key, at)
		}
		return fmt.Errorf("note when keys were used: %w", err)
	}
	return nil
}
