package page

import (
	"context"
	"net/http"
	"testing"
	"testing/synctest"
	"time"

	"tollgate/internal/fault"
)

// TestReadLimit checks that the pages of one account read one after the other, beside those of
// other accounts, and that a page answers 503 if it waits too long.
func TestReadLimit(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		reads := NewReadLimit()
		ctx, cancel := context.WithTimeout(t.Context(), time.Second)
		defer cancel()
		ada, err := reads.begin(ctx, true, "ada")
		if err != nil {
			t.Fatal(err)
		}
		for range 3 { // they wait
			go func() {
				if _, err := reads.begin(ctx, true, "ada"); fault.Of(err).Status() != http.StatusServiceUnavailable {
					t.Errorf("a second page of an account reads: %v", err)
				}
			}()
		}
		synctest.Wait()
		for _, known := range []bool{true, false} {
			done, err := reads.begin(ctx, known, "bob")
			if err != nil {
				t.Fatal("somebody else:", err)
			}
			done()
		}
		<-ctx.Done()
		synctest.Wait()
		ada()
		done, err := reads.begin(t.Context(), true, "ada")
		if err != nil {
			t.Fatal("the next page:", err)
		}
		done()
	})
}
