// Package api owns the public door: which paths exist under /v1 and /native,
// who may pass, in which order a request is judged, and how answers and errors
// look on the wire.
//
// Invariants: a request that is wrong in several ways gets the first fault in
// the order of ARCHITECTURE.md, Order of checks; nothing of a body is read
// before its key is known to be good; every answer carries the request's id;
// an unexpected error is logged once, here, and reaches the client as a plain
// 503; no secret is logged.
package api

import (
	"log/slog"
	"net/http"
	"net/netip"
	"time"

	"tollgate/internal/account"
	"tollgate/internal/catalog"
	"tollgate/internal/chat"
	"tollgate/internal/egress"
	"tollgate/internal/job"
	"tollgate/internal/ledger"
	"tollgate/internal/limit"
	"tollgate/internal/media"
	"tollgate/internal/store"
)

// Options is what the door needs. All but WrongKeys, Observe and Now must be set.
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

	// WrongKeys slows addresses that send many of them; nil: nobody waits.
	WrongKeys *limit.Throttle
	// Observe is told of every answered request; nil: nobody is. Endpoint is
	// the path, or "unknown" for a path that does not exist.
	Observe func(endpoint string, status int, took time.Duration)
	// Now is the clock; nil: time.Now.
	Now func() time.Time
}

// New returns the handler of /v1 and /native. Any other path is answered 404
// in the /v1 shape, so it may be the last handler of a server.
func New(o Options) http.Handler {
	if o.Observe == nil {
		o.Observe = func(string, int, time.Duration) {}
	}
	if o.Now == nil {
		o.Now = time.Now
	}
	d := &desk{Options: o, paths: make(map[string]methods), fetches: newFetches(), bodies: newBodies(o.BodyMemory, o.MaxBody)}
	for _, route := range d.routes() {
		if d.paths[route.path] == nil {
			d.paths[route.path] = make(methods)
		}
		d.paths[route.path][route.method] = route
	}
	return d
}

// routes is the table of contents of the public surface.
func (d *desk) routes() []route {
	return []route{
		{http.MethodPost, "/v1/chat/completions", modelCall, d.chatCompletions},
		{http.MethodPost, "/v1/responses", modelCall, d.responses},
		{http.MethodPost, "/native/v1/messages", modelCall, d.messages},
		{http.MethodPost, "/native/v1/messages/count_tokens", query, d.countTokens},
		{http.MethodGet, "/native/v1/models", query, d.nativeModels},
		{http.MethodPost, "/v1/images/generations", modelCall, d.imageGenerations},
		{http.MethodPost, "/v1/images/edits", modelCall, d.imageEdits},
		{http.MethodPost, "/v1/videos/generations", modelCall, d.videoGenerations},
		{http.MethodGet, "/v1/images/jobs/" + pathID, query, d.imageJob},
		{http.MethodGet, "/v1/videos/jobs/" + pathID, query, d.videoJob},
		{http.MethodGet, "/v1/models", query, d.models},
		{http.MethodGet, "/v1/usage", query, d.usage},
		{http.MethodGet, "/v1/dashboard/billing/credit_grants", query, d.creditGrants},
	}
}

// pathID stands in a route's path for an id, its last part.
const pathID = "{id}"

// route is one method of one path.
type route struct {
	method string
	path   string
	kind   kind
	handle func(*exchange) error // an error means that nothing was written yet
}

// kind tells what a route's refusals leave behind.
type kind int

const (
	query     kind = iota // reads the account: nothing is recorded
	modelCall             // runs a model: refusals stand in the request log too
)

// methods are the routes of one path.
type methods map[string]route
