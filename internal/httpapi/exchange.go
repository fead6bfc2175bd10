package httpapi

import (
	"context"
	"io"
	"log/slog"
	"net/http"
	"time"

	"tollgate/internal/trace"
)

// Exchange is one request and the writer of its answer. It records whether anything was written,
// and the status.
type Exchange struct {
	http.ResponseWriter // the connection's own

	Request  *http.Request
	ID       string // the request's id
	Received time.Time
	// Account, Key and Model describe the request for the log. They are empty until known.
	Account, Key, Model string
	// Span is the request's span in its trace, or nil if the request is not traced.
	Span *trace.Span
	// Memory is the reservation for the request's body. The zero value reserves nothing.
	Memory Reservation

	log      *slog.Logger
	endpoint string
	err      error // the error of the route
	status   int   // of the answer; 0 before the first write
	body     body
}

// PathID returns the value of {id} in the path, or "" if the route has none.
func (x *Exchange) PathID() string { return x.Request.PathValue("id") }

// Endpoint returns the path of the request's route, with {id}, or "unknown" without a route.
func (x *Exchange) Endpoint() string { return x.endpoint }

// DetachedContext returns a context for work before an answer, bounded by limit. The context does not
// end when the client disconnects, because a client that has closed its sending side may still read.
func (x *Exchange) DetachedContext(limit time.Duration) (context.Context, context.CancelFunc) {
	return context.WithTimeout(context.WithoutCancel(x.Request.Context()), limit)
}

// WriteHeader records the status of the answer. It does not record informational statuses.
func (x *Exchange) WriteHeader(status int) {
	if status >= http.StatusOK {
		x.begin(status)
	}
	x.ResponseWriter.WriteHeader(status)
}

// Write records the start of the answer.
func (x *Exchange) Write(p []byte) (int, error) {
	x.begin(http.StatusOK)
	return x.ResponseWriter.Write(p)
}

// ReadFrom implements io.ReaderFrom, so that the kernel sends files.
func (x *Exchange) ReadFrom(r io.Reader) (int64, error) {
	x.begin(http.StatusOK)
	return io.Copy(x.ResponseWriter, r)
}

// FlushError sends the header and the bytes written so far.
func (x *Exchange) FlushError() error {
	x.begin(http.StatusOK)
	return http.NewResponseController(x.ResponseWriter).Flush()
}

// Unwrap returns the connection's own writer, for http.ResponseController.
func (x *Exchange) Unwrap() http.ResponseWriter { return x.ResponseWriter }

// begin records the status of the answer.
func (x *Exchange) begin(status int) {
	if x.status == 0 {
		x.status = status
	}
}
