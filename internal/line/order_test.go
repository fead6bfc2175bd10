package line

import (
	"fmt"
	"math"
	"testing"

	"tollgate/internal/catalog"
	"tollgate/internal/wire"
)

// testEntries returns routing entries for lines.
func testEntries(specs ...catalog.LineSpec) []*routingEntry {
	var out []*routingEntry
	for _, spec := range specs {
		out = append(out, &routingEntry{line: &catalog.Line{LineSpec: spec}, hash: wire.Hash(spec.ID)})
	}
	return out
}

func rankedSpec(id string, priority, weight int) catalog.LineSpec {
	return catalog.LineSpec{ID: id, Priority: priority, Weight: weight}
}

// firstLines counts how often each line comes first over many conversations.
func firstLines(entries []*routingEntry, conversations int) map[string]int {
	counts := map[string]int{}
	for i := range conversations {
		counts[order(nil, entries, uint64(i))[0].entry.line.ID]++
	}
	return counts
}

// TestPriorityComesFirst checks that weights do not move a line before lines of lower priority
// numbers.
func TestPriorityComesFirst(t *testing.T) {
	t.Parallel()
	lines := testEntries(rankedSpec("a", 1, 1), rankedSpec("b", 1, 1), rankedSpec("c", 2, 1000), rankedSpec("d", 3, 1))
	for conversation := range uint64(200) {
		lines := order(nil, lines, conversation)
		if lines[2].entry.line.ID != "c" || lines[3].entry.line.ID != "d" {
			t.Fatalf("conversation %d: line %s is third, want c third and d last", conversation, lines[2].entry.line.ID)
		}
		for i, c := range lines {
			if c.position != i+1 {
				t.Fatalf("position %d at index %d, want %d", c.position, i, i+1)
			}
		}
	}
}

// TestWeightsAreShares checks that each line comes first in proportion to its weight.
func TestWeightsAreShares(t *testing.T) {
	t.Parallel()
	const n = 20_000
	counts := firstLines(testEntries(rankedSpec("a", 1, 100), rankedSpec("b", 1, 300), rankedSpec("c", 1, 600)), n)
	for id, want := range map[string]float64{"a": 0.1, "b": 0.3, "c": 0.6} {
		got := float64(counts[id]) / n
		if sigma := math.Sqrt(want * (1 - want) / n); math.Abs(got-want) > 5*sigma {
			t.Errorf("%s comes first in %.3f of the conversations, want %.3f", id, got, want)
		}
	}
}

// TestLostLineMovesOnlyItsConversations checks that the loss of a line moves only its own
// conversations, and spreads them over the remaining lines.
func TestLostLineMovesOnlyItsConversations(t *testing.T) {
	t.Parallel()
	all := testEntries(rankedSpec("a", 1, 100), rankedSpec("b", 1, 100), rankedSpec("c", 1, 100), rankedSpec("d", 1, 100))
	remaining := all[1:]
	takenOver := map[string]int{}
	for conversation := range uint64(4000) {
		before, after := order(nil, all, conversation)[0].entry.line.ID, order(nil, remaining, conversation)[0].entry.line.ID
		switch {
		case before == "a":
			takenOver[after]++
		case before != after:
			t.Fatalf("conversation %d moved from %s to %s without need", conversation, before, after)
		}
	}
	for _, id := range []string{"b", "c", "d"} {
		if takenOver[id] < 200 {
			t.Errorf("line %s took over %d of about 1000 conversations, want at least 200", id, takenOver[id])
		}
	}
}

// TestOrderIsStable checks that a conversation gets the same order, whatever the order of lines in
// the catalog.
func TestOrderIsStable(t *testing.T) {
	t.Parallel()
	one := testEntries(rankedSpec("a", 1, 5), rankedSpec("b", 1, 7), rankedSpec("c", 1, 9))
	two := testEntries(rankedSpec("c", 1, 9), rankedSpec("a", 1, 5), rankedSpec("b", 1, 7))
	for conversation := range uint64(500) {
		x, y := order(nil, one, conversation), order(nil, two, conversation)
		for i := range x {
			if x[i].entry.line.ID != y[i].entry.line.ID {
				t.Fatalf("conversation %d: lines %s and %s at index %d, want the same line", conversation, x[i].entry.line.ID, y[i].entry.line.ID, i)
			}
		}
	}
}

// TestOrderOfOneLine checks that the order of a single line needs no allocation.
func TestOrderOfOneLine(t *testing.T) {
	lines := testEntries(rankedSpec("a", 1, 1))
	allocs := testing.AllocsPerRun(100, func() {
		var buffer [4]rankedLine
		if lines := order(buffer[:0], lines, 7); len(lines) != 1 {
			t.Error("order did not return exactly one line")
		}
	})
	if allocs != 0 {
		t.Errorf("%g allocations, want 0", allocs)
	}
}

func BenchmarkOrder(b *testing.B) {
	for _, n := range []int{1, 2, 4, 16} {
		var specs []catalog.LineSpec
		for i := range n {
			specs = append(specs, rankedSpec(fmt.Sprint(i), 1, 100))
		}
		lines := testEntries(specs...)
		b.Run(fmt.Sprint(n), func(b *testing.B) {
			b.ReportAllocs()
			var buffer [4]rankedLine
			for i := range b.N {
				order(buffer[:0], lines, uint64(i))
			}
		})
	}
}
