package httpapi

import (
	"context"
	"io"
	"log/slog"
	"net/http"
	"time"

	"tollgate/internal/trace"
)

// Exchange is one request and the writer of its answer, which knows whether
// anything was written and with which status.
type Exchange struct {
	http.ResponseWriter // the connection's own

	Request  *http.Request
	ID       string // of the request: on its answer, in the log and in the request log
	Received time.Time
	// Account, Key and Model are whose request it is and what it asks for, as far
	// as that is known: for the log.
	Account, Key, Model string
	// Span is the request's in its trace; nil: it is not traced.
	Span *trace.Span
	// Memory is what the request's body is held in; the zero value asks nobody.
	Memory Held

	log      *slog.Logger
	endpoint string
	err      error // what the route answered
	status   int   // of the answer; 0: nothing written yet
	body     body
}

// PathID returns what stands in the path for {id}; empty where the route has none.
func (x *Exchange) PathID() string { return x.Request.PathValue("id") }

// Endpoint is the path of the request's route, with {id}; "unknown" where it has
// none.
func (x *Exchange) Endpoint() string { return x.endpoint }

// Outliving returns a context for what is asked before an answer, which takes
// this long at most. It outlives the client: one that has closed its own side may
// still read, and one that is gone is no failure of ours.
func (x *Exchange) Outliving(limit time.Duration) (context.Context, context.CancelFunc) {
	return context.WithTimeout(context.WithoutCancel(x.Request.Context()), limit)
}

// WriteHeader notes the status of the answer; informational ones pass.
func (x *Exchange) WriteHeader(status int) {
	if status >= http.StatusOK {
		x.begin(status)
	}
	x.ResponseWriter.WriteHeader(status)
}

// Write notes that the answer began.
func (x *Exchange) Write(p []byte) (int, error) {
	x.begin(http.StatusOK)
	return x.ResponseWriter.Write(p)
}

// ReadFrom implements io.ReaderFrom, so that files are sent by the kernel.
func (x *Exchange) ReadFrom(from io.Reader) (int64, error) {
	x.begin(http.StatusOK)
	return io.Copy(x.ResponseWriter, from)
}

// FlushError sends what was written, and with it the header.
func (x *Exchange) FlushError() error {
	x.begin(http.StatusOK)
	return http.NewResponseController(x.ResponseWriter).Flush()
}

// Unwrap gives http.ResponseController the connection's own writer.
func (x *Exchange) Unwrap() http.ResponseWriter { return x.ResponseWriter }

// begin notes the status of an answer that begins.
func (x *Exchange) begin(status int) {
	if x.status == 0 {
		x.status = status
	}
}
