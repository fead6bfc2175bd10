// Package admin owns the operator API below /admin/v1. It decodes requests, calls the rooms, and
// writes answers. It has no rules of its own about money, keys or the catalog.
//
// Invariants: without a token in the settings every path answers 404, and without it in the request
// 401. Requests are decoded strictly, and a refused request changes nothing. A request changes data
// in one transaction, including the saved answer of its Idempotency-Key. Errors have the shape of
// /v1.
//
// Only the first answer contains a created key's secret or a user's link. A repetition with the
// same Idempotency-Key gets the saved answer with the header `Idempotent-Replayed: true` and
// without `key` or `link`, because secrets are not stored. If the first answer is lost, delete the
// key and create another one, or create another link.
package admin

import (
	"crypto/sha256"
	"log/slog"
	"net/http"
	"net/netip"

	"tollgate/internal/account"
	"tollgate/internal/catalog"
	"tollgate/internal/catalog/offer"
	"tollgate/internal/fault"
	"tollgate/internal/httpapi"
	"tollgate/internal/job"
	"tollgate/internal/job/proof"
	"tollgate/internal/operator"
	"tollgate/internal/store"
	"tollgate/internal/webhook"
)

// Base is the path of the handler.
const Base = "/admin/v1"

// Options configures the operator API. All fields are required unless noted.
type Options struct {
	// Token is the operator's bearer token. Without one, every path answers 404.
	Token *httpapi.OperatorToken
	// WrongToken is called for each request with a wrong token and delays its answer until it
	// returns. If nil, the answer is immediate.
	WrongToken func(w http.ResponseWriter, r *http.Request)
	DB         *store.DB
	// Keys is this node's key cache. It is updated after every change.
	Keys *account.Keys
	// Passwords hashes the passwords of new console users. Share it with the code that verifies
	// them. If nil, New creates one.
	Passwords *account.Passwords
	// PublicURL is the base address of links for users.
	PublicURL string
	// Providers are the adapters for lines of a catalog.
	Providers map[string]catalog.Provider
	// Catalog is this node's watcher, which loads a new catalog at once. If nil, the watchers find
	// it by polling.
	Catalog *catalog.Watcher
	// Lines are the lines of this node. It is nil if no line runs, as in subcommands.
	Lines operator.LineControl
	// Jobs are the jobs of this node. It is nil if no job runs, as in subcommands.
	Jobs *job.Jobs
	// Audits are the audits of this node. If nil, New creates them.
	Audits *operator.Audits
	// Webhooks sends tests and resends; this works without its Run.
	Webhooks *webhook.Webhooks
	// TrustedProxies are the networks whose X-Forwarded-For is trusted.
	TrustedProxies []netip.Prefix
	// Log receives the causes of 503 answers. If nil, nothing is logged.
	Log *slog.Logger
	// OnceSecret keys the fingerprints of requests with an Idempotency-Key, by which repetitions
	// are recognized. If nil, the current Token is used.
	OnceSecret []byte
	// Attached ends a call when its request's context is done, as commands need. Otherwise a call
	// outlives its caller, which may have closed only its sending side.
	Attached bool
}

// New returns the handler of /admin/v1. Request paths include Base.
func New(o Options) http.Handler {
	if o.Passwords == nil {
		o.Passwords = account.NewPasswords()
	}
	if o.Log == nil {
		o.Log = slog.New(slog.DiscardHandler)
	}
	if o.Audits == nil {
		check := proof.AuditTx
		if o.Jobs != nil {
			check = proof.Check(o.Jobs.Retention())
		}
		o.Audits = operator.NewAudits(o.DB, check, o.Log)
	}
	if o.WrongToken == nil {
		o.WrongToken = func(http.ResponseWriter, *http.Request) {}
	}
	if o.OnceSecret == nil {
		hash := sha256.Sum256([]byte(o.Token.Value()))
		o.OnceSecret = hash[:]
	}
	s := &server{Options: o}
	with := httpapi.Options{Log: o.Log, Enter: s.authenticate}
	var all []httpapi.Route
	if o.Token.IsSet() {
		with.NotFound = notFound
		for _, r := range s.routes() {
			all = append(all, httpapi.Route{Pattern: r.pattern(), Handle: s.handler(r.handle)})
		}
	}
	return httpapi.New(with, all)
}

// notFound returns the 404 of an unknown path.
func notFound(r *http.Request) error {
	return fault.New(fault.NotFound, "The operator API has nothing at %s. GET /admin/docs lists its paths, with an example of each.",
		fault.Shown(r.URL.Path))
}

// server handles the operator API.
type server struct {
	Options

	archive offer.Archive // models of former catalogs
}

// route is a method, a path below Base, and its handler.
type route struct {
	method, path string
	handle       func(*call) (any, error)
}

func (r route) pattern() string { return r.method + " " + Base + r.path }

// routes returns all routes. `{id}` matches one path segment.
func (s *server) routes() []route {
	return []route{
		{"GET", "/catalog", s.getCatalog},
		{"PUT", "/catalog", s.putCatalog},
		{"GET", "/catalog/revisions", s.listRevisions},
		{"GET", "/catalog/revisions/{id}", s.getRevision},

		{"POST", "/accounts", s.createAccount},
		{"GET", "/accounts", s.listAccounts},
		{"GET", "/accounts/{id}", s.getAccount},
		{"PATCH", "/accounts/{id}", s.changeAccount},

		{"GET", "/accounts/{id}/users", s.listUsers},
		{"POST", "/accounts/{id}/users", s.createUser},
		{"GET", "/users/{id}", s.getUser},
		{"PATCH", "/users/{id}", s.changeUser},
		{"POST", "/users/{id}/link", s.linkUser},
		{"DELETE", "/users/{id}", s.deleteUser},

		{"POST", "/accounts/{id}/credits", s.credit},
		{"GET", "/accounts/{id}/entries", s.listEntries},

		{"POST", "/accounts/{id}/keys", s.createKey},
		{"GET", "/accounts/{id}/keys", s.listKeys},
		{"GET", "/keys", s.findKeys},
		{"GET", "/keys/{id}", s.getKey},
		{"PATCH", "/keys/{id}", s.changeKey},
		{"DELETE", "/keys/{id}", s.deleteKey},

		{"GET", "/accounts/{id}/webhook", s.getWebhook},
		{"PUT", "/accounts/{id}/webhook", s.putWebhook},
		{"POST", "/accounts/{id}/webhook/roll", s.rollWebhook},
		{"POST", "/accounts/{id}/webhook/test", s.testWebhook},
		{"GET", "/accounts/{id}/deliveries", s.listDeliveries},
		{"POST", "/deliveries/{id}/resend", s.resendDelivery},

		{"GET", "/usage", s.usage},
		{"POST", "/codes", s.createCodes},
		{"GET", "/codes", s.listCodes},
		{"DELETE", "/codes/{id}", s.voidCode},

		{"GET", "/requests", s.listRequests},
		{"GET", "/requests/{id}", s.getRequest},

		{"GET", "/jobs", s.listJobs},
		{"GET", "/jobs/{id}", s.getJob},
		{"POST", "/jobs/{id}/cancel", s.cancelJob},
		{"POST", "/jobs/{id}/requeue", s.requeueJob},

		{"GET", "/lines", s.listLines},
		{"POST", "/lines/{id}/drain", s.drainLine},
		{"POST", "/lines/{id}/resume", s.resumeLine},

		{"GET", "/audit", s.audit},
		{"GET", "/log", s.listLog},
	}
}
