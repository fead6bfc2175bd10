package limit

import (
	"context"
	"errors"
	"testing"
	"testing/synctest"
	"time"
)

// TestSemaphores checks that keys do not share slots, a released slot goes to a waiter, and unused
// keys are dropped.
func TestSemaphores(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		s := NewSemaphores[string](2)
		acquire := func(key string) func() {
			release, err := s.Acquire(t.Context(), key)
			if err != nil {
				t.Fatal(err)
			}
			return release
		}
		first, second, other := acquire("a"), acquire("a"), acquire("b")
		short, cancel := context.WithTimeout(t.Context(), time.Second)
		defer cancel()
		if _, err := s.Acquire(short, "a"); !errors.Is(err, context.DeadlineExceeded) {
			t.Errorf("Acquire of a third slot: %v, want %v", err, context.DeadlineExceeded)
		}
		entered := make(chan func())
		go func() { entered <- acquire("a") }()
		synctest.Wait()
		first()
		third := <-entered
		for _, release := range []func(){second, third, other} {
			release()
		}
		if keys := s.Len(); keys > 0 {
			t.Errorf("there are %d semaphores, want none", keys)
		}
	})
}
