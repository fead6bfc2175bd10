package api

import (
	"errors"
	"net/http"
	"os"
	"strings"

	"tollgate/internal/bounded"
	"tollgate/internal/fault"
)

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
	held  held
}

// read returns the body, or why it cannot be used, as readBody says.
func (b *body) read(w http.ResponseWriter, r *http.Request, limit int64) ([]byte, error) {
	if !b.done {
		b.done = true
		b.bytes, b.err = readBody(w, r, limit, b.held.grow)
	}
	return b.bytes, b.err
}

// readBody reads the whole body of a request: at most limit bytes (413), not
// compressed (400). The server bounds its time. grow is asked for memory as
// bounded.Read says; its error is returned.
func readBody(w http.ResponseWriter, r *http.Request, limit int64, grow func(int64) error) ([]byte, error) {
	tooLarge := fault.New(fault.RequestTooLarge,
		"The request body is larger than the %s allowed here. Send less in one request.", fault.Bytes(limit))
	if r.ContentLength > limit {
		return nil, tooLarge
	}
	body, err := bounded.Read(http.MaxBytesReader(unwrapped(w), r.Body, limit), r.ContentLength, limit, grow)
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
