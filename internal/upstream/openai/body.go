package openai

import (
	"bytes"
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

// done is how the last event of a stream ends, line ends aside.
var done = [...]byte{'[', 'D', 'O', 'N', 'E', ']'}

// body is an answer's body that cancels its call when it is closed. One
// goroutine reads; any may close.
type body struct {
	from   io.ReadCloser
	cancel context.CancelFunc

	tail     [10]byte    // the reader's: the last bytes read
	finished atomic.Bool // a stream's last event was read, the end of the body not yet
	close    sync.Once
}

// Read implements io.Reader.
func (b *body) Read(p []byte) (int, error) {
	n, err := b.from.Read(p)
	if n >= len(b.tail) {
		copy(b.tail[:], p[n-len(b.tail):n])
	} else if n > 0 {
		copy(b.tail[:], b.tail[n:])
		copy(b.tail[len(b.tail)-n:], p[:n])
	}
	b.finished.Store(err == nil && bytes.HasSuffix(bytes.TrimRight(b.tail[:], "\r\n"), done[:]))
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
