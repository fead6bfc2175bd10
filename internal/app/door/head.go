package door

import (
	"bytes"
	"net/http"
	"sync"

	"tollgate/internal/app/door/chunks"
	"tollgate/internal/fault"
)

// maxHeld bounds what is kept of the bytes of a connection: the longest header
// that net/http reads, and what it reads on.
const maxHeld = maxHeaderBytes + 16<<10

// head follows the bytes of a connection, so that the header of a request can be
// seen as it came: net/http drops a Content-Length beside a chunked body without
// a word, though whoever stands in front may have gone by it, and takes the rest
// for a request of somebody else. Bytes of bodies are only counted.
type head struct {
	mu      sync.Mutex  // net/http reads ahead while a handler runs
	came    []byte      // from where the next request begins
	body    int64       // bytes of the running request's body that are still to come, if it is not chunked
	chunked bool        // the running request's body is
	chunks  chunks.Body // where in it the bytes are
	lost    bool        // it is not known where the next request begins
}

// read takes the bytes that came.
func (h *head) read(p []byte) {
	h.mu.Lock()
	defer h.mu.Unlock()
	if h.lost {
		return
	}
	next := h.pass(p)
	if h.lost {
		return
	}
	h.came = append(h.came, next...)
	if len(h.came) > maxHeld {
		h.lose()
	}
}

// pass returns what of the bytes is behind the running request's body.
func (h *head) pass(p []byte) []byte {
	if h.chunked {
		n, ok := h.chunks.Follow(p)
		if !ok {
			h.lose()
			return nil
		}
		return p[n:]
	}
	n := min(h.body, int64(len(p)))
	h.body -= n
	return p[n:]
}

// lose gives up: the connection must not serve another request.
func (h *head) lose() { h.came, h.lost = nil, true }

// reuse is what is to become of a connection at a request.
type reuse int

const (
	keepAlive  reuse = iota // it may serve another
	closeAfter              // it may not
	ambiguous               // it may not, and the request says in two ways where its body ends (RFC 9112, 6.3)
	desynced                // nobody can be sure that this is a request: nothing is answered
)

// begin is told that net/http has read the header of a request. An HTTP/1.0
// request has no chunks (RFC 9112, 6.1).
func (h *head) begin(r *http.Request) reuse {
	h.mu.Lock()
	defer h.mu.Unlock()
	if h.lost {
		return desynced
	}
	came := bytes.TrimLeft(h.came, "\r\n") // net/http is as lenient
	end := headerEnd(came)
	if end < 0 {
		h.lose()
		return closeAfter
	}
	header, rest := came[:end], came[end:]
	chunked := len(r.TransferEncoding) > 0
	switch {
	case (chunked || !r.ProtoAtLeast(1, 1)) && hasField(header, "Transfer-Encoding") && (!chunked || hasField(header, "Content-Length")):
		h.lose()
		return ambiguous
	case r.ContentLength < 0 && !plainlyChunked(header): // where it ends only net/http finds out
		h.lose()
		return closeAfter
	}
	h.body, h.chunked, h.chunks = max(r.ContentLength, 0), r.ContentLength < 0, chunks.Body{}
	if rest = h.pass(rest); h.lost {
		return closeAfter
	}
	h.came = append(h.came[:0], rest...)
	if cap(h.came) > 8<<10 { // a long header is no reason to hold its room
		h.came = bytes.Clone(h.came)
	}
	return keepAlive
}

// end is told whether net/http has found the end of the running request's body.
// Unless it is where the bytes say, the two are out of step. It returns whether
// they are, or were.
func (h *head) end(found bool) bool {
	h.mu.Lock()
	defer h.mu.Unlock()
	if !found || h.chunked && !h.chunks.Ended() || !h.chunked && h.body > 0 {
		h.lose()
	}
	return h.lost
}

// isLost tells whether the bytes of the running request's body were given up.
func (h *head) isLost() bool {
	h.mu.Lock()
	defer h.mu.Unlock()
	return h.lost
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

// plainlyChunked tells whether a header says that a body is chunked in a way that
// nobody reads in another: all its lines end in CRLF, none goes on in the next,
// and one is `Transfer-Encoding: chunked`.
func plainlyChunked(header []byte) bool {
	said := 0
	for line := range bytes.Lines(header) {
		line, whole := bytes.CutSuffix(line, []byte("\r\n"))
		if !whole || bytes.IndexByte(line, '\r') >= 0 || len(line) > 0 && (line[0] == ' ' || line[0] == '\t') {
			return false
		}
		field, value, _ := bytes.Cut(line, []byte(":"))
		if bytes.EqualFold(field, []byte("Transfer-Encoding")) {
			if said++; !bytes.EqualFold(bytes.Trim(value, " "), []byte("chunked")) {
				return false
			}
		}
	}
	return said == 1
}
