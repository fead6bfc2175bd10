package media

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/textproto"
	"strconv"
	"strings"
	"time"

	"tollgate/internal/fault"
	"tollgate/internal/media/format"
)

// handlerPath is the path of files on every node, whatever the address of the media host.
const handlerPath = "/media/"

// Limits of a response.
const (
	maxRanges     = 8           // a request with more ranges gets the whole file
	responseGrace = time.Minute // in addition to the time at minRate
	minRate       = 16 << 10    // bytes per second; a slower reader is disconnected
)

// Handler serves results and references at /media/NAME.EXT, for GET and HEAD. It returns a 404 in
// the format of /v1 if the file is unknown, unpublished or past its retention, or has another
// extension. Results may be cached as long as their link works, because the bytes never change.
// References may not be cached.
func (s *Store) Handler() http.Handler { return http.HandlerFunc(s.serve) }

func (s *Store) serve(w http.ResponseWriter, r *http.Request) {
	h := w.Header()
	h.Set("X-Content-Type-Options", "nosniff")
	// A browser shows the file and runs no script. The last three directives allow the browser's
	// own page around an image or video.
	h.Set("Content-Security-Policy", "sandbox; default-src 'none'; img-src 'self'; media-src 'self'; style-src 'unsafe-inline'")
	// The sandbox gives this page an opaque origin, so Chromium's video player makes cross-origin
	// requests and needs this header. Any page may read the file, because the name is the secret.
	h.Set("Access-Control-Allow-Origin", "*")
	h.Set("Cache-Control", "no-store") // an error may be temporary
	if err := s.serveFile(w, r); err != nil {
		e := fault.Of(err)
		if e.Code == fault.ServiceUnavailable && r.Context().Err() == nil {
			s.log.Error("media: cannot serve a file", "request", requestID(w), "error", e.Cause)
		}
		e.Write(w)
	}
}

// requestID returns the request id for the log, from the header of the response.
func requestID(w http.ResponseWriter) string { return w.Header().Get("X-Request-Id") }

// serveFile serves a file. If it returns an error, it has not written anything.
func (s *Store) serveFile(w http.ResponseWriter, r *http.Request) error {
	name, ext, ok := parsePath(r.URL.Path)
	if !ok {
		return notFoundError()
	}
	if r.Method != http.MethodGet && r.Method != http.MethodHead {
		w.Header().Set("Allow", "GET, HEAD")
		return fault.New(fault.MethodNotAllowed, "Files can only be read: use GET or HEAD.")
	}
	rec, err := s.find(r.Context(), name)
	if err != nil {
		return fileError("serve", name, err)
	}
	if rec == nil || format.Extension(rec.file.Type) != ext {
		return notFoundError()
	}
	cacheControl, ok := s.cacheControl(rec)
	if !ok {
		return notFoundError()
	}
	limit := responseGrace + time.Duration(rec.file.Size/minRate)*time.Second
	ctx, cancel := context.WithTimeout(r.Context(), limit)
	defer cancel()
	tag := `"` + name + `"`
	content, err := s.backend.open(ctx, name, rec.file.Size, expectedSpan(r, tag, rec.file.Size))
	if errors.Is(err, ErrUnknown) {
		s.log.Error("media: a file is missing", "request", requestID(w), "error", fileError("serve", name, err))
		return notFoundError()
	}
	if err != nil {
		return fileError("serve", name, err)
	}
	defer content.Close()
	h := w.Header()
	h.Set("Content-Type", rec.file.Type)
	h.Set("Cache-Control", cacheControl)
	h.Set("ETag", tag)
	// A test's writer does not support deadlines and returns an error.
	_ = http.NewResponseController(w).SetWriteDeadline(time.Now().Add(limit))
	http.ServeContent(&rangeWriter{ResponseWriter: w}, r, "", time.UnixMilli(rec.atMS), content)
	return nil
}

// rangeWriter replaces net/http's text for an unsatisfiable range with an error in the format of /v1.
type rangeWriter struct {
	http.ResponseWriter
	unsatisfiable bool
}

// WriteHeader implements http.ResponseWriter.
func (w *rangeWriter) WriteHeader(status int) {
	if status != http.StatusRequestedRangeNotSatisfiable {
		w.ResponseWriter.WriteHeader(status)
		return
	}
	w.unsatisfiable = true
	e := fault.New(fault.InvalidRequest,
		"The file has no such part. Ask for `Range: bytes=FIRST-LAST` within its length, or for the whole file.")
	e.Rejection = &fault.Rejection{Status: status}
	e.Write(w.ResponseWriter)
}

// Write implements io.Writer.
func (w *rangeWriter) Write(b []byte) (int, error) {
	if w.unsatisfiable {
		return len(b), nil
	}
	return w.ResponseWriter.Write(b)
}

// ReadFrom implements io.ReaderFrom, so that the kernel sends files.
func (w *rangeWriter) ReadFrom(r io.Reader) (int64, error) { return io.Copy(w.ResponseWriter, r) }

// notFoundError returns the error for every path except working links.
func notFoundError() error {
	return fault.New(fault.NotFound,
		"There is no file at this address. Files are deleted when their time is over: make a new job, or check the address.")
}

// parsePath splits /media/NAME.EXT. It returns false for any other path.
func parsePath(path string) (name, ext string, ok bool) {
	rest, ok := strings.CutPrefix(path, handlerPath)
	name, ext, dot := strings.Cut(rest, ".")
	return name, "." + ext, ok && dot && isName(name)
}

// cacheControl returns the Cache-Control of a file, or false if the file must not be served.
func (s *Store) cacheControl(rec *record) (string, bool) {
	switch rec.state {
	case statePublic:
		remaining := time.UnixMilli(rec.atMS).Add(s.retention).Sub(s.now())
		if remaining <= 0 {
			return "", false
		}
		return fmt.Sprintf("public, max-age=%d, immutable", int64(remaining/time.Second)), true
	case stateAdopted:
		return "private, no-store", true
	}
	return "", false
}

// expectedSpan estimates the range of the response, so that the bucket sends no more. For several
// ranges it returns the whole file. net/http evaluates the headers again.
func expectedSpan(r *http.Request, tag string, size int64) span {
	if r.Method == http.MethodHead || strings.Contains(r.Header.Get("If-None-Match"), tag) {
		return span{}
	}
	whole := span{0, size}
	header := r.Header.Get("Range")
	if strings.Count(header, ",") >= maxRanges {
		r.Header.Del("Range")
		return whole
	}
	if condition := r.Header.Get("If-Range"); condition != "" && condition != tag {
		return whole
	}
	text, ok := strings.CutPrefix(header, "bytes=")
	first, last, dash := strings.Cut(textproto.TrimString(text), "-")
	if !ok || !dash || strings.Contains(text, ",") {
		return whole
	}
	from, fromErr := strconv.ParseInt(first, 10, 64)
	to, toErr := strconv.ParseInt(last, 10, 64)
	switch {
	case first == "" && toErr == nil && to > 0: // the last `to` bytes
		return span{max(0, size-to), size}
	case fromErr != nil || from < 0 || from >= size:
		return span{} // net/http rejects the range or serves the whole file
	case last == "":
		return span{from, size}
	case toErr != nil || to < from:
		return span{}
	}
	return span{from, min(to+1, size)}
}
