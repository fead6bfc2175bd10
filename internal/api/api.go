// Package api owns the public endpoints below /v1, /native and /v1beta: routes, authentication, the
// order of checks, and the responses. Package httpapi renders errors.
//
// Invariants: a request with several faults gets the first one in the order of ARCHITECTURE.md,
// Order of checks; no body is read before its key is valid; no secret is logged.
package api

import (
	"context"
	"net/http"
	"net/netip"
	"time"

	"tollgate/internal/account"
	"tollgate/internal/call"
	"tollgate/internal/catalog"
	"tollgate/internal/chat"
	"tollgate/internal/egress"
	"tollgate/internal/httpapi"
	"tollgate/internal/job"
	"tollgate/internal/ledger"
	"tollgate/internal/limit"
	"tollgate/internal/media"
	"tollgate/internal/response"
)

// Options configures the endpoints. All fields are required except WrongKeys and, in
// httpapi.Options, all except Log.
type Options struct {
	// Options shared with other surfaces; Enter and NotFound are set here.
	httpapi.Options
	Since     *catalog.ModelTimes // records when models were first in a catalog
	Keys      *account.Keys
	Catalog   *catalog.Watcher
	Ledger    *ledger.Ledger
	Chat      *chat.Conductor
	Responses *response.Responses
	Calls     *call.Engine
	Jobs      *job.Jobs
	Media     *media.Store
	Guard     *egress.Guard

	TrustedProxies []netip.Prefix // proxies with a trusted X-Forwarded-For
	MaxBody        int64          // largest request body in bytes
	BodyMemory     int64          // bytes of all concurrent request bodies; default 1 GiB
	// PictureWait is the longest time that a submission of images waits for its result. Zero means
	// that no submission waits.
	PictureWait time.Duration

	// CountRate is the number of token counts per minute that an account may request on this node.
	// Zero means no limit.
	CountRate int

	// WrongKeys delays the response to a wrong key if its address has sent many. If nil, nothing is
	// delayed.
	WrongKeys *limit.Throttle
}

// PublicHandler is the handler of /v1, /native and /v1beta. Any other path is answered with 404 in the /v1
// format, so it may be the last handler of a server.
type PublicHandler struct {
	byKey     http.Handler
	routes    []httpapi.Route
	bySession http.Handler // for ServeAs, without CORS
}

// New returns the handler of the public endpoints.
func New(o Options) *PublicHandler {
	if o.Now == nil {
		o.Now = time.Now
	}
	d := &server{Options: o, fetches: newFetches(), memory: httpapi.NewBudget(o.BodyMemory, o.MaxBody, LargestReference)}
	if o.CountRate > 0 {
		d.counts = limit.NewBuckets[string](limit.Bounds{
			Rate: float64(o.CountRate) / 60, Top: float64(o.CountRate), Keys: countedAccounts, Now: o.Now,
		})
	}
	routes := d.routes()
	with := o.Options
	with.Enter, with.NotFound = refuseUpgrade, newKnownPaths(routes).notFound
	served := httpapi.New(with, routes)
	with.Origins = nil
	return &PublicHandler{byKey: served, routes: routes, bySession: httpapi.New(with, routes)}
}

// Endpoints returns all endpoint names passed to Options.Observe.
func (d *PublicHandler) Endpoints() []string { return httpapi.Endpoints(d.routes) }

// ServeHTTP handles a request authenticated by its API key.
func (d *PublicHandler) ServeHTTP(w http.ResponseWriter, r *http.Request) { d.byKey.ServeHTTP(w, r) }

// ServeAs handles a request without a key for a signed-in user of an account, as if the request had
// carried the given key of the account. All rules for calls apply: the key's state, addresses,
// models and limits, admission and the request log.
func (d *PublicHandler) ServeAs(w http.ResponseWriter, r *http.Request, account, key string) {
	d.bySession.ServeHTTP(w, r.WithContext(context.WithValue(r.Context(), sessionKey{}, sessionKey{account, key})))
}

// sessionKey is the API key used by ServeAs. The type is also the key of the context value.
type sessionKey struct{ account, key string }

// routes returns the routes of the public endpoints.
func (d *server) routes() []httpapi.Route {
	return append([]httpapi.Route{
		{Pattern: "POST /v1/chat/completions", Handle: d.modelCall(d.chatCompletions)},
		{Pattern: "POST /v1/responses", Handle: d.modelCall(d.responses)},
		{Pattern: "POST /v1/responses/input_tokens", Handle: d.query(d.countInput)},
		{Pattern: "GET /v1/responses/{id}", Handle: d.query(d.storedResponse)},
		{Pattern: "DELETE /v1/responses/{id}", Handle: d.query(d.deleteResponse)},
		{Pattern: "GET /v1/responses/{id}/input_items", Handle: d.query(d.inputItems)},
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
		{Pattern: "GET /v1beta/models", Handle: d.query(d.googleModels)},
		{Pattern: "GET /v1beta/models/{id...}", Handle: d.query(d.googleModel)},
		{Pattern: "POST /v1beta/models/{id...}:generateContent", Handle: d.modelCall(d.generateContent)},
		{Pattern: "POST /v1beta/models/{id...}:streamGenerateContent", Handle: d.modelCall(d.streamGenerateContent)},
		{Pattern: "POST /v1beta/models/{id...}:countTokens", Handle: d.query(d.countContent)},
		{Pattern: "POST /v1/models/{id...}:generateContent", Handle: d.modelCall(d.generateContent)},
		{Pattern: "POST /v1/models/{id...}:streamGenerateContent", Handle: d.modelCall(d.streamGenerateContent)},
		{Pattern: "POST /v1/models/{id...}:countTokens", Handle: d.query(d.countContent)},
	}, d.kindRoutes()...)
}
