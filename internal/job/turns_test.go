package job

import (
	"context"
	"fmt"
	"strings"
	"sync"
	"testing"
	"time"

	"tollgate/internal/catalog"
	"tollgate/internal/fault"
	"tollgate/internal/job/row"
	"tollgate/internal/line"
	"tollgate/internal/slot"
	"tollgate/internal/store"
	"tollgate/internal/store/storetest"
	"tollgate/internal/upstream"
	"tollgate/internal/upstream/chatcall"
	"tollgate/internal/upstream/jobcall"
)

// easelCatalog returns a catalog of models easel-1, easel-2, …. A line without models serves all of
// them.
func easelCatalog(models int, lines ...string) string {
	var doc, served strings.Builder
	doc.WriteString("models:\n")
	for i := range models {
		fmt.Fprintf(&doc, "  - {id: easel-%d, kind: image, price: {1K: 0.01}, ratios: [\"1:1\"]}\n", i+1)
		fmt.Fprintf(&served, "easel-%d: a, ", i+1)
	}
	doc.WriteString("lines:\n")
	for _, line := range lines {
		if !strings.Contains(line, "models:") {
			line += ", models: {" + strings.TrimSuffix(served.String(), ", ") + "}"
		}
		fmt.Fprintf(&doc, "  - {provider: script, %s}\n", line)
	}
	return doc.String()
}

// whileLocked calls fn while a transaction holds the locks for writing runs and taking slots of the
// lines.
func (c *cluster) whileLocked(fn func(), lines ...string) {
	c.t.Helper()
	c.updateTx(func(tx *store.Tx) error {
		if err := slot.LockTx(tx, lines...); err != nil {
			return err
		}
		if tx.Dialect() == store.PostgreSQL { // on SQLite the transaction locks everything
			if _, err := tx.Exec(`LOCK TABLE job, job_run, line_job IN EXCLUSIVE MODE`); err != nil {
				return err
			}
		}
		fn()
		return nil
	})
}

// TestBlockedQueuesNeedNoLock checks that Start does not wait for locks if no line can take a job, and
// the job starts after the obstacle is removed.
func TestBlockedQueuesNeedNoLock(t *testing.T) {
	t.Parallel()
	document := easelCatalog(1, "id: first, max_concurrent: 2")
	for _, tt := range []struct {
		name         string
		block, clear func(c *cluster, n *testNode)
	}{
		{"a full line", func(c *cluster, _ *testNode) {
			c.update(`INSERT INTO line_job (job, line) VALUES ('job_x', 'first')`)
			c.update(`INSERT INTO line_job (job, line) VALUES ('job_y', 'first')`)
		}, func(c *cluster, _ *testNode) { c.update(`DELETE FROM line_job`) }},
		{"a job that waits for a retry", func(c *cluster, _ *testNode) {
			c.update(`UPDATE job_run SET wake_ms = 9000000000000`)
		}, func(c *cluster, _ *testNode) { c.update(`UPDATE job_run SET wake_ms = 0`) }},
		{"a job rejected by every line", func(c *cluster, _ *testNode) {
			c.update(`UPDATE job_run SET trace = $1`, failedOn("first"))
		}, func(c *cluster, _ *testNode) { c.update(`UPDATE job_run SET trace = ''`) }},
		{"a model of a newer catalog", func(c *cluster, n *testNode) {
			c.update(`UPDATE job SET model = 'easel-2', revision = revision + 1`)
			c.update(`UPDATE job_run SET model = 'easel-2'`)
		}, func(c *cluster, n *testNode) {
			c.update(`UPDATE job SET model = 'easel-1', revision = revision - 1`)
			c.update(`UPDATE job_run SET model = 'easel-1'`)
		}},
		{"a node at its limit of submissions", func(_ *cluster, n *testNode) {
			n.jobs.sending = maxSending
		}, func(_ *cluster, n *testNode) { n.jobs.sending = 0 }},
	} {
		eachURL(t, tt.name, func(t *testing.T, url string) {
			m := &generator{blocks: true}
			c := newCluster(t, url, map[string]chatcall.Adapter{"first": m})
			c.apply(document)
			n := c.idleNode()
			id := c.submit(n, c.submission(n, "easel-1", 1))
			tt.block(c, n)
			c.whileLocked(func() { n.step(n.jobs.Start) }, "first")
			m.checkSubmissions(t, 0)
			tt.clear(c, n)
			n.runJobs()
			c.checkStatus(n, id, row.StatusSucceeded, "after the obstacle was removed")
		})
	}
}

// TestDisabledLinesNeedNoLock is like TestBlockedQueuesNeedNoLock, for an account with failures that
// have disabled the line.
func TestDisabledLinesNeedNoLock(t *testing.T) {
	t.Parallel()
	storetest.EachURL(t, func(t *testing.T, url string) {
		m := &generator{blocks: true, submit: func(int, jobcall.Task) (*jobcall.TaskStatus, error) {
			return nil, failure(fault.UpstreamError, upstream.NextLine)
		}}
		c := newCluster(t, url, map[string]chatcall.Adapter{"first": m})
		c.apply(easelCatalog(1, "id: first, max_concurrent: 2"))
		n := c.idleNode()
		for range 5 {
			c.submit(n, c.submission(n, "easel-1", 1))
			n.runJobs()
		}
		c.submit(n, c.submission(n, "easel-1", 1))
		before := m.count()
		c.whileLocked(func() { n.step(n.jobs.Start) }, "first")
		if m.count() != before {
			t.Error("Start submitted a job to the disabled line")
		}
	})
}

// TestLongQueue checks that a job of another model starts although one model has more jobs than the
// node may submit.
func TestLongQueue(t *testing.T) {
	t.Parallel()
	storetest.EachURL(t, func(t *testing.T, url string) {
		m := &generator{blocks: true, before: gate("submit", nil)}
		c := newCluster(t, url, map[string]chatcall.Adapter{"first": m})
		c.apply(easelCatalog(2, "id: first"))
		n := c.idleNode()
		n.jobs.sending = maxSending - maxStarts - 8
		c.fill(n, 2*maxStarts)
		other := c.start(n, "easel-2", 1)
		c.checkStatus(n, other, row.StatusProcessing, "a job beside the long queue of another model")
		if n.jobs.sending != maxSending || n.jobs.reserved != 0 {
			t.Errorf("%d submissions and %d reserved, want %d and none", n.jobs.sending, n.jobs.reserved, maxSending)
		}
	})
}

// TestSlowModel checks that a new job of another model starts while one model's transaction waits for a
// lock.
func TestSlowModel(t *testing.T) {
	t.Parallel()
	first, second := &generator{blocks: true}, &generator{blocks: true}
	c := newCluster(t, storetest.PostgreSQL(t), map[string]chatcall.Adapter{"first": first, "second": second})
	c.apply(easelCatalog(2, "id: first, max_concurrent: 2, models: {easel-1: a}", "id: second, max_concurrent: 2, models: {easel-2: a}"))
	n := c.idleNode()
	c.submit(n, c.submission(n, "easel-1", 1))
	var wg sync.WaitGroup
	c.updateTx(func(tx *store.Tx) error {
		if err := slot.LockTx(tx, "first"); err != nil {
			return err
		}
		wg.Go(func() {
			if err := n.jobs.Start(n.ctx); err != nil {
				t.Error(err)
			}
		})
		until(t, "the wait for the lock", func() (waits bool) {
			err := tx.QueryRow(`SELECT COUNT(*) > 0 FROM pg_locks WHERE locktype = 'advisory' AND NOT granted
				AND database = (SELECT oid FROM pg_database WHERE datname = current_database())`).Scan(&waits)
			return err != nil || waits
		})
		c.submit(n, c.submission(n, "easel-2", 1))
		until(t, "the start of the other model's job", func() bool { return second.count() == 1 })
		if first.count() != 0 {
			t.Error("the job of the first model started without the lock")
		}
		return nil
	})
	wg.Wait()
	n.jobs.running.Wait()
	first.checkSubmissions(t, 1)
}

// TestDamagedQueue checks that Start returns an error for each model with a damaged job and starts the
// jobs of other models.
func TestDamagedQueue(t *testing.T) {
	t.Parallel()
	storetest.EachURL(t, func(t *testing.T, url string) {
		c := newCluster(t, url, map[string]chatcall.Adapter{"first": &generator{blocks: true}})
		c.apply(easelCatalog(6, "id: first"))
		n := c.idleNode()
		var intact []string
		for i := range 6 {
			id := c.submit(n, c.submission(n, fmt.Sprintf("easel-%d", i+1), 1))
			if i%2 == 0 {
				c.update(`UPDATE job_run SET trace = '{' WHERE id = $1`, id)
			} else {
				intact = append(intact, id)
			}
		}
		err := n.jobs.Start(n.ctx)
		for _, model := range []string{"easel-1", "easel-3", "easel-5"} {
			if err == nil || !strings.Contains(err.Error(), model) {
				t.Errorf("Start: %v, want an error for model %s", err, model)
			}
		}
		n.jobs.running.Wait()
		for _, id := range intact {
			c.checkStatus(n, id, row.StatusSucceeded, "a job of another model")
		}
	})
}

// loadCounter counts concurrent calls of several generators.
type loadCounter struct {
	mu       sync.Mutex
	now, top int // present and highest number of calls
	free     chan struct{}
}

// hold counts a submission and blocks until free has a value.
func (l *loadCounter) hold(ctx context.Context, step string) error {
	if step != "submit" {
		return nil
	}
	l.mu.Lock()
	l.now++
	l.top = max(l.top, l.now)
	l.mu.Unlock()
	defer func() {
		l.mu.Lock()
		l.now--
		l.mu.Unlock()
	}()
	return gate("submit", l.free)(ctx, step)
}

// TestTurnsKeepLimits checks that jobs of many models on shared lines reach the limits of a line and of
// the nodes, and never exceed them.
func TestTurnsKeepLimits(t *testing.T) {
	t.Parallel()
	const models, jobs, lineLimit, nodeLimit = 6, 36, 5, 9
	test := func(t *testing.T, url string, nodes int) {
		l := &loadCounter{free: make(chan struct{})}
		first, second := &generator{blocks: true, before: l.hold}, &generator{blocks: true, before: l.hold}
		c := newCluster(t, url, map[string]chatcall.Adapter{"first": first, "second": second})
		c.apply(easelCatalog(models, fmt.Sprintf("id: first, max_concurrent: %d", lineLimit), "id: second, priority: 2"))
		var all []*testNode
		for range nodes {
			n := c.idleNode()
			n.jobs.sending = maxSending - nodeLimit
			all = append(all, n)
		}
		for i := range jobs {
			c.submit(all[0], c.submission(all[0], fmt.Sprintf("easel-%d", i%models+1), 1))
		}
		for left := jobs; left > 0; left-- {
			// A step may leave capacity unused that another model had reserved.
			until(t, fmt.Sprintf("use of the whole capacity, %d jobs left", left), func() bool {
				startAll(t, all)
				l.mu.Lock()
				defer l.mu.Unlock()
				return l.now == min(left, nodeLimit*nodes)
			})
			before := c.ended()
			l.free <- struct{}{}
			until(t, "the end of a job", func() bool { return c.ended() > before })
		}
		if _, top := first.load(); top != lineLimit {
			t.Errorf("the first line had up to %d concurrent submissions, want %d", top, lineLimit)
		}
		if l.top != nodeLimit*nodes {
			t.Errorf("the nodes had up to %d concurrent submissions, want %d", l.top, nodeLimit*nodes)
		}
		if sum := first.count() + second.count(); sum != jobs {
			t.Errorf("%d submissions, want %d", sum, jobs)
		}
		c.audit(jobs * cent)
	}
	oneAndTwoNodes(t, test)
}

// TestHalfOpenLineOfTwoModels checks that two models do not use a half-open line at once.
func TestHalfOpenLineOfTwoModels(t *testing.T) {
	t.Parallel()
	j := &Jobs{}
	halfOpen, closed := &catalog.Line{}, &catalog.Line{}
	halfOpen.ID, closed.ID = "half-open", "closed"
	lines := []*line.Candidate{{Line: halfOpen, HalfOpen: true}, {Line: closed}}
	first, releaseFirst := j.claim(lines)
	second, releaseSecond := j.claim(lines)
	if len(first) != 2 || len(second) != 1 || second[0].Line.ID != "closed" {
		t.Errorf("the first claim has %d lines and the second %d, want 2 and 1", len(first), len(second))
	}
	releaseSecond()
	if third, _ := j.claim(lines); len(third) != 1 {
		t.Error("the release of the second claim also released the first claim")
	}
	releaseFirst()
	if third, _ := j.claim(lines); len(third) != 2 {
		t.Error("the release of the first claim did not free the line")
	}
}

// TestTakeOverDamagedJob checks that TakeOver returns an error for a damaged job and takes over the other
// jobs of a dead node.
func TestTakeOverDamagedJob(t *testing.T) {
	t.Parallel()
	storetest.EachURL(t, func(t *testing.T, url string) {
		m := &generator{}
		c := newCluster(t, url, map[string]chatcall.Adapter{"first": m})
		c.apply(easelCatalog(1, "id: first"))
		n := c.idleNode()
		const jobs = maxGroup + 5
		c.fill(n, jobs)
		c.update(`UPDATE job_run SET state = 2, ticket = id, line = 'first', number = 1, revision = 1, started_ms = 1, epoch = $1`, noOwner)
		c.update(`INSERT INTO line_job (job, line) SELECT id, 'first' FROM job_run`)
		c.update(`UPDATE job_run SET trace = '{' WHERE id = (SELECT MIN(id) FROM job_run)`)
		err := n.jobs.TakeOver(n.ctx)
		if err == nil || !strings.Contains(err.Error(), row.ErrDamaged.Error()) {
			t.Errorf("TakeOver: %v, want %v", err, row.ErrDamaged)
		}
		n.jobs.running.Wait()
		if got := c.ended(); got != jobs-1 {
			t.Errorf("%d jobs have ended, want %d", got, jobs-1)
		}
	})
}

// TestHousekeepDamagedJob checks that a damaged job past the start limit does not keep Housekeep from
// failing the jobs of disabled accounts.
func TestHousekeepDamagedJob(t *testing.T) {
	t.Parallel()
	storetest.EachURL(t, func(t *testing.T, url string) {
		c, n := oneLineCluster(t, url, &generator{})
		damaged := c.submit(n, c.submission(n, "easel-1", 1))
		c.update(`UPDATE job_run SET trace = '{', queued_ms = 1 WHERE id = $1`, damaged)
		other := c.withAccount(c.open(100 * cent))
		id := other.submit(n, other.submission(n, "easel-1", 1))
		c.disable(other.account, true)
		if err := n.jobs.Housekeep(n.ctx); err == nil {
			t.Error("Housekeep returned no error for the damaged job")
		}
		other.checkStatus(n, id, row.StatusFailed, "a job of a disabled account")
	})
}

// TestSlowQueueRead checks that a poll waiting for another poll's read of the queue returns when its
// context ends, or gets the result.
func TestSlowQueueRead(t *testing.T) {
	t.Parallel()
	storetest.EachURL(t, func(t *testing.T, url string) {
		c, n := oneLineCluster(t, url, &generator{})
		id := c.submit(n, c.submission(n, "easel-1", 1))
		c.poll(n, "image", id)
		v := n.jobs.queues.queue("easel-1")
		reading := make(chan struct{})
		v.mu.Lock()
		v.reading, v.readAt = reading, time.Time{}
		v.mu.Unlock()
		ctx, cancel := context.WithTimeout(t.Context(), 10*time.Millisecond)
		defer cancel()
		if _, err := n.jobs.Body(ctx, c.account, "image", id); fault.Of(err).Code != fault.ServiceUnavailable {
			t.Errorf("Body with an ended context: %v, want %s", err, fault.ServiceUnavailable)
		}
		answers := make(chan error, 1)
		go func() {
			_, err := n.jobs.Body(t.Context(), c.account, "image", id)
			answers <- err
		}()
		v.mu.Lock()
		v.readAt, v.reading = time.Now(), nil
		v.mu.Unlock()
		close(reading)
		if err := <-answers; err != nil {
			t.Error(err)
		}
	})
}
