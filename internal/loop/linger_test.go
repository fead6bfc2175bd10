package loop

import (
	"context"
	"testing"
	"testing/synctest"
	"time"
)

// TestLinger checks that the context ends d after its parent, or when canceled.
func TestLinger(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		ctx, stop := context.WithCancel(t.Context())
		out, cancel := Linger(ctx, time.Minute)
		defer cancel()
		time.Sleep(time.Hour)
		if out.Err() != nil {
			t.Error("the context ended before its parent")
		}
		stop()
		time.Sleep(time.Minute - time.Nanosecond)
		synctest.Wait()
		if out.Err() != nil {
			t.Error("the context ended before a minute has passed")
		}
		time.Sleep(time.Nanosecond)
		synctest.Wait()
		if out.Err() == nil {
			t.Error("the context did not end after a minute")
		}
		before, cancelEarly := Linger(context.Background(), time.Minute)
		cancelEarly()
		cancelEarly()
		if before.Err() == nil {
			t.Error("cancel did not end the context")
		}
	})
}
