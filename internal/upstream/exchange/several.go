package exchange

import (
	"sync"

	"tollgate/internal/upstream"
	"tollgate/internal/upstream/jobcall"
)

// Several makes count calls for one task, at most atOnce at a time, for providers with one image
// per call, and returns the results in the order of the calls. Fewer results than count are a
// success, since results are charged one by one. Without any result, Several returns the most
// severe failure, with Lost set if any failure has Lost set. If again is false, the next call would
// fail the same way, and Several starts no more calls.
func Several(count, atOnce int, call func(i int) (results []jobcall.Result, failure *upstream.JobFailure, again bool)) (
	[]jobcall.Result, *upstream.JobFailure,
) {
	var (
		brought = make([][]jobcall.Result, count)
		group   sync.WaitGroup

		mu      sync.Mutex // guards the fields below
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

// worse returns the more severe of two failures; either may be nil.
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
