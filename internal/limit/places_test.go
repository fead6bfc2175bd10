package limit

import (
	"context"
	"errors"
	"testing"
	"testing/synctest"
	"time"
)

// TestPlaces: a key's places are its own, who waits gets one that is given back, who gives
// up leaves nothing, and keys that nobody uses are forgotten.
func TestPlaces(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		p := NewPlaces[string](2)
		enter := func(key string) func() {
			leave, err := p.Enter(t.Context(), key)
			if err != nil {
				t.Fatal(err)
			}
			return leave
		}
		first, second, other := enter("a"), enter("a"), enter("b")
		short, cancel := context.WithTimeout(t.Context(), time.Second)
		defer cancel()
		if _, err := p.Enter(short, "a"); !errors.Is(err, context.DeadlineExceeded) {
			t.Errorf("a third one enters: %v", err)
		}
		entered := make(chan func())
		go func() { entered <- enter("a") }()
		synctest.Wait()
		first()
		third := <-entered
		for _, leave := range []func(){second, third, other} {
			leave()
		}
		if len(p.taken) > 0 {
			t.Errorf("%d keys are remembered", len(p.taken))
		}
	})
}
