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
	boardFresh  = 400 * time.Millisecond // positions are as of at most this long ago
	paceFresh   = 5 * time.Second        // run times
	paceSamples = 30
)

// Run times of a model that nothing is known of yet.
const (
	usualImage = 15 * time.Second
	usualVideo = 2 * time.Minute
)

// board answers where jobs stand in their queues. However often it is asked, it
// reads a queue once in boardFresh, and counts by itself only for jobs that came
// since.
type board struct {
	jobs *Jobs

	mu     sync.Mutex
	queues map[string]*queueView // by model
}

// place is where a job stands in its queue.
type place struct {
	turn int64
	id   string
}

func (p place) compare(o place) int {
	return cmp.Or(cmp.Compare(p.turn, o.turn), cmp.Compare(p.id, o.id))
}

// queueView is one model's queue as it was at a time.
type queueView struct {
	mu     sync.Mutex // held while it is read
	at     time.Time
	places []place // ascending
	busy   int64   // jobs that run

	paceAt time.Time
	pace   time.Duration // median time from start to end
}

func newBoard(j *Jobs) *board { return &board{jobs: j, queues: map[string]*queueView{}} }

// view returns a model's queue. Models of removed catalogs stay: they are few.
func (b *board) view(model string) *queueView {
	b.mu.Lock()
	defer b.mu.Unlock()
	v := b.queues[model]
	if v == nil {
		v = &queueView{}
		b.queues[model] = v
	}
	return v
}

// position returns how many jobs are ahead of one that waits, and in how many
// seconds it is likely to start.
func (b *board) position(ctx context.Context, r *record, turn int64) (position, etaSeconds int64, err error) {
	v := b.view(r.model)
	v.mu.Lock()
	defer v.mu.Unlock()
	now := b.jobs.opts.Now()
	mine := place{turn, r.id}
	if now.Sub(v.at) > boardFresh {
		if err := b.read(ctx, v, r.model); err != nil {
			return 0, 0, err
		}
		v.at = now
	}
	at, found := slices.BinarySearchFunc(v.places, mine, place.compare)
	if !found { // it came since
		if at, err = b.count(ctx, r.model, mine); err != nil {
			return 0, 0, err
		}
	}
	if now.Sub(v.paceAt) > paceFresh {
		if err := b.readPace(ctx, v, r); err != nil {
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
func (b *board) read(ctx context.Context, v *queueView, model string) error {
	return b.jobs.opts.DB.View(ctx, func(tx *store.Tx) error {
		v.places = v.places[:0]
		rows, err := tx.Query(queuePlaces, model)
		if err != nil {
			return err
		}
		defer rows.Close()
		for rows.Next() {
			var p place
			if err := rows.Scan(&p.turn, &p.id); err != nil {
				return err
			}
			v.places = append(v.places, p)
		}
		if err := rows.Err(); err != nil {
			return err
		}
		return tx.QueryRow(countBusy, model).Scan(&v.busy)
	})
}

// count counts the jobs ahead of one.
func (b *board) count(ctx context.Context, model string, mine place) (ahead int, err error) {
	err = b.jobs.opts.DB.View(ctx, func(tx *store.Tx) error {
		return tx.QueryRow(countAhead, model, mine.turn, mine.id).Scan(&ahead)
	})
	return ahead, err
}

// readPace reads how long the newest jobs of a model took.
func (b *board) readPace(ctx context.Context, v *queueView, r *record) error {
	var took []int64
	err := b.jobs.opts.DB.View(ctx, func(tx *store.Tx) error {
		took = took[:0]
		rows, err := tx.Query(recentTimes, r.model, paceSamples)
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
