package commit

import (
	"slices"
	"testing"
	"testing/synctest"
	"time"
)

// TestConfirmsDelayNoOperation checks that opConfirm operations take no place of other operations
// in a batch. Any client can cause many of them by repeating a submission.
func TestConfirmsDelayNoOperation(t *testing.T) {
	t.Parallel()
	q := newQueue(time.Second, time.Now)
	for range 4 * batchSize {
		q.push(&Op{kind: opConfirm})
	}
	q.push(&Op{kind: opAdmit, account: "a"})
	kinds := map[opKind]int{}
	for _, o := range q.take(0) {
		kinds[o.kind]++
	}
	if kinds[opAdmit] != 1 || kinds[opConfirm] != 4*batchSize {
		t.Errorf("%v; want all that wait", kinds)
	}
}

func TestQueueIsFairAndPutsEndingsFirst(t *testing.T) {
	t.Parallel()
	q := newQueue(time.Second, time.Now)
	for range 300 {
		q.push(&Op{kind: opAdmit, account: "loud"})
	}
	q.push(&Op{kind: opAdmit, account: "quiet"})
	q.push(&Op{kind: opRefused})
	q.push(&Op{kind: opEnd})
	batch := q.take(0)
	if len(batch) != batchSize || batch[0].kind != opEnd || batch[2].account != "quiet" {
		t.Errorf("a batch of %d: %v, %v, %v; want the ending first, and the quiet account's turn second", len(batch), batch[0].kind,
			batch[1].account, batch[2].account)
	}
	q.end(0)
	q.close()
	if rest := q.take(0); len(rest) != 47 || rest[46].kind != opRefused {
		t.Errorf("%d left; want 47, the log row last", len(rest))
	}
	q.end(0)
	if q.take(0) != nil {
		t.Error("take of a closed and empty queue returned operations, want nil")
	}
	if q.push(&Op{kind: opAdmit}) {
		t.Error("push of an admission after close returned true, want false")
	}
}

// TestBatchesAtTheSameTime checks that a second batch begins an interval after the first, without its
// accounts, and that it can take operations passed over by the first.
func TestBatchesAtTheSameTime(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		q := newQueue(10*time.Millisecond, time.Now)
		accounts := func(ops []*Op) (names []string) {
			for _, o := range ops {
				names = append(names, o.account)
			}
			return names
		}
		want := func(what string, ops []*Op, wanted ...string) {
			t.Helper()
			if got := accounts(ops); !slices.Equal(got, wanted) {
				t.Errorf("%s has operations of %v, want %v", what, got, wanted)
			}
		}
		admit := func(account string) { q.push(&Op{kind: opAdmit, account: account}) }
		admit("a")
		admit("b")
		first := q.take(0)
		want("the first batch", first, "a", "b")
		begun := time.Now()
		admit("a")
		q.push(&Op{kind: opEnd, account: "b"})
		admit("c")
		second := q.take(1)
		want("the second batch", second, "c")
		if waited := time.Since(begun); waited != 10*time.Millisecond {
			t.Errorf("the second batch began after %v, want 10ms", waited)
		}
		q.pass(0, first[:1]) // another node has locked a
		third := q.take(2)
		want("the third batch", third, "a", "a")
		q.end(0)
		want("the first worker's next batch", q.take(0), "b")
	})
}
