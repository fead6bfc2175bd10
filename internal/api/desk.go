package api

import (
	"context"
	"errors"
	"log/slog"
	"maps"
	"net/http"
	"net/netip"
	"runtime/debug"
	"slices"
	"strings"
	"sync/atomic"
	"time"

	"tollgate/internal/account"
	"tollgate/internal/fault"
	"tollgate/internal/id"
	"tollgate/internal/ledger"
)

// desk is the front desk: it receives each request, sends it on its way and
// sees it out.
type desk struct {
	Options
	paths   map[string]methods
	applied atomic.Pointer[revisionTime] // of the revision that was listed last
	fetches *fetches
	bodies  *bodies
}

// exchange is one request and its answer.
type exchange struct {
	w        *answer
	r        *http.Request
	request  string // the id on every answer and in the request log
	received time.Time

	route     route             // the zero route: the path does not exist
	id        string            // what stands in the path for {id}
	from      netip.Addr        // the client's address
	principal account.Principal // who calls, once the key is known
	fresh     bool              // principal is what the database said after the request came
	body      body
	model     string // what the client asked for, for the request log
	handed    bool   // the request was handed on: from here its log row is the ledger's
}

// unknownEndpoint stands for every path that does not exist, so that strangers
// cannot fill the metrics with names.
const unknownEndpoint = "unknown"

// ServeHTTP answers one request.
func (d *desk) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	x := &exchange{w: &answer{ResponseWriter: w}, r: r, received: d.Now()}
	x.request = id.At("req_", x.received)
	h := w.Header()
	h.Set("X-Request-Id", x.request)
	h.Set("Request-Id", x.request)
	defer x.body.held.release()
	defer d.seeOut(x)
	if err := d.receive(x); err != nil {
		d.refuse(x, err)
	}
}

// receive judges path, method, key and address, in this order, and lets the
// route do the rest.
func (d *desk) receive(x *exchange) error {
	methods := d.find(x)
	if methods == nil {
		return notFound(x.r)
	}
	method := x.r.Method
	if method == http.MethodHead {
		method = http.MethodGet // net/http leaves the body out
	}
	route, allowed := methods[method]
	if !allowed {
		return notAllowed(x, methods)
	}
	x.route = route
	x.from = ClientAddress(x.r, d.TrustedProxies)
	if err := d.identify(x, route.kind == query); err != nil {
		return err
	}
	x.body.held = d.bodies.body(x.principal.Account)
	return route.handle(x)
}

// find returns the routes of a request's path, nil when there are none, and
// notes the id that the path ends in where a route has one.
func (d *desk) find(x *exchange) methods {
	path := x.r.URL.Path
	if known, ok := d.paths[path]; ok {
		return known
	}
	folder, id := path[:strings.LastIndexByte(path, '/')+1], path[strings.LastIndexByte(path, '/')+1:]
	if id == "" {
		return nil
	}
	x.id = id
	return d.paths[folder+pathID]
}

// identify finds out whose key the request carries and whether it may be used
// from where the request comes. Without fresh it may go by what is remembered
// of the key: that is for requests that go through admission, which checks the
// key's version. A refusal always has the database's word.
func (d *desk) identify(x *exchange, fresh bool) error {
	native := fault.IsNative(x.r.URL.Path)
	secret := bearer(x.r.Header)
	if native {
		secret = nativeKey(x.r.Header)
	}
	switch {
	case secret == "" && native:
		return fault.New(fault.MissingAPIKey, "No API key was sent. Send it in the header `x-api-key: <API_KEY>`.")
	case secret == "":
		return fault.New(fault.MissingAPIKey,
			"No API key was sent. Send it in the header `Authorization: Bearer <API_KEY>`.")
	}
	ctx, done := x.reading()
	defer done()
	var err error
	if fresh {
		x.principal, err = d.Keys.Authenticate(ctx, secret, x.from, true)
	} else {
		x.principal, err = d.Keys.AuthenticateCall(ctx, secret, x.from)
	}
	x.fresh = fresh
	switch {
	case err != nil:
		return err
	case x.principal.AllowsAddress(x.from):
		return nil
	case !fresh:
		return d.identify(x, true)
	}
	return fault.New(fault.PermissionDenied,
		"This API key may not be used from the address %s. Add it to the key's allowed addresses or use another key.", x.from)
}

// notFound is the answer of a path that does not exist.
func notFound(r *http.Request) error {
	return fault.New(fault.NotFound, "There is no endpoint at %s. Check the path and the base address of your client.", shown(r.URL.Path))
}

// notAllowed is the answer of a known path with another method.
func notAllowed(x *exchange, known methods) error {
	allow := slices.Collect(maps.Keys(known))
	if _, get := known[http.MethodGet]; get {
		allow = append(allow, http.MethodHead)
	}
	slices.Sort(allow)
	list := strings.Join(allow, ", ")
	x.w.Header().Set("Allow", list)
	return fault.New(fault.MethodNotAllowed, "This endpoint does not accept %s. Use %s.", shown(x.r.Method), list)
}

// refuse answers with an error, and logs it if it is a surprise. Where nobody
// knows what became of the request the connection is cut: an error would say
// that it was not charged.
func (d *desk) refuse(x *exchange, err error) {
	if errors.Is(err, ledger.ErrUnknown) {
		d.Log.Error("request cut off", "request", x.request, "endpoint", x.endpoint(), "cause", err)
		panic(http.ErrAbortHandler)
	}
	f := fault.Of(err)
	if f.Cause != nil && x.r.Context().Err() == nil {
		level := slog.LevelInfo
		if f.Code == fault.ServiceUnavailable {
			level = slog.LevelError
		}
		d.Log.Log(x.r.Context(), level, "request failed", "request", x.request, "endpoint", x.endpoint(),
			"code", string(f.Code), "cause", f.Cause)
	}
	if x.route.kind == modelCall && !x.handed {
		d.Ledger.Refused(ledger.Refusal{
			Request: x.request, Account: x.principal.Account, Key: x.principal.Key,
			Model: shown(x.model), Endpoint: x.route.path,
			Status: f.Status(), Code: string(f.Code),
			Received: x.received, Duration: d.Now().Sub(x.received),
		})
	}
	if f.Status() == http.StatusUnauthorized {
		x.w.Header().Set("WWW-Authenticate", "Bearer")
	}
	if f.Code == fault.InvalidAPIKey && !x.handed {
		d.slow(x)
	}
	write(x, f)
}

// slow keeps the answer to a wrong key waiting where its address has sent many.
// A good key is never here, whatever others behind its address do.
func (d *desk) slow(x *exchange) {
	if d.WrongKeys == nil {
		return
	}
	x.body.held.release()
	x.body = body{}
	if !d.WrongKeys.Wait(context.WithoutCancel(x.r.Context()), x.from) { // who hangs up does not wait less
		x.w.Header().Set("Connection", "close")
	}
}

// write answers with an error in the shape of the path's family.
func write(x *exchange, f *fault.Error) {
	if fault.IsNative(x.r.URL.Path) {
		f.WriteNative(x.w)
		return
	}
	f.Write(x.w)
}

// seeOut runs at the end of every request, also of one that panicked. A panic
// of ours is logged with its stack and answered 503, or cuts an answer that
// has begun; http.ErrAbortHandler is a cut that was asked for.
func (d *desk) seeOut(x *exchange) {
	trouble := recover()
	if err, ok := trouble.(error); trouble != nil && (!ok || !errors.Is(err, http.ErrAbortHandler)) {
		d.Log.Error("request panicked", "request", x.request, "endpoint", x.endpoint(),
			"panic", trouble, "stack", string(debug.Stack()))
		if x.w.status == 0 {
			write(x, fault.Unavailable(nil))
			trouble = nil
		} else {
			trouble = http.ErrAbortHandler
		}
	}
	d.Observe(x.endpoint(), x.w.status, d.Now().Sub(x.received))
	if trouble != nil {
		panic(trouble)
	}
}

// endpoint names the route for logs and metrics.
func (x *exchange) endpoint() string {
	if x.route.path == "" {
		return unknownEndpoint
	}
	return x.route.path
}

// away is the 503 for a database that does not answer.
func away(err error) error {
	f := fault.Unavailable(err)
	f.RetryAfter = time.Second
	return f
}

// longestShown bounds what a message or a log row repeats of a client's text.
const longestShown = 200

// shown cuts a client's text to what may be repeated, as valid UTF-8.
func shown(text string) string {
	if len(text) > longestShown {
		text = text[:longestShown] + "…"
	}
	return strings.ToValidUTF8(text, "")
}
