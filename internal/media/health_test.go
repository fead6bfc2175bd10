package media

import (
	"bytes"
	"context"
	"errors"
	"io"
	"net/http"
	"os"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"tollgate/internal/gatewaytest/s3server"
	"tollgate/internal/media/format"
	"tollgate/internal/media/formattest"
	"tollgate/internal/store"
	"tollgate/internal/store/storetest"
)

// faultyBackend is a backend whose puts and opens fail on demand.
type faultyBackend struct {
	backend
	err atomic.Pointer[error]
}

func (f *faultyBackend) fail(err error) { f.err.Store(&err) }

func (f *faultyBackend) fault() error {
	if err := f.err.Load(); err != nil {
		return *err
	}
	return nil
}

func (f *faultyBackend) put(ctx context.Context, name, contentType string, r io.Reader) error {
	if err := f.fault(); err != nil {
		return err
	}
	return f.backend.put(ctx, name, contentType, r)
}

func (f *faultyBackend) open(ctx context.Context, name string, size int64, expected span) (io.ReadSeekCloser, error) {
	if err := f.fault(); err != nil {
		return nil, err
	}
	return f.backend.open(ctx, name, size, expected)
}

func (f *faultyBackend) check(ctx context.Context) error { return checkBackend(ctx, f, "the store") }

// TestTheStoreIsDownUntilItWorks checks that only failures of the backend make the store down, and
// that the next stored file ends the outage.
func TestTheStoreIsDownUntilItWorks(t *testing.T) {
	t.Parallel()
	storetest.EachClock(t, func(t *testing.T, db *store.DB, c *storetest.Clock) {
		b := newBench(t, db, c, "file:"+t.TempDir())
		f := &faultyBackend{backend: b.inner()}
		b.backend = &monitor{backend: f, health: b.health}
		image := formattest.Samples(t)["image/png"]
		limit := Limit{KindImage, 1 << 20}
		put := func(r io.Reader) error {
			_, err := b.Put(t.Context(), b.reserve("job_1"), r, limit)
			return err
		}
		wantDown := func(what string, want bool) {
			t.Helper()
			if since, down := b.Down(); down != want || down && !since.Equal(c.Now()) {
				t.Fatalf("%s: down %v since %s", what, down, since)
			}
		}
		// A bad file, source or reader is not a failure of the store.
		for what, r := range map[string]io.Reader{
			"no image": strings.NewReader("<html>"), "a broken one": bytes.NewReader(image[:len(image)-3]),
			"a source that fails": failing(image, len(image)-3),
		} {
			if err := put(r); err == nil || errors.Is(err, ErrStorage) {
				t.Errorf("%s: %v", what, err)
			}
			wantDown(what, false)
		}
		if _, err := b.Put(t.Context(), newName(), bytes.NewReader(image), limit); !errors.Is(err, ErrNotReserved) {
			t.Errorf("without a name: %v", err)
		}
		wantDown("without a name", false)

		for _, fault := range []error{io.ErrShortWrite, os.ErrPermission, http.ErrServerClosed, context.DeadlineExceeded, io.EOF} {
			f.fail(fault)
			if err := put(bytes.NewReader(image)); !errors.Is(err, ErrStorage) || !errors.Is(err, fault) {
				t.Errorf("%v: %v", fault, err)
			}
			wantDown(fault.Error(), true)
			if err := b.Check(t.Context()); err == nil {
				t.Errorf("%v: Check returned nil", fault)
			}
			wantDown(fault.Error()+", after Check", true)
			f.fail(nil)
			if err := b.Check(t.Context()); err != nil {
				t.Errorf("%v: %v", fault, err)
			}
			wantDown(fault.Error()+", repaired", false)
		}
		f.fail(os.ErrPermission)
		if _, err := b.Keep(t.Context(), "job_1", image, format.Policy{}); !errors.Is(err, ErrStorage) {
			t.Errorf("a reference: %v", err)
		}
		wantDown("a reference", true)
		f.fail(nil)
		if err := put(bytes.NewReader(image)); err != nil {
			t.Error(err)
		}
		wantDown("a file was taken", false)
		canceled, cancel := context.WithCancel(t.Context())
		cancel()
		f.fail(context.Canceled)
		_ = b.backend.put(canceled, newName(), "image/png", bytes.NewReader(image))
		wantDown("the caller left", false)
	})
}

// TestAFolderThatIsNotMounted checks that files of a missing folder count neither as unknown nor as
// deleted.
func TestAFolderThatIsNotMounted(t *testing.T) {
	t.Parallel()
	dir := t.TempDir() + "/media"
	f, err := openFolder(dir)
	if err != nil {
		t.Fatal(err)
	}
	name := newName()
	if err := f.put(t.Context(), name, "", strings.NewReader("x")); err != nil {
		t.Fatal(err)
	}
	if err := os.Rename(dir, dir+".away"); err != nil {
		t.Fatal(err)
	}
	if _, err := f.open(t.Context(), name, 1, span{}); err == nil || errors.Is(err, ErrUnknown) {
		t.Errorf("open: %v", err)
	}
	if err := f.remove(t.Context(), name); err == nil {
		t.Error("the file counts as deleted")
	}
	if err := os.Rename(dir+".away", dir); err != nil {
		t.Fatal(err)
	}
	if err := f.remove(t.Context(), name); err != nil {
		t.Error(err)
	}
	if err := f.remove(t.Context(), name); err != nil {
		t.Errorf("second check: %v", err)
	}
}

// TestABucketThatFails checks that every bad response of a bucket is a failure of the store.
func TestABucketThatFails(t *testing.T) {
	t.Parallel()
	s := s3server.Start(t)
	b := onSQLite(t, s.Location(s.URL))
	image := formattest.Samples(t)["image/png"]
	name := b.reserve("job_1")
	s.Kill()
	if _, err := b.Put(t.Context(), name, bytes.NewReader(image), Limit{KindImage, 1 << 20}); !errors.Is(err, ErrStorage) {
		t.Errorf("an unavailable store: %v", err)
	}
	if _, down := b.Down(); !down {
		t.Error("the store is not down")
	}
	b.clock.Advance(time.Minute)
	if err := b.Check(t.Context()); err == nil {
		t.Error("the store works")
	}
}
