package job

import (
	"cmp"
	"context"
	"math/rand/v2"
	"slices"
	"sync"
	"testing"
	"time"

	"tollgate/internal/job/row"
	"tollgate/internal/money"
	"tollgate/internal/store"
	"tollgate/internal/store/storetest"
	"tollgate/internal/upstream"
	"tollgate/internal/upstream/chatcall"
	"tollgate/internal/upstream/jobcall"
)

// withAccount returns the cluster with another account and key.
func (c *cluster) withAccount(account, key string) *cluster {
	other := *c
	other.account, other.key = account, key
	return &other
}

// clearCache drops the node's cached queues.
func (n *testNode) clearCache() { n.jobs.queues = newQueueCache(n.jobs) }

// queueModel computes the expected queue from the accounts of the submitted jobs.
type queueModel struct {
	jobs []modelJob
}

type modelJob struct {
	id, account string
	turn        int
}

// add appends a job at the account's next turn.
func (e *queueModel) add(id, account string) {
	turn := 1
	if len(e.jobs) > 0 {
		turn = slices.MinFunc(e.jobs, func(a, b modelJob) int { return cmp.Compare(a.turn, b.turn) }).turn
	}
	for _, j := range e.jobs {
		if j.account == account {
			turn = max(turn, j.turn+1)
		}
	}
	e.jobs = append(e.jobs, modelJob{id, account, turn})
}

// order returns the jobs in the order of their starts.
func (e *queueModel) order() []string {
	jobs := slices.Clone(e.jobs)
	slices.SortFunc(jobs, func(a, b modelJob) int { return cmp.Or(cmp.Compare(a.turn, b.turn), cmp.Compare(a.id, b.id)) })
	ids := make([]string, len(jobs))
	for i, j := range jobs {
		ids[i] = j.id
	}
	return ids
}

func (e *queueModel) remove(id string) {
	e.jobs = slices.DeleteFunc(e.jobs, func(j modelJob) bool { return j.id == id })
}

// startOrder records the order of submissions to a line.
type startOrder struct {
	mu   sync.Mutex
	jobs []string
}

func (s *startOrder) submit(_ int, task jobcall.Task) (*jobcall.TaskStatus, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.jobs = append(s.jobs, task.Key[:len(task.Key)-len("-1")])
	return nil, nil
}

// oneLine serves one job at a time.
const oneLine = `
models:
  - id: easel-1
    kind: image
    price: {1K: 0.01}
    ratios: ["1:1"]
    max_images: 4
lines:
  - id: first
    provider: script
    models: {easel-1: vendor-easel}
    max_concurrent: 1
`

// TestQueueModel compares the positions and the order of starts with queueModel, for jobs of several
// accounts in random order.
func TestQueueModel(t *testing.T) {
	t.Parallel()
	storetest.EachURL(t, func(t *testing.T, url string) {
		var order startOrder
		c := newCluster(t, url, map[string]chatcall.Adapter{"first": &generator{blocks: true, submit: order.submit}})
		c.apply(oneLine)
		var accounts []*cluster
		for range 4 {
			accounts = append(accounts, c.withAccount(c.open(money.USD)))
		}
		n := c.idleNode()
		r := rand.New(rand.NewPCG(7, 7))
		var want queueModel
		var started []string
		for range 40 {
			if r.IntN(3) > 0 {
				owner := accounts[min(r.IntN(8), len(accounts)-1)]
				want.add(owner.submit(n, owner.submission(n, "easel-1", 1)), owner.account)
			} else {
				// runJobs also starts another job if the first job ends during the run.
				n.runJobs()
				next := want.order()
				if len(next) > 0 && len(order.jobs) == len(started) {
					t.Fatalf("no job has started, want one of %v", next)
				}
				for i := range len(order.jobs) - len(started) {
					started = append(started, next[i])
					want.remove(next[i])
				}
			}
			n.clearCache()
			for position, id := range want.order() {
				i := slices.IndexFunc(want.jobs, func(j modelJob) bool { return j.id == id })
				s := c.withAccount(want.jobs[i].account, "").poll(n, "image", id)
				if s.Status != row.StatusQueued || *s.Position != int64(position) || *s.ETA < 1 {
					t.Fatalf("job %s is %s at position %d, want queued at %d", id, s.Status, *s.Position, position)
				}
			}
		}
		if !slices.Equal(order.jobs, started) {
			t.Errorf("started %v\nwant    %v", order.jobs, started)
		}
	})
}

// fill submits a number of jobs for the cluster's account.
func (c *cluster) fill(n *testNode, jobs int) {
	c.t.Helper()
	var wg sync.WaitGroup
	slots := make(chan struct{}, 64)
	for range jobs {
		s := c.submission(n, "easel-1", 1)
		slots <- struct{}{}
		wg.Go(func() {
			defer func() { <-slots }()
			if _, err := n.jobs.Submit(c.t.Context(), s); err != nil {
				c.t.Error(err)
			}
		})
	}
	wg.Wait()
}

// TestFairness checks that a job of another account starts soon although one account has a thousand
// queued jobs.
func TestFairness(t *testing.T) {
	t.Parallel()
	storetest.EachURL(t, func(t *testing.T, url string) {
		var order startOrder
		c, n := oneLineCluster(t, url, &generator{blocks: true, submit: order.submit})
		c.fill(n, 1000)
		for range 3 { // the queue's current turn moves on
			n.runJobs()
		}
		before := len(order.jobs)
		var others []string
		for range 2 {
			other := c.withAccount(c.open(money.USD))
			id := other.submit(n, other.submission(n, "easel-1", 1))
			others = append(others, id)
			if s := other.poll(n, "image", id); *s.Position > 2 {
				t.Errorf("another account's job has position %d, want at most 2", *s.Position)
			}
		}
		for range 3 {
			n.runJobs()
		}
		for _, id := range others {
			if !slices.Contains(order.jobs[before:], id) {
				t.Errorf("job %s has not started after three more starts", id)
			}
		}
	})
}

// TestReturnedJobIsNext checks that a job returned to a queue with a later turn becomes the first of
// the queue and new jobs do not pass waiting jobs.
func TestReturnedJobIsNext(t *testing.T) {
	t.Parallel()
	storetest.EachURL(t, func(t *testing.T, url string) {
		release := make(chan struct{})
		var order startOrder
		m := &generator{blocks: true, before: gate("submit", release)}
		m.submit = func(n int, task jobcall.Task) (*jobcall.TaskStatus, error) {
			if _, err := order.submit(n, task); n == 1 || err != nil {
				return nil, upstream.SubmitFailure(upstream.KindImage, 429, "", nil, nil)
			}
			return nil, nil
		}
		c, n := oneLineCluster(t, url, m)
		returned := c.submit(n, c.submission(n, "easel-1", 1))
		c.fill(n, 5)
		n.step(n.jobs.Start) // starts the job
		c.update(`UPDATE job_run SET turn = turn + 100 WHERE state = 0`)
		earlier := c.withAccount(c.open(money.USD))
		earlierJob := earlier.submit(n, earlier.submission(n, "easel-1", 1))
		release <- struct{}{}
		n.jobs.running.Wait()
		n.clearCache()
		c.checkStatus(n, returned, row.StatusProcessing, "the returned job")
		later := c.withAccount(c.open(money.USD))
		laterJob := later.submit(n, later.submission(n, "easel-1", 1))
		before, after := earlier.poll(n, "image", earlierJob), later.poll(n, "image", laterJob)
		if *before.Position >= *after.Position {
			t.Errorf("the later job has position %d, the earlier job %d", *after.Position, *before.Position)
		}
		if ids := c.order(); ids[0] != returned {
			t.Errorf("the queue is %v, want the returned job %s first", ids, returned)
		}
	})
}

// update runs a statement.
func (c *cluster) update(query string, args ...any) {
	c.t.Helper()
	c.updateTx(func(tx *store.Tx) error {
		_, err := tx.Exec(query, args...)
		return err
	})
}

// order returns the ids of the queued jobs in the order of the queue.
func (c *cluster) order() (ids []string) {
	c.t.Helper()
	c.viewTx(func(tx *store.Tx) (err error) {
		ids, err = store.Column[string](tx, `SELECT id FROM job_run WHERE state = 0 ORDER BY turn, id`)
		return err
	})
	return ids
}

// TestETA checks the estimated seconds until a job starts.
func TestETA(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		ahead, running int64
		pace           time.Duration
		want           int64
	}{
		{0, 0, time.Minute, 1}, {0, 1, 10 * time.Second, 10}, {0, 10, 10 * time.Second, 1}, {9, 1, 10 * time.Second, 100},
		{9, 10, 10 * time.Second, 10}, {99, 10, 10 * time.Second, 100}, {5, 0, 0, 1}, {5, 0, time.Millisecond, 6},
	} {
		if got := eta(c.ahead, c.running, c.pace); got != c.want {
			t.Errorf("eta(%d, %d, %s) = %d, want %d", c.ahead, c.running, c.pace, got, c.want)
		}
	}
}

// TestPace checks that the estimate uses the run times of a model's jobs, even if they are zero.
func TestPace(t *testing.T) {
	t.Parallel()
	storetest.EachURL(t, func(t *testing.T, url string) {
		m := &generator{submit: func(_ int, task jobcall.Task) (*jobcall.TaskStatus, error) {
			return &jobcall.TaskStatus{Done: true, Results: pictures(task.Count)}, nil
		}}
		c, n := oneLineCluster(t, url, m)
		for range 3 {
			id := c.start(n, "easel-1", 1)
			n.jobs.running.Wait()
			if v := c.view(id); v.StartedMS == 0 || v.StartedMS > v.EndedMS {
				t.Fatalf("the job started at %d and ended at %d", v.StartedMS, v.EndedMS)
			}
		}
		c.fill(n, 4)
		ids := c.order()
		if s := c.poll(n, "image", ids[3]); *s.Position != 3 || *s.ETA > 60 {
			t.Errorf("position %d and ETA %d s, want 3 and at most 60 s", *s.Position, *s.ETA)
		}
		c.update(`UPDATE job SET started_ms = ended_ms - 100000 WHERE status = 'succeeded'`)
		n.clearCache()
		if s := c.poll(n, "image", ids[3]); *s.ETA != 400 {
			t.Errorf("ETA %d s after four jobs of 100 s, want 400 s", *s.ETA)
		}
	})
}

// TestQueueCacheReadsOnce checks that polls read a queue once in maxQueueAge and newer jobs get
// positions too.
func TestQueueCacheReadsOnce(t *testing.T) {
	t.Parallel()
	storetest.EachURL(t, func(t *testing.T, url string) {
		clock := time.Now()
		c := newCluster(t, url, map[string]chatcall.Adapter{"first": &generator{}})
		c.edit = func(o *Options) { o.Now = func() time.Time { return clock } }
		c.apply(oneLine)
		n := c.idleNode()
		c.fill(n, 50)
		ids := c.order()
		for i, id := range ids {
			if s := c.poll(n, "image", id); *s.Position != int64(i) {
				t.Fatalf("position %d, want %d", *s.Position, i)
			}
		}
		// The rows have changed, so this answer is from the cache.
		c.update(`UPDATE job_run SET turn = turn + 1000 WHERE id = $1`, ids[0])
		if s := c.poll(n, "image", ids[1]); *s.Position != 1 {
			t.Errorf("position %d, want 1 from the cached queue", *s.Position)
		}
		newer := c.submit(n, c.submission(n, "easel-1", 1))
		if s := c.poll(n, "image", newer); *s.Position != 50 {
			t.Errorf("a job newer than the cached queue has position %d, want 50", *s.Position)
		}
		clock = clock.Add(maxQueueAge + time.Millisecond)
		if s := c.poll(n, "image", ids[1]); *s.Position != 0 {
			t.Errorf("position %d after maxQueueAge, want 0 from a new read", *s.Position)
		}
	})
}

// TestManyPolls checks that concurrent polls never show a started job as queued.
func TestManyPolls(t *testing.T) {
	t.Parallel()
	storetest.EachURL(t, func(t *testing.T, url string) {
		c := newCluster(t, url, map[string]chatcall.Adapter{"first": &generator{blocks: true}})
		c.apply(oneLine)
		n := c.node()
		var ids []string
		for range 8 {
			ids = append(ids, c.submit(n, c.submission(n, "easel-1", 1)))
		}
		ctx, stop := context.WithTimeout(t.Context(), 20*time.Second)
		defer stop()
		var wg sync.WaitGroup
		for _, id := range ids {
			wg.Go(func() {
				started := false
				for ctx.Err() == nil {
					body, err := n.jobs.Body(ctx, c.account, "image", id)
					if err != nil {
						t.Errorf("Body: %v", err)
						return
					}
					s := parse(t, body)
					started = started || s.Status != row.StatusQueued
					if started && s.Status == row.StatusQueued {
						t.Errorf("a started job has the body %s", body)
					}
					if final(s) {
						return
					}
				}
				t.Errorf("job %s has not ended", id)
			})
		}
		wg.Wait()
	})
}
