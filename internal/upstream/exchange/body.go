package exchange

import (
	"context"
	"io"
	"sync"
	"sync/atomic"
	"time"
)

// Bounds of the rest of a finished stream that Close reads so that the
// connection can serve the next call.
const (
	restBytes = 1 << 10
	restWait  = 100 * time.Millisecond
)

// body is an answer's body that cancels its call when it is closed. One
// goroutine reads; any may close.
type body struct {
	from   io.ReadCloser
	cancel context.CancelFunc
	ends   ends // of a stream

	finished atomic.Bool // a stream's last event was read, the end of the body not yet
	close    sync.Once
}

// Read implements io.Reader.
func (b *body) Read(p []byte) (int, error) {
	n, err := b.from.Read(p)
	b.finished.Store(b.ends.read(p[:n]) && err == nil)
	return n, err
}

// Close ends the call: what still runs at the provider is cancelled. After a
// stream's last event nothing runs any more, only the end of the HTTP body may
// not have been read; then Close reads it, so that the connection is kept.
func (b *body) Close() error {
	b.close.Do(func() {
		if b.finished.Load() {
			timer := time.AfterFunc(restWait, b.cancel)
			_, _ = io.CopyN(io.Discard, b.from, restBytes) // best effort: the next call would dial anew
			timer.Stop()
		}
		b.cancel()
		_ = b.from.Close() // reading is over; there is nothing to lose
	})
	return nil
}

// beginning reads up to limit bytes within the wait and returns what came.
func (b *body) beginning(limit int64, wait time.Duration) []byte {
	timer := time.AfterFunc(wait, b.cancel)
	defer timer.Stop()
	said, _ := io.ReadAll(io.LimitReader(b, limit)) // a part of it is judged like the whole
	return said
}
