package exchange

import (
	"context"
	"io"
	"sync"
	"sync/atomic"
	"time"

	"tollgate/internal/wire/rawjson"
	"tollgate/internal/wire/sse"
)

// requestBody is the body of a request. A transport may read it or send its pieces.
type requestBody struct {
	io.Reader
	text rawjson.Pieces
}

// newRequestBody returns a new body of a request.
func newRequestBody(text rawjson.Pieces) io.ReadCloser { return &requestBody{text.Reader(), text} }

// Pieces returns the whole body, which must not be modified.
func (b *requestBody) Pieces() [][]byte { return b.text }

// Close implements io.Closer.
func (b *requestBody) Close() error { return nil }

// Bounds for draining the end of a finished stream in Close, so that the connection can serve the
// next call.
const (
	drainBytes = 1 << 10
	drainWait  = 100 * time.Millisecond
)

// body is a response body. Closing the body cancels its call. One goroutine reads; any goroutine
// may close.
type body struct {
	src    io.ReadCloser
	cancel context.CancelFunc
	ends   endFinder // of a stream's last event

	finished  atomic.Bool // whether the last event of a stream was read, but not the end of the body
	closeOnce sync.Once
}

// Read implements io.Reader.
func (b *body) Read(p []byte) (int, error) {
	n, err := b.src.Read(p)
	b.finished.Store(b.ends.read(p[:n]) && err == nil)
	return n, err
}

// Wait implements sse.Waiter.
func (b *body) Wait() {
	if source, ok := b.src.(sse.Waiter); ok {
		source.Wait()
	}
}

// Close cancels the call at the provider. If the last event of a stream was read, Close first reads
// the end of the HTTP body to keep the connection open.
func (b *body) Close() error {
	b.closeOnce.Do(func() {
		if b.finished.Load() {
			timer := time.AfterFunc(drainWait, b.cancel)
			_, _ = io.CopyN(io.Discard, b.src, drainBytes) // after an error, the next call uses a new connection
			timer.Stop()
		}
		b.cancel()
		_ = b.src.Close() // the rest of the body is not needed
	})
	return nil
}

// readStart reads up to limit bytes and stops after wait. It returns the bytes read so far.
func (b *body) readStart(limit int64, wait time.Duration) []byte {
	timer := time.AfterFunc(wait, b.cancel)
	defer timer.Stop()
	data, _ := io.ReadAll(io.LimitReader(b, limit)) // checkResponse accepts an incomplete body
	return data
}
