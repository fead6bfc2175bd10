package line

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
	if err := n.db.LeaveNode(context.Background(), *n.life.Load()); err != nil {
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
