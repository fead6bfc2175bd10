package loop

import (
	"context"
	"testing"
	"testing/synctest"
	"time"
)

func TestLinger(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		ctx, stop := context.WithCancel(t.Context())
		out, cancel := Linger(ctx, time.Minute)
		defer cancel()
		time.Sleep(time.Hour)
		if out.Err() != nil {
			t.Error("it ended by itself")
		}
		stop()
		time.Sleep(time.Minute - time.Nanosecond)
		synctest.Wait()
		if out.Err() != nil {
			t.Error("it ended too early")
		}
		time.Sleep(time.Nanosecond)
		synctest.Wait()
		if out.Err() == nil {
			t.Error("it did not end")
		}
		before, cancelEarly := Linger(context.Background(), time.Minute)
		cancelEarly()
		cancelEarly()
		if before.Err() == nil {
			t.Error("it was not cancelled")
		}
	})
}
