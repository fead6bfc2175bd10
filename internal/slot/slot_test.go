package slot

import (
	"bytes"
	"context"
	"fmt"
	"log/slog"
	"math/rand/v2"
	"runtime"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"go.uber.org/goleak"

	"tollgate/internal/node"
	"tollgate/internal/store"
	"tollgate/internal/store/storetest"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// testNode is the Slots of one node with a variable epoch.
type testNode struct {
	*Slots
	db   *store.DB
	node *node.Node
	log  bytes.Buffer
}

// failer has the common methods of tests and properties.
type failer interface {
	Helper()
	Fatal(args ...any)
	Errorf(format string, args ...any)
}

func newTestNode(t failer, db *store.DB, clock *storetest.Clock, name string) *testNode {
	t.Helper()
	self, err := node.Begin(context.Background(), node.Options{DB: db}, name+"-1")
	if err != nil {
		t.Fatal(err)
	}
	n := &testNode{db: db, node: self}
	n.Slots = New(db, self, slog.New(slog.NewTextHandler(&n.log, nil)))
	n.now = clock.Now
	n.rest = 0
	n.timeout = 20 * time.Second // tests of the timeout set a shorter one
	return n
}

// begin begins a new epoch of the node.
func (n *testNode) begin(t failer) {
	t.Helper()
	if err := n.node.Rejoin(context.Background()); err != nil {
		t.Fatal(err)
	}
}

// die declares the node dead without its knowledge.
func (n *testNode) die(t failer) {
	t.Helper()
	if dead, err := node.Fence(context.Background(), n.db, n.node.Epoch(), 0); err != nil || !dead {
		t.Fatal("Fence returned ", dead, err)
	}
}

// remove declares the node dead and removes its row, as the sweep does.
func (n *testNode) remove(t failer) {
	t.Helper()
	n.die(t)
	if err := node.Remove(context.Background(), n.db, n.node.Epoch()); err != nil {
		t.Fatal(err)
	}
}

// takes calls Take until a call fails, up to maxCalls times, and returns the number of slots taken.
func (n *testNode) takes(line string, limit, maxCalls int) int {
	for i := range maxCalls {
		if !n.Take(context.Background(), line, limit) {
			return i
		}
	}
	return maxCalls
}

// gives calls Give a number of times.
func (n *testNode) gives(line string, times int) {
	for range times {
		n.Give(line)
	}
}

// tidy calls Tidy.
func (n *testNode) tidy(t failer) {
	t.Helper()
	if err := n.Tidy(context.Background()); err != nil {
		t.Fatal(err)
	}
}

// handOnAll hands on all unused slots of the node.
func (n *testNode) handOnAll(t *testing.T) {
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
		return tx.Each(func(row store.Row) error {
			var epoch string
			var g grant
			err := row.Scan(&epoch, &g.granted, &g.wanted)
			all[epoch] = g
			return err
		}, `SELECT epoch, granted, wanted FROM line_slot WHERE line = $1`, line)
	})
	if err != nil {
		t.Fatal(err)
	}
	return all
}

// until waits for a condition set by another goroutine.
func until(t *testing.T, what string, ok func() bool) {
	t.Helper()
	for end := time.Now().Add(20 * time.Second); !ok(); runtime.Gosched() {
		if time.Now().After(end) {
			t.Fatalf("timed out waiting until %s", what)
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

// TestLimit checks that concurrent calls on three nodes reach the limit of a line and never exceed it.
func TestLimit(t *testing.T) {
	t.Parallel()
	storetest.Each(t, func(t *testing.T, db *store.DB) {
		const (
			limit   = 17
			callers = 300
			calls   = 4 // of each caller
		)
		var (
			clock             storetest.Clock
			nodes             []*testNode
			inFlight, highest atomic.Int64
			working, upkeep   sync.WaitGroup
		)
		deadline := time.Now().Add(20 * time.Second)
		done := make(chan struct{})
		for i := range 3 {
			n := newTestNode(t, db, &clock, fmt.Sprint("node", i))
			nodes = append(nodes, n)
			upkeep.Go(func() {
				for {
					select {
					case <-done:
						return
					default:
						clock.Advance(50 * time.Millisecond)
						if err := n.Tidy(context.Background()); err != nil {
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
					if !n.Take(context.Background(), "l", limit) {
						continue
					}
					now := inFlight.Add(1)
					for seen := highest.Load(); now > seen && !highest.CompareAndSwap(seen, now); seen = highest.Load() {
					}
					// The first calls end when the line is full; it must be full once.
					for held := rand.IntN(200); (held > 0 || highest.Load() < limit) && time.Now().Before(deadline); held-- {
						runtime.Gosched()
					}
					inFlight.Add(-1)
					n.Give("l")
					left--
				}
			})
		}
		working.Wait()
		close(done)
		upkeep.Wait()
		if highest.Load() != limit {
			t.Errorf("up to %d calls were in flight, want %d", highest.Load(), limit)
		}
		for _, n := range nodes {
			if n.log.Len() > 0 {
				t.Errorf("a node has logged %s", n.log.String())
			}
		}
	})
}

// eachPair runs a test with two nodes on each database.
func eachPair(t *testing.T, test func(t *testing.T, db *store.DB, clock *storetest.Clock, a, b *testNode)) {
	storetest.Each(t, func(t *testing.T, db *store.DB) {
		var clock storetest.Clock
		test(t, db, &clock, newTestNode(t, db, &clock, "a"), newTestNode(t, db, &clock, "b"))
	})
}

// TestSmallLimit checks that two nodes share two slots, and that a node gets a slot only after the other
// node has given it back.
func TestSmallLimit(t *testing.T) {
	t.Parallel()
	eachPair(t, func(t *testing.T, db *store.DB, clock *storetest.Clock, a, b *testNode) {
		if a.takes("l", 2, 1) != 1 || b.takes("l", 2, 1) != 1 {
			t.Fatal("a node cannot take one of two slots")
		}
		if a.takes("l", 2, 1) != 0 || b.takes("l", 2, 1) != 0 {
			t.Fatal("a third call is in flight")
		}
		if got := rowsOf(t, db, "l"); got["a-1"] != (grant{1, 1}) || got["b-1"] != (grant{1, 1}) {
			t.Errorf("rows %v; want 1 granted and 1 wanted each", got)
		}
		a.Give("l")
		if b.takes("l", 2, 1) != 0 {
			t.Error("b took the slot in the grant of a")
		}
		a.tidy(t)
		if b.takes("l", 2, 1) != 0 {
			t.Error("b asked again before askPause")
		}
		clock.Advance(askPause)
		if b.takes("l", 2, 2) != 1 {
			t.Error("b could not take the released slot exactly once")
		}
		if got := rowsOf(t, db, "l"); got["b-1"] != (grant{2, 0}) {
			t.Errorf("rows %v, want 2 granted and none wanted", got)
		}
	})
}

// TestFullLineIsShared checks that a node with all slots of a busy line gives half to a second node.
func TestFullLineIsShared(t *testing.T) {
	t.Parallel()
	eachPair(t, func(t *testing.T, db *store.DB, clock *storetest.Clock, a, b *testNode) {
		if a.takes("l", 4, 9) != 4 || b.takes("l", 4, 1) != 0 {
			t.Fatal("a did not get all slots")
		}
		// Node a replaces each ended call, and b keeps asking.
		for range 12 {
			clock.Advance(time.Second)
			a.tidy(t)
			b.tidy(t)
			b.takes("l", 4, 9)
			a.Give("l")
			a.takes("l", 4, 1)
		}
		if a.Grants("l") != 2 || b.Grants("l") != 2 {
			t.Errorf("the nodes have %d and %d slots, want 2 each", a.Grants("l"), b.Grants("l"))
		}
	})
}

// TestDeadNode checks that the slots of a dead node are free, and that the dead node gets no new slots.
func TestDeadNode(t *testing.T) {
	t.Parallel()
	eachPair(t, func(t *testing.T, db *store.DB, clock *storetest.Clock, a, b *testNode) {
		if a.takes("l", 3, 9) != 3 || b.takes("l", 3, 1) != 0 {
			t.Fatal("a did not get all slots")
		}
		a.die(t)
		clock.Advance(askPause)
		if b.takes("l", 3, 9) != 3 {
			t.Error("b did not get the slots of the dead node")
		}
		if got := rowsOf(t, db, "l"); len(got) != 1 || got["b-1"] != (grant{3, 0}) {
			t.Errorf("rows %v, want only the living node's", got)
		}
		// The dead node does not know about its death yet and must change no row.
		a.gives("l", 3)
		for range 2 {
			clock.Advance(unusedFor)
			a.tidy(t)
		}
		if a.takes("l", 3, 1) != 0 || a.Grants("l") != 0 {
			t.Error("a node that was declared dead was granted a slot")
		}
		if got := rowsOf(t, db, "l"); len(got) != 1 || a.log.Len() > 0 {
			t.Errorf("rows %v, want only the living node's; log %q, want none", got, a.log.String())
		}
	})
}

// TestNewEpoch checks that grants of a former epoch are void, and that calls in flight still count.
func TestNewEpoch(t *testing.T) {
	t.Parallel()
	eachPair(t, func(t *testing.T, db *store.DB, clock *storetest.Clock, a, b *testNode) {
		if a.takes("l", 4, 3) != 3 {
			t.Fatal("the nodes did not get the free slots")
		}
		a.die(t)
		a.begin(t)
		if a.Grants("l") != 0 {
			t.Error("a has grants of its former epoch")
		}
		if b.takes("l", 4, 1) != 1 {
			t.Fatal("the slots of the former epoch are not free")
		}
		// Three calls of a still run, so the three free slots leave none for a new call.
		if a.takes("l", 4, 1) != 0 || a.Grants("l") != 3 {
			t.Errorf("a has %d slots, want 3 for the calls in flight", a.Grants("l"))
		}
		a.gives("l", 2)
		if a.takes("l", 4, 9) != 2 {
			t.Error("a could not take the slots of its ended calls")
		}
		a.gives("l", 3)
		if got := rowsOf(t, db, "l"); len(got) != 2 || got[a.node.Epoch()].granted != 3 || got["b-1"].granted != 1 {
			t.Errorf("rows %v, want 3 slots of the new epoch of a and 1 of b", got)
		}
	})
}

// TestChangedLimit checks that the grants follow a lowered limit as calls end, and a raised limit at once.
func TestChangedLimit(t *testing.T) {
	t.Parallel()
	eachPair(t, func(t *testing.T, db *store.DB, clock *storetest.Clock, a, b *testNode) {
		if a.takes("l", 6, 4) != 4 || b.takes("l", 6, 9) != 2 {
			t.Fatal("the nodes did not get the free slots")
		}
		// After lowering the limit to 3, no node gets more slots, and each ending call gives back a
		// part.
		if a.takes("l", 3, 1) != 0 || b.takes("l", 3, 1) != 0 {
			t.Error("a node got a slot above the lowered limit")
		}
		inFlight := map[*testNode]int{a: 4, b: 2}
		for range 6 {
			clock.Advance(time.Second)
			for n := range inFlight {
				n.tidy(t)
				if inFlight[n] > 0 {
					n.Give("l")
					inFlight[n]--
				}
				inFlight[n] += n.takes("l", 3, 9)
			}
		}
		if all := a.Grants("l") + b.Grants("l"); all > 3 || inFlight[a]+inFlight[b] != 3 {
			t.Errorf("%d granted and %d in flight, want at most 3 and 3", all, inFlight[a]+inFlight[b])
		}
		// A raised limit applies at once, although asks were denied a moment ago.
		more := a.takes("l", 10, 9) + b.takes("l", 10, 9)
		if all := inFlight[a] + inFlight[b] + more; all != 10 {
			t.Errorf("%d in flight after the limit was raised, want 10", all)
		}
	})
}

// TestLoweredLimitOfUnusedSlots checks that unused slots above a lowered limit are given back.
func TestLoweredLimitOfUnusedSlots(t *testing.T) {
	t.Parallel()
	storetest.Each(t, func(t *testing.T, db *store.DB) {
		var clock storetest.Clock
		a := newTestNode(t, db, &clock, "a")
		a.gives("l", a.takes("l", 10, 10))
		if a.takes("l", 4, 9) != 4 {
			t.Error("the grant did not serve a lower limit")
		}
		a.tidy(t) // sees the excess
		a.tidy(t) // writes it
		if got := rowsOf(t, db, "l"); got["a-1"] != (grant{4, 0}) {
			t.Errorf("rows %v, want 4 granted", got)
		}
	})
}

// TestUnusedSlots checks that unused slots are given back after unusedFor, and the headroom after idleFor.
func TestUnusedSlots(t *testing.T) {
	t.Parallel()
	storetest.Each(t, func(t *testing.T, db *store.DB) {
		var clock storetest.Clock
		a := newTestNode(t, db, &clock, "a")
		step := func() {
			clock.Advance(time.Second)
			a.tidy(t)
		}
		if a.takes("l", 16, 12) != 12 || a.Grants("l") != 12 {
			t.Fatalf("%d granted; want 12", a.Grants("l")) // the last ask was for the tenth call and 2 beyond
		}
		a.gives("l", 9)
		step()
		if a.Grants("l") != 12 {
			t.Error("slots were given back after a second")
		}
		step() // the end of the period with 12 slots in use
		step()
		step()
		if got := rowsOf(t, db, "l"); a.Grants("l") != 5 || got["a-1"] != (grant{5, 0}) {
			t.Errorf("%d granted and rows %v, want 3 in use and a headroom of 2", a.Grants("l"), got)
		}
		clock.Advance(idleFor) // a line in use is not idle
		step()
		a.gives("l", 3)
		for range 4 {
			step()
		}
		if a.Grants("l") != 2 {
			t.Errorf("%d granted, want the headroom of 2", a.Grants("l"))
		}
		clock.Advance(idleFor)
		step()
		step()
		if got := rowsOf(t, db, "l"); len(got) != 0 || len(a.pools) != 0 {
			t.Errorf("rows %v and %d lines in memory, want none of an idle line", got, len(a.pools))
		}
	})
}

// TestSlotsAreHandedOn checks that other nodes soon get the slots of ended calls, even before Tidy,
// except for slots that the node uses again.
func TestSlotsAreHandedOn(t *testing.T) {
	t.Parallel()
	storetest.Each(t, func(t *testing.T, db *store.DB) {
		clock := &storetest.Clock{}
		a := newTestNode(t, db, clock, "a")
		a.takes("alone", 1, 1)
		a.Give("alone")
		if n := len(a.spare); n != 0 {
			t.Errorf("%d lines wait for HandOn without another node, want none", n)
		}
		b := newTestNode(t, db, clock, "b")
		for i := range 6 {
			n := []*testNode{a, b}[i%2]
			if n.takes("line", 3, 4) != 3 {
				t.Fatalf("turn %d: the node did not get all 3 slots", i)
			}
			n.gives("line", 3)
			if len(n.spare) != 1 {
				t.Fatalf("%d lines wait for HandOn, want 1", len(n.spare))
			}
			n.handOnAll(t)
			if rows := rowsOf(t, db, "line"); len(rows) != 0 {
				t.Fatalf("turn %d: rows %v, want none", i, rows)
			}
		}
		a.takes("line", 3, 2)
		a.gives("line", 2)
		a.takes("line", 3, 2) // before it is handed on
		a.gives("line", 2)
		if err := a.hand(t.Context(), <-a.spare); err != nil {
			t.Fatal(err)
		}
		if got := a.Grants("line"); got != 2 {
			t.Errorf("a has %d slots, want the 2 used again", got)
		}
		a.handOnAll(t)
		a.takes("small", 20, 1)
		a.Give("small")
		a.handOnAll(t)
		if got := a.Grants("small"); got != 0 {
			t.Errorf("a has %d slots of a small unused line, want none", got)
		}
		a.takes("large", 80, 1)
		a.Give("large")
		a.handOnAll(t)
		if got := a.Grants("large"); got != 10 {
			t.Errorf("a has %d slots of a large unused line, want the reserve of 10", got)
		}
	})
}

// TestShortRest checks that a node with too few slots asks again after shortRest.
func TestShortRest(t *testing.T) {
	t.Parallel()
	eachPair(t, func(t *testing.T, db *store.DB, _ *storetest.Clock, a, b *testNode) {
		b.rest = time.Second
		a.takes("line", 1, 1)
		got := make(chan bool)
		go func() { got <- b.Take(context.Background(), "line", 1) }()
		until(t, "b wants a slot", func() bool { return len(rowsOf(t, db, "line")) == 2 })
		a.Give("line")
		a.handOnAll(t)
		if !<-got {
			t.Error("b did not get the slot that a handed on")
		}
	})
}

// TestWithdrawnRequest checks that a node withdraws its wanted slots when no taker waits any more.
func TestWithdrawnRequest(t *testing.T) {
	t.Parallel()
	eachPair(t, func(t *testing.T, db *store.DB, clock *storetest.Clock, a, b *testNode) {
		if a.takes("l", 2, 9) != 2 || b.takes("l", 2, 1) != 0 {
			t.Fatal("a did not get all slots")
		}
		b.tidy(t)
		if got := rowsOf(t, db, "l"); got["b-1"] != (grant{0, 1}) {
			t.Errorf("rows %v, want 1 wanted by b", got)
		}
		clock.Advance(unusedFor)
		b.tidy(t)
		b.tidy(t)
		if got := rowsOf(t, db, "l"); len(got) != 1 || len(b.pools) != 0 {
			t.Errorf("rows %v and %d lines in memory, want nothing of b", got, len(b.pools))
		}
	})
}
