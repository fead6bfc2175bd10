package exchange

import (
	"context"
	"io"
	"sync"
	"sync/atomic"
	"time"
)

// Bounds for draining the end of a finished stream in Close, so the connection can serve the next
// call.
const (
	restBytes = 1 << 10
	restWait  = 100 * time.Millisecond
)

// body is a response body. Closing the body cancels its call. One goroutine reads; any goroutine
// may close.
type body struct {
	from   io.ReadCloser
	cancel context.CancelFunc
	ends   ends // of a stream's last event

	finished atomic.Bool // the last event of a stream was read, but not the end of the body
	close    sync.Once
}

// Read implements io.Reader.
func (b *body) Read(p []byte) (int, error) {
	n, err := b.from.Read(p)
	b.finished.Store(b.ends.read(p[:n]) && err == nil)
	return n, err
}

// Close cancels the call at the provider. After the last event of a stream only the end of the HTTP
// body may be missing; Close then reads the end first to keep the connection open.
func (b *body) Close() error {
	b.close.Do(func() {
		if b.finished.Load() {
			timer := time.AfterFunc(restWait, b.cancel)
			_, _ = io.CopyN(io.Discard, b.from, restBytes) // after an error, the next call uses a new connection
			timer.Stop()
		}
		b.cancel()
		_ = b.from.Close() // the rest of the body is not needed
	})
	return nil
}

// beginning reads up to limit bytes and stops after wait. It returns the bytes read so far.
func (b *body) beginning(limit int64, wait time.Duration) []byte {
	timer := time.AfterFunc(wait, b.cancel)
	defer timer.Stop()
	data, _ := io.ReadAll(io.LimitReader(b, limit)) // checkResponse accepts an incomplete body
	return data
}
