package partition

import (
	"bytes"
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"net/http"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"tollgate/internal/gatewaytest/scene"
)

// failover is a cluster of nodes on a pair of PostgreSQL servers.
type failover struct {
	*cluster
	pair       *serverPair
	frozen     atomic.Bool // true while the standby is stopped, when no commit may be confirmed
	jobClient  *jobClient
	account    string       // receives the credits of creditTwice
	creditTags []string     // the notes of the credits
	replayed   atomic.Int64 // credits answered again for the same Idempotency-Key
	gated      int          // requests with fateGated so far
}

// The durations of the standby's stops. A standby that continues is stopped for longer than a batch
// may take (5 s). A standby that takes over is stopped for longer than any other transaction may take
// (15 s).
const (
	shortStop = 9 * time.Second
	longStop  = 18 * time.Second
)

// TestFailover stops the synchronous standby while commits wait for it. The first time, the standby
// continues. The second time, the primary is killed, and the standby takes over without the missing
// data. No client may get the answer of a waiting commit, and the clients' records must agree with
// the promoted server. TOLLGATE_FAILOVER_ROUNDS is the number of rounds, by default one.
func TestFailover(t *testing.T) {
	t.Parallel()
	binary := scene.Binary(t)
	p := newServerPair(t)
	f := &failover{cluster: newCluster(t, binary, p.primary.url, 2, "30s"), pair: p}
	for range 4 { // two for gated requests, one per node; two for the load
		f.newChatClient()
	}
	f.jobClient = f.cluster.newJobClient()
	f.account, _ = f.nodes[0].Account(0, nil)
	defer func() {
		for i, n := range f.nodes {
			if t.Failed() {
				t.Logf("node %d:\n%s", i, tail(n.Output()))
			}
		}
	}()
	rounds := scene.Number(t, "TOLLGATE_FAILOVER_ROUNDS", 1, 0)
	for i := range rounds {
		f.round(fmt.Sprintf("round %d of %d", i+1, rounds))
		if t.Failed() {
			t.FailNow()
		}
	}
	f.checkSweep()
}

// round stops the standby twice: for standstill, and for longStandstill until the failover.
func (f *failover) round(name string) {
	f.t.Helper()
	waited, commits := f.stopStandby(shortStop, f.pair.thaw)
	f.t.Logf("%s: %d commits waited %s until the standby continued: %v", name, commits, shortStop, waited)

	var lost int64
	var downtime time.Duration
	waited, commits = f.stopStandby(longStop, func() {
		killed := time.Now()
		lost = f.pair.failOver()
		f.follow()
		downtime = time.Since(killed)
	})
	if commits == 0 || lost == 0 {
		f.t.Errorf("%d commits waited and %d bytes were lost; want both above 0", commits, lost)
	}
	f.t.Logf("%s: %d commits waited %s, and were lost with the primary's last %d bytes; after %.1f s without a primary: %v",
		name, commits, longStop, lost, downtime.Seconds(), waited)
	f.checkBooks()
	f.checkCredits()
}

// follow connects the nodes to the promoted server.
func (f *failover) follow() {
	f.t.Helper()
	f.database = f.pair.primary.url
	f.db = scene.OpenDatabase(f.t, f.database)
	for _, n := range f.nodes {
		n.proxy.Target(f.t, f.database)
		n.proxy.Reopen()
	}
}

// outcomes counts the outcomes of clients.
type outcomes = map[string]int

// stopStandby stops the standby, starts requests of every kind that must commit, and checks that no
// client gets an answer during span. Then it calls then, waits for the clients, and returns the
// outcomes of the gated requests and the number of waiting commits.
//
// The chat requests reach their provider before the standby stops, and each node uses its own
// account. Otherwise a waiting commit would lock the rows of the next request.
func (f *failover) stopStandby(span time.Duration, then func()) (waited outcomes, commits int) {
	f.t.Helper()
	const requests = 6
	chats := make([]<-chan *chatCall, requests)
	start := func(i int) {
		node := i % len(f.nodes)
		chats[i] = f.chats[1+node].start(f.nodes[node], i%3 == 0, fateGated)
	}
	for i := range requests {
		start(i)
	}
	f.gated += requests
	scene.Eventually(f.t, "the requests are at their provider", func() bool {
		for i, done := range chats {
			if len(done) > 0 { // rejected, for example under overload
				start(i)
			}
		}
		n := 0
		for _, r := range f.provider.Requests() {
			if bytes.Contains(r.Body, []byte("fate "+fateGated)) {
				n++
			}
		}
		return n == f.gated
	})
	f.pair.freeze()
	f.frozen.Store(true)
	for range requests {
		f.gate <- struct{}{}
	}
	var others, load sync.WaitGroup
	f.creditTwice(&others)
	f.submitTwice(&others)
	stop := make(chan struct{})
	for _, a := range f.chats[3:] {
		load.Go(func() { a.sendUntil(rand.New(rand.NewPCG(rand.Uint64(), 0)), stop) })
	}

	scene.Sleep(span)
	commits = f.pair.waiting()
	early := make([]*chatCall, requests)
	for i, done := range chats {
		if len(done) > 0 {
			early[i] = <-done
			if early[i].outcome() == outcomeComplete {
				f.t.Errorf("a complete answer before the standby has its charge: %s", early[i])
			}
		}
	}
	f.frozen.Store(false)
	then()
	waited = outcomes{}
	for i, done := range chats {
		if early[i] == nil {
			early[i] = <-done
		}
		waited[early[i].outcome()]++
	}
	others.Wait()
	close(stop)
	load.Wait()
	return waited, commits
}

// creditTwice credits the account through both nodes with one Idempotency-Key, until each answers.
func (f *failover) creditTwice(group *sync.WaitGroup) {
	note := f.tag()
	f.creditTags = append(f.creditTags, note)
	for _, n := range f.nodes {
		group.Go(func() {
			soon(f.t, "a credit is answered", func() bool { return f.credit(n, note) })
		})
	}
}

// credit reports whether a credit was answered with success.
func (f *failover) credit(n *node, note string) bool {
	operator := scene.Customer{Node: n.Node, Key: scene.AdminToken}
	body := fmt.Appendf(nil, `{"usd":1,"note":%q}`, note)
	r, err := operator.Try("POST", "/admin/v1/accounts/"+f.account+"/credits", body, "Idempotency-Key", note)
	if err != nil || r.Status >= 300 {
		return false
	}
	if f.frozen.Load() {
		f.t.Errorf("a credit was confirmed before the standby has it (replayed: %q): %s", r.Header.Get("Idempotent-Replayed"), r)
	}
	if r.Header.Get("Idempotent-Replayed") != "" {
		f.replayed.Add(1)
	}
	return true
}

// checkCredits checks that each credit was booked once.
func (f *failover) checkCredits() {
	f.t.Helper()
	var page struct {
		Data []struct{ Note string }
	}
	f.nodes[0].Admin("GET", "/accounts/"+f.account+"/entries?limit=200", nil, &page)
	counts := map[string]int{}
	for _, e := range page.Data {
		counts[e.Note]++
	}
	for _, note := range f.creditTags {
		if counts[note] != 1 {
			f.t.Errorf("credit %s was booked %d times", note, counts[note])
		}
	}
	f.t.Logf("credits: %d, answers replayed: %d", len(f.creditTags), f.replayed.Load())
}

// submitTwice submits a job through both nodes with one Idempotency-Key, until each answers.
func (f *failover) submitTwice(group *sync.WaitGroup) {
	s := f.jobClient
	o := s.order(f.cluster, false)
	ids := make([]string, len(f.nodes))
	var both sync.WaitGroup
	for i, n := range f.nodes {
		both.Go(func() {
			soon(f.t, "a submission is answered", func() bool {
				r, err := s.Try("POST", n.address()+scene.PathGenerate, scene.JobRequest(imageModel, o.tag+".", nil), "Idempotency-Key", o.tag)
				if err != nil || r.Status != http.StatusAccepted {
					return false
				}
				var j struct{ ID string }
				if err := json.Unmarshal(r.Raw, &j); err != nil || j.ID == "" {
					f.t.Errorf("%s: %v in %s", o.tag, err, r)
				}
				ids[i] = j.ID
				if f.frozen.Load() {
					f.t.Errorf("a job was accepted before the standby has it: %s", r)
				}
				return true
			})
		})
	}
	group.Go(func() {
		both.Wait()
		o.id = ids[0]
		for _, other := range ids[1:] {
			if other != o.id {
				f.t.Errorf("%s was accepted as %q and as %q", o.tag, o.id, other)
			}
		}
	})
}
