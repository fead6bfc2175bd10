package store

import (
	"context"
	"errors"
	"testing"
	"testing/synctest"
	"time"
)

// TestRetryIsBounded checks that an error that stays ends after maxAttempts with random waits within
// their bounds, that other errors end at once, and that a wait ends with its context.
func TestRetryIsBounded(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		transient, other := errors.New("transient"), errors.New("other")
		var waits []time.Duration
		last, attempts := time.Now(), 0
		run := func(ctx context.Context, results ...error) error {
			waits, attempts, last = nil, 0, time.Now()
			return retry(ctx, func(err error) bool { return errors.Is(err, transient) }, func() error {
				if attempts++; attempts > 1 {
					waits = append(waits, time.Since(last))
				}
				last = time.Now()
				return results[min(attempts, len(results))-1]
			})
		}
		if err := run(t.Context(), transient); !errors.Is(err, transient) || attempts != maxAttempts {
			t.Errorf("an error that stays: got %v after %d attempts, want %v after %d", err, attempts, transient, maxAttempts)
		}
		longest, equal := minWait, 0
		for i, w := range waits {
			if w <= 0 || w > longest {
				t.Errorf("wait %d is %s, want more than 0 and at most %s", i+1, w, longest)
			}
			if i > 0 && w == waits[i-1] {
				equal++
			}
			longest = min(2*longest, maxWait)
		}
		if equal > maxAttempts/2 {
			t.Errorf("%d of the waits equal the one before, want random waits: %v", equal, waits)
		}
		if err := run(t.Context(), transient, transient, nil); err != nil || attempts != 3 {
			t.Errorf("two conflicts: got %v after %d attempts, want success after 3", err, attempts)
		}
		if err := run(t.Context(), transient, other); !errors.Is(err, other) || attempts != 2 {
			t.Errorf("another error: got %v after %d attempts, want %v after 2", err, attempts, other)
		}
		ctx, cancel := context.WithCancel(t.Context())
		cancel()
		if err := run(ctx, transient); !errors.Is(err, transient) || attempts > 2 {
			t.Errorf("an ended context: got %v after %d attempts, want %v after at most 2", err, attempts, transient)
		}
	})
}
