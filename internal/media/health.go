package media

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"sync"
	"time"
)

// ErrStorage means that the folder or bucket failed to store or return a good file: the place is
// unreachable, full or broken, or rejects the credentials. The cause is in the chain.
var ErrStorage = errors.New("the media store failed")

// health is this node's view of the media store. It is safe for concurrent use.
type health struct {
	log *slog.Logger
	now func() time.Time

	mu    sync.Mutex
	since time.Time // of the first failure; zero while the store works
}

// failed records a failure of the store. Only the first failure is logged.
func (h *health) failed(err error) {
	h.mu.Lock()
	defer h.mu.Unlock()
	if h.since.IsZero() {
		h.since = h.now()
		h.log.Error("media: the media store does not work; results are kept and no job starts until it does", "error", err)
	}
}

// worked records that the store took a file.
func (h *health) worked() {
	h.mu.Lock()
	defer h.mu.Unlock()
	if !h.since.IsZero() {
		h.log.Info("media: the media store works again", "down_for", h.now().Sub(h.since).Round(time.Second).String())
		h.since = time.Time{}
	}
}

func (h *health) down() (since time.Time, down bool) {
	h.mu.Lock()
	defer h.mu.Unlock()
	return h.since, !h.since.IsZero()
}

// Down reports whether the media store failed on this node and has not worked since, and when the
// failure began. Run notices when the store works again.
func (s *Store) Down() (since time.Time, down bool) { return s.health.down() }

// Check writes, reads and deletes a file if the store is down. It returns an error
// if the store still does not work.
func (s *Store) Check(ctx context.Context) error {
	if _, down := s.Down(); !down {
		return nil
	}
	if err := s.place.check(ctx); err != nil {
		return err
	}
	s.health.worked()
	return nil
}

// monitored is a place that reports its failures to health.
type monitored struct {
	place
	health *health
}

func (m *monitored) put(ctx context.Context, name, contentType string, r io.Reader) error {
	source := &sourceReader{from: r}
	err := m.place.put(ctx, name, contentType, source)
	switch {
	case err == nil:
		m.health.worked()
		return nil
	case source.failed || errors.Is(err, ErrTooLarge):
		return err
	}
	return m.storageError(ctx, err)
}

func (m *monitored) open(ctx context.Context, name string, size int64, expected span) (io.ReadSeekCloser, error) {
	content, err := m.place.open(ctx, name, size, expected)
	if err != nil && !errors.Is(err, ErrUnknown) {
		return nil, m.storageError(ctx, err)
	}
	return content, err
}

// storageError records a failure of the store, unless the caller gave up.
func (m *monitored) storageError(ctx context.Context, err error) error {
	if ctx.Err() == nil {
		m.health.failed(err)
	}
	return fmt.Errorf("%w: %w", ErrStorage, err)
}

// sourceReader remembers whether reading from failed.
type sourceReader struct {
	from   io.Reader
	failed bool
}

// Read implements io.Reader.
func (s *sourceReader) Read(p []byte) (int, error) {
	n, err := s.from.Read(p)
	if err != nil && !errors.Is(err, io.EOF) {
		s.failed = true
	}
	return n, err
}

// checkSize is the length of the file written by check: a disk without that space has no space for
// results.
const checkSize = 1 << 20

// checkPlace writes, reads and deletes a file in a place. called is its name in
// errors.
func checkPlace(ctx context.Context, p place, called string) error {
	name := newName()
	if err := p.put(ctx, name, "application/octet-stream", bytes.NewReader(make([]byte, checkSize))); err != nil {
		return fmt.Errorf("%s cannot be written: %w", called, err)
	}
	if err := readBack(ctx, p, name); err != nil {
		return errors.Join(fmt.Errorf("%s cannot be read: %w", called, err), p.remove(ctx, name))
	}
	if err := p.remove(ctx, name); err != nil {
		return fmt.Errorf("files in %s cannot be deleted: %w", called, err)
	}
	return nil
}

// readBack reads the file of checkPlace.
func readBack(ctx context.Context, p place, name string) error {
	content, err := p.open(ctx, name, checkSize, span{0, checkSize})
	if err != nil {
		return err
	}
	n, err := io.Copy(io.Discard, content)
	if err == nil && n != checkSize {
		err = fmt.Errorf("it has %d bytes instead of %d", n, checkSize)
	}
	return errors.Join(err, content.Close())
}
