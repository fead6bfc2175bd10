package reading

import (
	"context"
	"net/http"
	"testing"
	"testing/synctest"
	"time"

	"tollgate/internal/fault"
)

// TestReading: an account's pages read one after the other, and so leave places for those
// of others; who waits too long is told to come again.
func TestReading(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		r := New()
		ctx, cancel := context.WithTimeout(t.Context(), time.Second)
		defer cancel()
		ada, err := r.Enter(ctx, true, "ada")
		if err != nil {
			t.Fatal(err)
		}
		for range 3 { // they wait
			go func() {
				if _, err := r.Enter(ctx, true, "ada"); fault.Of(err).Status() != http.StatusServiceUnavailable {
					t.Errorf("a second page of an account reads: %v", err)
				}
			}()
		}
		synctest.Wait()
		for _, known := range []bool{true, false} {
			leave, err := r.Enter(ctx, known, "bob")
			if err != nil {
				t.Fatal("somebody else:", err)
			}
			leave()
		}
		<-ctx.Done()
		synctest.Wait()
		ada()
		leave, err := r.Enter(t.Context(), true, "ada")
		if err != nil {
			t.Fatal("the next page:", err)
		}
		leave()
	})
}
