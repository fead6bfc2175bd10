package api

import (
	"errors"
	"io"
	"net/http"
	"os"
	"strings"

	"tollgate/internal/fault"
)

// firstBuffer is what a body begins with; from there on its memory grows with
// what has arrived, whatever length was announced.
const firstBuffer = 8 << 10

// brokenOff is the fault of a body that did not arrive whole. Nothing is asked
// on behalf of such a request any more: its connection, and so its context, may
// be dead.
type brokenOff struct{ error }

// Unwrap gives the fault itself.
func (b brokenOff) Unwrap() error { return b.error }

// broke tells whether a body did not arrive whole.
func broke(err error) bool {
	var b brokenOff
	return errors.As(err, &b)
}

// body is the body of one request, read once however often it is judged.
type body struct {
	done  bool
	bytes []byte
	err   error

	budget  *bodies
	account string // that its memory counts for
	held    int64
}

// read returns the body, or why it cannot be used, as readBody says.
func (b *body) read(w http.ResponseWriter, r *http.Request, limit int64) ([]byte, error) {
	if !b.done {
		b.done = true
		b.bytes, b.err = readBody(w, r, limit, b.grow)
	}
	return b.bytes, b.err
}

// grow takes n more bytes from the budget.
func (b *body) grow(n int64) error {
	if err := b.budget.take(b.account, n); err != nil {
		return err
	}
	b.held += n
	return nil
}

// release gives the body's memory back.
func (b *body) release() {
	if b.held > 0 {
		b.budget.give(b.account, b.held)
		b.held = 0
	}
}

// readBody reads the whole body of a request: at most limit bytes (413), not
// compressed (400). The server bounds its time. grow is asked for memory beyond
// smallBody; its error is returned.
func readBody(w http.ResponseWriter, r *http.Request, limit int64, grow func(int64) error) ([]byte, error) {
	tooLarge := fault.New(fault.RequestTooLarge,
		"The request body is larger than the %s allowed here. Send less in one request.", fault.Bytes(limit))
	if r.ContentLength > limit {
		return nil, tooLarge
	}
	body, err := readSteps(http.MaxBytesReader(unwrapped(w), r.Body, limit), r.ContentLength, limit, grow)
	var over *http.MaxBytesError
	var own *fault.Error
	switch {
	case errors.As(err, &own):
		w.Header().Set("Connection", "close") // the rest of the body is still on the line
		return nil, err
	case errors.As(err, &over):
		return nil, tooLarge
	case err != nil:
		// The rest of the body is still on the line: nothing more can be read.
		w.Header().Set("Connection", "close")
		message := "The request body breaks off before its end."
		if errors.Is(err, os.ErrDeadlineExceeded) {
			message = "The request body breaks off: it took too long to arrive."
		}
		return nil, brokenOff{fault.New(fault.InvalidJSON, "%s Please send the request again.", message)}
	}
	if compressed(r.Header) {
		return nil, fault.New(fault.InvalidEncoding,
			"The request body is compressed. Send it as plain UTF-8 JSON, without a Content-Encoding header.")
	}
	return body, nil
}

// readSteps reads to the end into memory that grows in steps: each is at most as
// long as what has arrived, and none goes beyond the announced length (-1: none
// was) or the limit.
func readSteps(from io.Reader, length, limit int64, grow func(int64) error) ([]byte, error) {
	most := limit + 1 // room to see the end
	if length >= 0 {
		most = length + 1
	}
	var buf []byte
	for {
		if len(buf) == cap(buf) {
			size := min(max(2*int64(cap(buf)), firstBuffer), max(most, int64(cap(buf))+1))
			if size > smallBody {
				more := size - int64(cap(buf))
				if cap(buf) <= smallBody {
					more = size
				}
				if err := grow(more); err != nil {
					return nil, err
				}
			}
			next := make([]byte, len(buf), size)
			copy(next, buf)
			buf = next
		}
		n, err := from.Read(buf[len(buf):cap(buf)])
		buf = buf[:len(buf)+n]
		switch {
		case err == io.EOF:
			return buf, nil
		case err != nil:
			return nil, err
		}
	}
}

// compressed says whether the body was sent in a content coding.
func compressed(h http.Header) bool {
	for _, line := range h["Content-Encoding"] {
		for coding := range strings.SplitSeq(line, ",") {
			if coding = strings.TrimSpace(coding); coding != "" && !strings.EqualFold(coding, "identity") {
				return true
			}
		}
	}
	return false
}
