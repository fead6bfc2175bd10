package loop

import (
	"context"
	"sync"
	"time"
)

// Linger returns a context that ends d after ctx does, or when it is cancelled,
// which leaves no goroutine behind: for what may still be done when a part stops.
func Linger(ctx context.Context, d time.Duration) (context.Context, context.CancelFunc) {
	out, cancel := context.WithCancel(context.WithoutCancel(ctx))
	ended := make(chan struct{})
	stop := context.AfterFunc(ctx, func() {
		defer close(ended)
		rest := time.NewTimer(d)
		defer rest.Stop()
		select {
		case <-rest.C:
			cancel()
		case <-out.Done():
		}
	})
	return out, sync.OnceFunc(func() {
		cancel()
		if !stop() {
			<-ended
		}
	})
}
