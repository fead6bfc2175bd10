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

// Unwrap returns the fault.
func (b interruptedError) Unwrap() error { return b.error }

// IsInterrupted reports whether err means an incomplete request body. Handlers must stop work for such
// a request, because its connection and context may be dead.
func IsInterrupted(err error) bool {
	var b interruptedError
	return errors.As(err, &b)
}

// body is the result of reading a request's body.
type body struct {
	read  bool
	bytes []byte
	err   error
}

// Body returns the whole body of the request and reads it only once: at most limit bytes (413), not
// compressed (400), and complete (400). The server bounds the time. Body reserves memory as described
// in bounded.Read, and returns the error of the reservation.
func (x *Exchange) Body(limit int64) ([]byte, error) {
	if !x.body.read {
		x.body.read = true
		x.body.bytes, x.body.err = x.readBody(limit)
	}
	return x.body.bytes, x.body.err
}

// DropBody drops the body and releases its memory.
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
	limited := http.MaxBytesReader(x.ResponseWriter, x.Request.Body, limit)
	body, err := bounded.Read(limited, x.Request.ContentLength, limit, x.Memory.Grow)
	var maxBytesErr *http.MaxBytesError
	var f *fault.Error
	switch {
	case errors.As(err, &f):
		x.Header().Set("Connection", "close") // the rest of the body is not read
		return nil, err
	case errors.As(err, &maxBytesErr):
		return nil, tooLarge
	case err != nil:
		return nil, x.Interrupted(fault.InvalidJSON, "request body", err)
	}
	if compressed(x.Request.Header) {
		return nil, fault.New(fault.InvalidEncoding,
			"The request body is compressed. Send it as plain UTF-8, without a Content-Encoding header.")
	}
	return body, nil
}

// Interrupted returns the error for a body, named for the client, after a read failed with cause. The
// connection is closed, because the rest of the body makes further requests unreadable.
func (x *Exchange) Interrupted(code fault.Code, body string, cause error) error {
	x.Header().Set("Connection", "close")
	problem := "breaks off before its end."
	if errors.Is(cause, os.ErrDeadlineExceeded) {
		problem = "breaks off: it took too long to arrive."
	}
	return interruptedError{fault.New(code, "The %s %s Please send the request again.", body, problem)}
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
