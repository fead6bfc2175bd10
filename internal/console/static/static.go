// Package static owns the console's immutable files: stylesheet, scripts and pictures.
//
// Invariants: all files except the shop's own are embedded in the binary; each file is compressed once, at its
// first request; the address of a file contains a checksum of its content, so browsers may cache the file
// forever, and a new version has a new address.
package static

import (
	"bytes"
	"compress/gzip"
	"crypto/sha256"
	"embed"
	"encoding/hex"
	"fmt"
	"maps"
	"net/http"
	"strconv"
	"strings"
	"sync"
)

//go:embed console.css console.js playground.js icons.svg logo.svg clip.svg lucide-LICENSE.txt
var embedded embed.FS

// contentTypes has the content type of each file, by name.
var contentTypes = map[string]string{
	"console.css":        "text/css; charset=utf-8",
	"console.js":         "text/javascript; charset=utf-8",
	"playground.js":      "text/javascript; charset=utf-8",
	"icons.svg":          "image/svg+xml",
	"logo.svg":           "image/svg+xml",
	"clip.svg":           "image/svg+xml",
	"lucide-LICENSE.txt": "text/plain; charset=utf-8",
}

// Files has the console's files below Base. It is safe for concurrent use.
type Files struct {
	bySegment map[string]file   // by the last segment of the address
	paths     map[string]string // addresses by file name
}

// file is a file with its content, plain and compressed.
type file struct {
	contentType string
	plain       []byte
	zipped      func() ([]byte, error)
}

// Base is the path of the files.
const Base = "/console/static"

// Read returns the files. It returns an error if an embedded file is missing.
func Read() (*Files, error) { return readOnce() }

var readOnce = sync.OnceValues(func() (*Files, error) {
	f := &Files{bySegment: map[string]file{}, paths: map[string]string{}}
	for name, contentType := range contentTypes {
		raw, err := embedded.ReadFile(name)
		if err != nil {
			return nil, fmt.Errorf("read %s: %w", name, err)
		}
		f.add(name, contentType, raw)
	}
	return f, nil
})

// With returns a copy of f with a further file.
func (f *Files) With(name, contentType string, raw []byte) *Files {
	all := &Files{maps.Clone(f.bySegment), maps.Clone(f.paths)}
	all.add(name, contentType, raw)
	return all
}

func (f *Files) add(name, contentType string, raw []byte) {
	sum := sha256.Sum256(raw)
	stem, extension, _ := strings.Cut(name, ".")
	segment := stem + "." + hex.EncodeToString(sum[:6]) + "." + extension
	f.bySegment[segment] = file{contentType, raw, sync.OnceValues(func() ([]byte, error) { return compress(raw) })}
	f.paths[name] = Base + "/" + segment
}

// compress compresses a file by gzip.
func compress(raw []byte) ([]byte, error) {
	var zipped bytes.Buffer
	w, err := gzip.NewWriterLevel(&zipped, gzip.BestCompression)
	if err != nil {
		return nil, err
	}
	if _, err := w.Write(raw); err != nil {
		return nil, err
	}
	err = w.Close()
	return zipped.Bytes(), err
}

// Path returns the address of a file, or an empty string if no file has the name.
func (f *Files) Path(name string) string { return f.paths[name] }

// Serve writes the file with the last segment of its address. It returns false and writes nothing
// if no file has the segment.
func (f *Files) Serve(w http.ResponseWriter, r *http.Request, segment string) bool {
	entry, ok := f.bySegment[segment]
	if !ok {
		return false
	}
	h := w.Header()
	h.Set("Content-Type", entry.contentType)
	h.Set("Cache-Control", "public, max-age=31536000, immutable")
	h.Set("Vary", "Accept-Encoding")
	body := entry.plain
	if strings.Contains(r.Header.Get("Accept-Encoding"), "gzip") {
		if zipped, err := entry.zipped(); err == nil { // after an error, the plain file is sent
			h.Set("Content-Encoding", "gzip")
			body = zipped
		}
	}
	h.Set("Content-Length", strconv.Itoa(len(body)))
	_, _ = w.Write(body) // the client may have disconnected; net/http omits the body for HEAD
	return true
}
