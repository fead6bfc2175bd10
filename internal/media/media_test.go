package media

import (
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"os"
	"strings"
	"testing"
	"time"

	"go.uber.org/goleak"

	"tollgate/internal/gatewaytest/s3server"
	"tollgate/internal/media/format"
	"tollgate/internal/media/formattest"
	"tollgate/internal/store"
	"tollgate/internal/store/storetest"
)

// TestMain keeps the tests from fetching credentials of a cloud machine.
func TestMain(m *testing.M) {
	_ = os.Setenv("AWS_EC2_METADATA_DISABLED", "true")
	goleak.VerifyTestMain(m)
}

const retention = 60 * 24 * time.Hour

// testStore is a store with a test clock and a log.
type testStore struct {
	*Store
	t     *testing.T
	clock *storetest.Clock
	log   *bytes.Buffer
}

// forEachBackend runs a test on all databases, with files in a folder and in a bucket.
func forEachBackend(t *testing.T, test func(b *testStore)) {
	t.Helper()
	t.Parallel()
	for _, kind := range []string{"folder", "bucket"} {
		t.Run(kind, func(t *testing.T) {
			t.Parallel()
			storetest.EachClock(t, func(t *testing.T, db *store.DB, c *storetest.Clock) {
				location := "file:" + t.TempDir()
				if kind == "bucket" {
					s := s3server.Start(t)
					location = s.Location(s.URL)
				}
				test(newTestStore(t, db, c, location))
			})
		})
	}
}

// newSQLiteStore opens a store on SQLite, for tests independent of the database.
func newSQLiteStore(t *testing.T, location string) *testStore {
	t.Helper()
	c := new(storetest.Clock)
	return newTestStore(t, storetest.Open(t, storetest.SQLite(t), store.Options{Now: c.Now}), c, location)
}

func newTestStore(t *testing.T, db *store.DB, c *storetest.Clock, location string) *testStore {
	t.Helper()
	var log bytes.Buffer
	s, err := Open(t.Context(), Options{
		DB: db, Location: location, Base: "https://media.example.com/media", Retention: retention,
		Lookup: s3server.Lookup, Log: slog.New(slog.NewTextHandler(&log, nil)), Now: c.Now,
	})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(s.Close)
	return &testStore{Store: s, t: t, clock: c, log: &log}
}

// inner returns the folder or bucket.
func (s *testStore) inner() backend { return s.backend.(*monitor).backend }

// reserve reserves a name for job.
func (s *testStore) reserve(job string) string {
	s.t.Helper()
	var names []string
	s.update(func(tx *store.Tx) (err error) {
		names, err = ReserveTx(tx, job, 1)
		return err
	})
	return names[0]
}

func (s *testStore) update(fn func(tx *store.Tx) error) {
	s.t.Helper()
	if err := s.db.Update(s.t.Context(), fn); err != nil {
		s.t.Fatal(err)
	}
}

// put stores an image under a new name of job.
func (s *testStore) put(job string, data []byte) File {
	s.t.Helper()
	f, err := s.Put(s.t.Context(), s.reserve(job), bytes.NewReader(data), Limit{KindImage, 64 << 20})
	if err != nil {
		s.t.Fatal(err)
	}
	return f
}

// batch runs the statements of a batch in a transaction, as the ledger does.
func (s *testStore) batch(add func(q *store.Batch, nowMS int64)) {
	s.t.Helper()
	session, err := s.db.Session(s.t.Context())
	if err != nil {
		s.t.Fatal(err)
	}
	q := s.db.NewBatch()
	q.Begin("2s", "10s")
	add(q, s.clock.Now().UnixMilli())
	q.Commit()
	err = session.Run(s.t.Context(), q)
	if err = errors.Join(err, session.Close(err == nil)); err != nil {
		s.t.Fatal(err)
	}
}

// publish publishes files of job and reports whether all were published.
func (s *testStore) publish(job string, files ...File) bool {
	s.t.Helper()
	var p *Publication
	s.batch(func(q *store.Batch, nowMS int64) { p = Publish(q, job, files, nowMS) })
	return p.AllPublished()
}

func (s *testStore) drop(job string) {
	s.t.Helper()
	s.batch(func(q *store.Batch, nowMS int64) { Drop(q, job, nowMS) })
}

func (s *testStore) adopt(job string) {
	s.t.Helper()
	s.batch(func(q *store.Batch, nowMS int64) { Adopt(q, job, nowMS) })
}

// sweep runs one step of Run.
func (s *testStore) sweep() {
	s.t.Helper()
	if err := s.step(s.t.Context()); err != nil {
		s.t.Fatal(err)
	}
}

// get requests the link of a file from the handler.
func (s *testStore) get(f File, header ...string) *httptest.ResponseRecorder {
	s.t.Helper()
	return s.fetch(http.MethodGet, strings.TrimPrefix(s.Link(f), "https://media.example.com"), header...)
}

func (s *testStore) fetch(method, path string, header ...string) *httptest.ResponseRecorder {
	s.t.Helper()
	r := httptest.NewRequest(method, "http://x/", nil)
	r.URL.Path = path
	for i := 0; i < len(header); i += 2 {
		r.Header.Set(header[i], header[i+1])
	}
	w := httptest.NewRecorder()
	w.Header().Set("X-Request-Id", "req_of_the_test") // set by package httpapi
	s.Handler().ServeHTTP(w, r)
	return w
}

// wantGone checks that a file's link returns a 404 in the format of /v1.
func (s *testStore) wantGone(f File) {
	s.t.Helper()
	w := s.get(f)
	if w.Code != http.StatusNotFound || !strings.Contains(w.Body.String(), `"code":"not_found"`) {
		s.t.Errorf("response %d %s, want a 404 not_found", w.Code, w.Body)
	}
}

// wantServed checks that a file's link serves exactly data.
func (s *testStore) wantServed(f File, data []byte) {
	s.t.Helper()
	if w := s.get(f); w.Code != http.StatusOK || !bytes.Equal(w.Body.Bytes(), data) {
		s.t.Errorf("response %d with %d bytes, want 200 with %d (%.80q)", w.Code, w.Body.Len(), len(data), w.Body.Bytes())
	}
}

// wantBytes checks whether the backend has a file.
func (s *testStore) wantBytes(name string, want bool) {
	s.t.Helper()
	content, err := s.backend.open(s.t.Context(), name, 1, span{0, 1})
	if err == nil {
		content.Close()
	}
	if got := err == nil; got != want || (err != nil && !errors.Is(err, ErrUnknown)) {
		s.t.Errorf("the backend has %s: %v (%v), want %v", name, got, err, want)
	}
}

// wantRow checks a file's state; an empty state means no row.
func (s *testStore) wantRow(name, state string) {
	s.t.Helper()
	rec, err := s.find(s.t.Context(), name)
	if err != nil {
		s.t.Fatal(err)
	}
	got := ""
	if rec != nil {
		got = rec.state
	}
	if got != state {
		s.t.Errorf("row of %s: state %q, want %q", name, got, state)
	}
}

// TestResultFromPublicationToRetention checks that a result is served only from its publication until
// the end of its retention, and is then deleted.
func TestResultFromPublicationToRetention(t *testing.T) {
	forEachBackend(t, func(b *testStore) {
		data := formattest.Picture(t, "image/png", 40, 30, 1)
		name := b.reserve("job_1")
		b.wantGone(File{Name: name, Type: "image/png"})
		f, err := b.Put(t.Context(), name, bytes.NewReader(data), Limit{KindImage, 1 << 20})
		if err != nil {
			b.t.Fatal(err)
		}
		if f != (File{name, "image/png", int64(len(data))}) {
			b.t.Errorf("stored file %+v, want an image/png with the data's size", f)
		}
		if want := "https://media.example.com/media/" + name + ".png"; b.Link(f) != want {
			b.t.Errorf("link %s, want %s", b.Link(f), want)
		}
		b.wantGone(f)
		if b.publish("job_2", f) {
			b.t.Error("another job published the file")
		}
		b.wantGone(f)
		if !b.publish("job_1", f) {
			b.t.Error("the file was not published")
		}
		b.drop("job_1") // does not affect published results
		b.wantServed(f, data)
		b.clock.Advance(retention - time.Second)
		b.sweep()
		if got := b.get(f).Header().Get("Cache-Control"); got != "public, max-age=1, immutable" {
			b.t.Errorf("Cache-Control %q, want one second", got)
		}
		b.clock.Advance(time.Second)
		b.wantGone(f)
		b.wantBytes(name, true)
		b.sweep()
		b.wantBytes(name, false)
		b.wantRow(name, "")
	})
}

// TestReferencesLastAsLongAsTheirJob checks that a reference is served from Adopt until Drop.
func TestReferencesLastAsLongAsTheirJob(t *testing.T) {
	forEachBackend(t, func(b *testStore) {
		data := formattest.Picture(t, "image/jpeg", 40, 30, 2)
		f, err := b.Keep(t.Context(), "job_1", data, format.Policy{Kinds: []string{KindImage}})
		if err != nil {
			b.t.Fatal(err)
		}
		b.wantGone(f) // the job may never be submitted
		b.adopt("job_1")
		b.wantServed(f, data)
		if got := b.get(f).Header().Get("Cache-Control"); got != "private, no-store" {
			b.t.Errorf("Cache-Control %q, want private, no-store", got)
		}
		b.Discard(t.Context(), "job_1") // a no-op after Adopt
		b.clock.Advance(100 * 24 * time.Hour)
		b.sweep()
		b.wantServed(f, data)
		content, file, err := b.Open(t.Context(), f.Name)
		if err != nil {
			b.t.Fatal(err)
		}
		got, err := io.ReadAll(content)
		if err = errors.Join(err, content.Close()); err != nil || file != f || !bytes.Equal(got, data) {
			b.t.Errorf("Open returned %+v with %d bytes, error %v; want the reference", file, len(got), err)
		}
		b.drop("job_1")
		b.wantGone(f)
		if _, _, err := b.Open(t.Context(), f.Name); !errors.Is(err, ErrUnknown) {
			b.t.Errorf("Open of a dropped reference returned %v, want ErrUnknown", err)
		}
		b.sweep()
		b.wantBytes(f.Name, false)
		b.wantRow(f.Name, "")
	})
}

// TestReferencesWithoutJobAreDeleted checks that a reference is deleted at once after Discard, and
// otherwise after a day without Adopt.
func TestReferencesWithoutJobAreDeleted(t *testing.T) {
	forEachBackend(t, func(b *testStore) {
		data := formattest.Picture(t, "image/gif", 4, 3, 2)
		discarded, err := b.Keep(t.Context(), "job_1", data, format.Policy{})
		if err != nil {
			b.t.Fatal(err)
		}
		abandoned, err := b.Keep(t.Context(), "job_2", data, format.Policy{})
		if err != nil {
			b.t.Fatal(err)
		}
		ctx, cancel := context.WithCancel(t.Context())
		cancel() // the client has disconnected
		b.Discard(ctx, "job_1")
		b.sweep()
		b.wantBytes(discarded.Name, false)
		b.wantRow(discarded.Name, "")
		b.clock.Advance(unpublishedTime - time.Second)
		b.sweep()
		b.wantRow(abandoned.Name, stateKept)
		b.clock.Advance(time.Second)
		b.sweep()
		b.wantBytes(abandoned.Name, false)
		b.wantRow(abandoned.Name, "")
	})
}

// TestKeepInspectsFiles checks that Keep rejects files by its policy and records nothing.
func TestKeepInspectsFiles(t *testing.T) {
	t.Parallel()
	b := newSQLiteStore(t, "file:"+t.TempDir())
	var fileError *format.FileError
	if _, err := b.Keep(t.Context(), "job_1", []byte("<svg/>"), format.Policy{}); !errors.As(err, &fileError) {
		t.Errorf("Keep of an SVG returned %v, want a *FileError", err)
	}
	videos := format.Policy{Kinds: []string{KindVideo}}
	if _, err := b.Keep(t.Context(), "job_1", formattest.Picture(t, "image/png", 2, 2, 1), videos); !errors.As(err, &fileError) {
		t.Errorf("Keep of an image instead of a video returned %v, want a *FileError", err)
	}
	if n := b.rows(); n != 0 {
		t.Errorf("%d rows, want 0", n)
	}
}

// rows counts all rows.
func (s *testStore) rows() (n int) {
	s.t.Helper()
	err := s.db.View(s.t.Context(), func(tx *store.Tx) error {
		return tx.QueryRow(`SELECT COUNT(*) FROM media_file`).Scan(&n)
	})
	if err != nil {
		s.t.Fatal(err)
	}
	return n
}

// TestNamesCannotBeGuessed checks newName for uniqueness and length, and isName for other texts.
func TestNamesCannotBeGuessed(t *testing.T) {
	t.Parallel()
	names := map[string]bool{}
	for range 1000 {
		name := newName()
		if len(name) != 32 || !isName(name) || names[name] {
			t.Fatalf("name %q is invalid or not new", name)
		}
		names[name] = true
	}
	for _, invalid := range []string{"", strings.Repeat("a", 31), strings.Repeat("a", 33), strings.Repeat("A", 32), strings.Repeat("1", 32),
		strings.Repeat("/", 32), strings.Repeat(".", 32)} {
		if isName(invalid) {
			t.Errorf("isName(%q) = true, want false", invalid)
		}
	}
}

// TestReserveTxChecksNumber checks that ReserveTx accepts only numbers from 1 to maxNames.
func TestReserveTxChecksNumber(t *testing.T) {
	t.Parallel()
	b := newSQLiteStore(t, "file:"+t.TempDir())
	for _, n := range []int{-1, 0, maxNames + 1} {
		if err := b.db.Update(t.Context(), func(tx *store.Tx) error { _, err := ReserveTx(tx, "job_1", n); return err }); err == nil {
			t.Errorf("ReserveTx accepted %d names", n)
		}
	}
}

// TestOpenErrors checks that the errors of Open name the problem and not the secret.
func TestOpenErrors(t *testing.T) {
	t.Parallel()
	s := s3server.Start(t)
	noVariables := func(string) (string, bool) { return "", false }
	wrongSecret := func(name string) (string, bool) {
		value, ok := s3server.Lookup(name)
		return value + "x", ok
	}
	for _, c := range []struct {
		name, location, base string
		retention            time.Duration
		lookup               func(string) (string, bool)
		want                 string
	}{
		{"no backend", "somewhere", "http://x/media", time.Hour, noVariables, "file:DIR or s3://BUCKET"},
		{"an empty folder name", "file:", "http://x/media", time.Hour, noVariables, "file:DIR or s3://BUCKET"},
		{"a file in the folder's path", "file:media_test.go", "http://x/media", time.Hour, noVariables, "create the media folder"},
		{"a folder of the system", "file:/proc/media", "http://x/media", time.Hour, noVariables, "create the media folder"},
		{"no credentials", s.Location(s.URL), "http://x/media", time.Hour, noVariables, "AWS_ACCESS_KEY_ID"},
		{"wrong credentials", s.Location(s.URL), "http://x/media", time.Hour, wrongSecret, "cannot be written"},
		{"no such bucket", "s3://other?endpoint=" + s.URL + "&path_style=true", "http://x/media", time.Hour, s3server.Lookup,
			"media bucket other cannot be written"},
		{"no server", "s3://media?endpoint=http://127.0.0.1:1&path_style=true", "http://x/media", time.Hour, s3server.Lookup,
			"cannot be written"},
		{"a folder in the bucket", "s3://media/below?endpoint=" + s.URL, "http://x/media", time.Hour, s3server.Lookup, "s3://BUCKET"},
		{"an unknown option", "s3://media?acl=public", "http://x/media", time.Hour, s3server.Lookup, "acl is not known"},
		{"a wrong style", "s3://media?path_style=yes", "http://x/media", time.Hour, s3server.Lookup, "true or false"},
		{"a path in the endpoint", "s3://media?endpoint=https://x/y", "http://x/media", time.Hour, s3server.Lookup, "endpoint"},
		{"another scheme", "s3://media?endpoint=ftp://x", "http://x/media", time.Hour, s3server.Lookup, "endpoint"},
		{"no address", "file:" + t.TempDir(), "", time.Hour, noVariables, "media_url"},
		{"no retention", "file:" + t.TempDir(), "http://x/media", 0, noVariables, "retention"},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			_, err := Open(t.Context(), Options{Location: c.location, Base: c.base, Retention: c.retention, Lookup: c.lookup})
			if err == nil || !strings.Contains(err.Error(), c.want) {
				t.Errorf("error %v, want one with %q", err, c.want)
			}
			if err != nil && strings.Contains(err.Error(), s3server.Secret) {
				t.Errorf("the error contains the secret: %v", err)
			}
		})
	}
}

// TestFilesSurviveRestart checks that another store serves a published file.
func TestFilesSurviveRestart(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	b := newSQLiteStore(t, "file:"+dir)
	data := formattest.Picture(t, "image/png", 10, 10, 3)
	f := b.put("job_1", data)
	b.publish("job_1", f)
	restarted := newTestStore(t, b.db, b.clock, "file:"+dir)
	restarted.wantServed(f, data)
}

// describe returns the length and hash of data for messages.
func describe(data []byte) string {
	s := sha256.Sum256(data)
	return fmt.Sprintf("%d bytes %s", len(data), hex.EncodeToString(s[:4]))
}
