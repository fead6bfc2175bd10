package job

import (
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	"tollgate/internal/fault"
	"tollgate/internal/job/row"
	"tollgate/internal/ledger"
	"tollgate/internal/money"
	"tollgate/internal/store"
	"tollgate/internal/store/storetest"
	"tollgate/internal/upstream"
	"tollgate/internal/upstream/chatcall"
	"tollgate/internal/upstream/jobcall"
)

// until waits until condition returns true.
func until(t testing.TB, what string, condition func() bool) {
	t.Helper()
	deadline := time.After(20 * time.Second)
	tick := time.NewTicker(2 * time.Millisecond)
	defer tick.Stop()
	for !condition() {
		select {
		case <-deadline:
			t.Fatalf("timed out waiting for %s", what)
		case <-tick.C:
		}
	}
}

// load returns the present and the highest number of concurrent submissions.
func (m *generator) load() (atOnce, maxAtOnce int) {
	m.mu.Lock()
	defer m.mu.Unlock()
	return m.atOnce, m.maxAtOnce
}

// TestMaxConcurrent checks that jobs started on several nodes reach the lines' limits and never exceed
// them.
func TestMaxConcurrent(t *testing.T) {
	t.Parallel()
	test := func(t *testing.T, url string, nodes int) {
		const jobs = 14
		free := make(chan struct{})
		first, second := &generator{blocks: true, before: gate("submit", free)}, &generator{blocks: true, before: gate("submit", free)}
		c := newCluster(t, url, map[string]chatcall.Adapter{"first": first, "second": second})
		var all []*testNode
		for range nodes {
			all = append(all, c.idleNode())
		}
		c.fill(all[0], jobs)
		for left := jobs; left > 0; left-- {
			startAll(t, all)
			want := min(left, 4)
			until(t, fmt.Sprintf("%d jobs at once, %d left", want, left), func() bool {
				a, _ := first.load()
				b, _ := second.load()
				return a+b == want
			})
			before := c.ended()
			free <- struct{}{}
			until(t, "the end of a job", func() bool { return c.ended() > before })
		}
		for _, m := range []*generator{first, second} {
			if _, maxAtOnce := m.load(); maxAtOnce != 2 {
				t.Errorf("the line had up to %d concurrent submissions, want 2", maxAtOnce)
			}
		}
		if sum := first.count() + second.count(); sum != jobs {
			t.Errorf("%d submissions, want %d", sum, jobs)
		}
		c.audit(jobs * 3 * cent)
	}
	oneAndTwoNodes(t, test)
}

// ended counts the ended jobs.
func (c *cluster) ended() (n int64) {
	c.t.Helper()
	c.viewTx(func(tx *store.Tx) error {
		return tx.QueryRow(`SELECT COUNT(*) FROM job WHERE ended_ms > 0`).Scan(&n)
	})
	return n
}

// manyLines has two lines with the same priority and one with a lower priority.
const manyLines = `
models:
  - id: easel-1
    kind: image
    price: {1K: 0.01}
    ratios: ["1:1"]
lines:
  - {id: heavy, provider: script, models: {easel-1: a}, weight: 3}
  - {id: light, provider: script, models: {easel-1: b}, weight: 1}
  - {id: spare, provider: script, models: {easel-1: c}, priority: 2}
`

// TestPrioritiesAndWeights checks that jobs go to the lines with the highest priority, in proportion to
// the weights.
func TestPrioritiesAndWeights(t *testing.T) {
	t.Parallel()
	storetest.EachURL(t, func(t *testing.T, url string) {
		lines := map[string]chatcall.Adapter{}
		count := func(id string) int { return lines[id].(*generator).count() }
		for _, id := range []string{"heavy", "light", "spare"} {
			lines[id] = &generator{blocks: true}
		}
		c := newCluster(t, url, lines)
		c.apply(manyLines)
		n := c.idleNode()
		const jobs = 120
		c.fill(n, jobs)
		n.runJobs()
		if count("spare") != 0 {
			t.Errorf("%d jobs on the line with the lower priority, want none", count("spare"))
		}
		if got := count("heavy"); got+count("light") != jobs || got < jobs*3/5 || got > jobs*9/10 {
			t.Errorf("the lines with weights 3 and 1 got %d and %d jobs, want about 90 and 30", got, count("light"))
		}
		if model := lines["light"].(*generator).submitted[0].Model; model != "b" {
			t.Errorf("the line got a job for model %q, want b", model)
		}
	})
}

// TestJobsWaitForRemovedLine checks that a model's jobs stay queued until the start limit after the
// model's only line was removed or disabled, because the line may come back.
func TestJobsWaitForRemovedLine(t *testing.T) {
	t.Parallel()
	for name, without := range map[string]string{
		"disabled": oneLine + "    enabled: false\n",
		"removed":  oneLine[:strings.Index(oneLine, "lines:")] + "lines: []\n",
	} {
		eachURL(t, name, func(t *testing.T, url string) {
			c, n := oneLineCluster(t, url, &generator{blocks: true})
			first, second := c.submit(n, c.submission(n, "easel-1", 1)), c.submit(n, c.submission(n, "easel-1", 1))
			c.apply(without)
			n.step(n.watcher.Refresh)
			n.step(n.jobs.Start)
			n.step(n.jobs.Housekeep)
			for _, id := range []string{first, second} {
				c.checkStatus(n, id, row.StatusQueued, "without a line")
			}
			c.apply(oneLine)
			n.step(n.watcher.Refresh)
			n.runJobs()
			c.checkStatus(n, first, row.StatusSucceeded, "with the line back")
			c.apply(without)
			n.step(n.watcher.Refresh)
			c.update(`UPDATE job_run SET queued_ms = queued_ms - 900000`)
			n.step(n.jobs.Housekeep)
			if s := c.poll(n, "image", second); s.Status != row.StatusFailed || s.Error.Code != string(fault.UpstreamError) ||
				!strings.Contains(s.Error.Message, "15m") {
				t.Errorf("past the start limit: the job is %+v, want failed with the limit of 15m", s)
			}
			c.audit(cent)
		})
	}
}

// TestRemovedModel checks that the queued jobs of a removed model fail, except jobs of a newer
// catalog than the node's.
func TestRemovedModel(t *testing.T) {
	t.Parallel()
	storetest.EachURL(t, func(t *testing.T, url string) {
		c := newCluster(t, url, map[string]chatcall.Adapter{"first": &generator{blocks: true}, "second": &generator{}})
		stale, n := c.idleNode(), c.idleNode() // stale never reads the new catalogs
		id := c.submit(n, c.submission(n, "easel-1", 2))

		c.apply(strings.ReplaceAll(oneLine, "easel-1", "easel-2"))
		n.step(n.watcher.Refresh)
		newer := c.submit(n, c.submission(n, "easel-2", 1))
		stale.runJobs()
		c.checkStatus(stale, newer, row.StatusQueued, "a node without the new catalog")
		if s := c.poll(n, "image", id); s.Status != row.StatusSucceeded {
			t.Errorf("the job of the stale node's catalog is %+v, want succeeded", s)
		}
		c.apply(strings.ReplaceAll(oneLine, "easel-1", "easel-3"))
		n.step(n.watcher.Refresh)
		n.step(n.jobs.Start)
		if s := c.poll(n, "image", newer); s.Status != row.StatusFailed || s.Error.Code != string(fault.UpstreamError) ||
			s.Error.Type != "upstream_error" {
			t.Errorf("the job of the removed model is %+v, want failed with %s", s, fault.UpstreamError)
		}
		c.audit(6 * cent)
	})
}

// disable disables or enables an account.
func (c *cluster) disable(account string, disabled bool) {
	c.t.Helper()
	c.updateTx(func(tx *store.Tx) error {
		return ledger.ChangeAccountTx(tx, account, ledger.AccountChange{Disabled: &disabled})
	})
}

// TestDisabledAccount checks that a disabled account's queued jobs fail and its started jobs continue.
func TestDisabledAccount(t *testing.T) {
	t.Parallel()
	for _, name := range []string{"at the start", "in the queue"} {
		eachURL(t, name, func(t *testing.T, url string) {
			free := make(chan struct{})
			m := &generator{blocks: true, before: gate("submit", free)}
			c, n := oneLineCluster(t, url, m)
			started := c.start(n, "easel-1", 1)
			until(t, "the submission", func() bool { return m.count() == 1 })
			c.fill(n, 70)
			other := c.withAccount(c.open(money.USD))
			othersJob := other.submit(n, other.submission(n, "easel-1", 1))
			c.disable(c.account, true)
			if name == "at the start" { // Start looks only for a few jobs; Housekeep finds the others
				free <- struct{}{}
				n.jobs.running.Wait()
				n.step(n.jobs.Start)
				free <- struct{}{}
				n.jobs.running.Wait()
				if s := other.poll(n, "image", othersJob); s.Status != row.StatusSucceeded || m.count() != 2 {
					t.Errorf("%d submissions, want 2; the other account's job is %+v, want succeeded", m.count(), s)
				}
			}
			close(free)
			n.step(n.jobs.Housekeep)
			n.jobs.running.Wait()
			c.checkStatus(n, started, row.StatusSucceeded, "the job that had started")
			if queue := c.order(); len(queue) > 0 && (len(queue) > 1 || queue[0] != othersJob) {
				t.Errorf("the queue has %d jobs, want at most the other account's", len(queue))
			}
			if s := other.poll(n, "image", othersJob); s.Status == row.StatusFailed {
				t.Errorf("the other account's job is %+v, want not failed", s)
			}
			c.checkHeld(0)
			c.audit(cent)
		})
	}
}

// TestStartLimit checks that jobs fail past the start limit. The limit begins again for a started job
// that returns to the queue.
func TestStartLimit(t *testing.T) {
	t.Parallel()
	storetest.EachURL(t, func(t *testing.T, url string) {
		m := &generator{submit: func(n int, _ jobcall.Task) (*jobcall.TaskStatus, error) {
			return &jobcall.TaskStatus{Ticket: "t"}, nil
		}, poll: func(int, string) (*jobcall.TaskStatus, error) {
			return nil, upstream.TaskFailure(upstream.KindImage, "", "the queue is full: too many requests")
		}}
		c, n := oneLineCluster(t, url, m)
		n.jobs.opts.StartLimit = time.Minute
		requeued := c.submit(n, c.submission(n, "easel-1", 1))
		m.poll = func(int, string) (*jobcall.TaskStatus, error) {
			return nil, failure(fault.UpstreamError, upstream.NextLater)
		}
		c.update(`UPDATE job_run SET queued_ms = queued_ms - 45000`)
		n.runJobs()
		if s := c.poll(n, "image", requeued); s.Status != row.StatusProcessing {
			t.Fatalf("the requeued job is %+v, want processing", s)
		}
		waiting := c.submit(n, c.submission(n, "easel-1", 1))
		c.update(`UPDATE job_run SET queued_ms = queued_ms - 30000`)
		n.step(n.jobs.Housekeep)
		c.checkStatus(n, waiting, row.StatusQueued, "within the limit")
		c.checkStatus(n, requeued, row.StatusProcessing, "the limit begins again for a requeued job")
		c.update(`UPDATE job_run SET queued_ms = queued_ms - 30000`)
		n.step(n.jobs.Housekeep)
		for _, id := range []string{waiting, requeued} {
			c.checkFailed(n, id, fault.UpstreamError, "past the limit")
		}
		c.audit(0)
	})
}

// TestStartFailsOverdueJobs checks that Start fails jobs past the start limit, even before Housekeep
// runs, and starts the jobs behind them.
func TestStartFailsOverdueJobs(t *testing.T) {
	t.Parallel()
	storetest.EachURL(t, func(t *testing.T, url string) {
		m := &generator{blocks: true}
		c, n := oneLineCluster(t, url, m)
		n.jobs.opts.StartLimit = time.Minute
		overdue := c.submit(n, c.submission(n, "easel-1", 1))
		c.fill(n, queuePage+maxStarts)
		c.update(`UPDATE job_run SET queued_ms = queued_ms - 60000`)
		punctual := c.start(n, "easel-1", 1)
		n.jobs.running.Wait()
		c.checkFailed(n, overdue, fault.UpstreamError, "past the limit")
		c.checkStatus(n, punctual, row.StatusSucceeded, "within the limit")
		m.checkSubmissions(t, 1)
		c.audit(cent)
	})
}

// TestBusyLineKeepsStartLimit checks that the start limit does not begin again after the line rejects a
// job as busy, even if the job's status was processing.
func TestBusyLineKeepsStartLimit(t *testing.T) {
	t.Parallel()
	storetest.EachURL(t, func(t *testing.T, url string) {
		for _, blocks := range []bool{true, false} {
			m := &generator{blocks: blocks, submit: func(int, jobcall.Task) (*jobcall.TaskStatus, error) {
				return nil, failure(fault.UpstreamError, upstream.NextLater)
			}}
			c, n := oneLineCluster(t, url, m)
			n.jobs.opts.StartLimit = time.Minute
			id := c.submit(n, c.submission(n, "easel-1", 1))
			for range 3 {
				n.runJobs()
				c.update(`UPDATE job_run SET queued_ms = queued_ms - 20000, wake_ms = 0`)
			}
			n.step(n.jobs.Housekeep)
			if s := c.poll(n, "image", id); s.Status != row.StatusFailed || s.Error.Code != string(fault.UpstreamError) {
				t.Errorf("blocks %t: after a minute of busy answers, the job is %+v, want failed", blocks, s)
			}
			m.checkSubmissions(t, 3)
			c.audit(0)
		}
	})
}

// TestBlockedJobsAreSkipped checks that a job starts although no free line accepts the jobs ahead.
func TestBlockedJobsAreSkipped(t *testing.T) {
	t.Parallel()
	storetest.EachURL(t, func(t *testing.T, url string) {
		first, second := &generator{blocks: true}, &generator{blocks: true}
		c := newCluster(t, url, map[string]chatcall.Adapter{"first": first, "second": second})
		c.apply(strings.Replace(document, "max_concurrent: 2\n    timeouts: {total: 20s}\n  - id: second",
			"timeouts: {total: 20s}\n  - id: second", 1))
		n := c.idleNode()
		c.fill(n, queuePage+10)
		c.update(`UPDATE job_run SET trace = $1`, failedOn("first"))
		c.update(`INSERT INTO line_job (job, line) VALUES ('job_x', 'second')`)
		c.update(`INSERT INTO line_job (job, line) VALUES ('job_y', 'second')`)
		last := c.start(n, "easel-1", 1)
		n.jobs.running.Wait()
		c.checkStatus(n, last, row.StatusSucceeded, "the job behind blocked jobs")
		if first.count() != 1 || second.count() != 0 {
			t.Errorf("the lines got %d and %d submissions, want 1 and 0", first.count(), second.count())
		}
	})
}

// TestLineDisabledForOneAccount checks that a line that failed only one account's jobs still gets
// another account's job and this job's success enables the line for both accounts.
func TestLineDisabledForOneAccount(t *testing.T) {
	t.Parallel()
	broke := func() *upstream.JobFailure { return failure(fault.UpstreamError, upstream.NextLine) }
	busy := func() *upstream.JobFailure {
		return upstream.FailJob(upstream.Fail(fault.UpstreamBusy, errors.New("slow down")), fault.UpstreamError, upstream.NextLater)
	}
	storetest.EachURL(t, func(t *testing.T, url string) {
		for state, fails := range map[string]func() *upstream.JobFailure{"circuit_open": broke, "cooling": busy} {
			failing := true
			m := &generator{blocks: true, submit: func(int, jobcall.Task) (*jobcall.TaskStatus, error) {
				if failing {
					return nil, fails()
				}
				return &jobcall.TaskStatus{Done: true, Results: pictures(1)}, nil
			}}
			c, n := oneLineCluster(t, url, m)
			for range 5 {
				c.submit(n, c.submission(n, "easel-1", 1))
				n.runJobs()
			}
			if s := n.lines.Statuses()[0]; s.State != state {
				t.Fatalf("the line is %+v, want %s", s, state)
			}
			failing = false
			excluded, submissions := c.submit(n, c.submission(n, "easel-1", 1)), m.count()
			n.runJobs()
			if m.count() != submissions {
				t.Errorf("%s: the line got a job of the account with the failed jobs", state)
			}
			hostile, key := c.account, c.key
			c.account, c.key = c.open(100 * money.USD)
			others := c.submit(n, c.submission(n, "easel-1", 1))
			n.runJobs()
			if s := c.poll(n, "image", others); s.Status != row.StatusSucceeded {
				t.Errorf("%s: another account's job is %+v, want succeeded", state, s)
			}
			c.account, c.key = hostile, key
			for range 6 { // the failed jobs are ahead in the queue
				c.update(`UPDATE job_run SET wake_ms = 0`)
				n.runJobs()
			}
			if s := c.poll(n, "image", excluded); s.Status != row.StatusSucceeded || n.lines.Statuses()[0].State != "in_service" {
				t.Errorf("%s: after the other account's success the job is %+v, want succeeded; the line is %+v, want in service",
					state, s, n.lines.Statuses()[0])
			}
		}
	})
}
