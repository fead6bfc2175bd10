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

// Limits of cached queues.
const (
	maxQueueAge = 400 * time.Millisecond // of positions
	maxPaceAge  = 5 * time.Second        // of the median run time
	maxSamples  = 30                     // ended jobs for the median run time
)

// Run times that a model without ended jobs is assumed to have.
const (
	defaultImageTime = 15 * time.Second
	defaultVideoTime = 2 * time.Minute
)

// queueCache returns the positions of jobs in their queues. It reads a queue at most once in
// maxQueueAge, for any number of calls. For a job newer than the cached queue, it counts the jobs ahead
// in the database.
type queueCache struct {
	jobs *Jobs

	mu     sync.Mutex
	queues map[string]*queueState // by model
}

// queueEntry is a job's position in its queue.
type queueEntry struct {
	turn int64
	id   string
}

func (e queueEntry) compare(o queueEntry) int {
	return cmp.Or(cmp.Compare(e.turn, o.turn), cmp.Compare(e.id, o.id))
}

// queueState is a model's cached queue.
type queueState struct {
	mu      sync.Mutex
	reading chan struct{} // closed at the end of the current read; nil if none
	readAt  time.Time
	entries []queueEntry // ascending
	running int64

	paceAt time.Time
	pace   time.Duration // median time from start to end
}

func newQueueCache(j *Jobs) *queueCache {
	return &queueCache{jobs: j, queues: map[string]*queueState{}}
}

// queue returns a model's queue. The few queues of models from former catalogs stay in the cache.
func (c *queueCache) queue(model string) *queueState {
	c.mu.Lock()
	defer c.mu.Unlock()
	q := c.queues[model]
	if q == nil {
		q = &queueState{}
		c.queues[model] = q
	}
	return q
}

// position returns the number of jobs ahead of a queued job, and the estimated seconds until the job
// starts.
func (c *queueCache) position(ctx context.Context, r *row.Job, turn int64) (position, etaSeconds int64, err error) {
	q := c.queue(r.Model)
	if err := c.refresh(ctx, q, r); err != nil {
		return 0, 0, err
	}
	entry := queueEntry{turn, r.ID}
	q.mu.Lock()
	ahead, found := slices.BinarySearchFunc(q.entries, entry, queueEntry.compare)
	running, pace := q.running, q.pace
	q.mu.Unlock()
	if !found { // newer than the cached queue
		if ahead, err = c.countAheadOf(ctx, r.Model, entry); err != nil {
			return 0, 0, err
		}
	}
	return int64(ahead), eta(int64(ahead), running, pace), nil
}

// refresh reads a queue if the cached queue is too old. One caller reads for all callers; the others
// wait without a lock until their contexts end.
func (c *queueCache) refresh(ctx context.Context, q *queueState, r *row.Job) error {
	for {
		q.mu.Lock()
		now := c.jobs.opts.Now()
		queueOld, paceOld := now.Sub(q.readAt) > maxQueueAge, now.Sub(q.paceAt) > maxPaceAge
		if !queueOld && !paceOld {
			q.mu.Unlock()
			return nil
		}
		reading := q.reading
		if reading == nil {
			q.reading = make(chan struct{})
		}
		q.mu.Unlock()
		if reading == nil {
			return c.read(ctx, q, r, paceOld)
		}
		select {
		case <-reading:
		case <-ctx.Done():
			return ctx.Err()
		}
	}
}

// eta estimates the seconds until a job starts: the number of jobs ahead plus one, divided by the
// number of running jobs, multiplied by the recent run time.
func eta(ahead, running int64, pace time.Duration) int64 {
	if ahead == 0 && running == 0 {
		return 1
	}
	parallel := max(running, 1)
	seconds := int64((pace + time.Second - 1) / time.Second)
	return max(1, ((ahead+1)*seconds+parallel-1)/parallel)
}

// read reads a model's queue along an index and, if withPace is true, the recent run times. The age
// of the cached queue counts from the end of the read, so waiting callers do not repeat a slow read.
func (c *queueCache) read(ctx context.Context, q *queueState, r *row.Job, withPace bool) error {
	defer func() {
		q.mu.Lock()
		defer q.mu.Unlock()
		close(q.reading)
		q.reading = nil
	}()
	var next queueState
	err := c.jobs.opts.DB.View(ctx, func(tx *store.Tx) (err error) {
		if next.entries, err = positionsTx(tx, r.Model); err != nil {
			return err
		}
		if withPace {
			if next.pace, err = paceTx(tx, r); err != nil {
				return err
			}
		}
		return tx.QueryRow(countRunning, r.Model).Scan(&next.running)
	})
	if err != nil {
		return err
	}
	now := c.jobs.opts.Now()
	q.mu.Lock()
	defer q.mu.Unlock()
	q.entries, q.running, q.readAt = next.entries, next.running, now
	if withPace {
		q.pace, q.paceAt = next.pace, now
	}
	return nil
}

// positionsTx reads the queue of a model.
func positionsTx(tx *store.Tx, model string) ([]queueEntry, error) {
	return store.Collect(tx, func(r store.Row) (p queueEntry, err error) {
		err = r.Scan(&p.turn, &p.id)
		return p, err
	}, queuePositions, model)
}

// countAheadOf counts the jobs ahead of an entry.
func (c *queueCache) countAheadOf(ctx context.Context, model string, entry queueEntry) (ahead int, err error) {
	err = c.jobs.opts.DB.View(ctx, func(tx *store.Tx) error {
		return tx.QueryRow(countAhead, model, entry.turn, entry.id).Scan(&ahead)
	})
	return ahead, err
}

// paceTx returns the median run time of a model's recent jobs.
func paceTx(tx *store.Tx, r *row.Job) (time.Duration, error) {
	runTimesMS, err := store.Column[int64](tx, recentTimes, r.Model, maxSamples)
	switch slices.Sort(runTimesMS); {
	case len(runTimesMS) > 0:
		return time.Duration(runTimesMS[len(runTimesMS)/2]) * time.Millisecond, err
	case r.Kind == upstream.KindVideo:
		return defaultVideoTime, err
	}
	return defaultImageTime, err
}

// AddPositions sets Ahead and WaitSeconds of queued jobs. Callers must not have an open transaction.
func (j *Jobs) AddPositions(ctx context.Context, list []gallery.UserJob) error {
	for i := range list {
		e := &list[i]
		turn, queued := e.QueueTurn()
		if !queued {
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
