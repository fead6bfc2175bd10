package store

import (
	"context"
	"math/rand/v2"
	"time"
)

// Bounds of a repeated transaction: the number of attempts, and the longest wait after the first
// attempt and after any attempt. At the isolation level serializable, a transaction on an account
// with much traffic may need dozens of attempts.
const (
	maxAttempts = 200
	minWait     = 4 * time.Millisecond
	maxWait     = 100 * time.Millisecond
)

// retry calls try until try succeeds or returns an error that is not transient, ctx ends, or
// maxAttempts is reached. The random waits between the attempts keep conflicting transactions from
// meeting again.
func retry(ctx context.Context, transient func(error) bool, try func() error) error {
	wait := minWait
	for attempt := 1; ; attempt++ {
		err := try()
		if err == nil || attempt == maxAttempts || !transient(err) || !sleep(ctx, Jitter(wait)) {
			return err
		}
		wait = min(2*wait, maxWait)
	}
}

// sleep returns false if ctx ends before d has passed.
func sleep(ctx context.Context, d time.Duration) bool {
	select {
	case <-ctx.Done():
		return false
	case <-time.After(d):
		return true
	}
}

// Jitter returns a random duration of up to d, which must be positive.
func Jitter(d time.Duration) time.Duration { return 1 + rand.N(d) }
