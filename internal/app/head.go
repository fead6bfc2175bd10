package app

import (
	"bytes"
	"net/http"
	"sync"

	"tollgate/internal/fault"
)

// mostHeld bounds what is kept of the bytes of a connection: the longest header
// that net/http reads, and what it reads on.
const mostHeld = maxHeaderBytes + 16<<10

// head follows the bytes of a connection, so that the header of a request can be
// seen as it came: net/http drops a Content-Length beside a chunked body without
// a word, though whoever stands in front may have gone by it, and takes the rest
// for a request of somebody else. Bytes of bodies are only counted.
type head struct {
	mu   sync.Mutex // net/http reads ahead while a handler runs
	came []byte     // from where the next request begins
	body int64      // bytes of the running request's body that are still to come
	lost bool       // it is not known where the next request begins
}

// read takes the bytes that came.
func (h *head) read(p []byte) {
	h.mu.Lock()
	defer h.mu.Unlock()
	if h.lost {
		return
	}
	skip := min(h.body, int64(len(p)))
	h.body -= skip
	h.came = append(h.came, p[skip:]...)
	if len(h.came) > mostHeld {
		h.lose()
	}
}

// lose gives up: the connection must not serve another request.
func (h *head) lose() { h.came, h.lost = nil, true }

// begin is told that net/http has read the header of a request. It tells whether
// the connection must close after it, and whether the header says in two ways
// where its body ends (RFC 9112, 6.3 and 6.1: an HTTP/1.0 request has no chunks).
func (h *head) begin(r *http.Request) (last, ambiguous bool) {
	h.mu.Lock()
	defer h.mu.Unlock()
	chunked := len(r.TransferEncoding) > 0
	came := bytes.TrimLeft(h.came, "\r\n") // net/http is as lenient
	end := headerEnd(came)
	if h.lost || end < 0 {
		h.lose()
		return true, false
	}
	if chunked || !r.ProtoAtLeast(1, 1) {
		ambiguous = hasField(came[:end], "Transfer-Encoding") && (!chunked || hasField(came[:end], "Content-Length"))
	}
	if r.ContentLength < 0 { // where it ends only net/http finds out
		h.lose()
		return true, ambiguous
	}
	rest := came[end:]
	skip := min(r.ContentLength, int64(len(rest)))
	h.body = r.ContentLength - skip
	h.came = append(h.came[:0], rest[skip:]...)
	if cap(h.came) > 8<<10 { // a long header is no reason to hold its room
		h.came = bytes.Clone(h.came)
	}
	return false, ambiguous
}

// native tells whether the request that is coming asks for a path of the native
// form.
func (h *head) native() bool {
	h.mu.Lock()
	defer h.mu.Unlock()
	line, _, _ := bytes.Cut(bytes.TrimLeft(h.came, "\r\n"), []byte("\n"))
	_, target, _ := bytes.Cut(bytes.TrimRight(line, "\r"), []byte(" "))
	target, _, _ = bytes.Cut(target, []byte(" "))
	path, _, _ := bytes.Cut(target, []byte("?"))
	return fault.IsNative(string(path))
}

// headerEnd is the length of a header with the empty line at its end; -1: it is
// not whole.
func headerEnd(b []byte) int {
	for from := 0; ; {
		i := bytes.IndexByte(b[from:], '\n')
		if i < 0 {
			return -1
		}
		from += i + 1
		switch {
		case from < len(b) && b[from] == '\n':
			return from + 1
		case from+1 < len(b) && b[from] == '\r' && b[from+1] == '\n':
			return from + 2
		}
	}
}

// hasField tells whether a header has a field of a name.
func hasField(header []byte, name string) bool {
	for line := range bytes.Lines(header) {
		field, _, ok := bytes.Cut(line, []byte(":"))
		if ok && bytes.EqualFold(field, []byte(name)) {
			return true
		}
	}
	return false
}
