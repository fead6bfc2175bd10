package line

import (
	"bytes"
	"context"
	"fmt"
	"log/slog"
	"math/rand/v2"
	"runtime"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"pgregory.net/rapid"

	"tollgate/internal/store"
	"tollgate/internal/store/storetest"
)

// slotClock is a clock that several nodes read and a test moves.
type slotClock struct{ ns atomic.Int64 }

func (c *slotClock) now() time.Time          { return time.Unix(1_700_000_000, c.ns.Load()) }
func (c *slotClock) advance(d time.Duration) { c.ns.Add(int64(d)) }

// slotNode is one node's slots under an epoch that the test changes.
type slotNode struct {
	*slots
	db    *store.DB
	life  atomic.Pointer[string]
	lives int
	name  string
	log   bytes.Buffer
}

// failer is what tests and properties have in common.
type failer interface {
	Helper()
	Fatal(args ...any)
	Errorf(format string, args ...any)
}

func newSlotNode(t failer, db *store.DB, clock *slotClock, name string) *slotNode {
	t.Helper()
	n := &slotNode{db: db, name: name}
	n.slots = newSlots(db, func() string { return *n.life.Load() }, slog.New(slog.NewTextHandler(&n.log, nil)))
	n.now = clock.now
	n.rest = 0
	n.timeout = 20 * time.Second // the tests own time; those about the bound set it
	n.begin(t)
	return n
}

// begin begins a new life of the node.
func (n *slotNode) begin(t failer) {
	t.Helper()
	n.lives++
	epoch := fmt.Sprintf("%s-%d", n.name, n.lives)
	if err := n.db.RegisterNode(context.Background(), epoch); err != nil {
		t.Fatal(err)
	}
	n.life.Store(&epoch)
}

// die declares the node dead, which it does not know.
func (n *slotNode) die(t failer) {
	t.Helper()
	if dead, err := n.db.Fence(context.Background(), *n.life.Load(), 0); err != nil || !dead {
		t.Fatal(dead, err)
	}
}

// forgotten declares the node dead and removes its row, as the sweep does.
func (n *slotNode) forgotten(t failer) {
	t.Helper()
	n.die(t)
	if err := n.db.ForgetNode(context.Background(), *n.life.Load()); err != nil {
		t.Fatal(err)
	}
}

// takes takes as often as it can, at most so many times, and returns how often.
func (n *slotNode) takes(line string, limit, most int) int {
	for i := range most {
		if !n.take(context.Background(), line, limit) {
			return i
		}
	}
	return most
}

func (n *slotNode) gives(line string, times int) {
	for range times {
		n.give(line)
	}
}

func (n *slotNode) tidied(t failer) {
	t.Helper()
	if err := n.tidy(context.Background()); err != nil {
		t.Fatal(err)
	}
}

// handed hands on all that the node does not use.
func (n *slotNode) handed(t *testing.T) {
	t.Helper()
	for len(n.spare) > 0 {
		if err := n.hand(t.Context(), <-n.spare); err != nil {
			t.Fatal(err)
		}
	}
}

// rowsOf returns the rows of a line by epoch.
func rowsOf(t failer, db *store.DB, line string) map[string]grant {
	t.Helper()
	all := map[string]grant{}
	err := db.View(context.Background(), func(tx *store.Tx) error {
		found, err := tx.Query(`SELECT epoch, granted, wanted FROM line_slot WHERE line = $1`, line)
		if err != nil {
			return err
		}
		defer found.Close()
		for found.Next() {
			var epoch string
			var g grant
			if err := found.Scan(&epoch, &g.granted, &g.wanted); err != nil {
				return err
			}
			all[epoch] = g
		}
		return found.Err()
	})
	if err != nil {
		t.Fatal(err)
	}
	return all
}

// until waits for a condition that another goroutine brings about.
func until(t *testing.T, what string, ok func() bool) {
	t.Helper()
	for end := time.Now().Add(20 * time.Second); !ok(); runtime.Gosched() {
		if time.Now().After(end) {
			t.Fatalf("waited in vain until %s", what)
		}
	}
}

// occupy keeps a line's rows locked until release is called.
func occupy(t *testing.T, db *store.DB, line string) (release func()) {
	t.Helper()
	held, free, ended := make(chan struct{}), make(chan struct{}), make(chan error, 1)
	go func() {
		var once sync.Once
		ended <- db.Update(context.Background(), func(tx *store.Tx) error {
			if err := tx.Serialize("line_slot:" + line); err != nil {
				return err
			}
			once.Do(func() { close(held) })
			<-free
			return nil
		})
	}()
	select {
	case <-held:
	case err := <-ended:
		t.Fatal(err)
	}
	return func() {
		t.Helper()
		close(free)
		if err := <-ended; err != nil {
			t.Error(err)
		}
	}
}

func TestSlotsAreNeverMoreThanTheLimit(t *testing.T) {
	t.Parallel()
	storetest.Each(t, func(t *testing.T, db *store.DB) {
		const (
			limit   = 17
			callers = 300
			calls   = 4 // of each caller
		)
		var (
			clock           slotClock
			nodes           []*slotNode
			inFlight, most  atomic.Int64
			working, upkeep sync.WaitGroup
		)
		deadline := time.Now().Add(20 * time.Second)
		done := make(chan struct{})
		for i := range 3 {
			n := newSlotNode(t, db, &clock, fmt.Sprint("node", i))
			nodes = append(nodes, n)
			upkeep.Go(func() {
				for {
					select {
					case <-done:
						return
					default:
						clock.advance(50 * time.Millisecond)
						if err := n.tidy(context.Background()); err != nil {
							t.Error(err)
						}
						runtime.Gosched()
					}
				}
			})
		}
		for i := range callers {
			n := nodes[i%len(nodes)]
			working.Go(func() {
				for left := calls; left > 0; runtime.Gosched() {
					if !n.take(context.Background(), "l", limit) {
						continue
					}
					now := inFlight.Add(1)
					for seen := most.Load(); now > seen && !most.CompareAndSwap(seen, now); seen = most.Load() {
					}
					// The first calls end when the line is full, which it has to be once.
					for held := rand.IntN(200); (held > 0 || most.Load() < limit) && time.Now().Before(deadline); held-- {
						runtime.Gosched()
					}
					inFlight.Add(-1)
					n.give("l")
					left--
				}
			})
		}
		working.Wait()
		close(done)
		upkeep.Wait()
		if most.Load() != limit {
			t.Errorf("at most %d calls were in flight; want %d, no more and no less", most.Load(), limit)
		}
		for _, n := range nodes {
			if n.log.Len() > 0 {
				t.Error(n.log.String())
			}
		}
	})
}

func TestSlotsOfASmallCap(t *testing.T) {
	t.Parallel()
	storetest.Each(t, func(t *testing.T, db *store.DB) {
		var clock slotClock
		a, b := newSlotNode(t, db, &clock, "a"), newSlotNode(t, db, &clock, "b")
		if a.takes("l", 2, 1) != 1 || b.takes("l", 2, 1) != 1 {
			t.Fatal("each node gets one of two slots")
		}
		if a.takes("l", 2, 1) != 0 || b.takes("l", 2, 1) != 0 {
			t.Fatal("a third call is in flight")
		}
		if got := rowsOf(t, db, "l"); got["a-1"] != (grant{1, 1}) || got["b-1"] != (grant{1, 1}) {
			t.Errorf("rows %v; want 1 granted and 1 wanted each", got)
		}
		a.give("l")
		if b.takes("l", 2, 1) != 0 {
			t.Error("the slot that the other node still has was taken")
		}
		a.tidied(t)
		if b.takes("l", 2, 1) != 0 {
			t.Error("asked again at once after an ask in vain")
		}
		clock.advance(askPause)
		if b.takes("l", 2, 2) != 1 {
			t.Error("the slot that was given back cannot be taken, or twice")
		}
		if got := rowsOf(t, db, "l"); got["b-1"] != (grant{2, 0}) {
			t.Errorf("rows %v; want what was wanted withdrawn", got)
		}
	})
}

func TestSlotsAreSharedOnALineThatIsFull(t *testing.T) {
	t.Parallel()
	storetest.Each(t, func(t *testing.T, db *store.DB) {
		var clock slotClock
		a, b := newSlotNode(t, db, &clock, "a"), newSlotNode(t, db, &clock, "b")
		if a.takes("l", 4, 9) != 4 || b.takes("l", 4, 1) != 0 {
			t.Fatal("one node has all slots")
		}
		// Node a takes again whatever ends there, and b goes on asking.
		for range 12 {
			clock.advance(time.Second)
			a.tidied(t)
			b.tidied(t)
			b.takes("l", 4, 9)
			a.give("l")
			a.takes("l", 4, 1)
		}
		if a.granted("l") != 2 || b.granted("l") != 2 {
			t.Errorf("%d and %d slots; want half of them for the node that came later", a.granted("l"), b.granted("l"))
		}
	})
}

func TestSlotsOfDeadNodesComeFree(t *testing.T) {
	t.Parallel()
	storetest.Each(t, func(t *testing.T, db *store.DB) {
		var clock slotClock
		a, b := newSlotNode(t, db, &clock, "a"), newSlotNode(t, db, &clock, "b")
		if a.takes("l", 3, 9) != 3 || b.takes("l", 3, 1) != 0 {
			t.Fatal("one node has all slots")
		}
		a.die(t)
		clock.advance(askPause)
		if b.takes("l", 3, 9) != 3 {
			t.Error("the slots of a dead node stay taken")
		}
		if got := rowsOf(t, db, "l"); len(got) != 1 || got["b-1"] != (grant{3, 0}) {
			t.Errorf("rows %v; want the living node's alone", got)
		}
		// The dead node, before it knows, changes no row and learns it there.
		a.gives("l", 3)
		for range 2 {
			clock.advance(unusedFor)
			a.tidied(t)
		}
		if a.takes("l", 3, 1) != 0 || a.granted("l") != 0 {
			t.Error("a node that was declared dead was granted a slot")
		}
		if got := rowsOf(t, db, "l"); len(got) != 1 || a.log.Len() > 0 {
			t.Errorf("rows %v, log %q", got, a.log.String())
		}
	})
}

func TestSlotsOfANewLife(t *testing.T) {
	t.Parallel()
	storetest.Each(t, func(t *testing.T, db *store.DB) {
		var clock slotClock
		a, b := newSlotNode(t, db, &clock, "a"), newSlotNode(t, db, &clock, "b")
		if a.takes("l", 4, 3) != 3 {
			t.Fatal("not granted")
		}
		a.die(t)
		a.begin(t)
		if a.granted("l") != 0 {
			t.Error("a grant outlived its epoch")
		}
		if b.takes("l", 4, 1) != 1 {
			t.Fatal("the slots of the former life are not free")
		}
		// Its three calls still run, so of the three free slots none is for a new call.
		if a.takes("l", 4, 1) != 0 || a.granted("l") != 3 {
			t.Errorf("%d granted; want the three for the calls in flight", a.granted("l"))
		}
		a.gives("l", 2)
		if a.takes("l", 4, 9) != 2 {
			t.Error("the slots of calls that ended cannot be taken")
		}
		a.gives("l", 3)
		if got := rowsOf(t, db, "l"); len(got) != 2 || got["a-2"].granted != 3 || got["b-1"].granted != 1 {
			t.Errorf("rows %v", got)
		}
	})
}

func TestSlotsFollowTheLimit(t *testing.T) {
	t.Parallel()
	storetest.Each(t, func(t *testing.T, db *store.DB) {
		var clock slotClock
		a, b := newSlotNode(t, db, &clock, "a"), newSlotNode(t, db, &clock, "b")
		if a.takes("l", 6, 4) != 4 || b.takes("l", 6, 9) != 2 {
			t.Fatal("not granted")
		}
		// Lowered to 3: nobody gets more, and of each call that ends a part is gone.
		if a.takes("l", 3, 1) != 0 || b.takes("l", 3, 1) != 0 {
			t.Error("granted over a limit that was lowered")
		}
		inFlight := map[*slotNode]int{a: 4, b: 2}
		for range 6 {
			clock.advance(time.Second)
			for n := range inFlight {
				n.tidied(t)
				if inFlight[n] > 0 {
					n.give("l")
					inFlight[n]--
				}
				inFlight[n] += n.takes("l", 3, 9)
			}
		}
		if all := a.granted("l") + b.granted("l"); all > 3 || inFlight[a]+inFlight[b] != 3 {
			t.Errorf("%d granted, %d in flight; want 3", all, inFlight[a]+inFlight[b])
		}
		// Raised: at once, in spite of asks in vain a moment ago.
		more := a.takes("l", 10, 9) + b.takes("l", 10, 9)
		if all := inFlight[a] + inFlight[b] + more; all != 10 {
			t.Errorf("%d in flight after the limit was raised; want 10", all)
		}
	})
}

func TestSlotsLoweredWithoutUse(t *testing.T) {
	t.Parallel()
	storetest.Each(t, func(t *testing.T, db *store.DB) {
		var clock slotClock
		a := newSlotNode(t, db, &clock, "a")
		a.gives("l", a.takes("l", 10, 10))
		if a.takes("l", 4, 9) != 4 {
			t.Error("the grant did not serve a lower limit")
		}
		a.tidied(t) // sees the excess
		a.tidied(t) // writes it
		if got := rowsOf(t, db, "l"); got["a-1"] != (grant{4, 0}) {
			t.Errorf("rows %v; want 4", got)
		}
	})
}

func TestSlotsUnusedGoBack(t *testing.T) {
	t.Parallel()
	storetest.Each(t, func(t *testing.T, db *store.DB) {
		var clock slotClock
		a := newSlotNode(t, db, &clock, "a")
		step := func() {
			clock.advance(time.Second)
			a.tidied(t)
		}
		if a.takes("l", 16, 12) != 12 || a.granted("l") != 12 {
			t.Fatalf("%d granted; want 12", a.granted("l")) // the last ask was for the tenth call and 2 beyond
		}
		a.gives("l", 9)
		step()
		if a.granted("l") != 12 {
			t.Error("given back after a second")
		}
		step() // the end of the time in which 12 were in use
		step()
		step()
		if got := rowsOf(t, db, "l"); a.granted("l") != 5 || got["a-1"] != (grant{5, 0}) {
			t.Errorf("%d granted, rows %v; want 3 in use and 2 beyond", a.granted("l"), got)
		}
		clock.advance(idleFor) // a line in use is not idle
		step()
		a.gives("l", 3)
		for range 4 {
			step()
		}
		if a.granted("l") != 2 {
			t.Errorf("%d granted; want the headroom", a.granted("l"))
		}
		clock.advance(idleFor)
		step()
		step()
		if got := rowsOf(t, db, "l"); len(got) != 0 || len(a.pools) != 0 {
			t.Errorf("rows %v, %d lines in memory; want none of an idle line", got, len(a.pools))
		}
	})
}

// TestSlotsAreHandedOn: what calls leave is soon there for other nodes, also
// before their upkeep, but not what calls have used meanwhile.
func TestSlotsAreHandedOn(t *testing.T) {
	t.Parallel()
	storetest.Each(t, func(t *testing.T, db *store.DB) {
		clock := &slotClock{}
		a := newSlotNode(t, db, clock, "a")
		a.takes("alone", 1, 1)
		a.give("alone")
		if n := len(a.spare); n != 0 {
			t.Errorf("%d lines are to be handed on without another node", n)
		}
		b := newSlotNode(t, db, clock, "b")
		for i := range 6 {
			n := []*slotNode{a, b}[i%2]
			if n.takes("line", 3, 4) != 3 {
				t.Fatalf("in turn %d the line is not free", i)
			}
			n.gives("line", 3)
			if len(n.spare) != 1 {
				t.Fatalf("%d lines are to be handed on, want 1", len(n.spare))
			}
			n.handed(t)
			if rows := rowsOf(t, db, "line"); len(rows) != 0 {
				t.Fatalf("rows after turn %d: %v", i, rows)
			}
		}
		a.takes("line", 3, 2)
		a.gives("line", 2)
		a.takes("line", 3, 2) // before it is handed on
		a.gives("line", 2)
		if err := a.hand(t.Context(), <-a.spare); err != nil {
			t.Fatal(err)
		}
		if got := a.granted("line"); got != 2 {
			t.Errorf("%d slots are left of 2 that were in use", got)
		}
		a.handed(t)
		a.takes("small", 20, 1)
		a.give("small")
		a.handed(t)
		if got := a.granted("small"); got != 0 {
			t.Errorf("%d slots are left of a small line that is not used", got)
		}
		a.takes("large", 80, 1)
		a.give("large")
		a.handed(t)
		if got := a.granted("large"); got != 10 {
			t.Errorf("%d slots are left of a large line, want its headroom of 10", got)
		}
	})
}

// TestShortRest: who was given too little asks again when others had the time
// to hand on.
func TestShortRest(t *testing.T) {
	t.Parallel()
	storetest.Each(t, func(t *testing.T, db *store.DB) {
		clock := &slotClock{}
		a, b := newSlotNode(t, db, clock, "a"), newSlotNode(t, db, clock, "b")
		b.rest = time.Second
		a.takes("line", 1, 1)
		got := make(chan bool)
		go func() { got <- b.take(context.Background(), "line", 1) }()
		until(t, "b wants a slot", func() bool { return len(rowsOf(t, db, "line")) == 2 })
		a.give("line")
		a.handed(t)
		if !<-got {
			t.Error("the slot that a handed on is not b's")
		}
	})
}

func TestSlotsWantedNoLonger(t *testing.T) {
	t.Parallel()
	storetest.Each(t, func(t *testing.T, db *store.DB) {
		var clock slotClock
		a, b := newSlotNode(t, db, &clock, "a"), newSlotNode(t, db, &clock, "b")
		if a.takes("l", 2, 9) != 2 || b.takes("l", 2, 1) != 0 {
			t.Fatal("one node has all slots")
		}
		b.tidied(t)
		if got := rowsOf(t, db, "l"); got["b-1"] != (grant{0, 1}) {
			t.Errorf("rows %v; want 1 wanted", got)
		}
		clock.advance(unusedFor)
		b.tidied(t)
		b.tidied(t)
		if got := rowsOf(t, db, "l"); len(got) != 1 || len(b.pools) != 0 {
			t.Errorf("rows %v, %d lines in memory; want nothing of a node that waits no longer", got, len(b.pools))
		}
	})
}

func TestSlotsWithoutTheDatabase(t *testing.T) {
	t.Parallel()
	storetest.EachURL(t, func(t *testing.T, url string) {
		ctx := context.Background()
		storetest.Open(t, url, store.Options{})
		db, err := store.Open(ctx, url, store.Options{})
		if err != nil {
			t.Fatal(err)
		}
		var clock slotClock
		a := newSlotNode(t, db, &clock, "a")
		a.gives("l", a.takes("l", 40, 8))
		if err := db.Close(); err != nil {
			t.Fatal(err)
		}
		// Within the grant nothing is asked.
		had := a.granted("l")
		if got := a.takes("l", 40, 40); got != had || had < 8 {
			t.Errorf("%d taken of a grant of %d", got, had)
		}
		for range 3 {
			clock.advance(time.Second)
			if a.takes("l", 40, 1) != 0 || a.takes("m", 40, 1) != 0 {
				t.Error("granted without the database")
			}
			if a.tidy(ctx) == nil {
				t.Error("the upkeep says nothing of the outage")
			}
		}
		if got := strings.Count(a.log.String(), "\n"); got != 1 || !strings.Contains(a.log.String(), "level=WARN") {
			t.Errorf("log %q; want one warning", a.log.String())
		}
		a.gives("l", had)
	})
}

func TestSlotsWithASlowDatabase(t *testing.T) {
	t.Parallel()
	storetest.Each(t, func(t *testing.T, db *store.DB) {
		var clock slotClock
		a := newSlotNode(t, db, &clock, "a")
		a.timeout = 50 * time.Millisecond
		release := occupy(t, db, "l")
		if a.takes("l", 2, 1) != 0 || a.log.Len() == 0 {
			t.Error("granted without an answer, or nothing was logged")
		}
		release()
		a.timeout = 20 * time.Second
		clock.advance(askPause)
		if a.takes("l", 2, 3) != 2 {
			t.Error("not granted once the database answered again")
		}
	})
}

func TestSlotsWithoutANode(t *testing.T) {
	t.Parallel()
	s := newSlots(nil, nil, nil)
	ctx := context.Background()
	for _, want := range []bool{true, true, false} {
		if s.take(ctx, "l", 2) != want {
			t.Error("a node alone grants itself the limit")
		}
	}
	s.give("l")
	if !s.take(ctx, "l", 2) || s.granted("l") != 2 {
		t.Error("a slot that was given cannot be taken")
	}
	s.give("l")
	s.give("l")
	if err := s.tidy(ctx); err != nil || len(s.pools) != 0 {
		t.Errorf("%d lines in memory, %v", len(s.pools), err)
	}
}

func TestSlotsAreAskedForTogether(t *testing.T) {
	t.Parallel()
	storetest.Each(t, func(t *testing.T, db *store.DB) {
		var clock slotClock
		a := newSlotNode(t, db, &clock, "a")
		release := occupy(t, db, "l")
		state := func(ok func(p *pool) bool) func() bool {
			return func() bool {
				a.mu.Lock()
				defer a.mu.Unlock()
				p := a.pools["l"]
				return p != nil && ok(p)
			}
		}
		leaves, leave := context.WithCancel(context.Background())
		first := make(chan bool, 1)
		go func() { first <- a.take(leaves, "l", 80) }()
		until(t, "the first taker asks", state(func(p *pool) bool { return p.asking != nil }))
		// One that waits for another's ask leaves at once.
		impatient, end := context.WithCancel(context.Background())
		second := make(chan bool, 1)
		go func() { second <- a.take(impatient, "l", 80) }()
		until(t, "the second taker waits", state(func(p *pool) bool { return p.waiters == 2 }))
		end()
		if <-second {
			t.Error("a taker that has left got a slot")
		}
		// The one that asks leaves too, which the others do not notice.
		others := make(chan bool)
		for range 5 {
			go func() { others <- a.take(context.Background(), "l", 80) }()
		}
		until(t, "all wait", state(func(p *pool) bool { return p.waiters == 6 }))
		leave()
		release()
		for range 5 {
			if !<-others {
				t.Error("busy, because another taker left")
			}
		}
		if <-first {
			t.Error("the taker that has left got a slot")
		}
		if got := rowsOf(t, db, "l"); got["a-1"] != (grant{16, 0}) {
			t.Errorf("rows %v; want one ask for six takers and a headroom of 10", got)
		}
	})
}

func TestClaim(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct {
		name string
		d    demand
		r    rows
		want grant
	}{
		{"the first call", demand{limit: 2, waiters: 1}, rows{}, grant{1, 0}},
		{"headroom", demand{limit: 80, waiters: 1}, rows{}, grant{11, 0}},
		{"no headroom while others are short", demand{limit: 80, waiters: 1}, rows{wants: 1}, grant{1, 0}},
		{"no more than others leave", demand{limit: 10, granted: 7, inUse: 7, waiters: 2}, rows{nodes: 1, others: 1, wants: 1}, grant{8, 1}},
		{"an equal share in any case", demand{limit: 10, granted: 3, inUse: 3, waiters: 3}, rows{nodes: 1, others: 5, wants: 5}, grant{5, 1}},
		{"part of the headroom", demand{limit: 80, waiters: 1}, rows{others: 75}, grant{5, 0}},
		{"more takers than slots", demand{limit: 4, waiters: 100}, rows{}, grant{4, 0}},
		{"what is free", demand{limit: 4, granted: 1, inUse: 1, waiters: 9}, rows{others: 2}, grant{2, 2}},
		{"nothing is free", demand{limit: 4, granted: 1, inUse: 1, waiters: 1}, rows{others: 3}, grant{1, 1}},
		{"a lowered limit takes nothing", demand{limit: 2, granted: 3, inUse: 1, waiters: 1}, rows{others: 3}, grant{3, 0}},
		{"a lowered limit gives nothing", demand{limit: 2, granted: 1, inUse: 1, waiters: 1}, rows{others: 3}, grant{1, 1}},
		{"calls of a former life", demand{limit: 4, inUse: 3, waiters: 1}, rows{others: 2}, grant{2, 2}},
		{"a row that said more", demand{limit: 4, granted: 1, inUse: 1, waiters: 1}, rows{own: grant{4, 0}}, grant{2, 0}},
	} {
		if got := claim(tt.d, tt.r); got != tt.want {
			t.Errorf("%s: %+v, want %+v", tt.name, got, tt.want)
		}
	}
}

func TestGivingUp(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct {
		name               string
		limit, granted     int
		r                  rows
		excess, concession int
	}{
		{"within the limit", 10, 5, rows{nodes: 1, others: 5}, 0, 0},
		{"half of the excess", 4, 5, rows{nodes: 1, others: 5}, 3, 0},
		{"all of the excess", 4, 10, rows{}, 6, 0},
		{"nothing to give up", 4, 0, rows{nodes: 1, others: 8}, 0, 0},
		{"down to an equal share", 4, 4, rows{nodes: 1, wants: 9}, 0, 2},
		{"what is wanted", 4, 4, rows{nodes: 1, wants: 1}, 0, 1},
		{"what is free serves first", 10, 7, rows{nodes: 1, others: 1, wants: 3}, 0, 1},
		{"no more than a share", 3, 2, rows{nodes: 1, others: 1, wants: 1}, 0, 0},
		{"more nodes than slots", 1, 1, rows{nodes: 4, wants: 4}, 0, 0},
	} {
		if got := excess(tt.limit, tt.granted, tt.r); got != tt.excess {
			t.Errorf("%s: excess %d, want %d", tt.name, got, tt.excess)
		}
		if got := concession(tt.limit, tt.granted, tt.r); got != tt.concession {
			t.Errorf("%s: concession %d, want %d", tt.name, got, tt.concession)
		}
	}
}

// slotModel is what the property knows about three nodes.
type slotModel struct {
	db     *store.DB
	clock  slotClock
	line   string
	limit  int
	nodes  []*slotNode
	inUse  []int
	reborn []int // calls of former lives that may still be among inUse
	sum    int   // granted to the living, at the last look
}

// check holds the rows and the nodes against the invariants.
func (m *slotModel) check(t *rapid.T) {
	all := rowsOf(t, m.db, m.line)
	sum := 0
	for i, n := range m.nodes {
		row := all[*n.life.Load()].granted
		sum += row
		if n.granted(m.line) > row {
			t.Errorf("%s believes to have %d slots, its row says %d", n.name, n.granted(m.line), row)
		}
		if fresh := m.inUse[i] - m.reborn[i]; fresh > n.granted(m.line) {
			t.Errorf("%s has %d calls in flight and %d slots", n.name, fresh, n.granted(m.line))
		}
	}
	if sum > max(m.limit, m.sum) {
		t.Errorf("%d granted after %d, the limit is %d: %v", sum, m.sum, m.limit, all)
	}
	m.sum = sum
}

// rest ends all calls and lets the line fall idle: nothing may be left, and a
// node can have all slots.
func (m *slotModel) rest(t *rapid.T) {
	for i, n := range m.nodes {
		n.gives(m.line, m.inUse[i])
		m.inUse[i] = 0
	}
	for range 4 {
		m.clock.advance(idleFor)
		for _, n := range m.nodes {
			n.tidied(t)
		}
	}
	n := rapid.SampledFrom(m.nodes).Draw(t, "node")
	if got := n.takes(m.line, m.limit, m.limit+1); got != m.limit || len(n.pools) != 1 {
		t.Errorf("%s took %d of %d slots of an idle line, knows %d lines: %v", n.name, got, m.limit, len(n.pools), rowsOf(t, m.db, m.line))
	}
	n.gives(m.line, m.limit)
	for range 3 {
		m.clock.advance(idleFor)
		n.tidied(t)
	}
	for _, n := range m.nodes {
		if len(n.pools) != 0 {
			t.Errorf("%s keeps an idle line in memory", n.name)
		}
	}
	for _, n := range m.nodes {
		n.forgotten(t)
	}
}

func TestSlotsKeepTheirInvariants(t *testing.T) {
	t.Parallel()
	storetest.Each(t, func(t *testing.T, db *store.DB) {
		var run int
		rapid.Check(t, func(t *rapid.T) {
			run++
			m := &slotModel{db: db, line: fmt.Sprint("line", run), limit: 3, inUse: make([]int, 3), reborn: make([]int, 3)}
			for i := range 3 {
				m.nodes = append(m.nodes, newSlotNode(t, db, &m.clock, fmt.Sprintf("r%d-node%d", run, i)))
			}
			draw := func(t *rapid.T) (int, *slotNode) {
				i := rapid.IntRange(0, 2).Draw(t, "node")
				return i, m.nodes[i]
			}
			take := func(t *rapid.T) {
				i, n := draw(t)
				m.inUse[i] += n.takes(m.line, m.limit, rapid.IntRange(1, 6).Draw(t, "calls"))
			}
			tidy := func(t *rapid.T) {
				_, n := draw(t)
				m.clock.advance(time.Duration(rapid.IntRange(0, 2).Draw(t, "seconds")) * time.Second)
				n.tidied(t)
			}
			t.Repeat(map[string]func(*rapid.T){
				"take": take, "take more": take,
				"tidy": tidy, "tidy more": tidy,
				"give": func(t *rapid.T) {
					i, n := draw(t)
					ends := rapid.IntRange(0, m.inUse[i]).Draw(t, "calls")
					n.gives(m.line, ends)
					m.inUse[i] -= ends
					m.reborn[i] = min(m.reborn[i], m.inUse[i])
				},
				"limit": func(t *rapid.T) {
					m.limit = rapid.IntRange(1, 12).Draw(t, "limit")
				},
				"new life": func(t *rapid.T) {
					i, n := draw(t)
					n.forgotten(t)
					n.begin(t)
					m.reborn[i] = m.inUse[i]
				},
				"": m.check,
			})
			m.rest(t)
		})
	})
}

func BenchmarkSlots(b *testing.B) {
	ctx := context.Background()
	url := storetest.SQLite(b)
	storetest.Open(b, url, store.Options{})
	db, err := store.Open(ctx, url, store.Options{})
	if err != nil {
		b.Fatal(err)
	}
	var clock slotClock
	n := newSlotNode(b, db, &clock, "a")
	if n.takes("l", 1000, 900) != 900 {
		b.Fatal("not granted")
	}
	n.gives("l", 900)
	if err := db.Close(); err != nil { // nothing is asked
		b.Fatal(err)
	}
	b.Run("one caller", func(b *testing.B) {
		b.ReportAllocs()
		for b.Loop() {
			if !n.take(ctx, "l", 1000) {
				b.Fatal("busy")
			}
			n.give("l")
		}
	})
	b.Run("parallel", func(b *testing.B) {
		b.ReportAllocs()
		b.RunParallel(func(pb *testing.PB) {
			for pb.Next() {
				if !n.take(ctx, "l", 1000) {
					b.Error("busy")
					return
				}
				n.give("l")
			}
		})
	})
}
