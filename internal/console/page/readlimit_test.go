package page

import (
	"context"
	"net/http"
	"testing"
	"testing/synctest"
	"time"

	"tollgate/internal/fault"
)

// TestReadLimit checks that the pages of one account read one at a time, that pages of other
// accounts do not wait for them, and that a page answers 503 if it waits too long.
func TestReadLimit(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		reads := NewReadLimit()
		ctx, cancel := context.WithTimeout(t.Context(), time.Second)
		defer cancel()
		doneAda, err := reads.begin(ctx, true, "ada")
		if err != nil {
			t.Fatal(err)
		}
		for range 3 { // all wait for the first page
			go func() {
				if _, err := reads.begin(ctx, true, "ada"); fault.Of(err).Status() != http.StatusServiceUnavailable {
					t.Errorf("a second page of the account got %v, want status 503", err)
				}
			}()
		}
		synctest.Wait()
		for _, hasSession := range []bool{true, false} {
			done, err := reads.begin(ctx, hasSession, "bob")
			if err != nil {
				t.Fatal("begin for another account:", err)
			}
			done()
		}
		<-ctx.Done()
		synctest.Wait()
		doneAda()
		done, err := reads.begin(t.Context(), true, "ada")
		if err != nil {
			t.Fatal("begin for the next page of the account:", err)
		}
		done()
	})
}
