package app

import (
	"context"
	"encoding/json"
	"log/slog"
	"net/http"
	"net/netip"
	"strings"
	"sync/atomic"
	"time"

	"tollgate/internal/catalog"
	"tollgate/internal/console"
	"tollgate/internal/contract"
	"tollgate/internal/fault"
	"tollgate/internal/httpapi"
	"tollgate/internal/limit"
	"tollgate/internal/store"
	"tollgate/internal/topup"
)

// surfaces are the parts served at an address. Nil parts are absent.
type surfaces struct {
	api     http.Handler // everything else, including unknown paths
	admin   http.Handler // /admin/v1
	console http.Handler // /console, the target of the root
	media   http.Handler // /media
	// payments has the messages of payment providers: /payments.
	payments http.Handler
	metrics  http.Handler // /metrics, behind the operator's token
	// pages are the contracts of both APIs, and the text at / without a console.
	pages   *contract.Site
	base    string                                            // the public base address
	signIns func(ctx context.Context) (users, operators bool) // reports which people can sign in to the console
	ready   *readiness
	token   *httpapi.OperatorToken // if not set, there is no /metrics
	wrong   *limit.Throttle        // delays answers to wrong tokens
	proxies []netip.Prefix         // networks whose X-Forwarded-For is trusted
	log     *slog.Logger
}

// split moves the routes for the operator's token to a separate address, so that the token can be
// guessed only there. Both addresses report the process's health and have their own console.
func (s surfaces) split() (public, private surfaces) {
	public, private = s, s
	public.admin, public.token = nil, nil
	private.media, private.api, private.payments = nil, nil, nil
	return public, private
}

// front sends each request to the surface it belongs to.
type front struct {
	surfaces
	own    http.Handler // the process's paths
	public bool         // the address serves the API
}

// newFront returns the handler for surfaces. It wraps /media with the common behaviour of package httpapi.
func newFront(s surfaces) *front {
	o := httpapi.Options{Log: s.log}
	if s.media != nil {
		s.media = httpapi.Wrap(o, "/media", s.media)
	}
	o.Refuse = func(x *httpapi.Exchange, bad *fault.Error) {
		if !httpapi.RedirectTrailingSlash(x) {
			bad.Write(x)
		}
	}
	f := &front{own: httpapi.New(o, s.routes()), public: s.api != nil}
	if s.api == nil {
		s.api = httpapi.New(httpapi.Options{Log: s.log}, nil)
	}
	f.surfaces = s
	return f
}

// routes returns the process's own routes.
func (s surfaces) routes() []httpapi.Route {
	return []httpapi.Route{
		{Pattern: "GET /healthz", Handle: func(x *httpapi.Exchange) error {
			answerState(x, nil, nil)
			return nil
		}},
		{Pattern: "GET /readyz", Handle: func(x *httpapi.Exchange) error {
			answerState(x, s.ready.check(x.Request.Context()), s.ready.warnings())
			return nil
		}},
		{Pattern: "GET /metrics", Handle: s.guardMetrics},
		{Pattern: "GET /openapi.json", Handle: func(x *httpapi.Exchange) error { return s.pages.Callers.Source(x) }},
		{Pattern: "GET /docs", Handle: func(x *httpapi.Exchange) error { return s.pages.Callers.Page(x) }},
		{Pattern: "GET /admin/openapi.json", Handle: func(x *httpapi.Exchange) error { return s.pages.Operators.Source(x) }},
		{Pattern: "GET /admin/docs", Handle: func(x *httpapi.Exchange) error { return s.pages.Operators.Page(x) }},
		{Pattern: "GET /", Handle: s.root},
	}
}

// root redirects to the console, or describes the address if no one can sign in to a console.
func (s surfaces) root(x *httpapi.Exchange) error {
	home, canSignIn := s.home(x.Request.Context())
	if !canSignIn && s.pages != nil {
		return s.pages.Greet(x, x.Request, contract.NewWelcome(s.base, s.api != nil, s.hasAdmin()))
	}
	x.Header().Set("Cache-Control", "no-store") // the target may change
	http.Redirect(x, x.Request, home, http.StatusFound)
	return nil
}

// home returns the console path for the root, and reports whether anybody can sign in there.
func (s surfaces) home(ctx context.Context) (path string, canSignIn bool) {
	if s.signIns == nil {
		s.signIns = func(context.Context) (users, operators bool) { return true, true }
	}
	users, operators := s.signIns(ctx)
	if s.api == nil {
		return console.Base + "/operator", operators || s.token.IsSet()
	}
	return console.Base, users || s.token.IsSet()
}

// hasAdmin reports whether the address has the operator API.
func (s surfaces) hasAdmin() bool { return s.admin != nil && s.token.IsSet() }

// ServeHTTP selects the surface by the path.
func (f *front) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	switch path := r.URL.Path; {
	case f.hasOwn(path) || f.hasPage(strings.TrimRight(path, "/")):
		f.own.ServeHTTP(w, r)
	case f.media != nil && strings.HasPrefix(path, "/media/"):
		f.media.ServeHTTP(w, r)
	case f.payments != nil && strings.HasPrefix(path, topup.Base+"/"):
		f.payments.ServeHTTP(w, r)
	case f.admin != nil && (path == "/admin/v1" || strings.HasPrefix(path, "/admin/v1/")):
		f.admin.ServeHTTP(w, r)
	case f.console != nil && (path == console.Base || strings.HasPrefix(path, console.Base+"/")):
		f.console.ServeHTTP(w, r)
	default:
		f.api.ServeHTTP(w, r)
	}
}

// hasOwn reports whether the process itself answers a path at this address.
func (f *front) hasOwn(path string) bool {
	switch path {
	case "/healthz", "/readyz":
		return true
	case "/":
		return f.console != nil
	case "/metrics":
		return f.token.IsSet()
	case contract.CallersSource:
		return f.public && f.pages != nil
	case contract.OperatorsSource:
		return f.hasAdmin() && f.pages != nil
	}
	return f.hasPage(path)
}

// hasPage reports whether the process itself serves a page for people at path on this address. A
// path with trailing slashes redirects to the page.
func (f *front) hasPage(path string) bool {
	switch path {
	case contract.CallersPage:
		return f.public && f.pages != nil
	case contract.OperatorsPage:
		return f.hasAdmin() && f.pages != nil
	}
	return false
}

// guardMetrics serves /metrics to requests with the operator's token.
func (s surfaces) guardMetrics(x *httpapi.Exchange) error {
	if !s.token.Is(httpapi.Bearer(x.Request.Header)) {
		if x.Request.Header.Get("Authorization") != "" { // a request without a token is not a guess
			s.wrong.Slow(x, x.Request, httpapi.ClientAddress(x.Request, s.proxies))
		}
		return fault.New(fault.InvalidAPIKey, "Metrics need the operator's token: `Authorization: Bearer <admin_token>`.")
	}
	s.metrics.ServeHTTP(x, x.Request)
	return nil
}

// onlyMetrics returns the handler of metrics_listen: /metrics without a token.
func onlyMetrics(log *slog.Logger, metrics http.Handler) http.Handler {
	return httpapi.New(httpapi.Options{Log: log}, []httpapi.Route{{Pattern: "GET /metrics", Handle: func(x *httpapi.Exchange) error {
		metrics.ServeHTTP(x, x.Request)
		return nil
	}}})
}

// readiness reports whether this process can serve. The operator API works even
// without a catalog, so that the operator can apply the first catalog.
type readiness struct {
	stopping atomic.Bool
	database func(ctx context.Context) error
	writable func() error
	catalog  func() *catalog.Snapshot
	media    func() (since time.Time, down bool)
}

// readyBound limits how long a readiness check waits for the database.
const readyBound = 2 * time.Second

// check returns the reasons why the process cannot serve, by part, as text for the operator. The map is
// empty if the process can serve.
func (r *readiness) check(ctx context.Context) map[string]string {
	faults := make(map[string]string)
	if r.stopping.Load() {
		faults["process"] = "is shutting down"
	}
	ctx, cancel := context.WithTimeout(ctx, readyBound)
	defer cancel()
	if err := r.database(ctx); err != nil {
		faults["database"] = "is not reachable"
	} else if err := r.writable(); store.NoRoom(err) {
		faults["database"] = "takes no writes: its disk is full or failing"
	} else if err != nil {
		faults["database"] = "takes no writes"
	}
	if r.catalog().Revision == 0 {
		faults["catalog"] = "is missing: run `tollgate apply FILE`"
	}
	return faults
}

// warnings returns failures that do not prevent the process from serving, or nil.
func (r *readiness) warnings() map[string]string {
	since, down := r.media()
	if !down {
		return nil
	}
	return map[string]string{"media": "the media store has not worked since " + since.UTC().Format(time.RFC3339) +
		": results are kept, and no job starts; see the log"}
}

// answerState answers 200 if there are no faults, or 503 with the faults. Warnings do not change
// the status.
func answerState(w http.ResponseWriter, faults, warnings map[string]string) {
	status, word := http.StatusOK, "ok"
	if len(faults) > 0 {
		status, word = http.StatusServiceUnavailable, "unavailable"
	}
	body, _ := json.Marshal(struct { // strings only: cannot fail
		Status   string            `json:"status"`
		Faults   map[string]string `json:"faults,omitempty"`
		Warnings map[string]string `json:"warnings,omitempty"`
	}{word, faults, warnings})
	w.Header().Set("Content-Type", "application/json")
	w.Header().Set("Cache-Control", "no-store")
	w.WriteHeader(status)
	_, _ = w.Write(append(body, '\n')) // the client may have disconnected
}
