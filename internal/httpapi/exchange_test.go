package httpapi

import (
	"io"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"
)

// fromFile is a writer that accepts files, as a connection does.
type fromFile struct {
	http.ResponseWriter
	took []string
}

// ReadFrom implements io.ReaderFrom.
func (f *fromFile) ReadFrom(from io.Reader) (int64, error) {
	all, err := io.ReadAll(from)
	f.took = append(f.took, string(all))
	return int64(len(all)), err
}

// TestFilesReachTheConnection checks that a file reaches the connection's own writer as a file,
// starts the answer, and can be flushed.
func TestFilesReachTheConnection(t *testing.T) {
	t.Parallel()
	status := 0
	h := Wrap(Options{Log: slog.New(slog.DiscardHandler), Observe: func(_ string, s int, _ time.Duration) { status = s }}, "/media",
		http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
			w.WriteHeader(http.StatusEarlyHints)
			if _, err := io.Copy(w, io.LimitReader(strings.NewReader("a file"), 4)); err != nil {
				t.Error(err)
			}
			if err := http.NewResponseController(w).Flush(); err != nil {
				t.Error(err)
			}
			w.WriteHeader(http.StatusNotFound) // too late
		}))
	recorded := httptest.NewRecorder()
	w := &fromFile{ResponseWriter: struct {
		http.ResponseWriter
		http.Flusher
	}{recorded, recorded}}
	flushed := struct {
		*fromFile
		http.Flusher
	}{w, recorded}
	h.ServeHTTP(flushed, httptest.NewRequest("GET", "/media/x", nil))
	if len(w.took) != 1 || w.took[0] != "a fi" || status != http.StatusOK || !recorded.Flushed {
		t.Errorf("took %q, status %d, flushed %t", w.took, status, recorded.Flushed)
	}
}
