package job

import (
	"context"
	"fmt"
	"sync"
	"time"

	"tollgate/internal/job/row"
	"tollgate/internal/store"
)

// Limits of the clients that wait for a job on one node. A client above them gets no result and must
// poll.
const (
	maxWaits           = 1024
	maxWaitsPerAccount = 256
)

// waits are the clients on this node that wait for the end of a job.
type waits struct {
	stopped chan struct{} // closed by EndWaits

	mu        sync.Mutex
	clients   map[*wait]struct{}
	byAccount map[string]int
}

// wait is one waiting client.
type wait struct {
	account, job string
	ended        chan struct{} // gets a value when the job may have ended
}

func newWaits() *waits {
	return &waits{stopped: make(chan struct{}), clients: map[*wait]struct{}{}, byAccount: map[string]int{}}
}

// add registers a client, or returns nil if too many wait.
func (w *waits) add(account, job string) *wait {
	w.mu.Lock()
	defer w.mu.Unlock()
	if len(w.clients) >= maxWaits || w.byAccount[account] >= maxWaitsPerAccount {
		return nil
	}
	c := &wait{account: account, job: job, ended: make(chan struct{}, 1)}
	w.clients[c] = struct{}{}
	w.byAccount[account]++
	return c
}

func (w *waits) remove(c *wait) {
	w.mu.Lock()
	defer w.mu.Unlock()
	delete(w.clients, c)
	if w.byAccount[c.account]--; w.byAccount[c.account] == 0 {
		delete(w.byAccount, c.account)
	}
}

// jobs returns the awaited jobs.
func (w *waits) jobs() []string {
	w.mu.Lock()
	defer w.mu.Unlock()
	jobs := make([]string, 0, len(w.clients))
	for c := range w.clients {
		jobs = append(jobs, c.job)
	}
	return jobs
}

// end wakes the clients that wait for some jobs.
func (w *waits) end(jobs ...string) {
	ended := make(map[string]bool, len(jobs))
	for _, job := range jobs {
		ended[job] = true
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	for c := range w.clients {
		if ended[c.job] {
			select {
			case c.ended <- struct{}{}:
			default:
			}
		}
	}
}

// Await waits for the end of an account's job and returns its result. It returns nil if the job has
// not ended when ctx ends or the node stops, or if too many clients wait already. The job goes on
// without its client.
func (j *Jobs) Await(ctx context.Context, account, id string) *row.AwaitedResult {
	c := j.waits.add(account, id)
	if c == nil {
		return nil
	}
	defer j.waits.remove(c)
	j.metrics.waiting.Inc()
	defer j.metrics.waiting.Dec()
	for {
		result, err := j.result(ctx, account, id)
		if result != nil {
			return result
		}
		var retry <-chan time.Time
		if err != nil && ctx.Err() == nil {
			j.logOutage("the end of an awaited job could not be read", id, err)
			retry = time.After(retryPause)
		}
		select {
		case <-c.ended:
		case <-retry:
		case <-j.waits.stopped:
			return nil
		case <-ctx.Done():
			return nil
		}
	}
}

// EndWaits makes the clients that wait for a job poll instead. No client waits afterwards. It must
// be called at most once.
func (j *Jobs) EndWaits() { close(j.waits.stopped) }

// result returns the result of a job that has ended, or nil.
func (j *Jobs) result(ctx context.Context, account, id string) (*row.AwaitedResult, error) {
	rec, err := store.Read(ctx, j.opts.DB, func(tx *store.Tx) (*row.Job, error) { return row.RecordTx(tx, id) })
	if err != nil || rec.EndedMS == 0 || rec.Account != account {
		return nil, err
	}
	j.fetched.add(rec.ID)
	return rec.AwaitedResult()
}

// NotifyWaits wakes clients that wait for jobs that have ended on other nodes. It reads the database
// only if a client waits. Clients whose job ended on this node are woken at its end.
func (j *Jobs) NotifyWaits(ctx context.Context) error {
	awaited := j.waits.jobs()
	if len(awaited) == 0 {
		return nil
	}
	ended, err := store.Read(ctx, j.opts.DB, func(tx *store.Tx) ([]string, error) {
		return store.Column[string](tx, `SELECT id FROM job WHERE `+tx.In("id", 1)+` AND ended_ms + 0 > 0`, store.List(awaited))
	})
	if err != nil {
		return fmt.Errorf("look for ended jobs: %w", err)
	}
	j.waits.end(ended...)
	return nil
}
