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

// leaseOfScenes is the shortest lease that the gateway accepts.
const leaseOfScenes = "1s"

// TestPartitions loses COMMITs and their answers wherever money moves. It disconnects the node until
// another node declares it dead, and reconnects it. It also stops nodes for longer than their lease.
// After each fault, it compares the clients' records with the gateway's books.
func TestPartitions(t *testing.T) {
	t.Parallel()
	binary := scene.Binary(t)
	type play func(t *testing.T, binary string)
	settlement := func(stream bool, effect faultproxy.Effect) play {
		return func(t *testing.T, binary string) { lostSettlement(t, binary, stream, effect) }
	}
	admission := func(effect faultproxy.Effect, late bool) play {
		return func(t *testing.T, binary string) { lostAdmission(t, binary, effect, late) }
	}
	submission := func(effect faultproxy.Effect, late bool) play {
		return func(t *testing.T, binary string) { lostSubmission(t, binary, effect, late) }
	}
	scenes := []struct {
		name string
		play play
	}{ // the longest scenes first
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
	// Scenes mostly wait, but each starts its own processes, so only a few run at a time.
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

// twoNodes starts a cluster of two nodes.
func twoNodes(t *testing.T, binary string) (c *cluster, first, second *node) {
	t.Helper()
	c = newCluster(t, binary, storetest.PostgreSQL(t), 2, leaseOfScenes)
	return c, c.nodes[0], c.nodes[1]
}

// cutOff arms a fault for a COMMIT of the node. The fault also disconnects the node.
func cutOff(n *node, which func(faultproxy.Commit) bool, effect faultproxy.Effect) *faultproxy.Hit {
	return n.proxy.Arm(faultproxy.Fault{Match: which, Effect: effect, Cut: faultproxy.Silence, Then: faultproxy.Frozen})
}

// checkCommitted checks whether the COMMIT hit by a fault was committed.
func checkCommitted(t *testing.T, h *faultproxy.Hit, effect faultproxy.Effect) {
	t.Helper()
	if h.Committed() != (effect == faultproxy.DropAnswer) {
		t.Fatalf("the COMMIT hit by the fault was committed: %t", h.Committed())
	}
}

// lostSettlement loses the COMMIT of a settlement or its answer. A client with the message "not
// charged" must not be charged, and a charged client must have the answer or no answer.
func lostSettlement(t *testing.T, binary string, stream bool, effect faultproxy.Effect) {
	c, first, _ := twoNodes(t, binary)
	a := c.newChatClient()
	hit := cutOff(first, settles, effect)
	done := a.sendUntilHit(hit, first, stream)
	checkCommitted(t, hit, effect)
	c.waitSwept(first)
	first.proxy.Reopen()
	t.Logf("%s", <-done)
	c.check()
}

// lostAdmission loses the COMMIT of an admission or its answer. The hold must end, and the request
// must run at most once. If late is set, the node returns after its client has got an answer.
func lostAdmission(t *testing.T, binary string, effect faultproxy.Effect, late bool) {
	c, first, _ := twoNodes(t, binary)
	a := c.newChatClient()
	hit := cutOff(first, admits, effect)
	done := a.sendUntilHit(hit, first, false)
	checkCommitted(t, hit, effect)
	c.waitSwept(first)
	if !late {
		first.proxy.Reopen()
	}
	t.Logf("%s", <-done)
	if late {
		first.proxy.Reopen()
	}
	// Later requests on the node must get an answer, too.
	if next := a.send(t.Context(), first, false, fateFine); next.outcome() == outcomeNone {
		t.Errorf("after it: %s", next)
	}
	c.check()
}

// lostSubmission loses the COMMIT of a submission or its answer. A rejected client must have no job,
// and a client without an answer must find its job by the Idempotency-Key.
func lostSubmission(t *testing.T, binary string, effect faultproxy.Effect, late bool) {
	c, first, second := twoNodes(t, binary)
	a, s := c.newChatClient(), c.newJobClient()
	hit := cutOff(first, submits, effect)
	o := s.order(c, false)
	done := make(chan struct{})
	go func() {
		defer close(done)
		s.submit(first, o)
	}()
	scene.Eventually(t, "the fault hits the COMMIT", hit.Happened)
	checkCommitted(t, hit, effect)
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
	if next := a.send(t.Context(), first, false, fateFine); next.outcome() == outcomeNone {
		t.Errorf("after it: %s", next)
	}
	c.check()
}

// The delays of COMMITs in slowCommits: slowBatch is longer than a batch may take, slowUpdate longer
// than any other transaction may take.
const (
	slowBatch  = 8 * time.Second
	slowUpdate = 17 * time.Second
)

// slowCommits checks that a node waits for a slow COMMIT or closes its connection, but never cancels
// the COMMIT.
func slowCommits(t *testing.T, binary string) {
	c := newCluster(t, binary, storetest.PostgreSQL(t), 1, "15s")
	n := c.nodes[0]
	a := c.newChatClient()
	slow := func(which func(faultproxy.Commit) bool) (hit *faultproxy.Hit, release func()) {
		released := make(chan struct{})
		hit = n.proxy.Arm(faultproxy.Fault{Match: which, Effect: faultproxy.HoldAnswer, Release: released})
		return hit, sync.OnceFunc(func() { close(released) })
	}
	credits := faultproxy.Having("INSERT INTO ledger_entry")
	var all sync.WaitGroup
	defer all.Wait()

	// One operator disconnects during the COMMIT of a credit. Another operator waits longer than a
	// transaction may take.
	account, _ := n.Account(1, nil)
	for _, leaves := range []bool{true, false} {
		hit, release := slow(credits)
		defer release()
		ctx, leave := context.WithCancel(t.Context())
		defer leave()
		all.Go(func() { n.credit(ctx, account) })
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
		done := a.sendUntilHit(hit, n, false)
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

// stoppedNode stops a node for longer than its lease while requests and jobs run on it. When the node
// continues, another node has taken over its work.
func stoppedNode(t *testing.T, binary string, stop, resume func(*node)) {
	c, first, second := twoNodes(t, binary)
	a, s := c.newChatClient(), c.newJobClient()
	streamed := a.start(first, true, fateSteps)
	for range 3 { // the role and a piece of text are under way
		c.steps <- struct{}{}
	}
	whole := a.start(first, false, fateGated)
	o := s.order(c, false)
	s.submit(first, o)
	scene.Eventually(t, "both requests run", func() bool { return len(c.provider.Requests()) == 2 })
	stop(first)
	c.waitSwept(first)
	scene.Eventually(t, "the other node answers while the first is stopped", func() bool {
		return a.send(t.Context(), second, false, fateFine).outcome() == outcomeComplete
	})
	close(c.steps)
	close(c.gate)
	resume(first)
	for _, k := range []*chatCall{<-streamed, <-whole} {
		t.Logf("%s", k)
	}
	c.check()
}

// cutStream checks that a node ends its streams after it was declared dead, although the providers
// would continue.
func cutStream(t *testing.T, binary string) {
	c, first, _ := twoNodes(t, binary)
	a := c.newChatClient()
	streamed := a.start(first, true, fateSteps)
	for range 3 { // the role and a piece of text are under way
		c.steps <- struct{}{}
	}
	scene.Eventually(t, "the stream runs", func() bool { return len(c.provider.Requests()) == 1 })
	first.freeze()
	c.waitSwept(first)
	first.thaw()
	scene.Eventually(t, "the stream and the provider's connection end", func() bool {
		return len(streamed) > 0 && c.provider.Disconnects() > 0
	})
	k := <-streamed
	if t.Logf("%s", k); k.outcome() == outcomeComplete {
		t.Error("the answer looks complete")
	}
	close(c.steps)
	c.check()
}
