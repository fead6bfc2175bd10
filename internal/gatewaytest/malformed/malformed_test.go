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
	defaultCount = 1600 // `make malformed` sends 20,000
	callers      = 8
	// moreGoroutines and moreHeap are the maximum growth after the first fifth of the requests, for
	// example because of new connections.
	moreGoroutines = 12
	moreHeap       = 24 << 20
)

// TestMalformedRequests sends malformed requests for all routes to a gateway on each database. The
// answers must conform to the documents, only good answers may be charged, and no goroutines or
// memory may leak.
//
// TOLLGATE_MALFORMED_COUNT is the number of requests (`make malformed`: 20,000), and
// TOLLGATE_MALFORMED_SEED is the seed. The databases run one after the other, because goroutines and
// memory are measured for the whole process.
func TestMalformedRequests(t *testing.T) {
	seed := scene.Number(t, "TOLLGATE_MALFORMED_SEED", defaultSeed, 1)
	count := scene.Number(t, "TOLLGATE_MALFORMED_COUNT", defaultCount, 1)
	t.Logf("%d requests per database, TOLLGATE_MALFORMED_SEED=%d", count, seed)
	t.Run("sqlite", func(t *testing.T) { flood(t, storetest.SQLite(t), uint64(seed), count) })
	t.Run("postgres", func(t *testing.T) { flood(t, storetest.PostgreSQL(t), uint64(seed), count) })
}

func flood(t *testing.T, database string, seed uint64, count int) {
	g := start(t, database, seed)
	g.samplesAreGood()
	s := &results{byRequest: map[string]int{}, byRoute: map[string]int{}, statuses: map[int]int{}}
	begin := time.Now()
	g.flood(s, 0, count/5)
	goroutines, heap := g.size()
	g.flood(s, count/5, count)
	took := time.Since(begin)
	g.waitForJobs()
	if s.faults > 0 {
		t.Errorf("%d of %d answers do not conform to the documents", s.faults, count)
	}
	for _, route := range allRoutes() {
		if s.byRoute[route] == 0 {
			t.Errorf("%s got no request", route)
		}
	}
	laterGoroutines, laterHeap := g.size()
	t.Logf("%d requests in %s (statuses %v, %d overloaded), %d reached the provider; "+
		"%d goroutines, then %d; heap of %d KiB, then %d",
		count, took.Round(time.Millisecond), s.statuses, s.overloads.Load(), g.provider.requests, goroutines, laterGoroutines, heap>>10,
		laterHeap>>10)
	if laterGoroutines > goroutines+moreGoroutines {
		t.Errorf("%d goroutines at the end, %d after a fifth of the requests:\n%s", laterGoroutines, goroutines, stacks())
	}
	if laterHeap > heap+moreHeap {
		t.Errorf("a heap of %d bytes at the end, %d after a fifth of the requests", laterHeap, heap)
	}
	g.books(s)
	g.stop()
	for _, request := range g.provider.invalid {
		t.Errorf("the provider got an invalid request: %s", request)
	}
	if n := len(s.unlogged); n > g.log.leftOut {
		t.Errorf("%d answers with 503 have no line in the log, and sampling left out only %d lines; the last: %s",
			n, g.log.leftOut, s.unlogged[n-1])
	}
	for _, line := range g.log.bad {
		t.Errorf("the log has: %s", line)
	}
}

// samplesAreGood sends every valid request once. Malformed requests are only useful if they are
// nearly valid.
func (g *gateway) samplesAreGood() {
	number := 1 << 30 // above the numbers of malformed requests
	for _, route := range allRoutes() {
		for _, s := range g.make.samples[route] {
			generator := *g.make
			generator.samples = map[string][]sample{route: {s}}
			number++
			q, _ := generator.good(number, route, rand.New(rand.NewPCG(1, uint64(number))))
			a := g.send(q)
			if err := errors.Join(check(q, a), g.checkContract(q, a)); err != nil || a.status > 202 && !slices.Contains(s.also, a.status) {
				g.t.Errorf("a valid request is rejected (%v): %s\n%s", err, q, a)
			}
		}
	}
	if g.t.Failed() {
		g.t.Fatalf("the log ends: %s", g.log.last)
	}
}

// results are the results of a flood.
type results struct {
	mu        sync.Mutex
	byRequest map[string]int // status by request id
	byRoute   map[string]int // requests by route
	statuses  map[int]int
	faults    int
	overloads atomic.Int64 // requests rejected because of overload
	unlogged  []string     // requests rejected because of overload, without a log line
}

// overloaded reports whether a request was rejected because of overload and should be repeated. It
// records requests without a log line.
func (r *results) overloaded(g *gateway, q *request, a *reply) bool {
	switch {
	case g.log.overloaded(a.header.Get("X-Request-Id")):
		r.overloads.Add(1)
	case a.status == http.StatusServiceUnavailable && bytes.Contains(a.body, []byte("The service has a temporary problem.")):
		r.mu.Lock()
		defer r.mu.Unlock()
		r.unlogged = append(r.unlogged, fmt.Sprintf("%s\nanswer: %s", q, a))
	default:
		return false
	}
	return true
}

// flood sends the requests with the numbers from up to, but not including, to.
func (g *gateway) flood(s *results, from, to int) {
	numbers := make(chan int)
	var group sync.WaitGroup
	for range callers {
		group.Go(func() {
			c := &caller{address: strings.TrimPrefix(g.process.URL, "http://")}
			defer c.close()
			for n := range numbers {
				q := g.make.next(n)
				a, err := c.ask(q)
				for tries := 0; err == nil && tries < 50 && s.overloaded(g, q, a); tries++ {
					a, err = c.ask(q)
				}
				if err == nil {
					err = errors.Join(check(q, a), g.checkContract(q, a))
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

func (r *results) note(t *testing.T, q *request, a *reply, err error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.byRoute[q.route]++
	if err != nil {
		if r.faults++; r.faults <= 10 {
			t.Errorf("%v\n%s\nanswer: %s", err, q, a)
		}
	}
	if a != nil {
		r.statuses[a.status]++
		if id := a.header.Get("X-Request-Id"); id != "" {
			r.byRequest[id] = a.status
		}
	}
}

// size returns the number of goroutines and the size of the heap when no requests run.
func (g *gateway) size() (goroutines int, heap uint64) {
	g.waitForJobs()
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

// books checks that only good answers are charged, and that every balance is the credit minus the
// receipts.
func (g *gateway) books(s *results) {
	g.t.Helper()
	charged := 0
	for _, account := range g.accounts {
		left := money.Amount(credit)
		for after, more := "", true; more; {
			var page struct {
				Data []scene.Receipt `json:"data"`
				More bool            `json:"has_more"`
			}
			g.process.Admin("GET", fmt.Sprintf("/requests?limit=200&account=%s&after=%s", account, after), nil, &page)
			for _, r := range page.Data {
				left -= r.Cost
				after = r.ID
				status, ok := s.byRequest[r.ID]
				if r.Cost != 0 {
					charged++
				}
				if ok && status >= 300 && r.Cost != 0 {
					g.t.Errorf("request %s was answered with %d and charged %s", r.ID, status, r.Cost)
				}
			}
			more = page.More
		}
		var state scene.Funds
		g.process.Admin("GET", "/accounts/"+account, nil, &state)
		if state.Balance != left || state.Held != 0 {
			g.t.Errorf("account %s has a balance of %s and %s on hold; want %s by its receipts", account, state.Balance, state.Held, left)
		}
	}
	if charged == 0 {
		g.t.Error("no request was charged, so none can have succeeded")
	}
	(&scene.Gateway{Process: g.process}).Audit(g.t)
}

func decode(t *testing.T, raw []byte, into any) {
	t.Helper()
	if err := json.Unmarshal(raw, into); err != nil {
		t.Fatalf("%v: %s", err, raw)
	}
}
