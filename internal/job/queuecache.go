package job

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"sync"
	"time"

	"tollgate/internal/fault"
	"tollgate/internal/job/gallery"
	"tollgate/internal/job/row"
	"tollgate/internal/store"
	"tollgate/internal/upstream"
)

// Bounds of what is remembered of a queue.
const (
	queueFresh = 400 * time.Millisecond // positions were read at most this long ago
	paceFresh  = 5 * time.Second        // run times
	maxSamples = 30
)

// Run times of a model that nothing is known of yet.
const (
	usualImage = 15 * time.Second
	usualVideo = 2 * time.Minute
)

// queueCache answers where jobs stand in their queues. However often it is asked,
// it reads a queue once in queueFresh, and counts by itself only for jobs that
// came since.
type queueCache struct {
	jobs *Jobs

	mu     sync.Mutex
	queues map[string]*queueState // by model
}

// queueEntry is where a job stands in its queue.
type queueEntry struct {
	turn int64
	id   string
}

func (e queueEntry) compare(o queueEntry) int {
	return cmp.Or(cmp.Compare(e.turn, o.turn), cmp.Compare(e.id, o.id))
}

// queueState is one model's queue as it was at a time.
type queueState struct {
	mu      sync.Mutex
	reading chan struct{} // closed when the read that is under way has ended; nil: none is
	at      time.Time
	entries []queueEntry // ascending
	busy    int64        // jobs that run

	paceAt time.Time
	pace   time.Duration // median time from start to end
}

func newQueueCache(j *Jobs) *queueCache {
	return &queueCache{jobs: j, queues: map[string]*queueState{}}
}

// view returns a model's queue. Models of removed catalogs stay: they are few.
func (c *queueCache) view(model string) *queueState {
	c.mu.Lock()
	defer c.mu.Unlock()
	v := c.queues[model]
	if v == nil {
		v = &queueState{}
		c.queues[model] = v
	}
	return v
}

// position returns how many jobs are ahead of one that waits, and in how many
// seconds it is likely to start.
func (c *queueCache) position(ctx context.Context, r *row.Job, turn int64) (position, etaSeconds int64, err error) {
	v := c.view(r.Model)
	if err := c.refresh(ctx, v, r); err != nil {
		return 0, 0, err
	}
	mine := queueEntry{turn, r.ID}
	v.mu.Lock()
	at, found := slices.BinarySearchFunc(v.entries, mine, queueEntry.compare)
	busy, pace := v.busy, v.pace
	v.mu.Unlock()
	if !found { // it came since
		if at, err = c.count(ctx, r.Model, mine); err != nil {
			return 0, 0, err
		}
	}
	return int64(at), eta(int64(at), busy, pace), nil
}

// refresh reads a queue that was read too long ago. One reads for all who ask
// meanwhile; they wait as long as they may, and no lock is held.
func (c *queueCache) refresh(ctx context.Context, v *queueState, r *row.Job) error {
	for {
		v.mu.Lock()
		now := c.jobs.opts.Now()
		places, pace := now.Sub(v.at) > queueFresh, now.Sub(v.paceAt) > paceFresh
		if !places && !pace {
			v.mu.Unlock()
			return nil
		}
		under := v.reading
		if under == nil {
			v.reading = make(chan struct{})
		}
		v.mu.Unlock()
		if under == nil {
			return c.read(ctx, v, r, pace)
		}
		select {
		case <-under:
		case <-ctx.Done():
			return ctx.Err()
		}
	}
}

// eta is when a job is likely to start: so many rounds of the jobs ahead of it
// and itself, as many at a time as run now, each as long as jobs took lately.
func eta(ahead, busy int64, pace time.Duration) int64 {
	if ahead == 0 && busy == 0 {
		return 1
	}
	lanes := max(busy, 1)
	seconds := int64((pace + time.Second - 1) / time.Second)
	return max(1, ((ahead+1)*seconds+lanes-1)/lanes)
}

// read reads a model's queue along its index, and how long its jobs take, if that
// is asked for. What was read is fresh from its arrival on: those who waited do not
// read it once more where that takes long.
func (c *queueCache) read(ctx context.Context, v *queueState, r *row.Job, withPace bool) error {
	defer func() {
		v.mu.Lock()
		defer v.mu.Unlock()
		close(v.reading)
		v.reading = nil
	}()
	var next queueState
	err := c.jobs.opts.DB.View(ctx, func(tx *store.Tx) (err error) {
		if next.entries, err = placesTx(tx, r.Model); err != nil {
			return err
		}
		if withPace {
			if next.pace, err = paceTx(tx, r); err != nil {
				return err
			}
		}
		return tx.QueryRow(countBusy, r.Model).Scan(&next.busy)
	})
	if err != nil {
		return err
	}
	now := c.jobs.opts.Now()
	v.mu.Lock()
	defer v.mu.Unlock()
	v.entries, v.busy, v.at = next.entries, next.busy, now
	if withPace {
		v.pace, v.paceAt = next.pace, now
	}
	return nil
}

// placesTx reads who waits for a model.
func placesTx(tx *store.Tx, model string) ([]queueEntry, error) {
	rows, err := tx.Query(queuePlaces, model)
	if err != nil {
		return nil, err
	}
	defer rows.Close()
	var entries []queueEntry
	for rows.Next() {
		var p queueEntry
		if err := rows.Scan(&p.turn, &p.id); err != nil {
			return nil, err
		}
		entries = append(entries, p)
	}
	return entries, rows.Err()
}

// count counts the jobs ahead of one.
func (c *queueCache) count(ctx context.Context, model string, mine queueEntry) (ahead int, err error) {
	err = c.jobs.opts.DB.View(ctx, func(tx *store.Tx) error {
		return tx.QueryRow(countAhead, model, mine.turn, mine.id).Scan(&ahead)
	})
	return ahead, err
}

// paceTx reads how long the newest jobs of a model took: the median.
func paceTx(tx *store.Tx, r *row.Job) (time.Duration, error) {
	rows, err := tx.Query(recentTimes, r.Model, maxSamples)
	if err != nil {
		return 0, err
	}
	defer rows.Close()
	var took []int64
	for rows.Next() {
		var ms int64
		if err := rows.Scan(&ms); err != nil {
			return 0, err
		}
		took = append(took, ms)
	}
	switch slices.Sort(took); {
	case len(took) > 0:
		return time.Duration(took[len(took)/2]) * time.Millisecond, rows.Err()
	case r.Kind == upstream.KindVideo:
		return usualVideo, rows.Err()
	}
	return usualImage, rows.Err()
}

// AddPlaces tells where those of the jobs stand that wait in a queue. Call it
// outside of a transaction.
func (j *Jobs) AddPlaces(ctx context.Context, list []gallery.Exhibit) error {
	for i := range list {
		e := &list[i]
		turn, waits := e.Waits()
		if !waits {
			continue
		}
		var err error
		e.Ahead, e.WaitSeconds, err = j.queues.position(ctx, &row.Job{ID: e.ID, Model: e.Model, Kind: e.Kind}, turn)
		if err != nil {
			return fault.TryAgain(fmt.Errorf("read a queue: %w", err))
		}
	}
	return nil
}
