package httpapi

import (
	"context"
	"errors"
	"log/slog"
	"net/http"
	"runtime/debug"

	"tollgate/internal/fault"
)

// Abort logs the cause and closes the connection without a response, by a panic with
// http.ErrAbortHandler. It is for requests with an unknown outcome, because an error response would
// claim that the request was not charged.
func (x *Exchange) Abort(cause error) {
	x.log.Error("request cut off", "request", x.ID, "endpoint", x.endpoint, "account", x.Account, "key", x.Key, "model", x.Model,
		"cause", cause, x.Span.Log())
	panic(http.ErrAbortHandler)
}

// refuse answers with an error. It logs unexpected errors, but not the client's own disconnection.
func (s *server) refuse(x *Exchange, err error) {
	f := fault.Of(err)
	clientGone := x.Request.Context().Err() != nil && errors.Is(f.Cause, context.Canceled)
	if f.Cause != nil && !clientGone {
		level := slog.LevelInfo
		// Some endpoints answer a provider's failure with service_unavailable. The cause has the original code.
		if cause := fault.Of(f.Cause); f.Code == fault.ServiceUnavailable && cause.Code == fault.ServiceUnavailable {
			level = slog.LevelError
		}
		s.Log.Log(x.Request.Context(), level, "request failed", "request", x.ID, "endpoint", x.endpoint,
			"account", x.Account, "key", x.Key, "model", x.Model, "line", f.Line, "code", string(f.Code), "cause", f.Cause, x.Span.Log())
	}
	if f.Status() >= http.StatusInternalServerError {
		x.Span.Fail(string(f.Code))
	} else {
		x.Span.Code(string(f.Code))
	}
	if f.Status() == http.StatusUnauthorized {
		x.Header().Set("WWW-Authenticate", "Bearer")
	}
	s.Refuse(x, f)
}

// write answers with an error in the shape of the path's family.
func write(w http.ResponseWriter, r *http.Request, f *fault.Error) {
	switch path := r.URL.Path; {
	case fault.IsNative(path):
		f.WriteNative(w)
	case fault.IsGoogle(path):
		f.WriteGoogle(w)
	default:
		f.Write(w)
	}
}

// finish runs at the end of every request, even after a panic. It logs a panic with the stack, and
// answers 503 or cuts an answer that has begun. A panic with http.ErrAbortHandler cuts the answer
// without a log line.
func (s *server) finish(x *Exchange) {
	panicked := recover()
	if err, ok := panicked.(error); panicked != nil && (!ok || !errors.Is(err, http.ErrAbortHandler)) {
		s.Log.Error("request panicked", "request", x.ID, "endpoint", x.endpoint, "panic", panicked, "stack", string(debug.Stack()),
			x.Span.Log())
		if x.status == 0 {
			s.Refuse(x, fault.Unavailable(nil))
			panicked = nil
		} else {
			panicked = http.ErrAbortHandler
		}
	}
	s.Observe(x.endpoint, x.status, s.Now().Sub(x.Received))
	x.Span.Caller(x.Account, x.Key)
	if panicked != nil {
		x.Span.Cut()
	}
	x.Span.EndRequest(x.endpoint, x.status)
	if panicked != nil {
		panic(panicked)
	}
}
