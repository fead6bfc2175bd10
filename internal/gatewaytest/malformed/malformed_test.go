package malformed

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"math/rand/v2"
	"net/http"
	"runtime"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"tollgate/internal/gatewaytest/scene"
	"tollgate/internal/money"
	"tollgate/internal/store/storetest"
)

const (
	defaultSeed  = 20261122
	defaultCount = 1200 // `make malformed` sends 20,000
	callers      = 8
	// What may be there at the end beside what was there after a fifth of the
	// requests: connections and rows that were first needed later.
	moreGoroutines = 12
	moreHeap       = 24 << 20
)

// TestMalformedRequests sends spoiled requests of all routes at a gateway on
// each database. Whatever comes, it answers as the documents say, charges only
// what it answered, and is at the end what it was at the beginning.
//
// TOLLGATE_MALFORMED_COUNT is how many requests (`make malformed`: 20,000),
// TOLLGATE_MALFORMED_SEED what they are drawn from. The databases have their
// turns one after the other: goroutines and memory are the process's.
func TestMalformedRequests(t *testing.T) {
	seed := scene.Number(t, "TOLLGATE_MALFORMED_SEED", defaultSeed, 1)
	count := scene.Number(t, "TOLLGATE_MALFORMED_COUNT", defaultCount, 1)
	t.Logf("%d requests a database, TOLLGATE_MALFORMED_SEED=%d", count, seed)
	t.Run("sqlite", func(t *testing.T) { flood(t, storetest.SQLite(t), uint64(seed), count) })
	t.Run("postgres", func(t *testing.T) { flood(t, storetest.PostgreSQL(t), uint64(seed), count) })
}

func flood(t *testing.T, database string, seed uint64, count int) {
	g := start(t, database, seed)
	g.samplesAreGood()
	s := &seen{answered: map[string]int{}, asked: map[string]int{}, statuses: map[int]int{}}
	begin := time.Now()
	g.flood(s, 0, count/5)
	goroutines, heap := g.size()
	g.flood(s, count/5, count)
	took := time.Since(begin)
	g.jobsEnd()
	if s.faults > 0 {
		t.Errorf("%d of %d answers are wrong", s.faults, count)
	}
	for _, route := range allRoutes() {
		if s.asked[route] == 0 {
			t.Errorf("%s was never asked", route)
		}
	}
	laterGoroutines, laterHeap := g.size()
	t.Logf("%d requests in %s (statuses %v, %d asked to come later), %d reached the provider; "+
		"%d goroutines, then %d; heap of %d KiB, then %d",
		count, took.Round(time.Millisecond), s.statuses, s.later.Load(), g.provider.asked, goroutines, laterGoroutines, heap>>10,
		laterHeap>>10)
	if laterGoroutines > goroutines+moreGoroutines {
		t.Errorf("%d goroutines at the end, %d after a fifth:\n%s", laterGoroutines, goroutines, stacks())
	}
	if laterHeap > heap+moreHeap {
		t.Errorf("a heap of %d bytes at the end, %d after a fifth", laterHeap, heap)
	}
	g.books(s)
	g.stop()
	for _, slip := range g.provider.slips {
		t.Errorf("the provider got what no gate should pass: %s", slip)
	}
	if n := len(s.unsaid); n > g.log.leftOut {
		t.Errorf("%d answers of 503 without a reason in the log, which left out %d lines about a busy machine; the last: %s",
			n, g.log.leftOut, s.unsaid[n-1])
	}
	for _, line := range g.log.bad {
		t.Errorf("the log says: %s", line)
	}
}

// samplesAreGood sends every good request once: a malformed one is worth
// something only when it was close to a good one.
func (g *gateway) samplesAreGood() {
	number := 1 << 30 // no spoiled request has such a one
	for _, route := range allRoutes() {
		for _, s := range g.make.samples[route] {
			one := *g.make
			one.samples = map[string][]sample{route: {s}}
			number++
			q, _ := one.good(number, route, rand.New(rand.NewPCG(1, uint64(number))))
			a := g.send(q)
			if err := errors.Join(judge(q, a), g.keepsContract(q, a)); err != nil || a.status > 202 && !slices.Contains(s.also, a.status) {
				g.t.Errorf("a good request is refused (%v): %s\n%s", err, q, a)
			}
		}
	}
	if g.t.Failed() {
		g.t.Fatalf("the log ends: %s", g.log.last)
	}
}

// seen is what came of a flood.
type seen struct {
	mu       sync.Mutex
	answered map[string]int // status by request id
	asked    map[string]int // by route
	statuses map[int]int
	faults   int
	later    atomic.Int64 // asked to come later, since the machine is busy
	unsaid   []string     // the same, where the log did not say why
}

// askedLater tells whether a request is to be sent again. Where the log has left
// its line out, it has to say at the end that there were so many.
func (s *seen) askedLater(g *gateway, q *request, a *reply) bool {
	switch {
	case g.log.askedLater(a.header.Get("X-Request-Id")):
		s.later.Add(1)
	case a.status == http.StatusServiceUnavailable && bytes.Contains(a.body, []byte("The service has a temporary problem.")):
		s.mu.Lock()
		defer s.mu.Unlock()
		s.unsaid = append(s.unsaid, fmt.Sprintf("%s\nanswer: %s", q, a))
	default:
		return false
	}
	return true
}

// flood sends the requests with these numbers.
func (g *gateway) flood(s *seen, from, to int) {
	numbers := make(chan int)
	var group sync.WaitGroup
	for range callers {
		group.Go(func() {
			c := &caller{address: strings.TrimPrefix(g.process.URL, "http://")}
			defer c.close()
			for n := range numbers {
				q := g.make.next(n)
				a, err := c.ask(q)
				for tries := 0; err == nil && tries < 50 && s.askedLater(g, q, a); tries++ {
					a, err = c.ask(q)
				}
				if err == nil {
					err = errors.Join(judge(q, a), g.keepsContract(q, a))
				}
				s.note(g.t, q, a, err)
			}
		})
	}
	for n := from; n < to; n++ {
		numbers <- n
	}
	close(numbers)
	group.Wait()
}

func (s *seen) note(t *testing.T, q *request, a *reply, err error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.asked[q.route]++
	if err != nil {
		if s.faults++; s.faults <= 10 {
			t.Errorf("%v\n%s\nanswer: %s", err, q, a)
		}
	}
	if a != nil {
		s.statuses[a.status]++
		if id := a.header.Get("X-Request-Id"); id != "" {
			s.answered[id] = a.status
		}
	}
}

// size is how many goroutines and how much memory are left when nothing runs.
func (g *gateway) size() (goroutines int, heap uint64) {
	g.jobsEnd()
	g.provider.CloseClientConnections()
	g.client.CloseIdleConnections()
	ticker := time.NewTicker(50 * time.Millisecond)
	defer ticker.Stop()
	goroutines = runtime.NumGoroutine()
	for same, tries := 0, 0; same < 10 && tries < 200; tries++ {
		<-ticker.C
		n := runtime.NumGoroutine()
		if same++; n != goroutines {
			same = 0
		}
		goroutines = n
	}
	var m runtime.MemStats
	runtime.GC()
	runtime.GC()
	runtime.ReadMemStats(&m)
	return goroutines, m.HeapAlloc
}

func stacks() string {
	buf := make([]byte, 1<<20)
	return string(buf[:runtime.Stack(buf, true)])
}

// books checks that nobody was charged for what was not answered, and that
// every balance is what the receipts leave of the credit.
func (g *gateway) books(s *seen) {
	g.t.Helper()
	charged := 0
	for _, account := range g.accounts {
		left := money.Amount(credit)
		for after, more := "", true; more; {
			var page struct {
				Data []struct {
					ID     string       `json:"id"`
					Status int          `json:"status"`
					Cost   money.Amount `json:"cost_usd"`
				} `json:"data"`
				More bool `json:"has_more"`
			}
			g.process.Admin("GET", fmt.Sprintf("/requests?limit=200&account=%s&after=%s", account, after), nil, &page)
			for _, r := range page.Data {
				left -= r.Cost
				after = r.ID
				status, answered := s.answered[r.ID]
				if r.Cost != 0 {
					charged++
				}
				if answered && status >= 300 && r.Cost != 0 {
					g.t.Errorf("request %s was answered %d and charged %s", r.ID, status, r.Cost)
				}
			}
			more = page.More
		}
		var state struct {
			Balance money.Amount `json:"balance_usd"`
			Held    money.Amount `json:"held_usd"`
		}
		g.process.Admin("GET", "/accounts/"+account, nil, &state)
		if state.Balance != left || state.Held != 0 {
			g.t.Errorf("account %s has %s and %s held; its receipts leave %s", account, state.Balance, state.Held, left)
		}
	}
	if charged == 0 {
		g.t.Error("nothing was charged: no request came through")
	}
	var audit struct {
		OK          bool  `json:"ok"`
		Differences []any `json:"differences"`
	}
	g.process.Admin("GET", "/audit", nil, &audit)
	if !audit.OK {
		g.t.Errorf("the audit finds: %v", audit.Differences)
	}
}

func decode(t *testing.T, raw []byte, into any) {
	t.Helper()
	if err := json.Unmarshal(raw, into); err != nil {
		t.Fatalf("%v: %s", err, raw)
	}
}
