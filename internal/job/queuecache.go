package job

import (
	"cmp"
	"context"
	"slices"
	"sync"
	"time"

	"tollgate/internal/store"
	"tollgate/internal/upstream"
)

// Bounds of what is remembered of a queue.
const (
	queueFresh = 400 * time.Millisecond // positions are as of at most this long ago
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
	mu      sync.Mutex // held while it is read
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
func (c *queueCache) position(ctx context.Context, r *record, turn int64) (position, etaSeconds int64, err error) {
	v := c.view(r.model)
	v.mu.Lock()
	defer v.mu.Unlock()
	now := c.jobs.opts.Now()
	mine := queueEntry{turn, r.id}
	if now.Sub(v.at) > queueFresh {
		if err := c.read(ctx, v, r.model); err != nil {
			return 0, 0, err
		}
		v.at = now
	}
	at, found := slices.BinarySearchFunc(v.entries, mine, queueEntry.compare)
	if !found { // it came since
		if at, err = c.count(ctx, r.model, mine); err != nil {
			return 0, 0, err
		}
	}
	if now.Sub(v.paceAt) > paceFresh {
		if err := c.readPace(ctx, v, r); err != nil {
			return 0, 0, err
		}
		v.paceAt = now
	}
	return int64(at), eta(int64(at), v.busy, v.pace), nil
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

// read reads a model's queue along its index.
func (c *queueCache) read(ctx context.Context, v *queueState, model string) error {
	return c.jobs.opts.DB.View(ctx, func(tx *store.Tx) error {
		v.entries = v.entries[:0]
		rows, err := tx.Query(queuePlaces, model)
		if err != nil {
			return err
		}
		defer rows.Close()
		for rows.Next() {
			var p queueEntry
			if err := rows.Scan(&p.turn, &p.id); err != nil {
				return err
			}
			v.entries = append(v.entries, p)
		}
		if err := rows.Err(); err != nil {
			return err
		}
		return tx.QueryRow(countBusy, model).Scan(&v.busy)
	})
}

// count counts the jobs ahead of one.
func (c *queueCache) count(ctx context.Context, model string, mine queueEntry) (ahead int, err error) {
	err = c.jobs.opts.DB.View(ctx, func(tx *store.Tx) error {
		return tx.QueryRow(countAhead, model, mine.turn, mine.id).Scan(&ahead)
	})
	return ahead, err
}

// readPace reads how long the newest jobs of a model took.
func (c *queueCache) readPace(ctx context.Context, v *queueState, r *record) error {
	var took []int64
	err := c.jobs.opts.DB.View(ctx, func(tx *store.Tx) error {
		took = took[:0]
		rows, err := tx.Query(recentTimes, r.model, maxSamples)
		if err != nil {
			return err
		}
		defer rows.Close()
		for rows.Next() {
			var ms int64
			if err := rows.Scan(&ms); err != nil {
				return err
			}
			took = append(took, ms)
		}
		return rows.Err()
	})
	if err != nil {
		return err
	}
	v.pace = usualImage
	if r.kind == upstream.KindVideo {
		v.pace = usualVideo
	}
	if len(took) > 0 {
		slices.Sort(took)
		v.pace = time.Duration(took[len(took)/2]) * time.Millisecond
	}
	return nil
}
