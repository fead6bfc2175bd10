package slot

import (
	"context"
	"flag"
	"fmt"
	"testing"
	"time"

	"pgregory.net/rapid"

	"tollgate/internal/store"
	"tollgate/internal/store/storetest"
)

func TestClaim(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct {
		name string
		d    demand
		r    lineRows
		want grant
	}{
		{"the first call", demand{limit: 2, waiters: 1}, lineRows{}, grant{1, 0}},
		{"headroom", demand{limit: 80, waiters: 1}, lineRows{}, grant{11, 0}},
		{"no headroom while others are short", demand{limit: 80, waiters: 1}, lineRows{wants: 1}, grant{1, 0}},
		{"no more than others leave", demand{limit: 10, granted: 7, inUse: 7, waiters: 2}, lineRows{nodes: 1, others: 1, wants: 1}, grant{8, 1}},
		{"an equal share in any case", demand{limit: 10, granted: 3, inUse: 3, waiters: 3}, lineRows{nodes: 1, others: 5, wants: 5}, grant{5, 1}},
		{"part of the headroom", demand{limit: 80, waiters: 1}, lineRows{others: 75}, grant{5, 0}},
		{"more takers than slots", demand{limit: 4, waiters: 100}, lineRows{}, grant{4, 0}},
		{"what is free", demand{limit: 4, granted: 1, inUse: 1, waiters: 9}, lineRows{others: 2}, grant{2, 2}},
		{"nothing is free", demand{limit: 4, granted: 1, inUse: 1, waiters: 1}, lineRows{others: 3}, grant{1, 1}},
		{"a lowered limit takes nothing", demand{limit: 2, granted: 3, inUse: 1, waiters: 1}, lineRows{others: 3}, grant{3, 0}},
		{"a lowered limit gives nothing", demand{limit: 2, granted: 1, inUse: 1, waiters: 1}, lineRows{others: 3}, grant{1, 1}},
		{"calls of a former epoch", demand{limit: 4, inUse: 3, waiters: 1}, lineRows{others: 2}, grant{2, 2}},
		{"a row that said more", demand{limit: 4, granted: 1, inUse: 1, waiters: 1}, lineRows{own: grant{4, 0}}, grant{2, 0}},
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
		r                  lineRows
		excess, concession int
	}{
		{"within the limit", 10, 5, lineRows{nodes: 1, others: 5}, 0, 0},
		{"half of the excess", 4, 5, lineRows{nodes: 1, others: 5}, 3, 0},
		{"all of the excess", 4, 10, lineRows{}, 6, 0},
		{"nothing to give up", 4, 0, lineRows{nodes: 1, others: 8}, 0, 0},
		{"down to an equal share", 4, 4, lineRows{nodes: 1, wants: 9}, 0, 2},
		{"what is wanted", 4, 4, lineRows{nodes: 1, wants: 1}, 0, 1},
		{"what is free serves first", 10, 7, lineRows{nodes: 1, others: 1, wants: 3}, 0, 1},
		{"no more than a share", 3, 2, lineRows{nodes: 1, others: 1, wants: 1}, 0, 0},
		{"more nodes than slots", 1, 1, lineRows{nodes: 4, wants: 4}, 0, 0},
	} {
		if got := excess(tt.limit, tt.granted, tt.r); got != tt.excess {
			t.Errorf("%s: excess %d, want %d", tt.name, got, tt.excess)
		}
		if got := concession(tt.limit, tt.granted, tt.r); got != tt.concession {
			t.Errorf("%s: concession %d, want %d", tt.name, got, tt.concession)
		}
	}
}

// model is the expected state of three nodes.
type model struct {
	db     *store.DB
	clock  storetest.Clock
	line   string
	limit  int
	nodes  []*testNode
	inUse  []int
	reborn []int // calls of former epochs, possibly still included in inUse
	sum    int   // granted to the living, at the last look
}

// check holds the rows and the nodes against the invariants.
func (m *model) check(t *rapid.T) {
	all := rowsOf(t, m.db, m.line)
	sum := 0
	for i, n := range m.nodes {
		row := all[n.node.Epoch()].granted
		sum += row
		if n.Grants(m.line) > row {
			t.Errorf("%s believes to have %d slots, its row says %d", n.node.Epoch(), n.Grants(m.line), row)
		}
		if fresh := m.inUse[i] - m.reborn[i]; fresh > n.Grants(m.line) {
			t.Errorf("%s has %d calls in flight and %d slots", n.node.Epoch(), fresh, n.Grants(m.line))
		}
	}
	if sum > max(m.limit, m.sum) {
		t.Errorf("%d granted after %d, the limit is %d: %v", sum, m.sum, m.limit, all)
	}
	m.sum = sum
}

// rest ends all calls and lets the line fall idle: nothing may be left, and a
// node can have all slots.
func (m *model) rest(t *rapid.T) {
	for i, n := range m.nodes {
		n.gives(m.line, m.inUse[i])
		m.inUse[i] = 0
	}
	for range 4 {
		m.clock.Advance(idleFor)
		for _, n := range m.nodes {
			n.tidy(t)
		}
	}
	n := rapid.SampledFrom(m.nodes).Draw(t, "node")
	if got := n.takes(m.line, m.limit, m.limit+1); got != m.limit || len(n.pools) != 1 {
		t.Errorf("%s took %d of %d slots of an idle line, knows %d lines: %v",
			n.node.Epoch(), got, m.limit, len(n.pools), rowsOf(t, m.db, m.line))
	}
	n.gives(m.line, m.limit)
	for range 3 {
		m.clock.Advance(idleFor)
		n.tidy(t)
	}
	for _, n := range m.nodes {
		if len(n.pools) != 0 {
			t.Errorf("%s keeps an idle line in memory", n.node.Epoch())
		}
	}
	for _, n := range m.nodes {
		n.remove(t)
	}
}

func TestSlotsKeepTheirInvariants(t *testing.T) {
	t.Parallel()
	// Each of the 30 steps of a run is a few transactions.
	if err := flag.Set("rapid.checks", "25"); err != nil {
		t.Fatal(err)
	}
	storetest.Each(t, func(t *testing.T, db *store.DB) {
		var run int
		rapid.Check(t, func(t *rapid.T) {
			run++
			m := &model{db: db, line: fmt.Sprint("line", run), limit: 3, inUse: make([]int, 3), reborn: make([]int, 3)}
			for i := range 3 {
				m.nodes = append(m.nodes, newTestNode(t, db, &m.clock, fmt.Sprintf("r%d-node%d", run, i)))
			}
			draw := func(t *rapid.T) (int, *testNode) {
				i := rapid.IntRange(0, 2).Draw(t, "node")
				return i, m.nodes[i]
			}
			take := func(t *rapid.T) {
				i, n := draw(t)
				m.inUse[i] += n.takes(m.line, m.limit, rapid.IntRange(1, 6).Draw(t, "calls"))
			}
			tidy := func(t *rapid.T) {
				_, n := draw(t)
				m.clock.Advance(time.Duration(rapid.IntRange(0, 2).Draw(t, "seconds")) * time.Second)
				n.tidy(t)
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
				"new epoch": func(t *rapid.T) {
					i, n := draw(t)
					n.remove(t)
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
	var clock storetest.Clock
	n := newTestNode(b, db, &clock, "a")
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
			if !n.Take(ctx, "l", 1000) {
				b.Fatal("busy")
			}
			n.Give("l")
		}
	})
	b.Run("parallel", func(b *testing.B) {
		b.ReportAllocs()
		b.RunParallel(func(pb *testing.PB) {
			for pb.Next() {
				if !n.Take(ctx, "l", 1000) {
					b.Error("busy")
					return
				}
				n.Give("l")
			}
		})
	})
}
