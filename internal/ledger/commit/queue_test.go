package commit

import "testing"

// TestConfirmsDelayNoOperation checks that opConfirm operations take no place of other operations
// in a batch. Any client can cause many of them by repeating a submission.
func TestConfirmsDelayNoOperation(t *testing.T) {
	t.Parallel()
	q := newQueue()
	for range 4 * batchSize {
		q.push(&Op{kind: opConfirm})
	}
	q.push(&Op{kind: opAdmit, account: "a"})
	kinds := map[opKind]int{}
	for _, o := range q.take(nil, nil) {
		kinds[o.kind]++
	}
	if kinds[opAdmit] != 1 || kinds[opConfirm] != 4*batchSize {
		t.Errorf("%v; want all that wait", kinds)
	}
}

func TestQueueIsFairAndPutsEndingsFirst(t *testing.T) {
	t.Parallel()
	q := newQueue()
	for range 300 {
		q.push(&Op{kind: opAdmit, account: "loud"})
	}
	q.push(&Op{kind: opAdmit, account: "quiet"})
	q.push(&Op{kind: opRefused})
	q.push(&Op{kind: opEnd})
	batch := q.take(nil, nil)
	if len(batch) != batchSize || batch[0].kind != opEnd || batch[2].account != "quiet" {
		t.Errorf("a batch of %d: %v, %v, %v; want the ending first, and the quiet account's turn second", len(batch), batch[0].kind,
			batch[1].account, batch[2].account)
	}
	q.close()
	if rest := q.take(nil, nil); len(rest) != 47 || rest[46].kind != opRefused {
		t.Errorf("%d left; want 47, the log row last", len(rest))
	}
	if q.take(nil, nil) != nil {
		t.Error("a closed and empty queue goes on")
	}
	if q.push(&Op{kind: opAdmit}) {
		t.Error("an admission was taken after close")
	}
}
