package exchange

import (
	"sync"

	"tollgate/internal/upstream"
	"tollgate/internal/upstream/jobcall"
)

// CallSeveral makes count calls for one task, at most maxConcurrent at a time, and returns the results
// in the order of the calls. It is for providers with one image per call. Fewer results than count
// are a success, because results are charged one by one. If there is no result, CallSeveral returns
// the most severe failure, and sets Lost if any failure has Lost set. If a call returns again =
// false, CallSeveral starts no more calls, because they would fail the same way.
func CallSeveral(count, maxConcurrent int, call func(i int) (results []jobcall.Result, failure *upstream.JobFailure, again bool)) (
	[]jobcall.Result, *upstream.JobFailure,
) {
	var (
		resultsByCall = make([][]jobcall.Result, count)
		group         sync.WaitGroup

		mu      sync.Mutex // guards the fields below
		next    int
		stopped bool
		worst   *upstream.JobFailure
	)
	nextCall := func() (int, bool) {
		mu.Lock()
		defer mu.Unlock()
		next++
		return next - 1, !stopped && next <= count
	}
	for range min(count, maxConcurrent) {
		group.Go(func() {
			for i, ok := nextCall(); ok; i, ok = nextCall() {
				results, failure, again := call(i)
				mu.Lock()
				resultsByCall[i] = results
				if failure != nil {
					worst, stopped = worse(worst, failure), stopped || !again
				}
				mu.Unlock()
			}
		})
	}
	group.Wait()
	var all []jobcall.Result
	for _, results := range resultsByCall {
		all = append(all, results...)
	}
	if len(all) > 0 {
		return all, nil
	}
	return nil, worst
}

// worse returns the more severe of two failures. Either may be nil.
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
