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

// faultyBackend is a backend. Its put and open fail with the error set by fail.
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

// TestStoreIsDownUntilItWorks checks that only failures of the backend make the store down, until
// the next stored file or successful Check.
func TestStoreIsDownUntilItWorks(t *testing.T) {
	t.Parallel()
	storetest.EachClock(t, func(t *testing.T, db *store.DB, c *storetest.Clock) {
		b := newTestStore(t, db, c, "file:"+t.TempDir())
		f := &faultyBackend{backend: b.inner()}
		b.backend = &monitor{backend: f, health: b.health}
		image := formattest.Samples(t)["image/png"]
		limit := Limit{KindImage, 1 << 20}
		put := func(r io.Reader) error {
			_, err := b.Put(t.Context(), b.reserve("job_1"), r, limit)
			return err
		}
		wantDown := func(name string, want bool) {
			t.Helper()
			if since, down := b.Down(); down != want || down && !since.Equal(c.Now()) {
				t.Fatalf("%s: down %v since %s, want %v since %s", name, down, since, want, c.Now())
			}
		}
		// A bad file, source or reader is not a failure of the store.
		for name, r := range map[string]io.Reader{
			"no image": strings.NewReader("<html>"), "a broken image": bytes.NewReader(image[:len(image)-3]),
			"a failing source": failingReader(image, len(image)-3),
		} {
			if err := put(r); err == nil || errors.Is(err, ErrStorage) {
				t.Errorf("%s: Put returned %v, want an error other than ErrStorage", name, err)
			}
			wantDown(name, false)
		}
		if _, err := b.Put(t.Context(), newName(), bytes.NewReader(image), limit); !errors.Is(err, ErrNotReserved) {
			t.Errorf("Put without a reserved name returned %v, want ErrNotReserved", err)
		}
		wantDown("without a name", false)

		for _, fault := range []error{io.ErrShortWrite, os.ErrPermission, http.ErrServerClosed, context.DeadlineExceeded, io.EOF} {
			f.fail(fault)
			if err := put(bytes.NewReader(image)); !errors.Is(err, ErrStorage) || !errors.Is(err, fault) {
				t.Errorf("%v: Put returned %v, want ErrStorage and the cause", fault, err)
			}
			wantDown(fault.Error(), true)
			if err := b.Check(t.Context()); err == nil {
				t.Errorf("%v: Check returned nil", fault)
			}
			wantDown(fault.Error()+", after Check", true)
			f.fail(nil)
			if err := b.Check(t.Context()); err != nil {
				t.Errorf("%v: Check after the repair returned %v", fault, err)
			}
			wantDown(fault.Error()+", repaired", false)
		}
		f.fail(os.ErrPermission)
		if _, err := b.Keep(t.Context(), "job_1", image, format.Policy{}); !errors.Is(err, ErrStorage) {
			t.Errorf("Keep returned %v, want ErrStorage", err)
		}
		wantDown("a reference", true)
		f.fail(nil)
		if err := put(bytes.NewReader(image)); err != nil {
			t.Error(err)
		}
		wantDown("a stored file", false)
		canceled, cancel := context.WithCancel(t.Context())
		cancel()
		f.fail(context.Canceled)
		_ = b.backend.put(canceled, newName(), "image/png", bytes.NewReader(image))
		wantDown("a canceled context", false)
	})
}

// TestFolderNotMounted checks that files of a missing folder are neither unknown nor deleted.
func TestFolderNotMounted(t *testing.T) {
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
		t.Errorf("open in a missing folder returned %v, want an error other than ErrUnknown", err)
	}
	if err := f.remove(t.Context(), name); err == nil {
		t.Error("remove in a missing folder returned nil")
	}
	if err := os.Rename(dir+".away", dir); err != nil {
		t.Fatal(err)
	}
	if err := f.remove(t.Context(), name); err != nil {
		t.Error(err)
	}
	if err := f.remove(t.Context(), name); err != nil {
		t.Errorf("remove of a deleted file returned %v", err)
	}
}

// TestDeadBucket checks that the store is down after a Put into a dead bucket, and stays down.
func TestDeadBucket(t *testing.T) {
	t.Parallel()
	s := s3server.Start(t)
	b := newSQLiteStore(t, s.Location(s.URL))
	image := formattest.Samples(t)["image/png"]
	name := b.reserve("job_1")
	s.Kill()
	if _, err := b.Put(t.Context(), name, bytes.NewReader(image), Limit{KindImage, 1 << 20}); !errors.Is(err, ErrStorage) {
		t.Errorf("Put without a bucket returned %v, want ErrStorage", err)
	}
	if _, down := b.Down(); !down {
		t.Error("the store is not down")
	}
	b.clock.Advance(time.Minute)
	if err := b.Check(t.Context()); err == nil {
		t.Error("Check returned nil for a dead bucket")
	}
}
