package api

import (
	"context"
	"errors"
	"testing"
	"testing/synctest"
	"time"
)

// TestFetchesAreFair lets one account take all that it may: it waits then, and
// others do not.
func TestFetchesAreFair(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		f := newFetches()
		ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
		defer cancel()
		var ends []func()
		enter := func(account string, video bool) {
			t.Helper()
			done, err := f.enter(ctx, account, video)
			if err != nil {
				t.Fatal(err)
			}
			ends = append(ends, done)
		}
		for range accountFetches {
			enter("slow", false)
		}
		short, stop := context.WithTimeout(t.Context(), time.Second)
		defer stop()
		if _, err := f.enter(short, "slow", true); !errors.Is(err, context.DeadlineExceeded) {
			t.Errorf("one too many: %v", err)
		}
		for range videoFetches {
			enter("a", true)
			if len(ends) == 2*accountFetches {
				break
			}
		}
		for len(f.videos) < videoFetches {
			enter("b", true)
		}
		waited := make(chan error)
		go func() {
			done, err := f.enter(ctx, "c", true)
			if err == nil {
				done()
			}
			waited <- err
		}()
		synctest.Wait()
		select {
		case err := <-waited:
			t.Fatalf("entered a full house: %v", err)
		default:
		}
		enter("c", false) // images have places of their own
		for _, done := range ends {
			done()
		}
		if err := <-waited; err != nil {
			t.Error(err)
		}
		if len(f.accounts) != 0 || len(f.images) != 0 || len(f.videos) != 0 {
			t.Errorf("%d accounts, %d images, %d videos are left", len(f.accounts), len(f.images), len(f.videos))
		}
	})
}
