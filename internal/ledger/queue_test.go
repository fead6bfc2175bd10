package ledger

import "testing"

// TestConfirmsKeepNobodyWaiting: anybody can ask for any number of them, by
// repeating a submission, and they cost a batch nothing: so they take nobody's
// place.
func TestConfirmsKeepNobodyWaiting(t *testing.T) {
	t.Parallel()
	q := newQueue()
	for range 4 * batchSize {
		q.push(&op{kind: opConfirm})
	}
	q.push(&op{kind: opAdmit, account: "a"})
	kinds := map[opKind]int{}
	for _, o := range q.take(nil) {
		kinds[o.kind]++
	}
	if kinds[opAdmit] != 1 || kinds[opConfirm] != 4*batchSize {
		t.Errorf("%v; want all that wait", kinds)
	}
}
