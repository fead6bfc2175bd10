package media

import (
	"bytes"
	"context"
	"encoding/binary"
	"errors"
	"hash/crc32"
	"io"
	"math/rand/v2"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"testing/iotest"
	"time"

	"tollgate/internal/media/format"
	"tollgate/internal/media/formattest"
	"tollgate/internal/store"
)

var errBoom = errors.New("boom")

// twoPartPicture returns a picture that needs two parts in a bucket.
func twoPartPicture(t testing.TB, seed uint64) []byte { return padded(t, 2*partSize-1000, seed) }

// padded returns a small picture with a chunk of size random bytes.
func padded(t testing.TB, size int, seed uint64) []byte {
	t.Helper()
	const header = 33 // signature and IHDR
	data := formattest.Picture(t, "image/png", 20, 10, seed)
	chunk := make([]byte, 8+size, 12+size)
	binary.BigEndian.PutUint32(chunk, uint32(size))
	copy(chunk[4:], "noIs")
	_, _ = rand.NewChaCha8([32]byte{byte(seed), byte(seed >> 8), byte(seed >> 16)}).Read(chunk[8:]) // never fails
	chunk = binary.BigEndian.AppendUint32(chunk, crc32.ChecksumIEEE(chunk[4:]))
	return formattest.Join(data[:header], chunk, data[header:])
}

// failingReader returns a reader of the first n bytes of data, followed by an error.
func failingReader(data []byte, n int) io.Reader {
	return io.MultiReader(bytes.NewReader(data[:n]), iotest.ErrReader(errBoom))
}

// TestPutStoresCompleteFilesOnly checks that Put leaves nothing in the backend after an error.
func TestPutStoresCompleteFilesOnly(t *testing.T) {
	forEachBackend(t, func(b *testStore) {
		data := twoPartPicture(t, 1)
		name := b.reserve("job_1")
		limit := Limit{KindImage, int64(len(data))}
		canceled, cancel := context.WithCancel(t.Context())
		cancel()
		canceledLater, cancelLater := context.WithCancel(t.Context())
		defer cancelLater()
		for _, c := range []struct {
			name  string
			ctx   context.Context
			r     io.Reader
			limit Limit
			want  error
		}{
			{"the source fails at once", t.Context(), failingReader(data, 0), limit, ErrSource},
			{"the source fails in the head", t.Context(), failingReader(data, 500), limit, ErrSource},
			{"the source fails in the first part", t.Context(), failingReader(data, 1<<20), limit, ErrSource},
			{"the source fails between parts", t.Context(), failingReader(data, partSize), limit, ErrSource},
			{"the source fails in the last part", t.Context(), failingReader(data, len(data)-1), limit, ErrSource},
			{"the file ends early", t.Context(), bytes.NewReader(data[:len(data)-1]), limit, ErrBroken},
			{"the file ends in the first part", t.Context(), bytes.NewReader(data[:2000]), limit, ErrBroken},
			{"the file is empty", t.Context(), strings.NewReader(""), limit, ErrBroken},
			{"the file is too large", t.Context(), bytes.NewReader(data), Limit{KindImage, limit.Size - 1}, ErrTooLarge},
			{"the first bytes are too many", t.Context(), bytes.NewReader(data), Limit{KindImage, 10}, ErrTooLarge},
			{"the file is of the other kind", t.Context(), bytes.NewReader(data), Limit{KindVideo, limit.Size}, ErrWrongKind},
			{"the file is a page", t.Context(), strings.NewReader("<!DOCTYPE html><html></html>"), limit, ErrWrongKind},
			{"the context is canceled", canceled, bytes.NewReader(data), limit, context.Canceled},
			{"the context is canceled after a part", canceledLater, io.MultiReader(bytes.NewReader(data[:partSize+1]), callReader(cancelLater),
				bytes.NewReader(data[partSize+1:])), limit, context.Canceled},
		} {
			_, err := b.Put(c.ctx, name, c.r, c.limit)
			if !errors.Is(err, c.want) {
				b.t.Errorf("%s: error %v, want %v", c.name, err, c.want)
			}
			if errors.Is(c.want, ErrSource) && !errors.Is(err, errBoom) {
				b.t.Errorf("%s: error %v does not wrap the reader's error", c.name, err)
			}
			b.wantBytes(name, false)
			b.wantRow(name, statePending)
			b.wantNoRemainder(c.name)
		}
		f, err := b.Put(t.Context(), name, iotest.OneByteReader(bytes.NewReader(data[:0])), limit)
		if err == nil {
			b.t.Fatalf("Put stored an empty file as %+v", f)
		}
		if f, err = b.Put(t.Context(), name, iotest.HalfReader(bytes.NewReader(data)), limit); err != nil {
			b.t.Fatal(err)
		}
		b.publish("job_1", f)
		b.wantServed(f, data)
		b.wantNoRemainder("success")
	})
}

// callReader is an empty reader that calls the function when read.
type callReader func()

func (c callReader) Read([]byte) (int, error) {
	c()
	return 0, io.EOF
}

// wantNoRemainder checks that the backend has no unfinished files or uploads.
func (s *testStore) wantNoRemainder(after string) {
	s.t.Helper()
	switch p := s.inner().(type) {
	case *folder:
		entries, err := os.ReadDir(filepath.Join(p.dir, unfinishedDir))
		if err != nil || len(entries) > 0 {
			s.t.Errorf("after %s: %d unfinished files, error %v; want none", after, len(entries), err)
		}
	case *bucket:
		uploads, err := p.api.ListMultipartUploads(s.t.Context(), p.name, "", "", "", "", 10)
		if err != nil || len(uploads.Uploads) > 0 {
			s.t.Errorf("after %s: %d unfinished uploads, error %v; want none", after, len(uploads.Uploads), err)
		}
	}
}

// TestPutReplacesFile checks that Put replaces a file until its publication.
func TestPutReplacesFile(t *testing.T) {
	forEachBackend(t, func(b *testStore) {
		first, second := formattest.Picture(t, "image/png", 30, 30, 1), formattest.Picture(t, "image/jpeg", 20, 20, 2)
		f := b.put("job_1", first)
		limit := Limit{KindImage, 1 << 20}
		// A failed repetition leaves no file to publish.
		if _, err := b.Put(t.Context(), f.Name, failingReader(second, len(second)-1), limit); !errors.Is(err, ErrSource) {
			b.t.Fatal(err)
		}
		if b.publish("job_1", f) {
			b.t.Fatal("a file being replaced was published")
		}
		replaced, err := b.Put(t.Context(), f.Name, bytes.NewReader(second), limit)
		if err != nil {
			b.t.Fatal(err)
		}
		if replaced != (File{f.Name, "image/jpeg", int64(len(second))}) {
			b.t.Errorf("stored file %+v, want the image/jpeg under the same name", replaced)
		}
		if !b.publish("job_1", replaced) {
			b.t.Fatal("the replaced file was not published")
		}
		b.wantServed(replaced, second)
		b.wantGone(f) // the link has another extension
		// A public file never changes.
		if _, err := b.Put(t.Context(), f.Name, bytes.NewReader(first), limit); !errors.Is(err, ErrNotReserved) {
			b.t.Errorf("Put over a public file returned %v, want ErrNotReserved", err)
		}
		b.wantServed(replaced, second)
		b.clock.Advance(time.Hour)
		if b.publish("job_1", replaced) {
			b.t.Error("Publish published a public file again")
		}
		if got := b.get(replaced).Header().Get("Cache-Control"); got != "public, max-age=5180400, immutable" {
			b.t.Errorf("after a second Publish: Cache-Control %q, want the time of the first", got)
		}
	})
}

// TestPutRequiresReservedName checks that Put rejects other names, and invalid limits.
func TestPutRequiresReservedName(t *testing.T) {
	forEachBackend(t, func(b *testStore) {
		data := formattest.Picture(t, "image/png", 3, 3, 1)
		droppedName, expiredName := b.reserve("job_1"), b.reserve("job_2")
		b.drop("job_1")
		b.clock.Advance(unpublishedTime)
		b.sweep()
		reference, err := b.Keep(t.Context(), "job_3", data, format.Policy{})
		if err != nil {
			b.t.Fatal(err)
		}
		for what, name := range map[string]string{"an unknown": newName(), "a dropped": droppedName, "an expired": expiredName,
			"a reference's": reference.Name} {
			if _, err := b.Put(t.Context(), name, bytes.NewReader(data), Limit{KindImage, 1 << 20}); !errors.Is(err, ErrNotReserved) {
				b.t.Errorf("Put under %s name returned %v, want ErrNotReserved", what, err)
			}
		}
		for _, limit := range []Limit{{KindImage, 0}, {"sound", 10}, {}} {
			if _, err := b.Put(t.Context(), b.reserve("job_4"), bytes.NewReader(data), limit); err == nil {
				b.t.Errorf("Put accepted the limit %+v", limit)
			}
		}
	})
}

// TestPutUnderDroppedNameLeavesNoFile checks that no file remains if the job ends, or the sweep runs,
// while Put stores the file.
func TestPutUnderDroppedNameLeavesNoFile(t *testing.T) {
	forEachBackend(t, func(b *testStore) {
		data := formattest.Picture(t, "image/png", 300, 300, 1)
		for _, sweep := range []bool{false, true} {
			name := b.reserve("job_1")
			end := callReader(func() {
				b.drop("job_1")
				if sweep {
					b.sweep()
				}
			})
			r := io.MultiReader(bytes.NewReader(data[:len(data)-10]), end, bytes.NewReader(data[len(data)-10:]))
			if _, err := b.Put(t.Context(), name, r, Limit{KindImage, 1 << 20}); !errors.Is(err, ErrNotReserved) {
				b.t.Errorf("Put returned %v, want ErrNotReserved", err)
			}
			b.wantBytes(name, false)
			b.sweep()
			b.wantRow(name, "")
		}
	})
}

// TestRenewTxReturnsCompleteFiles checks that RenewTx returns a job's complete unpublished files, and
// gives unpublished names another day.
func TestRenewTxReturnsCompleteFiles(t *testing.T) {
	forEachBackend(t, func(b *testStore) {
		storedFile := b.put("job_1", formattest.Picture(t, "image/png", 5, 5, 1))
		pendingName := b.reserve("job_1")
		publishedFile := b.put("job_1", formattest.Picture(t, "image/png", 5, 5, 2))
		b.publish("job_1", publishedFile)
		b.put("job_2", formattest.Picture(t, "image/png", 5, 5, 3))
		b.clock.Advance(unpublishedTime - time.Second)
		var files []File
		b.update(func(tx *store.Tx) (err error) {
			files, err = RenewTx(tx, "job_1")
			return err
		})
		if len(files) != 1 || files[0] != storedFile {
			b.t.Errorf("complete files %+v, want %+v", files, storedFile)
		}
		b.clock.Advance(unpublishedTime - time.Second)
		b.sweep()
		b.wantRow(pendingName, statePending)
		if !b.publish("job_1", storedFile) {
			b.t.Error("a renewed file was not published")
		}
		b.clock.Advance(time.Second)
		b.sweep()
		b.wantRow(pendingName, "")
	})
}

// TestAllPublished checks AllPublished for a file without a stored result.
func TestAllPublished(t *testing.T) {
	forEachBackend(t, func(b *testStore) {
		f := b.put("job_1", formattest.Picture(t, "image/png", 5, 5, 1))
		if b.publish("job_1", f, File{Name: b.reserve("job_1"), Type: "image/png"}) {
			b.t.Error("a file that was never stored was published")
		}
		if !b.publish("job_1") {
			b.t.Error("publishing no file failed")
		}
	})
}
