// Package partition tests several nodes on one PostgreSQL with faults of the network, the nodes and
// the server: lost commits, late answers, stopped nodes, a killed primary.
package partition

import (
	"context"
	"sync"
	"testing"
	"time"

	"tollgate/internal/gatewaytest/faultproxy"
	"tollgate/internal/gatewaytest/scene"
	"tollgate/internal/store/storetest"
)

// leaseOfScenes is the shortest there is.
const leaseOfScenes = "1s"

// TestPartitions loses COMMITs and their answers wherever money moves, disconnects the node until
// another one declares it dead, and reconnects it. It also stops nodes for longer than their lease.
// After each fault, the clients' records are compared with the gateway's books.
func TestPartitions(t *testing.T) {
	t.Parallel()
	binary := scene.Binary(t)
	type play func(t *testing.T, binary string)
	settlement := func(stream bool, strike faultproxy.Strike) play {
		return func(t *testing.T, binary string) { lostSettlement(t, binary, stream, strike) }
	}
	admission := func(strike faultproxy.Strike, late bool) play {
		return func(t *testing.T, binary string) { lostAdmission(t, binary, strike, late) }
	}
	submission := func(strike faultproxy.Strike, late bool) play {
		return func(t *testing.T, binary string) { lostSubmission(t, binary, strike, late) }
	}
	scenes := []struct {
		name string
		play play
	}{ // the longest first
		{"submission committed, answer lost, client answered before", submission(faultproxy.DropAnswer, true)},
		{"slow commits", slowCommits},
		{"settlement committed, answer lost, whole", settlement(false, faultproxy.DropAnswer)},
		{"settlement committed, answer lost, streamed", settlement(true, faultproxy.DropAnswer)},
		{"settlement lost, whole", settlement(false, faultproxy.DropCommit)},
		{"settlement lost, streamed", settlement(true, faultproxy.DropCommit)},
		{"admission committed, answer lost", admission(faultproxy.DropAnswer, false)},
		{"admission committed, answer lost, client answered before", admission(faultproxy.DropAnswer, true)},
		{"admission lost", admission(faultproxy.DropCommit, false)},
		{"submission committed, answer lost", submission(faultproxy.DropAnswer, false)},
		{"submission lost", submission(faultproxy.DropCommit, false)},
		{"process stopped", func(t *testing.T, binary string) { stoppedNode(t, binary, (*node).pause, (*node).resume) }},
		{"a job's steps", lostSteps},
		{"a job's take-over", lostTakeover},
		{"an idle node's return", idleReturn},
		{"a stream's node returns", cutStream},
		{"network frozen", func(t *testing.T, binary string) { stoppedNode(t, binary, (*node).freeze, (*node).thaw) }},
	}
	// They mostly wait, but each has processes of its own: a few at a time.
	turns := make(chan struct{}, 5)
	var all sync.WaitGroup
	for _, s := range scenes {
		turns <- struct{}{}
		all.Go(func() {
			defer func() { <-turns }()
			t.Run(s.name, func(t *testing.T) { s.play(t, binary) })
		})
	}
	all.Wait()
}

// twoNodes is a cluster of two.
func twoNodes(t *testing.T, binary string) (c *cluster, first, second *node) {
	t.Helper()
	c = newCluster(t, binary, storetest.PostgreSQL(t), 2, leaseOfScenes)
	return c, c.nodes[0], c.nodes[1]
}

// cutOff arms a fault that hits a COMMIT of the node and disconnects the node.
func cutOff(n *node, which func(faultproxy.Commit) bool, strike faultproxy.Strike) *faultproxy.Hit {
	return n.proxy.Arm(faultproxy.Fault{Match: which, Strike: strike, Cut: faultproxy.Silence, Then: faultproxy.Frozen})
}

// struck checks the effect of a fault.
func struck(t *testing.T, h *faultproxy.Hit, strike faultproxy.Strike) {
	t.Helper()
	if h.Committed() != (strike == faultproxy.DropAnswer) {
		t.Fatalf("the COMMIT that was struck was committed: %t", h.Committed())
	}
}

// lostSettlement checks that a client with the message "not charged" was not charged, and that a
// charged client has its answer or no answer.
func lostSettlement(t *testing.T, binary string, stream bool, strike faultproxy.Strike) {
	c, first, _ := twoNodes(t, binary)
	a := c.chatter()
	hit := cutOff(first, settles, strike)
	done := a.strike(hit, first, stream)
	struck(t, hit, strike)
	c.waitSwept(first)
	first.proxy.Reopen()
	t.Logf("%s", <-done)
	c.check()
}

// lostAdmission: nothing is held for ever, and the request runs once at most.
// late: the node comes back after its client was answered.
func lostAdmission(t *testing.T, binary string, strike faultproxy.Strike, late bool) {
	c, first, _ := twoNodes(t, binary)
	a := c.chatter()
	hit := cutOff(first, admits, strike)
	done := a.strike(hit, first, false)
	struck(t, hit, strike)
	c.waitSwept(first)
	if !late {
		first.proxy.Reopen()
	}
	t.Logf("%s", <-done)
	if late {
		first.proxy.Reopen()
	}
	// What waited behind it comes to its end, too.
	if next := a.say(t.Context(), first, false, fateFine); next.outcome() == outcomeNothing {
		t.Errorf("after it: %s", next)
	}
	c.check()
}

// lostSubmission checks that a refused client has no job, and that a client without an answer finds
// its job by the Idempotency-Key.
func lostSubmission(t *testing.T, binary string, strike faultproxy.Strike, late bool) {
	c, first, second := twoNodes(t, binary)
	a, s := c.chatter(), c.submitter()
	hit := cutOff(first, submits, strike)
	o := s.order(c, false)
	done := make(chan struct{})
	go func() {
		defer close(done)
		s.submit(first, o)
	}()
	scene.Eventually(t, "the COMMIT is struck", hit.Happened)
	struck(t, hit, strike)
	c.waitSwept(first)
	if !late {
		first.proxy.Reopen()
	}
	<-done
	t.Logf("%s", o)
	if o.lostReplies > 0 {
		scene.Eventually(t, "the other node answers the repetition", func() bool {
			s.submit(second, o)
			return o.settled()
		})
	}
	if late {
		first.proxy.Reopen()
	}
	if next := a.say(t.Context(), first, false, fateFine); next.outcome() == outcomeNothing {
		t.Errorf("after it: %s", next)
	}
	c.check()
}

// How long COMMITs are held back in slowCommits: longer than a batch may take,
// and longer than any other transaction may.
const (
	slowBatch  = 8 * time.Second
	slowUpdate = 17 * time.Second
)

// slowCommits checks that a slow COMMIT is awaited or its connection closed, but never canceled.
func slowCommits(t *testing.T, binary string) {
	c := newCluster(t, binary, storetest.PostgreSQL(t), 1, "15s")
	n := c.nodes[0]
	a := c.chatter()
	slow := func(which func(faultproxy.Commit) bool) (hit *faultproxy.Hit, release func()) {
		released := make(chan struct{})
		hit = n.proxy.Arm(faultproxy.Fault{Match: which, Strike: faultproxy.HoldAnswer, Release: released})
		return hit, sync.OnceFunc(func() { close(released) })
	}
	credits := faultproxy.Having("INSERT INTO ledger_entry")
	var all sync.WaitGroup
	defer all.Wait()

	// One operator disconnects during the COMMIT of a credit. Another one waits longer than a
	// transaction may take.
	credited, _ := n.Account(1, nil)
	for _, leaves := range []bool{true, false} {
		hit, release := slow(credits)
		defer release()
		ctx, leave := context.WithCancel(t.Context())
		defer leave()
		all.Go(func() { n.credit(ctx, credited) })
		scene.Eventually(t, "the credit is committed", hit.Happened)
		if leaves {
			leave()
		} else {
			all.Go(func() {
				scene.Sleep(slowUpdate)
				release()
			})
		}
	}
	for _, which := range []func(faultproxy.Commit) bool{admits, settles} {
		hit, release := slow(which)
		defer release()
		done := a.strike(hit, n, false)
		scene.Sleep(slowBatch)
		release()
		t.Logf("%s", <-done)
	}
	scene.Sleep(slowUpdate - 2*slowBatch)
	all.Wait()
	c.checkCancels()
	c.checkChats(a)
	c.audit()
}

// credit sends a small credit and ignores the answer.
func (n *node) credit(ctx context.Context, account string) {
	res, err := scene.Do(ctx, n.Client, "POST", n.URL+"/admin/v1/accounts/"+account+"/credits", `{"usd":1}`,
		"Authorization", "Bearer "+scene.AdminToken, "Content-Type", "application/json")
	if err == nil {
		_ = res.Body.Close()
	}
}

func (n *node) pause()  { n.Pause() }
func (n *node) resume() { n.Resume() }
func (n *node) freeze() { n.proxy.Freeze() }
func (n *node) thaw()   { n.proxy.Open() }

// stoppedNode stops a node for longer than its lease while requests and jobs run on it. When it
// continues, its work has been taken over.
func stoppedNode(t *testing.T, binary string, stop, resume func(*node)) {
	c, first, second := twoNodes(t, binary)
	a, s := c.chatter(), c.submitter()
	streamed := a.begin(first, true, fateSteps)
	for range 3 { // the role and a piece of text are under way
		c.steps <- struct{}{}
	}
	whole := a.begin(first, false, fateGated)
	o := s.order(c, false)
	s.submit(first, o)
	scene.Eventually(t, "both requests run", func() bool { return len(c.provider.Requests()) == 2 })
	stop(first)
	c.waitSwept(first)
	scene.Eventually(t, "the other node answers while the first stands still", func() bool {
		return a.say(t.Context(), second, false, fateFine).outcome() == outcomeComplete
	})
	close(c.steps)
	close(c.gate)
	resume(first)
	for _, call := range []*chatCall{<-streamed, <-whole} {
		t.Logf("%s", call)
	}
	c.check()
}

// cutStream checks that a node ends its streams if it was declared dead meanwhile, although the
// providers would continue.
func cutStream(t *testing.T, binary string) {
	c, first, _ := twoNodes(t, binary)
	a := c.chatter()
	streamed := a.begin(first, true, fateSteps)
	for range 3 { // the role and a piece of text are under way
		c.steps <- struct{}{}
	}
	scene.Eventually(t, "the stream runs", func() bool { return len(c.provider.Requests()) == 1 })
	first.freeze()
	c.waitSwept(first)
	first.thaw()
	scene.Eventually(t, "the stream ends, and its provider is left", func() bool { return len(streamed) > 0 && c.provider.Disconnects() > 0 })
	call := <-streamed
	if t.Logf("%s", call); call.outcome() == outcomeComplete {
		t.Error("the answer looks complete")
	}
	close(c.steps)
	c.check()
}
