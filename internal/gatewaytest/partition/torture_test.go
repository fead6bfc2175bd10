package partition

import (
	"context"
	"fmt"
	"math/rand/v2"
	"os"
	"sync"
	"testing"
	"time"

	"tollgate/internal/gatewaytest/faultproxy"
	"tollgate/internal/gatewaytest/scene"
	"tollgate/internal/store/storetest"
)

// faultRun describes one run of TestPartitionsUnderLoad. The seed decides all random choices.
type faultRun struct {
	seed   uint64
	nodes  int
	lease  time.Duration
	length time.Duration
}

func (r faultRun) String() string {
	return fmt.Sprintf("seed %d, %d nodes, lease %s, %s", r.seed, r.nodes, r.lease, r.length)
}

// TestPartitionsUnderLoad runs clients of chat and jobs against nodes with random faults of their
// processes and database connections, and compares the clients' records with the gateway's books.
// With TOLLGATE_TORTURE it runs 100 rounds of a minute (TOLLGATE_TORTURE_ROUNDS), starting with the
// seed TOLLGATE_TORTURE_SEED. To repeat a failure, run one round with the failed seed.
func TestPartitionsUnderLoad(t *testing.T) {
	t.Parallel()
	binary := scene.Binary(t)
	if os.Getenv("TOLLGATE_TORTURE") != "" {
		torture(t, binary)
		return
	}
	const length = 6 * time.Second
	var all sync.WaitGroup
	for _, w := range []faultRun{
		{seed: 1, nodes: 2, lease: time.Second, length: length},
		{seed: 2, nodes: 3, lease: time.Second, length: length},
		{seed: 3, nodes: 2, lease: 2 * time.Second, length: length},
	} {
		all.Go(func() {
			t.Run(w.String(), func(t *testing.T) { runWithFaults(t, binary, w) })
		})
	}
	all.Wait()
}

// torture runs the rounds and logs the progress.
func torture(t *testing.T, binary string) {
	rounds, first := scene.Number(t, "TOLLGATE_TORTURE_ROUNDS", 100, 0), scene.Number(t, "TOLLGATE_TORTURE_SEED", 1, 0)
	leases := []time.Duration{time.Second, 2 * time.Second, 4 * time.Second, 15 * time.Second}
	failed := 0
	for i := range rounds {
		seed := first + i
		w := faultRun{seed: uint64(seed), nodes: 2 + seed%2, lease: leases[seed/2%len(leases)], length: time.Minute}
		if !t.Run(w.String(), func(t *testing.T) { runWithFaults(t, binary, w) }) {
			failed++
		}
		t.Logf("round %d of %d: %s; %d failed so far", i+1, rounds, w, failed)
		if failed == 10 {
			t.Fatal("ten rounds have failed; skipping the rest")
		}
	}
}

func runWithFaults(t *testing.T, binary string, w faultRun) {
	const chatClients, jobClients = 6, 2
	c := newCluster(t, binary, storetest.PostgreSQL(t), w.nodes, w.lease.String())
	for range chatClients {
		c.newChatClient()
	}
	for range jobClients {
		c.newJobClient()
	}
	until := time.Now().Add(w.length)
	var load, faults sync.WaitGroup
	stop := make(chan struct{})
	for i, a := range c.chats[1:] {
		load.Go(func() { a.sendUntil(rand.New(rand.NewPCG(w.seed, uint64(100+i))), stop) })
	}
	for i, s := range c.jobs {
		load.Go(func() { c.submitUntil(s, rand.New(rand.NewPCG(w.seed, uint64(200+i))), stop) })
	}
	for i, n := range c.nodes {
		faults.Go(func() { n.injectFaults(rand.New(rand.NewPCG(w.seed, uint64(i))), w.lease, until) })
	}
	faults.Wait()
	close(stop)
	load.Wait()
	c.check()
	outcomes := map[string]int{}
	for _, a := range c.chats {
		for _, k := range a.calls {
			outcomes[k.outcome()]++
		}
	}
	accepted := 0
	for _, s := range c.jobs {
		for _, o := range s.orders {
			if o.id != "" {
				accepted++
			}
		}
	}
	if outcomes[outcomeComplete] == 0 || outcomes[outcomeError] == 0 || accepted == 0 {
		t.Errorf("the load or the faults did not reach the gateway: chat %v, %d jobs", outcomes, accepted)
	}
	for _, n := range c.nodes[1:w.nodes] {
		n.CheckStop(t)
	}
}

// sendUntil sends requests until stop is closed. It disconnects from some of them early.
func (c *chatClient) sendUntil(r *rand.Rand, stop <-chan struct{}) {
	fates := []string{fateFine, fateFine, fateFine, fateFine, fateFine, fateFine, fateSlow, fateFails, fateBreaks}
	for !isClosed(stop) {
		n, fate, stream := c.cluster.nodes[r.IntN(len(c.cluster.nodes))], fates[r.IntN(len(fates))], r.IntN(2) == 0
		ctx, cancel := c.cluster.t.Context(), func() {}
		if r.IntN(12) == 0 {
			ctx, cancel = context.WithTimeout(ctx, time.Duration(r.IntN(60))*time.Millisecond)
		}
		k := c.send(ctx, n, stream, fate)
		cancel()
		think := 5 + r.IntN(20)
		if k.outcome() != outcomeComplete { // do not flood a node that rejects requests
			think += 50
		}
		scene.Sleep(time.Duration(think) * time.Millisecond)
	}
}

func isClosed(stop <-chan struct{}) bool {
	select {
	case <-stop:
		return true
	default:
		return false
	}
}

// submitUntil submits jobs until stop is closed. It repeats every submission without an answer, and half
// of the rejected ones.
func (c *cluster) submitUntil(s *jobClient, r *rand.Rand, stop <-chan struct{}) {
	for !isClosed(stop) {
		o := s.order(c, r.IntN(5) == 0)
		for again := true; again && !isClosed(stop); {
			s.submit(c.nodes[r.IntN(len(c.nodes))], o)
			again = !o.settled() || o.id == "" && r.IntN(2) == 0
			scene.Sleep(time.Duration(100+r.IntN(200)) * time.Millisecond)
		}
	}
}

// injectFaults causes and repairs faults of the node's process and database connection until the
// given time.
func (n *node) injectFaults(r *rand.Rand, lease time.Duration, until time.Time) {
	heal := func() {
		if r.IntN(2) == 0 {
			n.proxy.Open() // delayed data arrives late
		} else {
			n.proxy.Reopen()
		}
	}
	outage := func() { // mostly shorter than the lease, often longer
		span := time.Duration(float64(lease) * []float64{0.05, 0.3, 0.8, 1.4, 2, 3}[r.IntN(6)])
		scene.Sleep(min(span, max(0, time.Until(until))))
	}
	for {
		scene.Sleep(time.Duration(200+r.IntN(1000)) * time.Millisecond)
		if time.Now().After(until) {
			return
		}
		switch r.IntN(10) {
		default:
			n.loseCommit(r, outage)
			heal()
		case 6:
			n.proxy.Freeze()
			outage()
			heal()
		case 7:
			n.proxy.Down()
			outage()
			heal()
		case 8:
			n.Pause()
			outage()
			n.Resume()
		case 9:
			n.revive()
		}
	}
}

// loseCommit loses one COMMIT or its answer.
func (n *node) loseCommit(r *rand.Rand, outage func()) {
	hit := n.proxy.Arm(faultproxy.Draw(r, []string{
		"INSERT INTO ledger_hold", "INSERT INTO ledger_receipt", "DELETE FROM ledger_hold", "INSERT INTO job", "UPDATE job", "UPDATE node",
	}))
	defer n.proxy.Disarm()
	timer := time.NewTimer(time.Second)
	defer timer.Stop()
	select {
	case <-hit.Done():
		outage()
	case <-timer.C: // no COMMIT matched
	}
}
