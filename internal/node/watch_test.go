package node

import (
	"testing"
	"time"
)

func TestOnlySilenceWithAReachableDatabaseIsStale(t *testing.T) {
	t.Parallel()
	var w watch
	lease := 12 * time.Second
	at := time.Unix(1000, 0)
	look := func(after time.Duration, beats ...int64) int {
		at = at.Add(after)
		var nodes []Record
		for i, beat := range beats {
			nodes = append(nodes, Record{Epoch: string(rune('a' + i)), Beat: beat})
		}
		return len(w.stale(nodes, "self", lease, at))
	}
	steps := []struct {
		after time.Duration
		beats []int64
		want  int
	}{
		{0, []int64{1, 1}, 0},
		{4 * time.Second, []int64{1, 2}, 0},
		{4 * time.Second, []int64{1, 3}, 0},
		{4 * time.Second, []int64{1, 3}, 1},  // a was silent for a lease
		{4 * time.Second, []int64{2, 3}, 0},  // a sends a heartbeat again
		{4 * time.Second, []int64{2, 3}, 1},  // b was silent for a lease
		{20 * time.Second, []int64{2, 3}, 0}, // the database was unavailable, so all leases start again
		{6 * time.Second, []int64{2, 3}, 0},  // half a lease
		{6 * time.Second, []int64{2, 3}, 2},  // a lease
		{time.Second, nil, 0},
	}
	for i, s := range steps {
		if got := look(s.after, s.beats...); got != s.want {
			t.Errorf("step %d: got %d stale nodes, want %d", i, got, s.want)
		}
	}
}
