package app

import (
	"context"
	"encoding/json"
	"log/slog"
	"net/http"
	"strings"
	"sync/atomic"
	"time"

	"tollgate/internal/catalog"
	"tollgate/internal/console"
	"tollgate/internal/fault"
	"tollgate/internal/httpapi"
)

// surfaces are what an address serves. Those that are nil are not there.
type surfaces struct {
	api     http.Handler // everything that is none of the others, unknown paths too
	admin   http.Handler // /admin/v1
	console http.Handler // /console, to which the root leads
	media   http.Handler // /media
	metrics http.Handler // /metrics, behind the operator's token
	ready   *readiness
	token   string                                       // the operator's; empty: /metrics is not there
	wrong   func(w http.ResponseWriter, r *http.Request) // is told of each wrong token
	log     *slog.Logger
}

// parted gives what the operator's token is for to an address of its own, so that
// the token can be tried nowhere else. Both tell of the process's health, and have
// a console of their own.
func (s surfaces) parted() (public, private surfaces) {
	public, private = s, s
	public.admin, public.token = nil, ""
	private.media, private.api = nil, nil
	return public, private
}

// front sends each request to the surface it belongs to.
type front struct {
	surfaces
	own http.Handler // the process's paths
}

// newFront puts before a surface that does not do it by itself what all of them
// do alike.
func newFront(s surfaces) *front {
	o := httpapi.Options{Log: s.log}
	if s.media != nil {
		s.media = httpapi.Wrap(o, "/media", s.media)
	}
	own := httpapi.New(o, s.routes())
	if s.api == nil {
		s.api = httpapi.New(o, nil)
	}
	return &front{s, own}
}

// routes are the process's own.
func (s surfaces) routes() []httpapi.Route {
	return []httpapi.Route{
		{Pattern: "GET /healthz", Handle: func(x *httpapi.Exchange) error {
			answerState(x, nil)
			return nil
		}},
		{Pattern: "GET /readyz", Handle: func(x *httpapi.Exchange) error {
			answerState(x, s.ready.check(x.Request.Context()))
			return nil
		}},
		{Pattern: "/metrics", Handle: s.guardMetrics},
		{Pattern: "GET /", Handle: func(x *httpapi.Exchange) error {
			x.Header().Set("Cache-Control", "no-store") // another address may serve another part tomorrow
			http.Redirect(x, x.Request, s.home(), http.StatusFound)
			return nil
		}},
	}
}

// home is where the root leads to.
func (s surfaces) home() string {
	if s.api == nil {
		return console.Base + "/operator"
	}
	return console.Base
}

// ServeHTTP chooses by path.
func (f *front) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	switch path := r.URL.Path; {
	case path == "/healthz", path == "/readyz", path == "/" && f.console != nil, path == "/metrics" && f.token != "":
		f.own.ServeHTTP(w, r)
	case f.media != nil && strings.HasPrefix(path, "/media/"):
		f.media.ServeHTTP(w, r)
	case f.admin != nil && (path == "/admin/v1" || strings.HasPrefix(path, "/admin/v1/")):
		f.admin.ServeHTTP(w, r)
	case f.console != nil && (path == console.Base || strings.HasPrefix(path, console.Base+"/")):
		f.console.ServeHTTP(w, r)
	default:
		f.api.ServeHTTP(w, r)
	}
}

// guardMetrics serves /metrics to who knows the operator's token.
func (s surfaces) guardMetrics(x *httpapi.Exchange) error {
	if !httpapi.SameSecret(httpapi.Bearer(x.Request.Header), s.token) {
		s.wrong(x, x.Request)
		return fault.New(fault.InvalidAPIKey, "Metrics need the operator's token: `Authorization: Bearer <admin_token>`.")
	}
	s.metrics.ServeHTTP(x, x.Request)
	return nil
}

// onlyMetrics is what metrics_listen answers: /metrics without a token.
func onlyMetrics(log *slog.Logger, metrics http.Handler) http.Handler {
	return httpapi.New(httpapi.Options{Log: log}, []httpapi.Route{{Pattern: "GET /metrics", Handle: func(x *httpapi.Exchange) error {
		metrics.ServeHTTP(x, x.Request)
		return nil
	}}})
}

// readiness knows whether this process can serve. The operator API works without
// a catalog, so that the first one can be applied through it.
type readiness struct {
	stopping atomic.Bool
	database func(ctx context.Context) error
	writable func() error
	catalog  func() *catalog.Snapshot
}

// readyBound is the longest that a readiness check waits for the database.
const readyBound = 2 * time.Second

// check returns why the process cannot serve, in words for the operator; nil
// when it can.
func (s *readiness) check(ctx context.Context) map[string]string {
	faults := make(map[string]string)
	if s.stopping.Load() {
		faults["process"] = "is shutting down"
	}
	ctx, cancel := context.WithTimeout(ctx, readyBound)
	defer cancel()
	if err := s.database(ctx); err != nil {
		faults["database"] = "is not reachable"
	} else if err := s.writable(); err != nil {
		faults["database"] = "takes no writes"
	}
	if s.catalog().Revision == 0 {
		faults["catalog"] = "is not there yet: apply one"
	}
	return faults
}

// answerState answers 200 when there are no faults, else 503 with them.
func answerState(w http.ResponseWriter, faults map[string]string) {
	status, word := http.StatusOK, "ok"
	if len(faults) > 0 {
		status, word = http.StatusServiceUnavailable, "unavailable"
	}
	body, _ := json.Marshal(struct { // strings only: cannot fail
		Status string            `json:"status"`
		Faults map[string]string `json:"faults,omitempty"`
	}{word, faults})
	w.Header().Set("Content-Type", "application/json")
	w.Header().Set("Cache-Control", "no-store")
	w.WriteHeader(status)
	_, _ = w.Write(append(body, '\n')) // the prober may be gone
}
