// Package admin owns the operator API: everything below /admin/v1, for whoever
// holds the operator's token. It decodes, asks the room that owns the thing,
// and shows the answer; it has no rules of its own about money, keys or the
// catalog.
//
// Invariants: without a token in the settings nothing is here (404), and
// without it in the request nothing is told (401). A request is decoded
// strictly, and one that is refused changed nothing. What a request changes,
// it changes in one transaction, the saved answer of its Idempotency-Key
// included. Errors have the /v1 shape.
//
// A created key's secret, and a new user's link, are in the first answer alone. A
// request that is repeated with its Idempotency-Key gets the saved answer, marked with
// the header `Idempotent-Replayed: true`, and the saved answer has no `key` or `link`
// member, since secrets are stored nowhere: who lost the first answer deletes that key
// and creates another, or makes another link.
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

// Base is the path that the handler is mounted at.
const Base = "/admin/v1"

// Options are what the operator API works with. All are required unless said
// otherwise.
type Options struct {
	// Token is the operator's bearer token; none: every path answers 404.
	Token *httpapi.OperatorToken
	// WrongToken is told of each request with another one, and the answer goes
	// out when it returns; nil: at once.
	WrongToken func(w http.ResponseWriter, r *http.Request)
	DB         *store.DB
	// Keys is this node's key cache; it is told of every change.
	Keys *account.Keys
	// Passwords hashes those of new console users; share it with whatever
	// verifies them. nil: one of its own.
	Passwords *account.Passwords
	// PublicURL is the base address of links for users.
	PublicURL string
	// Providers are the adapters that a catalog's lines may use.
	Providers map[string]catalog.Provider
	// Catalog is this node's watcher, which takes a new catalog at once; nil
	// leaves that to the watchers' own rhythm.
	Catalog *catalog.Watcher
	// Lines are those of this node; nil where no line runs, as in subcommands.
	Lines operator.LineControl
	// Jobs are those of this node; nil where none run, as in subcommands.
	Jobs *job.Jobs
	// Audits are those of this node; nil: its own.
	Audits *operator.Audits
	// Webhooks are those of this node. Tests and resends work without their Run.
	Webhooks *webhook.Webhooks
	// TrustedProxies are believed where they say whom they forward for.
	TrustedProxies []netip.Prefix
	// Log gets the causes of 503 answers; nil: nobody does.
	Log *slog.Logger
	// OnceSecret keys the fingerprints of what is sent with an Idempotency-Key, so that
	// a repetition is known as one; nil: Token does, as it is now.
	OnceSecret []byte
	// Attached ends a call with the context of its request, as a command wants it.
	// Else a call outlives its caller, who may have closed its own side only.
	Attached bool
}

// New returns the handler of /admin/v1. It expects whole paths, with Base.
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
			check = proof.Check(o.Jobs.KeptFor())
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
	with := httpapi.Options{Log: o.Log, Enter: s.enter}
	var all []httpapi.Route
	if o.Token.IsSet() {
		with.NotFound = notFound
		for _, r := range s.routes() {
			all = append(all, httpapi.Route{Pattern: r.pattern(), Handle: s.answering(r.handle)})
		}
	}
	return httpapi.New(with, all)
}

// notFound tells an operator where all paths stand.
func notFound(r *http.Request) error {
	return fault.New(fault.NotFound, "The operator API has nothing at %s. GET /admin/docs lists its paths, with an example of each.",
		fault.Shown(r.URL.Path))
}

// server answers the operator API.
type server struct {
	Options

	archive offer.Archive // what former catalogs had
}

// route is one method of one path below Base, and who answers it.
type route struct {
	method, path string
	handle       func(*call) (any, error)
}

func (r route) pattern() string { return r.method + " " + Base + r.path }

// routes is the table of contents. `{id}` stands for one path segment.
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
