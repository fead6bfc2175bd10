package loop

import (
	"context"
	"sync"
	"time"
)

// Linger returns a context for the last work of a stopping loop. The context ends d after ctx or when
// cancelled. The caller must cancel it to release its goroutine.
func Linger(ctx context.Context, d time.Duration) (context.Context, context.CancelFunc) {
	out, cancel := context.WithCancel(context.WithoutCancel(ctx))
	done := make(chan struct{})
	stop := context.AfterFunc(ctx, func() {
		defer close(done)
		timer := time.NewTimer(d)
		defer timer.Stop()
		select {
		case <-timer.C:
			cancel()
		case <-out.Done():
		}
	})
	return out, sync.OnceFunc(func() {
		cancel()
		if !stop() {
			<-done
		}
	})
}
