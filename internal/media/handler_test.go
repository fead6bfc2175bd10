package media

import (
	"bytes"
	"fmt"
	"io"
	"mime"
	"mime/multipart"
	"net/http"
	"os"
	"strings"
	"testing"

	"tollgate/internal/media/format"
	"tollgate/internal/media/formattest"
)

// TestHandlerServesEveryType checks the body and headers of a result of each content type.
func TestHandlerServesEveryType(t *testing.T) {
	forEachBackend(t, func(b *testStore) {
		for contentType, data := range formattest.Samples(t) {
			name := b.reserve("job_1")
			f, err := b.Put(t.Context(), name, bytes.NewReader(data), Limit{format.KindOf(contentType), 64 << 20})
			if err != nil {
				b.t.Errorf("%s: Put failed: %v", contentType, err)
				continue
			}
			if !b.publish("job_1", f) {
				b.t.Fatal("the file was not published")
			}
			w := b.get(f)
			for header, want := range map[string]string{
				"Content-Type":           contentType,
				"Content-Length":         fmt.Sprint(len(data)),
				"Accept-Ranges":          "bytes",
				"ETag":                   `"` + name + `"`,
				"X-Content-Type-Options": "nosniff",
				// Chromium's player sends cross-origin requests.
				"Access-Control-Allow-Origin": "*",
				"Cache-Control":               "public, max-age=5184000, immutable",
				"Last-Modified":               "Sat, 21 Nov 2026 12:00:00 GMT",
			} {
				if got := w.Header().Get(header); got != want {
					b.t.Errorf("%s: %s is %q, want %q", contentType, header, got, want)
				}
			}
			if got := w.Header().Get("Content-Security-Policy"); !strings.HasPrefix(got, "sandbox; default-src 'none'") ||
				strings.Contains(got, "script") {
				b.t.Errorf("%s: Content-Security-Policy %q, want a sandbox without scripts", contentType, got)
			}
			b.wantServed(f, data)
			head := b.fetch(http.MethodHead, "/media/"+name+format.Extension(contentType))
			if head.Code != http.StatusOK || head.Header().Get("Content-Length") != fmt.Sprint(len(data)) || head.Body.Len() != 0 {
				b.t.Errorf("%s: HEAD returned %d, Content-Length %s, body of %d bytes; want 200, %d, 0", contentType, head.Code,
					head.Header().Get("Content-Length"), head.Body.Len(), len(data))
			}
		}
	})
}

// TestHandlerServesRanges checks the responses to range requests and conditional requests.
func TestHandlerServesRanges(t *testing.T) {
	forEachBackend(t, func(b *testStore) {
		data := formattest.Picture(t, "image/png", 400, 300, 1)
		f := b.put("job_1", data)
		b.publish("job_1", f)
		size, tag := len(data), `"`+f.Name+`"`
		for _, c := range []struct {
			name   string
			header []string
			status int
			ranges string // expected Content-Range
			want   []byte
		}{
			{"the first byte", []string{"Range", "bytes=0-0"}, 206, fmt.Sprintf("bytes 0-0/%d", size), data[:1]},
			{"the middle", []string{"Range", "bytes=1000-99999"}, 206, fmt.Sprintf("bytes 1000-99999/%d", size), data[1000:100000]},
			{"to the end", []string{"Range", "bytes=1000-"}, 206, fmt.Sprintf("bytes 1000-%d/%d", size-1, size), data[1000:]},
			{"past the end", []string{"Range", "bytes=1000-99999999"}, 206, fmt.Sprintf("bytes 1000-%d/%d", size-1, size), data[1000:]},
			{"the last bytes", []string{"Range", "bytes=-17"}, 206, fmt.Sprintf("bytes %d-%d/%d", size-17, size-1, size), data[size-17:]},
			{"more last bytes than exist", []string{"Range", "bytes=-99999999"}, 206, fmt.Sprintf("bytes 0-%d/%d", size-1, size), data},
			{"at the end", []string{"Range", fmt.Sprintf("bytes=%d-", size)}, 416, fmt.Sprintf("bytes */%d", size), nil},
			{"backwards", []string{"Range", "bytes=5-4"}, 416, "", nil},
			{"nonsense", []string{"Range", "bytes=x-y"}, 416, "", nil},
			{"another unit", []string{"Range", "lines=1-2"}, 416, "", nil},
			{"matching ETag", []string{"If-None-Match", tag}, 304, "", nil},
			{"matching weak ETag", []string{"If-None-Match", "W/" + tag + `, "x"`}, 304, "", nil},
			{"another ETag", []string{"If-None-Match", `"x"`}, 200, "", data},
			{"If-Range with the ETag", []string{"Range", "bytes=2-3", "If-Range", tag}, 206, fmt.Sprintf("bytes 2-3/%d", size), data[2:4]},
			{"If-Range with another ETag", []string{"Range", "bytes=2-3", "If-Range", `"x"`}, 200, "", data},
			{"If-Range with the date", []string{"Range", "bytes=2-3", "If-Range", "Sat, 21 Nov 2026 12:00:00 GMT"}, 206,
				fmt.Sprintf("bytes 2-3/%d", size), data[2:4]},
			{"not modified since a date", []string{"If-Modified-Since", "Sat, 21 Nov 2026 12:00:00 GMT"}, 304, "", nil},
			{"If-Match with another ETag", []string{"If-Match", `"x"`}, 412, "", nil},
			{"too many ranges", []string{"Range", "bytes=0-0" + strings.Repeat(",2-2", maxRanges)}, 200, "", data},
		} {
			w := b.get(f, c.header...)
			if w.Code != c.status || w.Header().Get("Content-Range") != c.ranges {
				b.t.Errorf("%s: %d %q, want %d %q", c.name, w.Code, w.Header().Get("Content-Range"), c.status, c.ranges)
			}
			if c.want != nil && !bytes.Equal(w.Body.Bytes(), c.want) {
				b.t.Errorf("%s: got %s, want %s", c.name, describe(w.Body.Bytes()), describe(c.want))
			}
			if w.Header().Get("X-Content-Type-Options") != "nosniff" {
				b.t.Errorf("%s: header nosniff is missing", c.name)
			}
			isAPIError := w.Header().Get("Content-Type") == "application/json" && strings.Contains(w.Body.String(), `"code":"invalid_request"`)
			if c.status == 416 && !isAPIError {
				b.t.Errorf("%s: body %s %q, want an error invalid_request", c.name, w.Header().Get("Content-Type"), w.Body)
			}
		}
		w := b.get(f, "Range", "bytes=0-9,-5,100-199")
		_, params, err := mime.ParseMediaType(w.Header().Get("Content-Type"))
		if err != nil || w.Code != 206 {
			b.t.Fatalf("three ranges: status %d, error %v; want 206", w.Code, err)
		}
		parts := multipart.NewReader(w.Body, params["boundary"])
		for _, want := range [][]byte{data[:10], data[size-5:], data[100:200]} {
			part, err := parts.NextPart()
			if err != nil {
				b.t.Fatal(err)
			}
			if got, err := io.ReadAll(part); err != nil || !bytes.Equal(got, want) || part.Header.Get("Content-Type") != "image/png" {
				b.t.Errorf("part: %s of %s, want %s (%v)", describe(got), part.Header.Get("Content-Type"), describe(want), err)
			}
		}
	})
}

// TestHandlerRejectsOtherPaths checks that other paths get a 404 and other methods a 405, without a
// log.
func TestHandlerRejectsOtherPaths(t *testing.T) {
	forEachBackend(t, func(b *testStore) {
		f := b.put("job_1", formattest.Picture(t, "image/png", 4, 4, 1))
		b.publish("job_1", f)
		unpublished := b.put("job_1", formattest.Picture(t, "image/png", 4, 4, 1))
		good := "/media/" + f.Name + ".png"
		for _, path := range []string{
			"/", "/media", "/media/", "/media/.png", "/media/" + f.Name, "/media/" + f.Name + ".", good + "/", good + ".png",
			"/media/" + f.Name + ".jpg", "/media/" + f.Name + ".PNG", "/media/" + strings.ToUpper(f.Name) + ".png",
			"/media/" + shard(f.Name) + "/" + f.Name + ".png", "/media/../media/" + f.Name + ".png", "/media/" + newName() + ".png",
			"/media/" + unpublished.Name + ".png", "/files/" + f.Name + ".png", "/media/" + unfinishedDir + "/" + f.Name + ".png",
			"/media/" + f.Name + "\x00.png", "/media/" + strings.Repeat("../", 11)[:32] + ".png",
		} {
			w := b.fetch(http.MethodGet, path)
			if w.Code != 404 || !strings.Contains(w.Body.String(), `"code":"not_found"`) || w.Header().Get("Cache-Control") != "no-store" {
				b.t.Errorf("%q: status %d, body %s, Cache-Control %q; want a 404 not_found with no-store",
					path, w.Code, w.Body, w.Header().Get("Cache-Control"))
			}
		}
		for _, method := range []string{"POST", "PUT", "DELETE", "OPTIONS", "PATCH", "TRACE", "PROPFIND"} {
			w := b.fetch(method, good)
			if w.Code != 405 || w.Header().Get("Allow") != "GET, HEAD" || !strings.Contains(w.Body.String(), `"code":"method_not_allowed"`) {
				b.t.Errorf("%s: status %d, body %s; want a 405 method_not_allowed", method, w.Code, w.Body)
			}
		}
		if b.log.Len() > 0 {
			b.t.Errorf("rejected requests were logged: %s", b.log)
		}
	})
}

// TestOpenLink checks that OpenLink opens only links of results.
func TestOpenLink(t *testing.T) {
	forEachBackend(t, func(b *testStore) {
		data := formattest.Picture(t, "image/png", 4, 4, 1)
		f, unpublished := b.put("job_1", data), b.put("job_2", data)
		b.publish("job_1", f)
		link := b.Link(f)
		for _, address := range []string{link, link + "?download=1", link + "#top"} {
			body, size, isLink, err := b.OpenLink(t.Context(), address)
			if err != nil || !isLink || body == nil || size != int64(len(data)) {
				b.t.Fatalf("%s: OpenLink returned %v bytes, isLink %v, error %v; want the file", address, size, isLink, err)
			}
			got, err := io.ReadAll(body)
			if err != nil || !bytes.Equal(got, data) {
				b.t.Errorf("%s: read %d bytes, error %v; want the file", address, len(got), err)
			}
			_ = body.Close()
		}
		base := strings.TrimSuffix(link, "/"+f.Name+".png")
		for address, want := range map[string]bool{
			b.Link(unpublished): true, link + "/": true, strings.Replace(link, ".png", ".jpg", 1): true, base + "/": true,
			base + "/../media/" + f.Name + ".png": true, base + "/" + newName() + ".png": true, base + "/%2e%2e/" + f.Name + ".png": true,
			base: false, "https://other.example/media/" + f.Name + ".png": false, strings.Replace(link, "://", "://u:p@", 1): false,
			base + "x/" + f.Name + ".png": false, "": false, "/media/" + f.Name + ".png": false,
		} {
			body, _, isLink, err := b.OpenLink(t.Context(), address)
			if body != nil || isLink != want || err != nil {
				b.t.Errorf("%s: OpenLink returned a body: %v, isLink %v, error %v; want no body, %v", address, body != nil, isLink, err, want)
			}
		}
	})
}

// TestMissingFileIsLogged checks that a missing file causes a 404 and a log without the whole name. The
// sweep deletes its row after the retention.
func TestMissingFileIsLogged(t *testing.T) {
	forEachBackend(t, func(b *testStore) {
		f := b.put("job_1", formattest.Picture(t, "image/png", 4, 4, 1))
		b.publish("job_1", f)
		if err := b.remove(t.Context(), f.Name); err != nil {
			b.t.Fatal(err)
		}
		b.wantGone(f)
		if log := b.log.String(); !strings.Contains(log, "missing") || strings.Contains(log, f.Name) {
			b.t.Errorf("log %s, want the missing file without its whole name", log)
		}
		if _, _, err := b.Open(t.Context(), f.Name); err == nil {
			b.t.Error("Open succeeded for a missing file")
		}
		b.clock.Advance(retention)
		b.sweep()
		b.wantRow(f.Name, "")
	})
}

// TestFailingBackendReturns503 checks that an error of the folder causes a 503 without the path, and a
// log with the request's id.
func TestFailingBackendReturns503(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	b := newSQLiteStore(t, "file:"+dir)
	f := b.put("job_1", formattest.Picture(t, "image/png", 4, 4, 1))
	b.publish("job_1", f)
	path := b.inner().(*folder).path(f.Name)
	if err := os.Remove(path); err != nil {
		t.Fatal(err)
	}
	if err := os.Symlink(path, path); err != nil { // opening fails with too many levels of links
		t.Fatal(err)
	}
	w := b.get(f)
	if w.Code != 503 || !strings.Contains(w.Body.String(), "service_unavailable") || strings.Contains(w.Body.String(), dir) {
		t.Errorf("response %d %s, want a 503 service_unavailable without the path", w.Code, w.Body)
	}
	if log := b.log.String(); !strings.Contains(log, "cannot serve") || !strings.Contains(log, "request=req_of_the_test") {
		t.Errorf("log %q, want an error with the request's id", b.log)
	}
}
