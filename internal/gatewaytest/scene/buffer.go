package scene

import (
	"bytes"
	"strings"
	"sync"
)

// Buffer is an io.Writer that stores a log. It is safe for concurrent use. The zero value is an
// empty buffer.
type Buffer struct {
	mu  sync.Mutex
	buf bytes.Buffer
}

// Write appends to the log.
func (b *Buffer) Write(p []byte) (int, error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.buf.Write(p)
}

// String returns the log so far.
func (b *Buffer) String() string {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.buf.String()
}

// Count returns the number of occurrences of part so far.
func (b *Buffer) Count(part string) int { return strings.Count(b.String(), part) }
