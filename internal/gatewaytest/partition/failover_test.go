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
	pair      *serverPair
	frozen    atomic.Bool // the standby is stopped: no answer may depend on a commit
	submitter *submitter
	account   string // the credited account
	credited  []string
	replayed  atomic.Int64
	gated     int
}

// How long the standby stands still: longer than a batch may take (5 s) where it
// goes on, and longer than any other transaction may (15 s) where it takes over.
const (
	standstill     = 9 * time.Second
	longStandstill = 18 * time.Second
)

// TestFailover stops the synchronous standby while commits wait for it: once until it continues,
// and once until the primary is killed and the standby takes over without the missing data. No
// client may get the answer of a waiting commit, and the clients' records must agree with the
// promoted server. TOLLGATE_FAILOVER_ROUNDS is the number of rounds, by default one.
func TestFailover(t *testing.T) {
	t.Parallel()
	binary := scene.Binary(t)
	p := newServerPair(t)
	f := &failover{cluster: newCluster(t, binary, p.primary.url, 2, "30s"), pair: p}
	for range 4 { // one for each node, and two more
		f.chatter()
	}
	f.submitter = f.cluster.submitter()
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

// round lets the standby stand still twice.
func (f *failover) round(name string) {
	f.t.Helper()
	waited, commits := f.standStill(standstill, f.pair.thaw)
	f.t.Logf("%s: %d commits waited %s for the standby, which went on: %v", name, commits, standstill, waited)

	var lost int64
	var away time.Duration
	waited, commits = f.standStill(longStandstill, func() {
		killed := time.Now()
		lost = f.pair.failOver()
		f.follow()
		away = time.Since(killed)
	})
	if commits == 0 || lost == 0 {
		f.t.Errorf("%d commits waited and %d bytes were lost: nothing was tried", commits, lost)
	}
	f.t.Logf("%s: %d commits waited %s, and were lost with the primary's last %d bytes; after %.1f s without one: %v",
		name, commits, longStandstill, lost, away.Seconds(), waited)
	f.checkBooks()
	f.checkCredits()
}

// follow leads the nodes to the promoted server.
func (f *failover) follow() {
	f.t.Helper()
	f.database = f.pair.primary.url
	f.db = scene.OpenDatabase(f.t, f.database)
	for _, n := range f.nodes {
		n.proxy.Target(f.t, f.database)
		n.proxy.Reopen()
	}
}

// saws counts results of clients.
type saws = map[string]int

// standStill stops the standby, sends requests of every kind up to their commit, and checks that no
// answer comes for a while. Then it calls then, waits for the clients, and returns their results
// and the number of waiting commits.
//
// Answers come first, and each node uses its own account: behind a waiting commit, nothing that
// needs the same rows is tried.
func (f *failover) standStill(span time.Duration, then func()) (waited saws, commits int) {
	f.t.Helper()
	const requests = 6
	chats := make([]<-chan *chatCall, requests)
	begin := func(i int) {
		node := i % len(f.nodes)
		chats[i] = f.chats[1+node].begin(f.nodes[node], i%3 == 0, fateGated)
	}
	for i := range requests {
		begin(i)
	}
	f.gated += requests
	scene.Eventually(f.t, "the requests are at their provider", func() bool {
		for i, done := range chats {
			if len(done) > 0 { // refused, as under overload: nothing passes the gate yet
				begin(i)
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
		load.Go(func() { a.talkOn(rand.New(rand.NewPCG(rand.Uint64(), 0)), stop) })
	}

	scene.Sleep(span)
	commits = f.pair.waiting()
	early := make([]*chatCall, requests)
	for i, done := range chats {
		if len(done) > 0 {
			early[i] = <-done
			if early[i].outcome() == outcomeComplete {
				f.t.Errorf("complete while no standby has its charge: %s", early[i])
			}
		}
	}
	f.frozen.Store(false)
	then()
	waited = saws{}
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
	f.credited = append(f.credited, note)
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
		f.t.Errorf("a credit is confirmed while no standby has it (replayed: %q): %s", r.Header.Get("Idempotent-Replayed"), r)
	}
	if r.Header.Get("Idempotent-Replayed") != "" {
		f.replayed.Add(1)
	}
	return true
}

// checkCredits checks that each credit has one entry.
func (f *failover) checkCredits() {
	f.t.Helper()
	var page struct {
		Data []struct{ Note string }
	}
	f.nodes[0].Admin("GET", "/accounts/"+f.account+"/entries?limit=200", nil, &page)
	entries := map[string]int{}
	for _, e := range page.Data {
		entries[e.Note]++
	}
	for _, note := range f.credited {
		if entries[note] != 1 {
			f.t.Errorf("credit %s was given %d times", note, entries[note])
		}
	}
	f.t.Logf("credits: %d, of which %d were answered again", len(f.credited), f.replayed.Load())
}

// submitTwice submits a job through both nodes with one Idempotency-Key, until each answers.
func (f *failover) submitTwice(group *sync.WaitGroup) {
	s := f.submitter
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
					f.t.Errorf("a job is accepted while no standby has it: %s", r)
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
