// Package api owns the public door: which paths exist under /v1 and /native,
// who may pass, in which order a request is judged, and how answers look on the
// wire. Errors are httpapi's.
//
// Invariants: a request that is wrong in several ways gets the first fault in
// the order of ARCHITECTURE.md, Order of checks; nothing of a body is read
// before its key is known to be good; no secret is logged.
package api

import (
	"context"
	"log/slog"
	"net/http"
	"net/netip"
	"time"

	"tollgate/internal/account"
	"tollgate/internal/catalog"
	"tollgate/internal/chat"
	"tollgate/internal/egress"
	"tollgate/internal/httpapi"
	"tollgate/internal/job"
	"tollgate/internal/ledger"
	"tollgate/internal/limit"
	"tollgate/internal/media"
	"tollgate/internal/store"
	"tollgate/internal/trace"
)

// Options is what the door needs. All but WrongKeys, Observe, Trace and Now must be set.
type Options struct {
	DB      *store.DB
	Keys    *account.Keys
	Catalog *catalog.Watcher
	Ledger  *ledger.Ledger
	Chat    *chat.Conductor
	Jobs    *job.Jobs
	Media   *media.Store
	Guard   *egress.Guard
	Log     *slog.Logger

	TrustedProxies []netip.Prefix // whose X-Forwarded-For is believed
	MaxBody        int64          // largest request body, bytes
	BodyMemory     int64          // of all request bodies at a time, bytes; 0: 1 GiB

	// Origins are the web pages whose scripts may call; nil: none may.
	Origins httpapi.Origins
	// WrongKeys slows addresses that send many of them; nil: nobody waits.
	WrongKeys *limit.Throttle
	// Observe is told of every answered request; nil: nobody is. Endpoint is
	// the path, or "unknown" for a path that does not exist.
	Observe func(endpoint string, status int, took time.Duration)
	// Trace makes a span of each request; nil: none.
	Trace *trace.Tracer
	// Now is the clock; nil: time.Now.
	Now func() time.Time
}

// Door is the handler of /v1 and /native. Any other path is answered 404 in the
// /v1 shape, so it may be the last handler of a server.
type Door struct {
	served http.Handler
	routes []httpapi.Route
	named  http.Handler // the same for ServeAs, which is no business of other sites' pages
}

// New returns the door.
func New(o Options) *Door {
	if o.Now == nil {
		o.Now = time.Now
	}
	d := &desk{Options: o, fetches: newFetches(), memory: httpapi.NewBudget(o.BodyMemory, o.MaxBody, LargestReference)}
	with := httpapi.Options{Log: o.Log, NotFound: notFound, Observe: o.Observe, Trace: o.Trace, Now: o.Now}
	routes := d.routes()
	named := httpapi.New(with, routes)
	with.Origins = o.Origins
	return &Door{served: httpapi.New(with, routes), routes: routes, named: named}
}

// Endpoints are all that Options.Observe is ever told of.
func (d *Door) Endpoints() []string { return httpapi.Endpoints(d.routes) }

// ServeHTTP answers a request by the key that it carries.
func (d *Door) ServeHTTP(w http.ResponseWriter, r *http.Request) { d.served.ServeHTTP(w, r) }

// ServeAs answers a request for somebody who sends no key, but is known to be a
// user of an account and names one of its keys: with that key, as if it had been
// sent. Its state, addresses, models and limits, admission and the request log are
// those of any call.
func (d *Door) ServeAs(w http.ResponseWriter, r *http.Request, account, key string) {
	d.named.ServeHTTP(w, r.WithContext(context.WithValue(r.Context(), namedKey{}, namedKey{account, key})))
}

// namedKey is the key that a request is answered with which carries none; it is
// its own name among the values of the request's context.
type namedKey struct{ account, key string }

// routes is the table of contents of the public surface.
func (d *desk) routes() []httpapi.Route {
	return []httpapi.Route{
		{Pattern: "POST /v1/chat/completions", Handle: d.modelCall(d.chatCompletions)},
		{Pattern: "POST /v1/responses", Handle: d.modelCall(d.responses)},
		{Pattern: "POST /native/v1/messages", Handle: d.modelCall(d.messages)},
		{Pattern: "POST /native/v1/messages/count_tokens", Handle: d.query(d.countTokens)},
		{Pattern: "GET /native/v1/models", Handle: d.query(d.nativeModels)},
		{Pattern: "GET /native/v1/models/{id...}", Handle: d.query(d.nativeModel)},
		{Pattern: "POST /v1/images/generations", Handle: d.modelCall(d.imageGenerations)},
		{Pattern: "POST /v1/images/edits", Handle: d.modelCall(d.imageEdits)},
		{Pattern: "POST /v1/videos/generations", Handle: d.modelCall(d.videoGenerations)},
		{Pattern: "GET /v1/images/jobs/{id}", Handle: d.query(d.imageJob)},
		{Pattern: "GET /v1/videos/jobs/{id}", Handle: d.query(d.videoJob)},
		{Pattern: "GET /v1/models", Handle: d.query(d.models)},
		{Pattern: "GET /v1/models/{id...}", Handle: d.query(d.model)},
		{Pattern: "GET /v1/usage", Handle: d.query(d.usage)},
		{Pattern: "GET /v1/dashboard/billing/credit_grants", Handle: d.query(d.creditGrants)},
	}
}
