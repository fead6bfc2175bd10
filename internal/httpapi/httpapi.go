// Package httpapi owns what every HTTP surface of the gateway does alike: it
// finds the route of a request, gives it an id, reads its body within bounds,
// and answers with an error in the shape of the path's family, or as the surface
// wants it.
//
// Invariants: every answer carries the request's id; an unexpected error, and a
// panic, is logged once, here, with its cause, and reaches the client as a plain
// 503; an answer that has begun is cut rather than ended by an error; nothing of
// a body is read before a handler asks for it.
package httpapi

import (
	"log/slog"
	"net/http"
	"time"

	"tollgate/internal/fault"
	"tollgate/internal/store/id"
	"tollgate/internal/trace"
)

// Options are what a surface is made of. All but Log may be left out.
type Options struct {
	Log *slog.Logger
	// Origins are the web pages that may call the surface from a browser.
	Origins Origins
	// Enter judges each request before its path is looked at; nil: none is.
	Enter func(*Exchange) error
	// Refuse shows an error that a request ends in, after it was logged; nil: as
	// JSON in the shape of the path's family.
	Refuse func(*Exchange, *fault.Error)
	// NotFound returns what a path that has no route is refused with; nil: a 404 that
	// doubts the path and the base address.
	NotFound func(*http.Request) error
	// Observe is told of every answered request; nil: nobody is. Endpoint is the
	// path of its route, or "unknown" where it has none.
	Observe func(endpoint string, status int, took time.Duration)
	// Trace makes a span of each request; nil: none.
	Trace *trace.Tracer
	// Now is the clock; nil: time.Now.
	Now func() time.Time
}

// New returns the handler of some routes. Any other path is 404, and another
// method of one of their paths 405 with Allow.
func New(o Options, routes []Route) http.Handler {
	if o.NotFound == nil {
		o.NotFound = notFound
	}
	return newServer(o, newRouter(routes, o.NotFound).serve)
}

// Wrap returns a handler that lets h answer every request, whatever its path,
// with what New does around routes. Endpoint names h in the log.
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

// unknownEndpoint stands for every path that does not exist, so that strangers
// cannot fill the metrics with names.
const unknownEndpoint = "unknown"

// ServeHTTP answers one request.
func (s *server) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	x := &Exchange{ResponseWriter: w, Request: r, Received: s.Now(), log: s.Log, endpoint: unknownEndpoint}
	x.ID = id.At(idPrefix, x.Received)
	setID(w.Header(), x.ID)
	x.Span = s.Trace.Request(r, x.ID, x.Received)
	defer x.DropBody()
	defer s.seeOut(x)
	if err := s.receive(x); err != nil {
		s.refuse(x, err)
	}
}

// receive lets a request in and has it answered.
func (s *server) receive(x *Exchange) error {
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

// setID puts a request's id on its answer, under the names of both families.
func setID(h http.Header, request string) {
	h.Set("X-Request-Id", request)
	h.Set("Request-Id", request)
}
