package credential

import (
	"context"
	"crypto/sha256"
	"encoding/json"
	"sync"
	"time"
)

// maxSources bounds the number of sources. A new source above the bound replaces another source, whose
// credential is fetched again when needed.
const maxSources = 1000

// Keeper holds the sources of a process. Lines with the same credential settings share a source,
// across revisions of the catalog. A Keeper is safe for concurrent use, and its zero value is ready
// for use. It must be closed.
type Keeper struct {
	// Now is the clock. If nil, time.Now is used. It must be set before the first use.
	Now func() time.Time

	group sync.WaitGroup // waits for the fetches

	mu      sync.Mutex // guards the fields below
	closed  bool
	ctx     context.Context // context of all fetches; nil before the first fetch
	cancel  context.CancelFunc
	sources map[[sha256.Size]byte]*Source
}

// Time returns the time by the keeper's clock.
func (k *Keeper) Time() time.Time {
	now := time.Now
	if k.Now != nil {
		now = k.Now
	}
	return now()
}

// Source returns the source for a line's credential settings, and creates the source if needed.
// settings must contain everything that affects fetch's result.
func (k *Keeper) Source(settings []any, fetch Fetch) *Source {
	text, err := json.Marshal(settings)
	if err != nil { // unreachable: options come from JSON or YAML
		return &Source{keeper: k, fetch: fetch}
	}
	id := sha256.Sum256(text)
	k.mu.Lock()
	defer k.mu.Unlock()
	if s := k.sources[id]; s != nil {
		return s
	}
	for oldID := range k.sources {
		if len(k.sources) < maxSources {
			break
		}
		delete(k.sources, oldID)
	}
	s := &Source{keeper: k, fetch: fetch}
	if k.sources == nil {
		k.sources = map[[sha256.Size]byte]*Source{}
	}
	k.sources[id] = s
	return s
}

// run starts a fetch. It returns false if the keeper is closed.
func (k *Keeper) run(fetch func(ctx context.Context)) bool {
	k.mu.Lock()
	defer k.mu.Unlock()
	if k.closed {
		return false
	}
	if k.ctx == nil {
		k.ctx, k.cancel = context.WithCancel(context.Background())
	}
	parent := k.ctx
	k.group.Go(func() {
		ctx, cancel := context.WithTimeout(parent, fetchWait)
		defer cancel()
		fetch(ctx)
	})
	return true
}

// Close cancels all fetches and waits for them. Later calls that need a fetch fail.
func (k *Keeper) Close() {
	k.mu.Lock()
	k.closed = true
	if k.cancel != nil {
		k.cancel()
	}
	k.mu.Unlock()
	k.group.Wait()
}
