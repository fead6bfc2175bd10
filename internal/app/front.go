package app

import (
	"context"
	"crypto/sha256"
	"crypto/subtle"
	"encoding/json"
	"net/http"
	"strings"
	"sync/atomic"
	"time"

	"tollgate/internal/catalog"
	"tollgate/internal/fault"
	"tollgate/internal/id"
)

// front sends each request to the surface it belongs to.
type front struct {
	api     http.Handler // everything that is none of the others, unknown paths too
	admin   http.Handler // /admin/v1; nil: not there
	media   http.Handler // /media; nil: not there
	metrics http.Handler // /metrics, behind the operator's token
	ready   *readiness
	token   string                                       // the operator's; empty: /metrics is not there
	wrong   func(w http.ResponseWriter, r *http.Request) // is told of each wrong token
}

// ServeHTTP chooses by path. What does not belong to the public surface gets
// its request id here; api gives its own.
func (f *front) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	switch path := r.URL.Path; {
	case path == "/healthz":
		identify(w)
		answerState(w, r, nil)
	case path == "/readyz":
		identify(w)
		answerState(w, r, f.ready.check(r.Context()))
	case path == "/metrics" && f.token != "":
		identify(w)
		f.guardMetrics(w, r)
	case f.media != nil && strings.HasPrefix(path, "/media/"):
		identify(w)
		f.media.ServeHTTP(w, r)
	case f.admin != nil && (path == "/admin/v1" || strings.HasPrefix(path, "/admin/v1/")):
		identify(w)
		f.admin.ServeHTTP(w, r)
	default:
		f.api.ServeHTTP(w, r)
	}
}

// parted gives what the operator's token is for to a front of its own, so that
// the token can be tried nowhere else. Both tell of the process's health.
func (f *front) parted() (public, private *front) {
	a, b := *f, *f
	a.admin, a.token = nil, ""
	b.media, b.api = nil, http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		identify(w)
		nowhere(w, r)
	})
	return &a, &b
}

// identify puts a request id on an answer.
func identify(w http.ResponseWriter) {
	request := id.New("req_")
	w.Header().Set("X-Request-Id", request)
	w.Header().Set("Request-Id", request)
}

// guardMetrics serves /metrics to who knows the operator's token.
func (f *front) guardMetrics(w http.ResponseWriter, r *http.Request) {
	scheme, token, _ := strings.Cut(r.Header.Get("Authorization"), " ")
	if !strings.EqualFold(scheme, "Bearer") || !sameSecret(token, f.token) {
		f.wrong(w, r)
		w.Header().Set("WWW-Authenticate", "Bearer")
		fault.New(fault.InvalidAPIKey, "Metrics need the operator's token: `Authorization: Bearer <admin_token>`.").Write(w)
		return
	}
	f.metrics.ServeHTTP(w, r)
}

// onlyMetrics is what metrics_listen answers: /metrics without a token.
func onlyMetrics(metrics http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		identify(w)
		switch {
		case r.URL.Path != "/metrics":
			nowhere(w, r)
		case onlyReads(w, r):
			metrics.ServeHTTP(w, r)
		}
	})
}

// nowhere answers a path that does not exist on a door of its own.
func nowhere(w http.ResponseWriter, _ *http.Request) {
	fault.New(fault.NotFound, "There is nothing at this path of this address.").Write(w)
}

// onlyReads refuses methods that are not for reading.
func onlyReads(w http.ResponseWriter, r *http.Request) bool {
	if r.Method == http.MethodGet || r.Method == http.MethodHead {
		return true
	}
	w.Header().Set("Allow", "GET, HEAD")
	fault.New(fault.MethodNotAllowed, "This endpoint does not accept that method. Use GET.").Write(w)
	return false
}

// sameSecret compares in a time that tells nothing about where they differ.
func sameSecret(a, b string) bool {
	x, y := sha256.Sum256([]byte(a)), sha256.Sum256([]byte(b))
	return subtle.ConstantTimeCompare(x[:], y[:]) == 1
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
func answerState(w http.ResponseWriter, r *http.Request, faults map[string]string) {
	if !onlyReads(w, r) {
		return
	}
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
