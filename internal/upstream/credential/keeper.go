package credential

import (
	"context"
	"crypto/sha256"
	"encoding/json"
	"sync"
	"time"
)

// maxSources bounds the sources that are kept. Beyond that some are forgotten,
// and their credentials fetched anew.
const maxSources = 1000

// Keeper keeps the sources of a process: lines that say the same of their
// credential share it, and it outlives the revision of the catalog. It is safe
// for concurrent use, and its zero value is ready. Close it.
type Keeper struct {
	// Now is the clock; nil: time.Now. It is set before the first use.
	Now func() time.Time

	group sync.WaitGroup // the fetches

	mu      sync.Mutex // guards what follows
	closed  bool
	ctx     context.Context // of all fetches; nil: there was none
	cancel  context.CancelFunc
	sources map[[sha256.Size]byte]*Source
}

// Time is the time by the keeper's clock.
func (k *Keeper) Time() time.Time {
	now := time.Now
	if k.Now != nil {
		now = k.Now
	}
	return now()
}

// Source returns the source of what a line says of its credential, and makes it
// if there is none. what has to hold all that decides what fetch brings.
func (k *Keeper) Source(what []any, fetch Fetch) *Source {
	text, err := json.Marshal(what)
	if err != nil { // options are what JSON can say
		return &Source{keeper: k, fetch: fetch}
	}
	id := sha256.Sum256(text)
	k.mu.Lock()
	defer k.mu.Unlock()
	if s := k.sources[id]; s != nil {
		return s
	}
	for old := range k.sources {
		if len(k.sources) < maxSources {
			break
		}
		delete(k.sources, old)
	}
	s := &Source{keeper: k, fetch: fetch}
	if k.sources == nil {
		k.sources = map[[sha256.Size]byte]*Source{}
	}
	k.sources[id] = s
	return s
}

// run begins a fetch; false: the keeper is closed.
func (k *Keeper) run(fetch func(ctx context.Context)) bool {
	k.mu.Lock()
	defer k.mu.Unlock()
	if k.closed {
		return false
	}
	if k.ctx == nil {
		k.ctx, k.cancel = context.WithCancel(context.Background())
	}
	all := k.ctx
	k.group.Go(func() {
		ctx, cancel := context.WithTimeout(all, fetchWait)
		defer cancel()
		fetch(ctx)
	})
	return true
}

// Close ends all fetches and waits for their ends. Calls that need one fail
// from then on.
func (k *Keeper) Close() {
	k.mu.Lock()
	k.closed = true
	if k.cancel != nil {
		k.cancel()
	}
	k.mu.Unlock()
	k.group.Wait()
}
