package webhook

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"tollgate/internal/store"
	"tollgate/internal/store/storetest"
)

// gate is a receiver that does not answer until the test opens the gate.
type gate struct {
	open    chan struct{}
	arrived chan struct{} // gets a value for each request
}

func newGate() *gate {
	return &gate{open: make(chan struct{}), arrived: make(chan struct{}, 10_000)}
}

func (g *gate) answer(_ http.ResponseWriter, r *http.Request) {
	g.arrived <- struct{}{}
	select {
	case <-g.open:
	case <-r.Context().Done():
	}
}

// wait waits until n requests have arrived.
func (g *gate) wait(n int) {
	for range n {
		<-g.arrived
	}
}

// TestReceiverLimitAppliesToAllNodes checks that two nodes together deliver at most four events of
// an account at a time to a receiver.
func TestReceiverLimitAppliesToAllNodes(t *testing.T) {
	t.Parallel()
	each(t, func(t *testing.T, env *testEnv) {
		a, b := env.node("a"), env.node("b")
		g := newGate()
		r := newReceiver(t, g.answer)
		for i := range 20 {
			env.callback(a, "acct_1", fmt.Sprintf("%s/%d", r.URL, i))
		}
		env.callback(a, "acct_2", r.URL+"/other") // the limit applies to each account
		a.step()
		b.step()
		a.step()
		if a.inFlightCount()+b.inFlightCount() != 5 {
			t.Fatalf("the nodes run %d and %d attempts, want 5 in total", a.inFlightCount(), b.inFlightCount())
		}
		g.wait(5)
		close(g.open)
		var wg sync.WaitGroup
		wg.Go(a.settle)
		wg.Go(b.settle)
		wg.Wait()
		a.settle()
		if r.top > 5 || len(r.requests()) != 21 || env.count("webhook_queue") != 0 {
			t.Errorf("up to %d at a time, %d requests and %d queued events, want 5, 21 and 0", r.top, len(r.requests()), env.count("webhook_queue"))
		}
		seen := map[string]bool{}
		for _, p := range r.requests() {
			seen[p.id] = true
		}
		if len(seen) != 21 {
			t.Errorf("%d different events, want 21", len(seen))
		}
	})
}

// TestFailingReceiver checks that a failing receiver gets one attempt at a time until an attempt
// succeeds.
func TestFailingReceiver(t *testing.T) {
	t.Parallel()
	each(t, func(t *testing.T, env *testEnv) {
		n := env.node("a")
		r := newReceiver(t, status(500))
		for range 6 {
			env.callback(n, "acct_1", r.URL)
		}
		n.settle()
		r.mu.Lock()
		r.top = 0
		r.mu.Unlock()
		env.clock.Advance(time.Minute)
		n.settle()
		if r.top != 1 || len(r.requests()) != 12 {
			t.Errorf("up to %d at a time in %d requests, want 1 in 12", r.top, len(r.requests()))
		}
		g := newGate()
		r.respond(g.answer)
		env.clock.Advance(5 * time.Minute)
		n.step()
		g.wait(1)
		if n.inFlightCount() != 1 {
			t.Errorf("%d attempts run, want 1", n.inFlightCount())
		}
		g.open <- struct{}{}
		n.workers.Wait()
		n.step()
		g.wait(4)
		if n.inFlightCount() != 4 {
			t.Errorf("%d attempts run after a success, want 4", n.inFlightCount())
		}
		close(g.open)
		n.settle()
	})
}

// TestDeadNode checks that another node takes over the claimed deliveries of a dead node, but not of a
// living node.
func TestDeadNode(t *testing.T) {
	t.Parallel()
	each(t, func(t *testing.T, env *testEnv) {
		a, b := env.node("a"), env.node("b")
		g := newGate()
		r := newReceiver(t, g.answer)
		env.callback(a, "acct_1", r.URL)
		a.step()
		g.wait(1)
		b.settle() // the lease of a is valid while a lives
		if len(r.requests()) != 1 {
			t.Fatal("a running attempt was taken over")
		}
		close(g.open)
		a.workers.Wait() // and node a never records the result
		env.clock.Advance(time.Second)
		b.settle()
		if len(r.requests()) != 1 {
			t.Fatal("the lease of a living node was taken over")
		}
		env.kill("a")
		env.clock.Advance(time.Second)
		b.settle()
		posts := r.requests()
		if len(posts) != 2 || posts[0].id != posts[1].id || posts[0].body != posts[1].body {
			t.Fatalf("the requests are %+v, want the same event twice", posts)
		}
		env.checkDelivery("acct_1", "delivered", 1)
		// The dead node records its attempt frozen, which changes only the log.
		a.settle()
		env.checkDelivery("acct_1", "delivered", 2)
		// A dead node claims nothing.
		env.callback(a, "acct_1", r.URL)
		a.settle()
		if len(r.requests()) != 2 {
			t.Error("a dead node delivered an event")
		}
	})
}

// TestLeaseExpires checks that another node takes over after the lease has expired, even if the node with
// the lease lives.
func TestLeaseExpires(t *testing.T) {
	t.Parallel()
	each(t, func(t *testing.T, env *testEnv) {
		a, b := env.node("a"), env.node("b")
		g := newGate()
		r := newReceiver(t, g.answer)
		env.callback(a, "acct_1", r.URL)
		a.step()
		g.wait(1)
		env.clock.Advance(defaultTimeout + leaseSlack - time.Millisecond)
		b.step()
		if b.inFlightCount() != 0 {
			t.Fatal("the delivery was taken over before the end of the lease")
		}
		env.clock.Advance(time.Second)
		b.step()
		if b.inFlightCount() != 1 {
			t.Fatal("the delivery was not taken over after the lease")
		}
		g.wait(1)
		close(g.open)
		a.settle() // records its success frozen
		b.settle()
		posts := r.requests()
		if d := env.log("acct_1")[0]; d.State != "delivered" || len(d.Attempts) != 2 || len(posts) != 2 || posts[0].id != posts[1].id {
			t.Errorf("the delivery is %+v, want delivered with 2 attempts", d)
		}
		env.checkQueueIsEmpty()
	})
}

// TestLateFailure checks that a failure recorded after another node's success changes only the log.
func TestLateFailure(t *testing.T) {
	t.Parallel()
	each(t, func(t *testing.T, env *testEnv) {
		a, b := env.node("a"), env.node("b")
		g := newGate()
		r := newReceiver(t, func(w http.ResponseWriter, req *http.Request) { g.answer(w, req); w.WriteHeader(500) })
		env.callback(a, "acct_1", r.URL)
		a.step()
		g.wait(1)
		env.kill("a")
		env.clock.Advance(time.Second)
		r.respond(nil)
		b.settle()
		close(g.open)
		a.settle()
		if d := env.log("acct_1")[0]; d.State != "delivered" || len(d.Attempts) != 2 || d.NextMS != 0 {
			t.Errorf("the delivery is %+v, want delivered with 2 attempts", d)
		}
		env.clock.Advance(time.Hour)
		b.settle()
		if len(r.requests()) != 2 {
			t.Error("the event was sent again")
		}
	})
}

// TestUnknownClaimIsReleased checks that a node releases its leases without an attempt, as after a commit
// with a lost answer.
func TestUnknownClaimIsReleased(t *testing.T) {
	t.Parallel()
	each(t, func(t *testing.T, env *testEnv) {
		n := env.node("a")
		r := newReceiver(t, nil)
		env.callback(n, "acct_1", r.URL)
		unknown := &round{w: n.Webhooks, startedAt: env.clock.Now(), epoch: "a", claiming: true}
		s, err := unknown.readPending(context.Background())
		if err != nil {
			t.Fatal(err)
		}
		env.update(func(tx *store.Tx) error { return unknown.run(tx, s) })
		if len(unknown.claimed) != 1 {
			t.Fatalf("the round claimed %d deliveries, want 1", len(unknown.claimed))
		}
		n.settle()
		if len(r.requests()) != 1 || env.log("acct_1")[0].State != "delivered" {
			t.Error("the claim was not released")
		}
	})
}

// TestRepeatedRound checks that a repeated round, as after a commit with a lost answer, records an attempt
// once.
func TestRepeatedRound(t *testing.T) {
	t.Parallel()
	each(t, func(t *testing.T, env *testEnv) {
		n := env.node("a")
		r := newReceiver(t, status(500))
		env.callback(n, "acct_1", r.URL)
		n.step()
		n.workers.Wait()
		finished := n.finishedAttempts()
		for range 3 {
			again := &round{w: n.Webhooks, startedAt: env.clock.Now(), epoch: "a", finished: finished}
			env.update(func(tx *store.Tx) error { return again.run(tx, &pendingWork{}) })
		}
		n.settle()
		if d := env.log("acct_1")[0]; len(d.Attempts) != 1 || d.NextMS != env.clock.Now().Add(schedule[0]).UnixMilli() {
			t.Errorf("the delivery is %+v, want one attempt and the first wait", d)
		}
	})
}

// TestFrozenNodeDoesNotSend checks that a node frozen between claim and attempt does not send, because
// another node may have the lease by then.
func TestFrozenNodeDoesNotSend(t *testing.T) {
	t.Parallel()
	each(t, func(t *testing.T, env *testEnv) {
		n := env.node("a")
		r := newReceiver(t, nil)
		env.callback(n, "acct_1", r.URL)
		frozen := &round{w: n.Webhooks, startedAt: env.clock.Now().Add(-leaseSlack/2 - time.Second), epoch: "a", claiming: true}
		s, err := frozen.readPending(context.Background())
		if err != nil {
			t.Fatal(err)
		}
		env.update(func(tx *store.Tx) error { return frozen.run(tx, s) })
		n.applyRound(context.Background(), frozen)
		n.workers.Wait()
		if len(r.requests()) != 0 {
			t.Error("the frozen node sent the event")
		}
		n.settle()
		if d := env.log("acct_1")[0]; len(r.requests()) != 1 || len(d.Attempts) != 1 || d.State != "delivered" {
			t.Errorf("%d requests and the delivery %+v, want 1 and delivered", len(r.requests()), d)
		}
	})
}

// TestNodesShareTheWork checks that nodes deliver each event once if no node fails.
func TestNodesShareTheWork(t *testing.T) {
	t.Parallel()
	each(t, func(t *testing.T, env *testEnv) {
		nodes := []*testNode{env.node("a"), env.node("b"), env.node("c")}
		r := newReceiver(t, nil)
		const events = 150
		env.emit(func(q *store.Batch, nowMS int64) {
			for i := range events {
				nodes[0].EmitJob(q, nowMS, JobEnd{Account: fmt.Sprintf("acct_%d", i%30), Type: VideoFailed, Body: []byte(jobBody), Callback: r.URL})
			}
		})
		var wg sync.WaitGroup
		for _, n := range nodes {
			wg.Go(n.settle)
		}
		wg.Wait()
		nodes[0].settle()
		seen := map[string]int{}
		for _, p := range r.requests() {
			seen[p.id]++
		}
		if len(seen) != events || len(r.requests()) != events || env.count("webhook_queue") != 0 {
			t.Errorf("%d events in %d requests and %d queued, want 150 in 150 and none",
				len(seen), len(r.requests()), env.count("webhook_queue"))
		}
	})
}

// TestDeadReceiversDelayNoOthers checks that 900 receivers get their events although 100 other
// receivers never answer and have several older events each.
func TestDeadReceiversDelayNoOthers(t *testing.T) {
	t.Parallel()
	each(t, func(t *testing.T, env *testEnv) {
		const receivers, dead, each = 1000, 100, 4
		var live atomic.Int64
		all := make(chan struct{})
		hang := newGate()
		deadPort := manyAddresses(t, http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			_, _ = io.Copy(io.Discard, r.Body)
			hang.answer(w, r)
		}))
		livePort := manyAddresses(t, http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) {
			_, _ = io.Copy(io.Discard, r.Body)
			if live.Add(1) == receivers-dead {
				close(all)
			}
		}))
		n := env.node("a", func(o *Options) { o.Now = time.Now; o.Timeout = 10 * time.Minute })
		env.emit(func(q *store.Batch, nowMS int64) {
			for i := range dead * each {
				n.EmitJob(q, nowMS, JobEnd{Account: "acct_1", Type: ImageCompleted, Body: []byte(jobBody), Callback: hostOf(i%dead, deadPort)})
			}
			for i := dead; i < receivers; i++ {
				n.EmitJob(q, nowMS, JobEnd{Account: "acct_1", Type: ImageCompleted, Body: []byte(jobBody), Callback: hostOf(i, livePort)})
			}
		})
		ctx, stop := context.WithCancel(context.Background())
		var wg sync.WaitGroup
		wg.Go(func() { n.Run(ctx) })
		start := time.Now()
		select {
		case <-all: // while the requests to the dead receivers hang
			t.Logf("%d live receivers got their events after %v", receivers-dead, time.Since(start))
		case <-time.After(2 * time.Minute):
			t.Errorf("%d of %d live receivers got their events", live.Load(), receivers-dead)
		}
		close(hang.open)
		stop()
		wg.Wait()
	})
}

// TestRun checks that Run delivers new events immediately, retries, and releases running attempts
// when ctx ends.
func TestRun(t *testing.T) {
	t.Parallel()
	storetest.Each(t, func(t *testing.T, db *store.DB) {
		env := &testEnv{t: t, db: db, clock: new(storetest.Clock)}
		n := env.node("a", func(o *Options) {
			o.Now = time.Now
			o.Retries = []time.Duration{20 * time.Millisecond, 20 * time.Millisecond}
		})
		answered := make(chan int, 10)
		hang := newGate()
		var requests atomic.Int64
		r := newReceiver(t, func(w http.ResponseWriter, req *http.Request) {
			if req.URL.Path == "/hang" {
				hang.answer(w, req)
				return
			}
			k := int(requests.Add(1))
			if k < 3 {
				w.WriteHeader(500)
			}
			answered <- k
		})
		ctx, stop := context.WithCancel(context.Background())
		var wg sync.WaitGroup
		wg.Go(func() { n.Run(ctx) })
		env.callback(n, "acct_1", r.URL)
		n.Wake()
		for range 3 {
			<-answered
		}
		env.callback(n, "acct_2", r.URL+"/hang")
		n.Wake()
		hang.wait(1)
		start := time.Now()
		stop()
		wg.Wait()
		if elapsed := time.Since(start); elapsed > 8*time.Second {
			t.Errorf("Run returned after %v, want at most 8 s", elapsed)
		}
		env.checkDelivery("acct_1", "delivered", 3)
		if d := env.log("acct_2")[0]; d.State != "pending" || d.NextMS == 0 || len(d.Attempts) != 1 ||
			!strings.Contains(d.Attempts[0].Error, "stopping") {
			t.Errorf("the aborted delivery is %+v, want pending with one attempt", d)
		}
		b := env.node("b")
		close(hang.open)
		b.settle()
		env.checkDelivery("acct_2", "delivered", 2)
	})
}

// TestResultsSurviveAnOutage checks that results are recorded when the database is back.
func TestResultsSurviveAnOutage(t *testing.T) {
	t.Parallel()
	each(t, func(t *testing.T, env *testEnv) {
		n := env.node("a")
		r := newReceiver(t, status(500))
		env.callback(n, "acct_1", r.URL)
		n.step()
		n.workers.Wait()
		canceled, cancel := context.WithCancel(context.Background())
		cancel()
		for range 3 {
			if _, err := n.runRound(canceled, canceled); err == nil || !errors.Is(err, context.Canceled) {
				t.Fatalf("runRound with a canceled context: %v, want %v", err, context.Canceled)
			}
		}
		if n.inFlightCount() != 1 {
			t.Error("the node dropped a result before it was recorded")
		}
		n.settle()
		if d := env.log("acct_1")[0]; len(d.Attempts) != 1 || len(r.requests()) != 1 {
			t.Errorf("the delivery is %+v, want one attempt and one request", d)
		}
	})
}
