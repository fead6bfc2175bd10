package limit

import (
	"context"
	"errors"
	"testing"
	"testing/synctest"
	"time"
)

// TestSemaphores checks that keys do not share slots, a released slot goes to a waiter, and unused
// keys are forgotten.
func TestSemaphores(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		s := NewSemaphores[string](2)
		enter := func(key string) func() {
			release, err := s.Acquire(t.Context(), key)
			if err != nil {
				t.Fatal(err)
			}
			return release
		}
		first, second, other := enter("a"), enter("a"), enter("b")
		short, cancel := context.WithTimeout(t.Context(), time.Second)
		defer cancel()
		if _, err := s.Acquire(short, "a"); !errors.Is(err, context.DeadlineExceeded) {
			t.Errorf("a third caller gets a slot: %v", err)
		}
		entered := make(chan func())
		go func() { entered <- enter("a") }()
		synctest.Wait()
		first()
		third := <-entered
		for _, release := range []func(){second, third, other} {
			release()
		}
		if keys := s.Len(); keys > 0 {
			t.Errorf("%d keys are remembered", keys)
		}
	})
}
