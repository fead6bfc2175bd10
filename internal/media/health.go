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

// ErrStorage reports a failure of the folder or bucket to store or return a file, for example because
// the disk is full or the credentials were rejected. The error wraps the cause.
var ErrStorage = errors.New("the media store failed")

// health records whether the media store works on this node. It is safe for concurrent use.
type health struct {
	log *slog.Logger
	now func() time.Time

	mu    sync.Mutex
	since time.Time // time of the first failure; zero while the store works
}

// setDown records a failure of the store. Only the first failure is logged.
func (h *health) setDown(err error) {
	h.mu.Lock()
	defer h.mu.Unlock()
	if h.since.IsZero() {
		h.since = h.now()
		h.log.Error("media: the media store does not work; until it works, results are kept and no job starts", "error", err)
	}
}

// setUp records that the store works.
func (h *health) setUp() {
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

// Down reports whether the media store has failed on this node and not worked again, and returns the
// time of the first failure. Run checks when the store works again.
func (s *Store) Down() (since time.Time, down bool) { return s.health.down() }

// Check writes, reads and deletes a file if the store is down. It returns an error if the store
// still does not work.
func (s *Store) Check(ctx context.Context) error {
	if _, down := s.Down(); !down {
		return nil
	}
	if err := s.backend.check(ctx); err != nil {
		return err
	}
	s.health.setUp()
	return nil
}

// monitor is a backend that reports its failures to health.
type monitor struct {
	backend
	health *health
}

func (m *monitor) put(ctx context.Context, name, contentType string, r io.Reader) error {
	source := &sourceReader{reader: r}
	err := m.backend.put(ctx, name, contentType, source)
	switch {
	case err == nil:
		m.health.setUp()
		return nil
	case source.failed || errors.Is(err, ErrTooLarge):
		return err
	}
	return m.storageError(ctx, err)
}

func (m *monitor) open(ctx context.Context, name string, size int64, expected span) (io.ReadSeekCloser, error) {
	content, err := m.backend.open(ctx, name, size, expected)
	if err != nil && !errors.Is(err, ErrUnknown) {
		return nil, m.storageError(ctx, err)
	}
	return content, err
}

// storageError records a failure of the store, unless the caller's context has ended.
func (m *monitor) storageError(ctx context.Context, err error) error {
	if ctx.Err() == nil {
		m.health.setDown(err)
	}
	return fmt.Errorf("%w: %w", ErrStorage, err)
}

// sourceReader records whether reader failed.
type sourceReader struct {
	reader io.Reader
	failed bool
}

// Read implements io.Reader.
func (s *sourceReader) Read(p []byte) (int, error) {
	n, err := s.reader.Read(p)
	if err != nil && !errors.Is(err, io.EOF) {
		s.failed = true
	}
	return n, err
}

// checkSize is the size in bytes of the file written by check. A disk without this space has no
// space for results either.
const checkSize = 1 << 20

// checkBackend writes, reads and deletes a file in a backend. Errors name the backend with location.
func checkBackend(ctx context.Context, b backend, location string) error {
	name := newName()
	if err := b.put(ctx, name, "application/octet-stream", bytes.NewReader(make([]byte, checkSize))); err != nil {
		return fmt.Errorf("%s cannot be written: %w", location, err)
	}
	if err := readBack(ctx, b, name); err != nil {
		return errors.Join(fmt.Errorf("%s cannot be read: %w", location, err), b.remove(ctx, name))
	}
	if err := b.remove(ctx, name); err != nil {
		return fmt.Errorf("files in %s cannot be deleted: %w", location, err)
	}
	return nil
}

// readBack reads the file of checkBackend.
func readBack(ctx context.Context, b backend, name string) error {
	content, err := b.open(ctx, name, checkSize, span{0, checkSize})
	if err != nil {
		return err
	}
	n, err := io.Copy(io.Discard, content)
	if err == nil && n != checkSize {
		err = fmt.Errorf("the test file has %d bytes instead of %d", n, checkSize)
	}
	return errors.Join(err, content.Close())
}
