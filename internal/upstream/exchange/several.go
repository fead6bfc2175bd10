package exchange

import (
	"sync"

	"tollgate/internal/upstream"
	"tollgate/internal/upstream/jobcall"
)

// Several makes count calls of one task, a few at a time, for providers that
// make one image a call, and returns what they brought in the order of the calls.
// Fewer results than were asked for are a success, since they are charged one by
// one; without any, the failure is the most hopeless, and says that a call may
// have been accepted if any says so. After a failure that the next call would
// meet too (again is false) no more calls are begun.
func Several(count, atOnce int, call func(i int) (results []jobcall.Result, failure *upstream.JobFailure, again bool)) (
	[]jobcall.Result, *upstream.JobFailure,
) {
	var (
		brought = make([][]jobcall.Result, count)
		group   sync.WaitGroup

		mu      sync.Mutex // guards what follows
		next    int
		stopped bool
		worst   *upstream.JobFailure
	)
	take := func() (int, bool) {
		mu.Lock()
		defer mu.Unlock()
		next++
		return next - 1, !stopped && next <= count
	}
	for range min(count, atOnce) {
		group.Go(func() {
			for i, ok := take(); ok; i, ok = take() {
				results, failure, again := call(i)
				mu.Lock()
				brought[i] = results
				if failure != nil {
					worst, stopped = worse(worst, failure), stopped || !again
				}
				mu.Unlock()
			}
		})
	}
	group.Wait()
	var all []jobcall.Result
	for _, results := range brought {
		all = append(all, results...)
	}
	if len(all) > 0 {
		return all, nil
	}
	return nil, worst
}

// worse returns the more hopeless of two failures; either may be nil.
func worse(a, b *upstream.JobFailure) *upstream.JobFailure {
	if a == nil {
		return b
	}
	lost := a.Lost || b.Lost
	if b.Next > a.Next {
		a = b
	}
	a.Lost = lost
	return a
}
