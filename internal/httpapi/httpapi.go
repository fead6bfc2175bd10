// Package httpapi owns the common behaviour of every HTTP surface of the gateway: it finds the
// route of a request, gives the request an id, reads its body within bounds, and answers errors in
// the shape of the path's family, or as Options.Refuse does.
//
// Invariants: every answer carries the request's id. Unexpected errors and panics are logged once,
// here, with their cause, and the client gets a plain 503. If an answer has begun, an error cuts the
// connection. No body is read before a handler calls Body.
package httpapi

import (
	"log/slog"
	"net/http"
	"time"

	"tollgate/internal/fault"
	"tollgate/internal/store/id"
	"tollgate/internal/trace"
)

// Options configure a surface. Only Log is required.
type Options struct {
	Log *slog.Logger
	// Origins are the web pages that may call the surface from a browser.
	Origins Origins
	// Enter admits or rejects each request before the route is found. If nil, every request is admitted.
	Enter func(*Exchange) error
	// Refuse writes the error of a request after the error was logged. If nil, the error is JSON in the
	// shape of the path's family.
	Refuse func(*Exchange, *fault.Error)
	// NotFound returns the error for a path without a route. If nil, the error is a 404 with the advice
	// to check the path and the base address.
	NotFound func(*http.Request) error
	// Observe is called for every answered request, if not nil. endpoint is the path of the request's route,
	// or "unknown" without a route.
	Observe func(endpoint string, status int, elapsed time.Duration)
	// Trace starts a span for each request, if not nil.
	Trace *trace.Tracer
	// Now is the clock. If nil, time.Now is used.
	Now func() time.Time
}

// New returns a handler for routes. It answers other paths with 404, and other methods of a route's path
// with 405 and Allow.
func New(o Options, routes []Route) http.Handler {
	if o.NotFound == nil {
		o.NotFound = notFound
	}
	return newServer(o, newRouter(routes, o.NotFound).serve)
}

// Wrap is like New with h as the handler of every path. endpoint is the name of h in the log.
func Wrap(o Options, endpoint string, h http.Handler) http.Handler {
	return newServer(o, func(x *Exchange) error {
		x.endpoint = endpoint
		h.ServeHTTP(x, x.Request)
		return nil
	})
}

// server is the handler of a surface.
type server struct {
	Options
	answer func(*Exchange) error // an error means that nothing was written yet
}

func newServer(o Options, answer func(*Exchange) error) *server {
	if o.Now == nil {
		o.Now = time.Now
	}
	if o.Observe == nil {
		o.Observe = func(string, int, time.Duration) {}
	}
	if o.Refuse == nil {
		o.Refuse = func(x *Exchange, f *fault.Error) { write(x, x.Request, f) }
	}
	return &server{o, answer}
}

// unknownEndpoint is the endpoint of every path without a route, so that clients cannot create metrics
// with arbitrary names.
const unknownEndpoint = "unknown"

// ServeHTTP answers one request.
func (s *server) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	x := &Exchange{ResponseWriter: w, Request: r, Received: s.Now(), log: s.Log, endpoint: unknownEndpoint}
	x.ID = id.At(idPrefix, x.Received)
	setID(w.Header(), x.ID)
	x.Span = s.Trace.Request(r, x.ID, x.Received)
	defer x.DropBody()
	defer s.finish(x)
	if err := s.serve(x); err != nil {
		s.refuse(x, err)
	}
}

// serve calls Origins.admit and Enter, and then answers the request.
func (s *server) serve(x *Exchange) error {
	if s.Origins.admit(x) {
		return nil
	}
	if s.Enter != nil {
		if err := s.Enter(x); err != nil {
			return err
		}
	}
	return s.answer(x)
}

const idPrefix = "req_"

// setID adds a request's id to its answer, under the header names of both families.
func setID(h http.Header, request string) {
	h.Set("X-Request-Id", request)
	h.Set("Request-Id", request)
}
