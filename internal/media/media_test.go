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

// TestMain keeps the tests from requesting credentials from the machine's cloud.
func TestMain(m *testing.M) {
	_ = os.Setenv("AWS_EC2_METADATA_DISABLED", "true")
	goleak.VerifyTestMain(m)
}

const retention = 60 * 24 * time.Hour

// bench is a store with its environment for a test.
type bench struct {
	*Store
	t     *testing.T
	clock *storetest.Clock
	log   *bytes.Buffer
}

// each runs a test on both databases, with files in a folder and in a bucket.
func each(t *testing.T, test func(b *bench)) {
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
				test(newBench(t, db, c, location))
			})
		})
	}
}

// onSQLite opens a bench for tests that do not depend on the database.
func onSQLite(t *testing.T, location string) *bench {
	t.Helper()
	c := new(storetest.Clock)
	return newBench(t, storetest.Open(t, storetest.SQLite(t), store.Options{Now: c.Now}), c, location)
}

func newBench(t *testing.T, db *store.DB, c *storetest.Clock, location string) *bench {
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
	return &bench{Store: s, t: t, clock: c, log: &log}
}

// inner returns the store's backend without the monitor.
func (b *bench) inner() backend { return b.backend.(*monitor).backend }

// reserve reserves a name.
func (b *bench) reserve(job string) string {
	b.t.Helper()
	var names []string
	b.update(func(tx *store.Tx) (err error) {
		names, err = ReserveTx(tx, job, 1)
		return err
	})
	return names[0]
}

func (b *bench) update(fn func(tx *store.Tx) error) {
	b.t.Helper()
	if err := b.db.Update(b.t.Context(), fn); err != nil {
		b.t.Fatal(err)
	}
}

// put stores an image under a new name of job.
func (b *bench) put(job string, data []byte) File {
	b.t.Helper()
	f, err := b.Put(b.t.Context(), b.reserve(job), bytes.NewReader(data), Limit{KindImage, 64 << 20})
	if err != nil {
		b.t.Fatal(err)
	}
	return f
}

// batch runs statements in a transaction, like the ledger.
func (b *bench) batch(add func(q *store.Batch, nowMS int64)) {
	b.t.Helper()
	session, err := b.db.Session(b.t.Context())
	if err != nil {
		b.t.Fatal(err)
	}
	q := b.db.NewBatch()
	q.Begin("2s", "10s")
	add(q, b.clock.Now().UnixMilli())
	q.Commit()
	err = session.Run(b.t.Context(), q)
	if err = errors.Join(err, session.Close(err == nil)); err != nil {
		b.t.Fatal(err)
	}
}

// publish publishes files of job and reports whether all succeeded.
func (b *bench) publish(job string, files ...File) bool {
	b.t.Helper()
	var p *Publication
	b.batch(func(q *store.Batch, nowMS int64) { p = Publish(q, job, files, nowMS) })
	return p.Whole()
}

func (b *bench) drop(job string) {
	b.t.Helper()
	b.batch(func(q *store.Batch, nowMS int64) { Drop(q, job, nowMS) })
}

func (b *bench) adopt(job string) {
	b.t.Helper()
	b.batch(func(q *store.Batch, nowMS int64) { Adopt(q, job, nowMS) })
}

// sweep runs one step of Run.
func (b *bench) sweep() {
	b.t.Helper()
	if err := b.step(b.t.Context()); err != nil {
		b.t.Fatal(err)
	}
}

// get requests the link of a file from the handler.
func (b *bench) get(f File, header ...string) *httptest.ResponseRecorder {
	b.t.Helper()
	return b.fetch(http.MethodGet, strings.TrimPrefix(b.Link(f), "https://media.example.com"), header...)
}

func (b *bench) fetch(method, path string, header ...string) *httptest.ResponseRecorder {
	b.t.Helper()
	r := httptest.NewRequest(method, "http://x/", nil)
	r.URL.Path = path
	for i := 0; i < len(header); i += 2 {
		r.Header.Set(header[i], header[i+1])
	}
	w := httptest.NewRecorder()
	w.Header().Set("X-Request-Id", "req_of_the_test") // set by package httpapi
	b.Handler().ServeHTTP(w, r)
	return w
}

// wantGone checks that a file's link returns a 404 in the format of /v1.
func (b *bench) wantGone(f File) {
	b.t.Helper()
	w := b.get(f)
	if w.Code != http.StatusNotFound || !strings.Contains(w.Body.String(), `"code":"not_found"`) {
		b.t.Errorf("response %d %s, want a 404 not_found", w.Code, w.Body)
	}
}

// wantServed checks that a file's link serves exactly data.
func (b *bench) wantServed(f File, data []byte) {
	b.t.Helper()
	if w := b.get(f); w.Code != http.StatusOK || !bytes.Equal(w.Body.Bytes(), data) {
		b.t.Errorf("response %d with %d bytes, want 200 with %d (%.80q)", w.Code, w.Body.Len(), len(data), w.Body.Bytes())
	}
}

// wantBytes checks whether the backend has a file.
func (b *bench) wantBytes(name string, want bool) {
	b.t.Helper()
	content, err := b.backend.open(b.t.Context(), name, 1, span{0, 1})
	if err == nil {
		content.Close()
	}
	if got := err == nil; got != want || (err != nil && !errors.Is(err, ErrUnknown)) {
		b.t.Errorf("the backend has %s: %v (%v), want %v", name, got, err, want)
	}
}

// wantRow checks a file's state; an empty state means no row.
func (b *bench) wantRow(name, state string) {
	b.t.Helper()
	rec, err := b.find(b.t.Context(), name)
	if err != nil {
		b.t.Fatal(err)
	}
	got := ""
	if rec != nil {
		got = rec.state
	}
	if got != state {
		b.t.Errorf("row of %s: state %q, want %q", name, got, state)
	}
}

func TestAResultLivesFromPublicationToRetention(t *testing.T) {
	each(t, func(b *bench) {
		data := formattest.Picture(t, "image/png", 40, 30, 1)
		name := b.reserve("job_1")
		b.wantGone(File{Name: name, Type: "image/png"})
		f, err := b.Put(t.Context(), name, bytes.NewReader(data), Limit{KindImage, 1 << 20})
		if err != nil {
			b.t.Fatal(err)
		}
		if f != (File{name, "image/png", int64(len(data))}) {
			b.t.Errorf("stored file %+v", f)
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
		b.drop("job_1") // in the transaction that ends the job, before its record is deleted
		b.wantServed(f, data)
		b.clock.Advance(retention - time.Second)
		b.sweep()
		if got := b.get(f).Header().Get("Cache-Control"); got != "public, max-age=1, immutable" {
			b.t.Errorf("Cache-Control %q", got)
		}
		b.clock.Advance(time.Second)
		b.wantGone(f)
		b.wantBytes(name, true)
		b.sweep()
		b.wantBytes(name, false)
		b.wantRow(name, "")
	})
}

func TestReferencesLiveAsLongAsTheirJob(t *testing.T) {
	each(t, func(b *bench) {
		data := formattest.Picture(t, "image/jpeg", 40, 30, 2)
		f, err := b.Keep(t.Context(), "job_1", data, format.Policy{Kinds: []string{KindImage}})
		if err != nil {
			b.t.Fatal(err)
		}
		b.wantGone(f) // the job may never be submitted
		b.adopt("job_1")
		b.wantServed(f, data)
		if got := b.get(f).Header().Get("Cache-Control"); got != "private, no-store" {
			b.t.Errorf("Cache-Control %q", got)
		}
		b.Discard(t.Context(), "job_1") // the caller does not know that the submission was committed
		b.clock.Advance(100 * 24 * time.Hour)
		b.sweep()
		b.wantServed(f, data)
		content, opened, err := b.Open(t.Context(), f.Name)
		if err != nil {
			b.t.Fatal(err)
		}
		got, err := io.ReadAll(content)
		if err = errors.Join(err, content.Close()); err != nil || opened != f || !bytes.Equal(got, data) {
			b.t.Errorf("opened %+v with %d bytes: %v", opened, len(got), err)
		}
		b.drop("job_1")
		b.wantGone(f)
		if _, _, err := b.Open(t.Context(), f.Name); !errors.Is(err, ErrUnknown) {
			b.t.Errorf("opened a dropped reference: %v", err)
		}
		b.sweep()
		b.wantBytes(f.Name, false)
		b.wantRow(f.Name, "")
	})
}

func TestReferencesOfNoJobGo(t *testing.T) {
	each(t, func(b *bench) {
		data := formattest.Picture(t, "image/gif", 4, 3, 2)
		rejected, err := b.Keep(t.Context(), "job_1", data, format.Policy{})
		if err != nil {
			b.t.Fatal(err)
		}
		crashed, err := b.Keep(t.Context(), "job_2", data, format.Policy{})
		if err != nil {
			b.t.Fatal(err)
		}
		ctx, cancel := context.WithCancel(t.Context())
		cancel() // the client has disconnected
		b.Discard(ctx, "job_1")
		b.sweep()
		b.wantBytes(rejected.Name, false)
		b.wantRow(rejected.Name, "")
		b.clock.Advance(unpublishedFor - time.Second)
		b.sweep()
		b.wantRow(crashed.Name, stateKept)
		b.clock.Advance(time.Second)
		b.sweep()
		b.wantBytes(crashed.Name, false)
		b.wantRow(crashed.Name, "")
	})
}

func TestKeepRefusesWhatInspectRefuses(t *testing.T) {
	t.Parallel()
	b := onSQLite(t, "file:"+t.TempDir())
	var refusal *format.FileError
	if _, err := b.Keep(t.Context(), "job_1", []byte("<svg/>"), format.Policy{}); !errors.As(err, &refusal) {
		t.Errorf("an SVG: %v", err)
	}
	videos := format.Policy{Kinds: []string{KindVideo}}
	if _, err := b.Keep(t.Context(), "job_1", formattest.Picture(t, "image/png", 2, 2, 1), videos); !errors.As(err, &refusal) {
		t.Errorf("an image instead of a video: %v", err)
	}
	if n := b.rows(); n != 0 {
		t.Errorf("%d rows", n)
	}
}

// rows counts all rows.
func (b *bench) rows() (n int) {
	b.t.Helper()
	err := b.db.View(b.t.Context(), func(tx *store.Tx) error {
		return tx.QueryRow(`SELECT COUNT(*) FROM media_file`).Scan(&n)
	})
	if err != nil {
		b.t.Fatal(err)
	}
	return n
}

func TestNamesCannotBeGuessed(t *testing.T) {
	t.Parallel()
	seen := map[string]bool{}
	for range 1000 {
		name := newName()
		if len(name) != 32 || !isName(name) || seen[name] {
			t.Fatalf("name %q", name)
		}
		seen[name] = true
	}
	for _, wrong := range []string{"", strings.Repeat("a", 31), strings.Repeat("a", 33), strings.Repeat("A", 32), strings.Repeat("1", 32),
		strings.Repeat("/", 32), strings.Repeat(".", 32)} {
		if isName(wrong) {
			t.Errorf("%q counts as a name", wrong)
		}
	}
}

func TestReserveHasALimit(t *testing.T) {
	t.Parallel()
	b := onSQLite(t, "file:"+t.TempDir())
	for _, n := range []int{-1, 0, maxNames + 1} {
		if err := b.db.Update(t.Context(), func(tx *store.Tx) error { _, err := ReserveTx(tx, "job_1", n); return err }); err == nil {
			t.Errorf("%d names were reserved", n)
		}
	}
}

func TestOpenSaysWhatIsWrong(t *testing.T) {
	t.Parallel()
	s := s3server.Start(t)
	none := func(string) (string, bool) { return "", false }
	wrong := func(name string) (string, bool) {
		value, ok := s3server.Lookup(name)
		return value + "x", ok
	}
	for _, c := range []struct {
		name, location, base string
		retention            time.Duration
		lookup               func(string) (string, bool)
		want                 string
	}{
		{"no backend", "somewhere", "http://x/media", time.Hour, none, "file:DIR or s3://BUCKET"},
		{"an empty folder name", "file:", "http://x/media", time.Hour, none, "file:DIR or s3://BUCKET"},
		{"a file in the folder's path", "file:media_test.go", "http://x/media", time.Hour, none, "create the media folder"},
		{"a folder of the system", "file:/proc/media", "http://x/media", time.Hour, none, "create the media folder"},
		{"no credentials", s.Location(s.URL), "http://x/media", time.Hour, none, "AWS_ACCESS_KEY_ID"},
		{"wrong credentials", s.Location(s.URL), "http://x/media", time.Hour, wrong, "cannot be written"},
		{"no such bucket", "s3://other?endpoint=" + s.URL + "&path_style=true", "http://x/media", time.Hour, s3server.Lookup,
			"media bucket other cannot be written"},
		{"nobody there", "s3://media?endpoint=http://127.0.0.1:1&path_style=true", "http://x/media", time.Hour, s3server.Lookup,
			"cannot be written"},
		{"a folder in the bucket", "s3://media/below?endpoint=" + s.URL, "http://x/media", time.Hour, s3server.Lookup, "s3://BUCKET"},
		{"an unknown option", "s3://media?acl=public", "http://x/media", time.Hour, s3server.Lookup, "acl is not known"},
		{"a wrong style", "s3://media?path_style=yes", "http://x/media", time.Hour, s3server.Lookup, "true or false"},
		{"a path in the endpoint", "s3://media?endpoint=https://x/y", "http://x/media", time.Hour, s3server.Lookup, "endpoint"},
		{"another scheme", "s3://media?endpoint=ftp://x", "http://x/media", time.Hour, s3server.Lookup, "endpoint"},
		{"no address", "file:" + t.TempDir(), "", time.Hour, none, "media_url"},
		{"no retention", "file:" + t.TempDir(), "http://x/media", 0, none, "retention"},
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

func TestFilesSurviveARestart(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	b := onSQLite(t, "file:"+dir)
	data := formattest.Picture(t, "image/png", 10, 10, 3)
	f := b.put("job_1", data)
	b.publish("job_1", f)
	again := newBench(t, b.db, b.clock, "file:"+dir)
	again.wantServed(f, data)
}

// sum describes bytes in messages.
func sum(data []byte) string {
	s := sha256.Sum256(data)
	return fmt.Sprintf("%d bytes %s", len(data), hex.EncodeToString(s[:4]))
}
