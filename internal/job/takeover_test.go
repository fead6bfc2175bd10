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

// read returns a running job.
func (c *cluster) read(id string) (rec *row.Job, p *row.Run) {
	c.t.Helper()
	c.viewTx(func(tx *store.Tx) (err error) {
		rec, p, err = row.ReadTx(tx, id)
		return err
	})
	return rec, p
}

// workerOf returns a worker for a job's present state.
func (c *cluster) workerOf(n *testNode, id string) *worker {
	c.t.Helper()
	w := &worker{jobs: n.jobs, snapshot: n.watcher.Current(), life: newLifetime(c.t.Context(), c.t.Context())}
	if w.rec, w.run = c.read(id); w.rec == nil {
		c.t.Fatalf("job %s does not run", id)
	}
	w.candidate = n.lines.CandidateFor(w.snapshot, w.run.Line, w.rec.Model)
	w.attempt = w.candidate.Begin(w.rec.Account)
	c.t.Cleanup(w.attempt.End)
	c.t.Cleanup(w.life.end)
	return w
}

func (c *cluster) declareDead(n *testNode) {
	c.t.Helper()
	c.update(`UPDATE node SET dead = 1 WHERE epoch = $1`, n.self.Epoch())
}

// TestTakeOver kills a node while its job is in each state. Another node ends the job, without
// another submission if the provider had answered.
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
		{"sending what is done at once", row.StateSending, true, "submit", 2},
		{"storing what came with the answer", row.StateSending, true, "inline", 2},
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
				t.Fatalf("the job stands at %+v, want state %d", p, tt.state)
			}
			fetched := m.fetches
			second := c.node()
			s := c.await(second, "image", id, final)
			if s.Status != row.StatusSucceeded || len(s.Data) != 2 {
				t.Errorf("%+v", s)
			}
			m.checkSubmissions(t, tt.submissions)
			if tt.submissions == 2 && m.submitted[0].Key != m.submitted[1].Key {
				t.Errorf("a repetition is named %s, the first was %s", m.submitted[1].Key, m.submitted[0].Key)
			}
			if tt.state == row.StateStored && m.fetches != fetched {
				t.Error("stored results were fetched again")
			}
			c.audit(2 * cent)
		})
	}
}

// TestTwoDeathsWhileSending refunds a job after two lost submissions.
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
		c.checkFailed(n, id, fault.UpstreamError, "after the takeover")
		m.checkSubmissions(t, 2)
		c.audit(0)
	})
}

// TestFindTicket asks the provider for the submission of a dead node instead of repeating it.
func TestFindTicket(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct {
		name        string
		find        func(jobcall.Task) (string, error)
		submissions int
	}{
		{"known", func(task jobcall.Task) (string, error) { return "of " + task.Key, nil }, 1},
		{"unknown", func(jobcall.Task) (string, error) { return "", nil }, 2},
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
				t.Errorf("%+v", s)
			}
			if m.count() != tt.submissions || tt.submissions == 1 && polled != "of "+id+"-1" {
				t.Errorf("%d submissions, polled %q", m.count(), polled)
			}
			c.audit(cent)
		})
	}
}

// slowSubmit blocks a submission while its node is declared dead.
func slowSubmit(answer <-chan struct{}) func(context.Context, string) error {
	return func(_ context.Context, step string) error {
		if step == "submit" {
			<-answer
		}
		return nil
	}
}

// TestLateTicket records the ticket of a node that was declared dead. It is valid while the job has
// the same submission and no other ticket.
func TestLateTicket(t *testing.T) {
	t.Parallel()
	t.Run("in time", func(t *testing.T) {
		t.Parallel()
		storetest.EachURL(t, func(t *testing.T, url string) {
			answer, asked, found := make(chan struct{}), make(chan struct{}), make(chan struct{})
			m := &generator{before: slowSubmit(answer)}
			m.find = func(jobcall.Task) (string, error) { close(asked); <-found; return "", nil }
			c, old := oneLineCluster(t, url, finder{m})
			id := c.start(old, "easel-1", 1)
			until(t, "the submission", func() bool { return m.count() == 1 })
			c.declareDead(old)
			n := c.idleNode()
			n.step(n.jobs.TakeOver)
			<-asked
			answer <- struct{}{}
			until(t, "the ticket", func() bool { _, p := c.read(id); return p.Ticket == "ticket-1" })
			close(found)
			old.jobs.running.Wait()
			n.jobs.running.Wait()
			c.checkStatus(n, id, row.StatusSucceeded, "after the takeover")
			if m.count() != 1 || len(m.cancelled) != 0 {
				t.Errorf("%d submissions, cancelled %v", m.count(), m.cancelled)
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
				t.Errorf("%d submissions, cancelled %v", m.count(), m.cancelled)
			}
			c.audit(cent)
		})
	})
	t.Run("known already", func(t *testing.T) {
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
			<-reached // its results are being fetched
			answer <- struct{}{}
			old.jobs.running.Wait()
			if _, p := c.read(id); p == nil || p.State != row.StateRendered {
				t.Errorf("the late ticket has set the job back: %+v", p)
			}
		})
	})
}

// TestFencedNode lets two nodes end a job. One of them does.
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
		behind := c.workerOf(old, id)
		ctx := t.Context()
		if err := behind.collect(); err != nil {
			t.Fatal(err)
		}
		// All have the same fence, and one of them ends the job.
		c.declareDead(old)
		n := c.idleNode()
		if failed, err := n.jobs.takeOverGroup(ctx, []orphan{{id, "node_of_others"}}); len(failed) > 0 || err != nil {
			t.Fatal(failed, err)
		}
		if _, p := c.read(id); p.Fence != behind.run.Fence {
			t.Fatal("a job was taken from a node that is not the one thought dead")
		}
		var ends [4]bool
		var all sync.WaitGroup
		for i := range ends {
			e := n.jobs.newEnding(behind.rec, behind.run.Files, behind.run.Fence, row.JobError{})
			e.cost = cent
			all.Go(func() { ends[i] = n.jobs.end(ctx, e) })
		}
		all.Wait()
		count := 0
		for _, ended := range ends {
			if ended {
				count++
			}
		}
		if count != 1 {
			t.Errorf("%d ends", count)
		}
		c.audit(cent)

		// A fenced owner ends nothing and writes nothing.
		again := c.submit(n, c.submission(n, "easel-1", 1))
		m.before = block("fetch", reached)
		n.step(n.jobs.Start)
		<-reached
		behind = c.workerOf(n, again)
		n.kill()
		c.declareDead(n)
		next := c.idleNode()
		next.step(next.jobs.TakeOver)
		<-reached
		m.before = nil
		if err := behind.collect(); !errors.Is(err, errNotOwner) {
			t.Errorf("a fenced node has written a step: %v", err)
		}
		behind.run.Files = nil
		if next.jobs.end(ctx, next.jobs.newEnding(behind.rec, nil, behind.run.Fence, row.JobError{Code: fault.UpstreamError})) {
			t.Error("a fenced node has ended a job")
		}
		next.kill()
		last := c.idleNode()
		c.declareDead(next)
		if s := c.finish(last, again, "image"); s.Status != row.StatusSucceeded {
			t.Errorf("%+v", s)
		}
		c.audit(2 * cent)
	})
}

// TestTakeOverBesideSubmissions takes over jobs while this node has the maximum number of
// submissions.
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
		waits := c.start(n, "easel-1", 1)
		c.checkStatus(n, waits, row.StatusQueued, "started beyond the bound of submissions")
	})
}

// TestEndlessTakeOvers fails a job after many take-overs.
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

// TestGracefulStop stops a node during a submission. It records the ticket, and the next node
// continues.
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
			t.Errorf("%+v", p)
		}
		n.end()
		next := c.node()
		if s := c.await(next, "image", id, final); s.Status != row.StatusSucceeded || m.count() != 1 {
			t.Errorf("%+v after %d submissions", s, m.count())
		}
		c.audit(cent)
	})
}

// TestKeyDeletedMeanwhile ends a job whose key was deleted.
func TestKeyDeletedMeanwhile(t *testing.T) {
	t.Parallel()
	storetest.EachURL(t, func(t *testing.T, url string) {
		free := make(chan struct{})
		c, n := oneLineCluster(t, url, &generator{before: gate("submit", free)})
		id := c.start(n, "easel-1", 1)
		c.deleteKey()
		free <- struct{}{}
		n.jobs.running.Wait()
		c.checkStatus(n, id, row.StatusSucceeded, "after the takeover")
		c.audit(cent)
		_ = c.db.View(t.Context(), func(tx *store.Tx) error {
			states, err := ledger.AccountsTx(tx, []string{c.account})
			if err != nil || states[c.account].Balance != 100*money.USD-cent {
				t.Errorf("%+v %v", states, err)
			}
			return nil
		})
	})
}

// TestLineGoneMeanwhile takes over jobs whose line this node cannot call. They continue on other
// lines, and a lost submission counts.
func TestLineGoneMeanwhile(t *testing.T) {
	t.Parallel()
	for at, lost := range map[string]bool{"submit": true, "poll": false} {
		eachURL(t, at, func(t *testing.T, url string) {
			reached := make(chan struct{}, 1)
			first, second := &generator{before: block(at, reached)}, &generator{}
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
				t.Errorf("%+v %+v", s, v.Attempts)
			}
			c.audit(3 * cent)
		})
	}
}
