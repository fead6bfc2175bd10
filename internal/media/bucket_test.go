package media

import (
	"bytes"
	"context"
	"errors"
	"io"
	"net/http"
	"net/http/httptest"
	"net/http/httputil"
	"net/url"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"

	"tollgate/internal/gatewaytest/s3server"
	"tollgate/internal/media/format"
	"tollgate/internal/media/formattest"
)

// faultyProxy is a proxy in front of an S3 server. It records all requests and fails some of them.
type faultyProxy struct {
	mu   sync.Mutex
	log  []string                     // method, query keys and Range of each request
	fail func(r *http.Request) string // returns "", "error" (403), "break" (no response) or "lose" (lost response)
}

// newProxiedStore opens a store with its bucket behind a faultyProxy.
func newProxiedStore(t *testing.T) (*testStore, *faultyProxy) {
	t.Helper()
	s := s3server.Start(t)
	target, err := url.Parse(s.URL)
	if err != nil {
		t.Fatal(err)
	}
	g := &faultyProxy{}
	transport := &http.Transport{}
	t.Cleanup(transport.CloseIdleConnections)
	proxy := &httputil.ReverseProxy{
		Transport: transport,
		Rewrite: func(r *httputil.ProxyRequest) {
			r.SetURL(target)
			r.Out.Host = r.In.Host // the signature covers the host
		},
		ErrorHandler: func(http.ResponseWriter, *http.Request, error) { panic(http.ErrAbortHandler) },
	}
	front := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		switch g.decide(r) {
		case "error":
			w.WriteHeader(http.StatusForbidden)
		case "break":
			panic(http.ErrAbortHandler)
		case "lose":
			proxy.ServeHTTP(httptest.NewRecorder(), r)
			panic(http.ErrAbortHandler)
		default:
			proxy.ServeHTTP(w, r)
		}
	}))
	t.Cleanup(front.Close)
	return newSQLiteStore(t, s.Location(front.URL)), g
}

// decide records a request and returns the result of fail.
func (p *faultyProxy) decide(r *http.Request) string {
	p.mu.Lock()
	defer p.mu.Unlock()
	var keys []string
	for key := range r.URL.Query() {
		keys = append(keys, key)
	}
	slices.Sort(keys)
	p.log = append(p.log, strings.TrimSpace(r.Method+" "+strings.Join(keys, "&")+" "+r.Header.Get("Range")))
	if p.fail == nil {
		return ""
	}
	return p.fail(r)
}

// setRule sets fail and forgets the recorded requests.
func (p *faultyProxy) setRule(fail func(r *http.Request) string) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.log, p.fail = nil, fail
}

func (p *faultyProxy) requests() []string {
	p.mu.Lock()
	defer p.mu.Unlock()
	return slices.Clone(p.log)
}

// TestBucketRequestsOnlyServedBytes checks that a response requests only its bytes from the bucket,
// in one request.
func TestBucketRequestsOnlyServedBytes(t *testing.T) {
	t.Parallel()
	b, g := newProxiedStore(t)
	data := formattest.Picture(t, "image/png", 400, 300, 1)
	f := b.put("job_1", data)
	b.publish("job_1", f)
	for _, c := range []struct {
		name   string
		method string
		header []string
		want   []string
	}{
		{"all", "GET", nil, []string{"GET  bytes=0-" + lastOffset(data)}},
		{"a part", "GET", []string{"Range", "bytes=100-199"}, []string{"GET  bytes=100-199"}},
		{"the end", "GET", []string{"Range", "bytes=-100"}, []string{"GET  bytes=" + lastOffset(data[99:]) + "-" + lastOffset(data)}},
		{"not modified", "GET", []string{"If-None-Match", `"` + f.Name + `"`}, nil},
		{"HEAD", "HEAD", nil, nil},
		{"past the end", "GET", []string{"Range", "bytes=99999999-"}, nil},
	} {
		g.setRule(nil)
		w := b.fetch(c.method, "/media/"+f.Name+".png", c.header...)
		if got := g.requests(); !slices.Equal(got, c.want) {
			t.Errorf("%s: the bucket got %q, want %q (status %d)", c.name, got, c.want, w.Code)
		}
	}
}

// lastOffset returns the offset of the last byte as text.
func lastOffset(data []byte) string { return strconv.Itoa(len(data) - 1) }

// TestLongFileIsUploadedInParts checks the abort of a multipart upload after a failed request, and the
// retry of a part after a broken connection.
func TestLongFileIsUploadedInParts(t *testing.T) {
	t.Parallel()
	b, g := newProxiedStore(t)
	data := twoPartPicture(t, 1)
	limit := Limit{KindImage, int64(len(data))}
	name := b.reserve("job_1")
	part := func(number string) func(r *http.Request) bool {
		return func(r *http.Request) bool {
			return r.Method == http.MethodPut && r.URL.Query().Get("partNumber") == number
		}
	}
	complete := func(r *http.Request) bool { return r.Method == http.MethodPost && r.URL.Query().Has("uploadId") }
	begin := func(r *http.Request) bool { return r.Method == http.MethodPost && r.URL.Query().Has("uploads") }
	for _, c := range []struct {
		name  string
		match func(r *http.Request) bool // the requests to fail
		fault string
	}{
		{"the beginning is refused", begin, "error"},
		{"the first part is refused", part("1"), "error"},
		{"the first part breaks", part("1"), "break"},
		{"the last part's answer is lost", part("2"), "lose"},
		{"the completion is refused", complete, "error"},
	} {
		g.setRule(func(r *http.Request) string {
			if c.match(r) {
				return c.fault
			}
			return ""
		})
		if _, err := b.Put(t.Context(), name, bytes.NewReader(data), limit); err == nil || errors.Is(err, ErrSource) ||
			strings.Contains(err.Error(), name) {
			t.Errorf("%s: error %v, want one without ErrSource and without the name", c.name, err)
		}
		g.setRule(nil)
		b.wantBytes(name, false)
		b.wantNoRemainder(c.name)
		b.wantRow(name, statePending)
	}
	// A part is sent again after its connection broke once.
	hasFailed := false
	g.setRule(func(r *http.Request) string {
		if part("2")(r) && !hasFailed {
			hasFailed = true
			return "break"
		}
		return ""
	})
	f, err := b.Put(t.Context(), name, bytes.NewReader(data), limit)
	if err != nil {
		t.Fatal(err)
	}
	if log := strings.Join(g.requests(), ","); !strings.Contains(log, "PUT partNumber&uploadId") || !hasFailed {
		t.Errorf("the file was not sent in parts: %s", log)
	}
	b.publish("job_1", f)
	b.wantServed(f, data)
}

// TestUploadOfDeadNodeIsDeleted checks that the unfinished upload of a dead node is deleted when
// another node stores the file, or with the name.
func TestUploadOfDeadNodeIsDeleted(t *testing.T) {
	t.Parallel()
	s := s3server.Start(t)
	b := newSQLiteStore(t, s.Location(s.URL))
	inner := b.inner().(*bucket)
	name := b.reserve("job_1")
	if _, err := inner.api.NewMultipartUpload(t.Context(), inner.name, inner.key(name), putOptions("image/png")); err != nil {
		t.Fatal(err)
	}
	if _, err := b.Put(t.Context(), name, bytes.NewReader(twoPartPicture(t, 1)), Limit{KindImage, 1 << 30}); err != nil {
		t.Fatal(err)
	}
	b.wantNoRemainder("a Put of another node")
	name = b.reserve("job_1")
	if _, err := inner.api.NewMultipartUpload(t.Context(), inner.name, inner.key(name), putOptions("image/png")); err != nil {
		t.Fatal(err)
	}
	b.drop("job_1")
	b.sweep()
	b.wantRow(name, "")
	b.wantNoRemainder("the sweep")
}

// TestUnavailableBucket checks the errors of a failing bucket, and the deletion of files after the
// bucket works again.
func TestUnavailableBucket(t *testing.T) {
	t.Parallel()
	b, g := newProxiedStore(t)
	data := formattest.Picture(t, "image/png", 40, 30, 1)
	f := b.put("job_1", data)
	b.publish("job_1", f)
	g.setRule(func(*http.Request) string { return "error" })
	if w := b.get(f); w.Code != 503 || !strings.Contains(w.Body.String(), "service_unavailable") ||
		w.Header().Get("Cache-Control") != "no-store" {
		t.Errorf("response %d %s, want a 503 service_unavailable", w.Code, w.Body)
	}
	var fileError *format.FileError
	if _, err := b.Keep(t.Context(), "job_2", data, format.Policy{}); err == nil || errors.As(err, &fileError) {
		t.Errorf("Keep returned %v, want an internal error", err)
	}
	b.clock.Advance(retention)
	if err := b.step(t.Context()); err == nil || strings.Contains(err.Error(), f.Name) {
		t.Errorf("step returned %v, want an error without the whole name", err)
	}
	b.wantRow(f.Name, stateGone)
	g.setRule(nil)
	b.clock.Advance(retryDelay)
	b.sweep()
	if n := b.rows(); n != 0 {
		t.Errorf("%d rows left, want 0", n)
	}
}

// TestChangedLengthIsNotServed checks that a file with another length than recorded is not served.
func TestChangedLengthIsNotServed(t *testing.T) {
	t.Parallel()
	s := s3server.Start(t)
	b := newSQLiteStore(t, s.Location(s.URL))
	f := b.put("job_1", formattest.Picture(t, "image/png", 40, 30, 1))
	b.publish("job_1", f)
	if err := b.backend.put(t.Context(), f.Name, f.Type, strings.NewReader("short")); err != nil {
		t.Fatal(err)
	}
	if w := b.get(f); w.Code != 503 {
		t.Errorf("response %d with %d bytes, want 503", w.Code, w.Body.Len())
	}
}

// TestObjectSeeksLikeReader checks that an object reads and seeks like a bytes.Reader.
func TestObjectSeeksLikeReader(t *testing.T) {
	t.Parallel()
	s := s3server.Start(t)
	b := newSQLiteStore(t, s.Location(s.URL))
	data := formattest.Picture(t, "image/png", 100, 100, 1)
	f := b.put("job_1", data)
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	content, err := b.backend.open(ctx, f.Name, f.Size, span{10, 20})
	if err != nil {
		t.Fatal(err)
	}
	defer content.Close()
	reader := bytes.NewReader(data)
	for _, step := range []struct {
		offset int64
		whence int
		read   int
	}{
		{10, io.SeekStart, 15}, {0, io.SeekCurrent, 5}, {-7, io.SeekEnd, 7}, {0, io.SeekCurrent, 1}, {0, io.SeekStart, 30000},
		{-29990, io.SeekCurrent, 10}, {5, io.SeekEnd, 1}, {-1, io.SeekStart, 0}, {12, io.SeekStart, 8},
	} {
		offset, err := content.Seek(step.offset, step.whence)
		want, wantErr := reader.Seek(step.offset, step.whence)
		if (err == nil) != (wantErr == nil) || (err == nil && offset != want) {
			t.Fatalf("seek %+v: %d %v, want %d %v", step, offset, err, want, wantErr)
		}
		got, expected := make([]byte, step.read), make([]byte, step.read)
		n, err := io.ReadFull(content, got)
		m, wantErr := io.ReadFull(reader, expected)
		if n != m || !errors.Is(err, wantErr) || !bytes.Equal(got, expected) {
			t.Fatalf("read %+v: %d %v, want %d %v", step, n, err, m, wantErr)
		}
	}
}
