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

// Options configures the endpoints. Log, MaxBody and all pointers except WrongKeys are required.
type Options struct {
	// Options are shared with the other HTTP surfaces. New sets Enter and NotFound.
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

	// WrongKeys delays the response to a wrong key if the client's address has sent many wrong keys.
	// If nil, nothing is delayed.
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
	s := &server{Options: o, fetches: newFetches(), memory: httpapi.NewBudget(o.BodyMemory, o.MaxBody, LargestReference)}
	if o.CountRate > 0 {
		s.counts = limit.NewBuckets[string](limit.Bounds{
			Rate: float64(o.CountRate) / 60, Top: float64(o.CountRate), Keys: maxCountAccounts, Now: o.Now,
		})
	}
	routes := s.routes()
	surface := o.Options
	surface.Enter, surface.NotFound = refuseUpgrade, newKnownPaths(routes).notFound
	byKey := httpapi.New(surface, routes)
	surface.Origins = nil
	return &PublicHandler{byKey: byKey, routes: routes, bySession: httpapi.New(surface, routes)}
}

// Endpoints returns all endpoint names passed to Options.Observe.
func (h *PublicHandler) Endpoints() []string { return httpapi.Endpoints(h.routes) }

// ServeHTTP handles a request authenticated by its API key.
func (h *PublicHandler) ServeHTTP(w http.ResponseWriter, r *http.Request) { h.byKey.ServeHTTP(w, r) }

// ServeAs handles a request without a key for a signed-in user of an account, as if the request had
// carried the given key of the account. All rules for calls apply: the key's state, addresses,
// models and limits, admission and the request log.
func (h *PublicHandler) ServeAs(w http.ResponseWriter, r *http.Request, account, key string) {
	h.bySession.ServeHTTP(w, r.WithContext(context.WithValue(r.Context(), sessionKey{}, sessionKey{account, key})))
}

// sessionKey is the API key used by ServeAs. The type is also the key of the context value.
type sessionKey struct{ account, key string }

// routes returns the routes of the public endpoints.
func (s *server) routes() []httpapi.Route {
	return append([]httpapi.Route{
		{Pattern: "POST /v1/chat/completions", Handle: s.modelCall(s.chatCompletions)},
		{Pattern: "POST /v1/responses", Handle: s.modelCall(s.responses)},
		{Pattern: "POST /v1/responses/input_tokens", Handle: s.query(s.countInput)},
		{Pattern: "GET /v1/responses/{id}", Handle: s.query(withResponseID(s.storedResponse))},
		{Pattern: "DELETE /v1/responses/{id}", Handle: s.query(withResponseID(s.deleteResponse))},
		{Pattern: "GET /v1/responses/{id}/input_items", Handle: s.query(withResponseID(s.inputItems))},
		{Pattern: "POST /native/v1/messages", Handle: s.modelCall(s.messages)},
		{Pattern: "POST /native/v1/messages/count_tokens", Handle: s.query(s.countTokens)},
		{Pattern: "GET /native/v1/models", Handle: s.query(s.nativeModels)},
		{Pattern: "GET /native/v1/models/{id...}", Handle: s.query(s.nativeModel)},
		{Pattern: "POST /v1/images/generations", Handle: s.modelCall(s.imageGenerations)},
		{Pattern: "POST /v1/images/edits", Handle: s.modelCall(s.imageEdits)},
		{Pattern: "POST /v1/videos/generations", Handle: s.modelCall(s.videoGenerations)},
		{Pattern: "GET /v1/images/jobs/{id}", Handle: s.query(s.imageJob)},
		{Pattern: "GET /v1/videos/jobs/{id}", Handle: s.query(s.videoJob)},
		{Pattern: "GET /v1/models", Handle: s.query(s.models)},
		{Pattern: "GET /v1/models/{id...}", Handle: s.query(s.model)},
		{Pattern: "GET /v1/usage", Handle: s.query(s.usage)},
		{Pattern: "GET /v1/dashboard/billing/credit_grants", Handle: s.query(s.creditGrants)},
		{Pattern: "GET /v1beta/models", Handle: s.query(s.googleModels)},
		{Pattern: "GET /v1beta/models/{id...}", Handle: s.query(s.googleModel)},
		{Pattern: "POST /v1beta/models/{id...}:generateContent", Handle: s.modelCall(s.generateContent)},
		{Pattern: "POST /v1beta/models/{id...}:streamGenerateContent", Handle: s.modelCall(s.streamGenerateContent)},
		{Pattern: "POST /v1beta/models/{id...}:countTokens", Handle: s.query(s.countContent)},
		{Pattern: "POST /v1/models/{id...}:generateContent", Handle: s.modelCall(s.generateContent)},
		{Pattern: "POST /v1/models/{id...}:streamGenerateContent", Handle: s.modelCall(s.streamGenerateContent)},
		{Pattern: "POST /v1/models/{id...}:countTokens", Handle: s.query(s.countContent)},
	}, s.kindRoutes()...)
}
