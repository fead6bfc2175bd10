package httpapi

import (
	"errors"
	"net/http"
	"os"
	"strings"

	"tollgate/internal/bounded"
	"tollgate/internal/fault"
)

// interruptedError is the fault of an incomplete body.
type interruptedError struct{ error }

// Unwrap gives the fault itself.
func (b interruptedError) Unwrap() error { return b.error }

// IsInterrupted reports whether err means an incomplete request body. Nothing is done on behalf of such
// a request any more: its connection, and therefore its context, may be dead.
func IsInterrupted(err error) bool {
	var b interruptedError
	return errors.As(err, &b)
}

// body is the read part of a request's body.
type body struct {
	read  bool
	bytes []byte
	err   error
}

// Body returns the whole body of the request and reads it only once: at most limit bytes (413), not
// compressed (400), and complete (400). The server bounds its time. Memory is reserved as described
// in bounded.Read, and its error is returned.
func (x *Exchange) Body(limit int64) ([]byte, error) {
	if !x.body.read {
		x.body.read = true
		x.body.bytes, x.body.err = x.readBody(limit)
	}
	return x.body.bytes, x.body.err
}

// DropBody forgets the body and releases its memory.
func (x *Exchange) DropBody() {
	x.body = body{}
	x.Memory.Release()
}

func (x *Exchange) readBody(limit int64) ([]byte, error) {
	tooLarge := fault.New(fault.RequestTooLarge,
		"The request body is larger than the %s allowed here. Send less in one request.", fault.Bytes(limit))
	if x.Request.ContentLength > limit {
		return nil, tooLarge
	}
	// The connection's own writer closes a connection with unread bytes.
	from := http.MaxBytesReader(x.ResponseWriter, x.Request.Body, limit)
	body, err := bounded.Read(from, x.Request.ContentLength, limit, x.Memory.Grow)
	var over *http.MaxBytesError
	var own *fault.Error
	switch {
	case errors.As(err, &own):
		x.Header().Set("Connection", "close") // the rest of the body is still on the line
		return nil, err
	case errors.As(err, &over):
		return nil, tooLarge
	case err != nil:
		// The rest of the body is still on the line: nothing more can be read.
		x.Header().Set("Connection", "close")
		message := "The request body breaks off before its end."
		if errors.Is(err, os.ErrDeadlineExceeded) {
			message = "The request body breaks off: it took too long to arrive."
		}
		return nil, interruptedError{fault.New(fault.InvalidJSON, "%s Please send the request again.", message)}
	}
	if compressed(x.Request.Header) {
		return nil, fault.New(fault.InvalidEncoding,
			"The request body is compressed. Send it as plain UTF-8, without a Content-Encoding header.")
	}
	return body, nil
}

// compressed reports whether the body was sent in a content coding.
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
