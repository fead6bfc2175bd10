package job

import (
	"context"
	"errors"
	"sync"
	"testing"

	"tollgate/internal/fault"
	"tollgate/internal/job/row"
	"tollgate/internal/ledger"
	"tollgate/internal/money"
	"tollgate/internal/store"
	"tollgate/internal/store/storetest"
	"tollgate/internal/upstream/chatcall"
	"tollgate/internal/upstream/jobcall"
)

// read returns an unfinished job.
func (c *cluster) read(id string) (rec *row.Job, p *row.Run) {
	c.t.Helper()
	c.viewTx(func(tx *store.Tx) (err error) {
		rec, p, err = row.ReadTx(tx, id)
		return err
	})
	return rec, p
}

// workerOf returns a worker that continues a job from its present state.
func (c *cluster) workerOf(n *testNode, id string) *worker {
	c.t.Helper()
	w := &worker{jobs: n.jobs, snapshot: n.watcher.Current(), life: newLifetime(c.t.Context(), c.t.Context())}
	if w.rec, w.run = c.read(id); w.rec == nil {
		c.t.Fatalf("job %s has no run", id)
	}
	w.candidate = n.lines.CandidateFor(w.snapshot, w.run.Line, w.rec.Model)
	w.attempt = w.candidate.Begin(w.rec.Account)
	c.t.Cleanup(w.attempt.End)
	c.t.Cleanup(w.life.end)
	return w
}

// declareDead marks a node as dead in the database.
func (c *cluster) declareDead(n *testNode) {
	c.t.Helper()
	c.update(`UPDATE node SET dead = 1 WHERE epoch = $1`, n.self.Epoch())
}

// TestTakeOver checks in each state that another node ends the job of a killed node, without another
// submission if the provider had answered.
func TestTakeOver(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct {
		name        string
		state       int64
		blocks      bool
		stuck       string
		submissions int
	}{
		{"sending", row.StateSending, false, "submit", 2},
		{"sending with inline results", row.StateSending, true, "submit", 2},
		{"storing inline results", row.StateSending, true, "inline", 2},
		{"rendering", row.StateRendering, false, "poll", 1},
		{"rendered", row.StateRendered, false, "fetch", 1},
		{"stored", row.StateStored, false, "fetch", 1},
	} {
		eachURL(t, tt.name, func(t *testing.T, url string) {
			reached := make(chan struct{}, 1)
			m := &generator{blocks: tt.blocks, before: block(tt.stuck, reached)}
			c, first := oneLineCluster(t, url, m)
			if tt.stuck == "inline" { // all downloads are blocked
				for range maxFetches {
					first.jobs.fetches <- struct{}{}
				}
			}
			id := c.start(first, "easel-1", 2)
			if tt.stuck == "inline" {
				until(t, "the submission", func() bool { return m.count() == 1 })
			} else {
				<-reached
			}
			first.kill()
			m.before = nil
			if tt.state == row.StateStored {
				if err := c.workerOf(first, id).collect(); err != nil {
					t.Fatal(err)
				}
			}
			if _, p := c.read(id); p == nil || p.State != tt.state || p.Epoch != first.self.Epoch() {
				t.Fatalf("the run is %+v, want state %d", p, tt.state)
			}
			fetches := m.fetches
			second := c.node()
			s := c.await(second, "image", id, final)
			if s.Status != row.StatusSucceeded || len(s.Data) != 2 {
				t.Errorf("the job is %+v, want succeeded with 2 results", s)
			}
			m.checkSubmissions(t, tt.submissions)
			if tt.submissions == 2 && m.submitted[0].Key != m.submitted[1].Key {
				t.Errorf("the repeated submission has key %s, want %s", m.submitted[1].Key, m.submitted[0].Key)
			}
			if tt.state == row.StateStored && m.fetches != fetches {
				t.Error("stored results were downloaded again")
			}
			c.audit(2 * cent)
		})
	}
}

// TestTwoDeathsWhileSending checks that a job fails and is refunded after two lost submissions.
func TestTwoDeathsWhileSending(t *testing.T) {
	t.Parallel()
	storetest.EachURL(t, func(t *testing.T, url string) {
		reached := make(chan struct{}, 1)
		m := &generator{before: block("submit", reached)}
		c, n := twoLineCluster(t, url, m, m)
		id := c.submit(n, c.submission(n, "easel-1", 1))
		for range 2 {
			n.step(n.jobs.Start)
			<-reached
			n.kill()
			c.declareDead(n)
			n = c.idleNode()
			n.step(n.jobs.TakeOver)
			n.jobs.running.Wait()
		}
		c.checkFailed(n, id, fault.UpstreamError, "after two dead nodes")
		m.checkSubmissions(t, 2)
		c.audit(0)
	})
}

// TestFindTicket checks that a take-over looks up the lost submission at the provider, and repeats only a
// submission that the provider cannot find.
func TestFindTicket(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct {
		name        string
		find        func(jobcall.Task) (string, error)
		submissions int
	}{
		{"found", func(task jobcall.Task) (string, error) { return "of " + task.Key, nil }, 1},
		{"not found", func(jobcall.Task) (string, error) { return "", nil }, 2},
		{"no answer", func(jobcall.Task) (string, error) { return "", later(errors.New("no route")) }, 2},
	} {
		eachURL(t, tt.name, func(t *testing.T, url string) {
			reached := make(chan struct{}, 1)
			m := &generator{before: block("submit", reached), find: tt.find}
			polled := ""
			m.poll = func(_ int, ticket string) (*jobcall.TaskStatus, error) { polled = ticket; return nil, nil }
			c, n := oneLineCluster(t, url, finder{m})
			id := c.start(n, "easel-1", 1)
			<-reached
			n.kill()
			c.declareDead(n)
			m.before = nil
			n = c.idleNode()
			if s := c.finish(n, id, "image"); s.Status != row.StatusSucceeded {
				t.Errorf("the job is %+v, want succeeded", s)
			}
			if m.count() != tt.submissions || tt.submissions == 1 && polled != "of "+id+"-1" {
				t.Errorf("%d submissions, want %d; polled ticket %q", m.count(), tt.submissions, polled)
			}
			c.audit(cent)
		})
	}
}

// slowSubmit blocks submissions until answer has a value.
func slowSubmit(answer <-chan struct{}) func(context.Context, string) error {
	return func(_ context.Context, step string) error {
		if step == "submit" {
			<-answer
		}
		return nil
	}
}

// TestLateTicket checks that a node declared dead may record its ticket only while the job has
// the same submission and no other ticket.
func TestLateTicket(t *testing.T) {
	t.Parallel()
	t.Run("in time", func(t *testing.T) {
		t.Parallel()
		storetest.EachURL(t, func(t *testing.T, url string) {
			answer, lookup, found := make(chan struct{}), make(chan struct{}), make(chan struct{})
			m := &generator{before: slowSubmit(answer)}
			m.find = func(jobcall.Task) (string, error) { close(lookup); <-found; return "", nil }
			c, old := oneLineCluster(t, url, finder{m})
			id := c.start(old, "easel-1", 1)
			until(t, "the submission", func() bool { return m.count() == 1 })
			c.declareDead(old)
			n := c.idleNode()
			n.step(n.jobs.TakeOver)
			<-lookup
			answer <- struct{}{}
			until(t, "the ticket", func() bool { _, p := c.read(id); return p.Ticket == "ticket-1" })
			close(found)
			old.jobs.running.Wait()
			n.jobs.running.Wait()
			c.checkStatus(n, id, row.StatusSucceeded, "after the takeover")
			if m.count() != 1 || len(m.cancelled) != 0 {
				t.Errorf("%d submissions, want 1; canceled tasks %v, want none", m.count(), m.cancelled)
			}
			c.audit(cent)
		})
	})
	t.Run("too late", func(t *testing.T) {
		t.Parallel()
		storetest.EachURL(t, func(t *testing.T, url string) {
			answer := make(chan struct{})
			m := &generator{}
			m.before = func(_ context.Context, step string) error {
				if step == "submit" && m.count() == 1 {
					<-answer
				}
				return nil
			}
			c, old := oneLineCluster(t, url, m)
			id := c.start(old, "easel-1", 1)
			until(t, "the submission", func() bool { return m.count() == 1 })
			c.declareDead(old)
			n := c.idleNode()
			c.finish(n, id, "image")
			close(answer)
			old.jobs.running.Wait()
			if m.count() != 2 || len(m.cancelled) != 1 || m.cancelled[0] != "ticket-2" && m.cancelled[0] != "ticket-1" {
				t.Errorf("%d submissions, want 2; canceled tasks %v, want one", m.count(), m.cancelled)
			}
			c.audit(cent)
		})
	})
	t.Run("already found", func(t *testing.T) {
		t.Parallel()
		storetest.EachURL(t, func(t *testing.T, url string) {
			answer, reached := make(chan struct{}), make(chan struct{}, 1)
			m := &generator{find: func(jobcall.Task) (string, error) { return "ticket-1", nil }}
			m.before = func(ctx context.Context, step string) error {
				return errors.Join(slowSubmit(answer)(ctx, step), block("fetch", reached)(ctx, step))
			}
			c, old := oneLineCluster(t, url, finder{m})
			id := c.start(old, "easel-1", 1)
			until(t, "the submission", func() bool { return m.count() == 1 })
			c.declareDead(old)
			n := c.idleNode()
			n.step(n.jobs.TakeOver)
			<-reached // the job's results are in download
			answer <- struct{}{}
			old.jobs.running.Wait()
			if _, p := c.read(id); p == nil || p.State != row.StateRendered {
				t.Errorf("after the late ticket the run is %+v, want rendered", p)
			}
		})
	})
}

// TestFencedNode checks that concurrent ends of a job end it once and a fenced owner neither ends
// nor changes a job.
func TestFencedNode(t *testing.T) {
	t.Parallel()
	storetest.EachURL(t, func(t *testing.T, url string) {
		reached := make(chan struct{}, 1)
		m := &generator{before: block("fetch", reached)}
		c, old := oneLineCluster(t, url, m)
		id := c.start(old, "easel-1", 1)
		<-reached
		old.kill()
		m.before = nil
		stale := c.workerOf(old, id)
		ctx := t.Context()
		if err := stale.collect(); err != nil {
			t.Fatal(err)
		}
		// All endings have the same fence, and one of the endings succeeds.
		c.declareDead(old)
		n := c.idleNode()
		if failed, err := n.jobs.takeOverGroup(ctx, []orphan{{id, "node_of_others"}}); len(failed) > 0 || err != nil {
			t.Fatal(failed, err)
		}
		if _, p := c.read(id); p.Fence != stale.run.Fence {
			t.Fatal("takeOverGroup took the job from another node than the given one")
		}
		var ends [4]bool
		var wg sync.WaitGroup
		for i := range ends {
			e := n.jobs.newEnding(stale.rec, stale.run.Files, stale.run.Fence, row.JobError{})
			e.cost = cent
			wg.Go(func() { ends[i] = n.jobs.end(ctx, e) })
		}
		wg.Wait()
		count := 0
		for _, ended := range ends {
			if ended {
				count++
			}
		}
		if count != 1 {
			t.Errorf("%d calls of end ended the job, want 1", count)
		}
		c.audit(cent)

		// A fenced owner neither ends the job nor writes a step.
		again := c.submit(n, c.submission(n, "easel-1", 1))
		m.before = block("fetch", reached)
		n.step(n.jobs.Start)
		<-reached
		stale = c.workerOf(n, again)
		n.kill()
		c.declareDead(n)
		next := c.idleNode()
		next.step(next.jobs.TakeOver)
		<-reached
		m.before = nil
		if err := stale.collect(); !errors.Is(err, errNotOwner) {
			t.Errorf("collect of a fenced node: %v, want %v", err, errNotOwner)
		}
		stale.run.Files = nil
		if next.jobs.end(ctx, next.jobs.newEnding(stale.rec, nil, stale.run.Fence, row.JobError{Code: fault.UpstreamError})) {
			t.Error("a fenced node has ended a job")
		}
		next.kill()
		last := c.idleNode()
		c.declareDead(next)
		if s := c.finish(last, again, "image"); s.Status != row.StatusSucceeded {
			t.Errorf("the job is %+v, want succeeded", s)
		}
		c.audit(2 * cent)
	})
}

// TestTakeOverBesideSubmissions checks that a node with the maximum number of submissions still takes
// over jobs, and starts none.
func TestTakeOverBesideSubmissions(t *testing.T) {
	t.Parallel()
	storetest.EachURL(t, func(t *testing.T, url string) {
		reached := make(chan struct{}, 1)
		m := &generator{before: block("poll", reached)}
		c, old := oneLineCluster(t, url, m)
		id := c.start(old, "easel-1", 1)
		<-reached
		old.kill()
		m.before = nil
		c.declareDead(old)
		n := c.idleNode()
		n.jobs.sending = maxSending
		n.step(n.jobs.TakeOver)
		n.jobs.running.Wait()
		c.checkStatus(n, id, row.StatusSucceeded, "after the takeover")
		queued := c.start(n, "easel-1", 1)
		c.checkStatus(n, queued, row.StatusQueued, "beyond the maximum number of submissions")
	})
}

// TestEndlessTakeOvers expects a job to fail after maxFence take-overs.
func TestEndlessTakeOvers(t *testing.T) {
	t.Parallel()
	storetest.EachURL(t, func(t *testing.T, url string) {
		m := &generator{}
		c, n := oneLineCluster(t, url, m)
		id := c.submit(n, c.submission(n, "easel-1", 1))
		c.update(`UPDATE job_run SET state = 2, ticket = 't', line = 'first', number = 1, revision = 1, started_ms = 1, epoch = $1, fence = $2`,
			noOwner, maxFence)
		n.step(n.jobs.TakeOver)
		c.checkFailed(n, id, fault.UpstreamError, "after the takeover")
		c.checkHeld(0)
	})
}

// TestGracefulStop checks that a node stopped during a submission records the ticket and the
// next node continues with the ticket.
func TestGracefulStop(t *testing.T) {
	t.Parallel()
	storetest.EachURL(t, func(t *testing.T, url string) {
		free := make(chan struct{})
		m := &generator{before: gate("submit", free)}
		c, n := oneLineCluster(t, url, m)
		n.jobs.stopWait = stopWait
		ctx, stop := context.WithCancel(t.Context())
		stopped := make(chan struct{})
		go func() { defer close(stopped); n.jobs.Run(ctx) }()
		id := c.submit(n, c.submission(n, "easel-1", 1))
		until(t, "the submission", func() bool { return m.count() == 1 })
		stop()
		until(t, "the end of all but submissions", func() bool { n.jobs.mu.Lock(); defer n.jobs.mu.Unlock(); return n.jobs.life == nil })
		free <- struct{}{}
		<-stopped
		if _, p := c.read(id); p == nil || p.State != row.StateRendering || p.Ticket != "ticket-1" {
			t.Errorf("the run is %+v, want rendering with ticket-1", p)
		}
		n.end()
		next := c.node()
		if s := c.await(next, "image", id, final); s.Status != row.StatusSucceeded || m.count() != 1 {
			t.Errorf("the job is %+v after %d submissions, want succeeded after 1", s, m.count())
		}
		c.audit(cent)
	})
}

// TestDeletedKey expects the success and charge of a started job although its key was deleted.
func TestDeletedKey(t *testing.T) {
	t.Parallel()
	storetest.EachURL(t, func(t *testing.T, url string) {
		free := make(chan struct{})
		c, n := oneLineCluster(t, url, &generator{before: gate("submit", free)})
		id := c.start(n, "easel-1", 1)
		c.deleteKey()
		free <- struct{}{}
		n.jobs.running.Wait()
		c.checkStatus(n, id, row.StatusSucceeded, "after the key was deleted")
		c.audit(cent)
		_ = c.db.View(t.Context(), func(tx *store.Tx) error {
			states, err := ledger.AccountsTx(tx, []string{c.account})
			if err != nil || states[c.account].Balance != 100*money.USD-cent {
				t.Errorf("the accounts are %+v and error %v, want a charge of 1 cent", states, err)
			}
			return nil
		})
	})
}

// TestTakeOverWithoutLine checks that a job continues on another line if the new owner cannot call the
// job's line and a submission in flight counts as lost.
func TestTakeOverWithoutLine(t *testing.T) {
	t.Parallel()
	for step, lost := range map[string]bool{"submit": true, "poll": false} {
		eachURL(t, step, func(t *testing.T, url string) {
			reached := make(chan struct{}, 1)
			first, second := &generator{before: block(step, reached)}, &generator{}
			c := newCluster(t, url, map[string]chatcall.Adapter{"first": first, "second": second})
			old := c.idleNode()
			id := c.start(old, "easel-1", 1)
			<-reached
			old.kill()
			c.declareDead(old)
			c.generators = map[string]chatcall.Adapter{"first": chatcall.NoChat{}, "second": second}
			n := c.idleNode()
			s := c.finish(n, id, "image")
			v := c.view(id)
			if s.Status != row.StatusSucceeded || len(v.Attempts) != 2 || v.Attempts[0].Lost != lost || v.Line != "second" {
				t.Errorf("the job is %+v with attempts %+v, want succeeded on second and lost %t", s, v.Attempts, lost)
			}
			c.audit(3 * cent)
		})
	}
}
