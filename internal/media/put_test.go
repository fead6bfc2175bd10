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

// large returns a picture of nearly two parts of a bucket.
func large(t testing.TB, seed uint64) []byte { return padded(t, 2*partSize-1000, seed) }

// padded returns a small picture with a chunk of noise.
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

// failing returns a reader that fails after the first n bytes of data.
func failing(data []byte, n int) io.Reader {
	return io.MultiReader(bytes.NewReader(data[:n]), iotest.ErrReader(errBoom))
}

func TestPutKeepsAFileWholeOrNotAtAll(t *testing.T) {
	each(t, func(b *bench) {
		data := large(t, 1)
		name := b.reserve("job_1")
		limit := Limit{KindImage, int64(len(data))}
		canceled, cancel := context.WithCancel(t.Context())
		cancel()
		late, cancelLate := context.WithCancel(t.Context())
		defer cancelLate()
		for _, c := range []struct {
			name  string
			ctx   context.Context
			r     io.Reader
			limit Limit
			want  error
		}{
			{"the source fails at once", t.Context(), failing(data, 0), limit, ErrSource},
			{"the source fails in the head", t.Context(), failing(data, 500), limit, ErrSource},
			{"the source fails in the first part", t.Context(), failing(data, 1<<20), limit, ErrSource},
			{"the source fails between parts", t.Context(), failing(data, partSize), limit, ErrSource},
			{"the source fails in the last part", t.Context(), failing(data, len(data)-1), limit, ErrSource},
			{"it ends early", t.Context(), bytes.NewReader(data[:len(data)-1]), limit, ErrBroken},
			{"it ends in the first part", t.Context(), bytes.NewReader(data[:2000]), limit, ErrBroken},
			{"it is empty", t.Context(), strings.NewReader(""), limit, ErrBroken},
			{"it is too large", t.Context(), bytes.NewReader(data), Limit{KindImage, limit.Size - 1}, ErrTooLarge},
			{"it is too large at once", t.Context(), bytes.NewReader(data), Limit{KindImage, 10}, ErrTooLarge},
			{"it is of the other kind", t.Context(), bytes.NewReader(data), Limit{KindVideo, limit.Size}, ErrForeign},
			{"it is a page", t.Context(), strings.NewReader("<!DOCTYPE html><html></html>"), limit, ErrForeign},
			{"nobody waits any more", canceled, bytes.NewReader(data), limit, context.Canceled},
			{"nobody waits any more after a part", late, io.MultiReader(bytes.NewReader(data[:partSize+1]), call(cancelLate),
				bytes.NewReader(data[partSize+1:])), limit, context.Canceled},
		} {
			_, err := b.Put(c.ctx, name, c.r, c.limit)
			if !errors.Is(err, c.want) {
				b.t.Errorf("%s: error %v, want %v", c.name, err, c.want)
			}
			if errors.Is(c.want, ErrSource) && !errors.Is(err, errBoom) {
				b.t.Errorf("%s: %v does not wrap the cause", c.name, err)
			}
			b.wantBytes(name, false)
			b.wantRow(name, statePending)
			b.wantNoRemainder(c.name)
		}
		f, err := b.Put(t.Context(), name, iotest.OneByteReader(bytes.NewReader(data[:0])), limit)
		if err == nil {
			b.t.Fatalf("stored empty file %+v", f)
		}
		if f, err = b.Put(t.Context(), name, iotest.HalfReader(bytes.NewReader(data)), limit); err != nil {
			b.t.Fatal(err)
		}
		b.publish("job_1", f)
		b.wantServed(f, data)
		b.wantNoRemainder("success")
	})
}

// call is an empty reader that calls itself when read.
type call func()

func (c call) Read([]byte) (int, error) {
	c()
	return 0, io.EOF
}

// wantNoRemainder checks that interrupted puts have left no files.
func (b *bench) wantNoRemainder(after string) {
	b.t.Helper()
	switch p := b.inner().(type) {
	case *folder:
		entries, err := os.ReadDir(filepath.Join(p.dir, unfinished))
		if err != nil || len(entries) > 0 {
			b.t.Errorf("after %s: %d unfinished files (%v)", after, len(entries), err)
		}
	case *bucket:
		uploads, err := p.api.ListMultipartUploads(b.t.Context(), p.name, "", "", "", "", 10)
		if err != nil || len(uploads.Uploads) > 0 {
			b.t.Errorf("after %s: %d unfinished uploads (%v)", after, len(uploads.Uploads), err)
		}
	}
}

func TestARepetitionReplaces(t *testing.T) {
	each(t, func(b *bench) {
		first, second := formattest.Picture(t, "image/png", 30, 30, 1), formattest.Picture(t, "image/jpeg", 20, 20, 2)
		f := b.put("job_1", first)
		limit := Limit{KindImage, 1 << 20}
		// A failed repetition leaves no file to publish.
		if _, err := b.Put(t.Context(), f.Name, failing(second, len(second)-1), limit); !errors.Is(err, ErrSource) {
			b.t.Fatal(err)
		}
		if b.publish("job_1", f) {
			b.t.Fatal("a file being replaced was published")
		}
		again, err := b.Put(t.Context(), f.Name, bytes.NewReader(second), limit)
		if err != nil {
			b.t.Fatal(err)
		}
		if again != (File{f.Name, "image/jpeg", int64(len(second))}) {
			b.t.Errorf("stored %+v", again)
		}
		if !b.publish("job_1", again) {
			b.t.Fatal("not published")
		}
		b.wantServed(again, second)
		b.wantGone(f) // the link has another extension
		// A public file never changes.
		if _, err := b.Put(t.Context(), f.Name, bytes.NewReader(first), limit); !errors.Is(err, ErrNotReserved) {
			b.t.Errorf("Put over a public file: %v", err)
		}
		b.wantServed(again, second)
		b.clock.Advance(time.Hour)
		if b.publish("job_1", again) {
			b.t.Error("published twice")
		}
		if got := b.get(again).Header().Get("Cache-Control"); got != "public, max-age=5180400, immutable" {
			b.t.Errorf("after a second publication: Cache-Control %q", got)
		}
	})
}

func TestPutWantsAReservedName(t *testing.T) {
	each(t, func(b *bench) {
		data := formattest.Picture(t, "image/png", 3, 3, 1)
		dropped, swept := b.reserve("job_1"), b.reserve("job_2")
		b.drop("job_1")
		b.clock.Advance(unpublishedFor)
		b.sweep()
		reference, err := b.Keep(t.Context(), "job_3", data, format.Policy{})
		if err != nil {
			b.t.Fatal(err)
		}
		for what, name := range map[string]string{"an unknown": newName(), "a dropped": dropped, "a forgotten": swept,
			"a reference's": reference.Name} {
			if _, err := b.Put(t.Context(), name, bytes.NewReader(data), Limit{KindImage, 1 << 20}); !errors.Is(err, ErrNotReserved) {
				b.t.Errorf("%s name: %v", what, err)
			}
		}
		for _, limit := range []Limit{{KindImage, 0}, {"sound", 10}, {}} {
			if _, err := b.Put(t.Context(), b.reserve("job_4"), bytes.NewReader(data), limit); err == nil {
				b.t.Errorf("limit %+v was accepted", limit)
			}
		}
	})
}

// TestANameThatIsGivenUpWhileItIsStoredLeavesNoFile ends the job and runs the sweep while the job's
// file is being stored.
func TestANameThatIsGivenUpWhileItIsStoredLeavesNoFile(t *testing.T) {
	each(t, func(b *bench) {
		data := formattest.Picture(t, "image/png", 300, 300, 1)
		for _, sweep := range []bool{false, true} {
			name := b.reserve("job_1")
			end := call(func() {
				b.drop("job_1")
				if sweep {
					b.sweep()
				}
			})
			r := io.MultiReader(bytes.NewReader(data[:len(data)-10]), end, bytes.NewReader(data[len(data)-10:]))
			if _, err := b.Put(t.Context(), name, r, Limit{KindImage, 1 << 20}); !errors.Is(err, ErrNotReserved) {
				b.t.Errorf("Put: %v", err)
			}
			b.wantBytes(name, false)
			b.sweep()
			b.wantRow(name, "")
		}
	})
}

func TestRenewTellsWhatIsWhole(t *testing.T) {
	each(t, func(b *bench) {
		stored := b.put("job_1", formattest.Picture(t, "image/png", 5, 5, 1))
		pending := b.reserve("job_1")
		published := b.put("job_1", formattest.Picture(t, "image/png", 5, 5, 2))
		b.publish("job_1", published)
		b.put("job_2", formattest.Picture(t, "image/png", 5, 5, 3))
		b.clock.Advance(unpublishedFor - time.Second)
		var files []File
		b.update(func(tx *store.Tx) (err error) {
			files, err = RenewTx(tx, "job_1")
			return err
		})
		if len(files) != 1 || files[0] != stored {
			b.t.Errorf("complete files %+v, want %+v", files, stored)
		}
		b.clock.Advance(unpublishedFor - time.Second)
		b.sweep()
		b.wantRow(pending, statePending)
		if !b.publish("job_1", stored) {
			b.t.Error("a renewed file was not published")
		}
		b.clock.Advance(time.Second)
		b.sweep()
		b.wantRow(pending, "")
	})
}

func TestPublishIsAllOrToldOf(t *testing.T) {
	each(t, func(b *bench) {
		f := b.put("job_1", formattest.Picture(t, "image/png", 5, 5, 1))
		if b.publish("job_1", f, File{Name: b.reserve("job_1"), Type: "image/png"}) {
			b.t.Error("a file that was never stored was published")
		}
		if !b.publish("job_1") {
			b.t.Error("publishing no file failed")
		}
	})
}
