// Package admin owns the operator API below /admin/v1. It decodes requests, calls other packages, and
// writes answers. The rules about money, keys and the catalog are in the other packages.
//
// Invariants:
//   - If the settings have no token, every path answers 404.
//   - A request without the token gets 401.
//   - Requests are decoded strictly, and a rejected request changes nothing.
//   - A request changes data and saves the answer of its Idempotency-Key in one transaction.
//   - Errors have the shape of /v1.
//
// Only the first answer contains the secret of a new key, the text of a redeem code, or a user's link. A
// repetition with the same Idempotency-Key gets the saved answer with the header `Idempotent-Replayed:
// true` and without `key`, `code` or `link`, because secrets are not stored. If the first answer is lost,
// the operator must delete the key or code and create another one, or create another link.
package admin

import (
	"cmp"
	"crypto/sha256"
	"log/slog"
	"net/http"
	"net/netip"

	"tollgate/internal/account"
	"tollgate/internal/catalog"
	"tollgate/internal/catalog/offer"
	"tollgate/internal/catalog/vault"
	"tollgate/internal/fault"
	"tollgate/internal/httpapi"
	"tollgate/internal/invoice"
	"tollgate/internal/job"
	"tollgate/internal/limit"
	"tollgate/internal/mail"
	"tollgate/internal/operator"
	"tollgate/internal/store"
	"tollgate/internal/topup"
	"tollgate/internal/webhook"
)

// Base is the path of the handler.
const Base = "/admin/v1"

// Options configures the operator API. All fields are required unless noted.
type Options struct {
	// Token is the operator's bearer token. If Token is not set, every path answers 404.
	Token *httpapi.OperatorToken
	// WrongTokens delays the answers to wrong tokens. If nil, these answers are not delayed.
	WrongTokens *limit.Throttle
	DB          *store.DB
	// Keys is this node's key cache. The API drops keys from the cache after a change.
	Keys *account.Keys
	// Passwords hashes the passwords of new console users. Use the Passwords of the console's
	// sign-ins. If nil, New creates Passwords.
	Passwords *account.Passwords
	// PublicURL is the base address of links for users.
	PublicURL string
	// Providers are the providers known to catalogs, by name.
	Providers map[string]catalog.Provider
	// Catalog is this node's watcher. The API makes the watcher load a new catalog at once. If nil,
	// this node finds a new catalog by polling.
	Catalog *catalog.Watcher
	// SecretKeys encrypt the secrets of lines. If empty, the API stores none.
	SecretKeys vault.KeyRing
	// Lines controls the lines of this node. Lines is nil in a process without lines, such as a
	// subcommand.
	Lines operator.LineControl
	// Jobs are the jobs of this node. Jobs is nil in a process without jobs, such as a subcommand.
	Jobs *job.Jobs
	// Audits are the audits of this node. If nil, New creates them.
	Audits *operator.Audits
	// Webhooks sends test events and resends deliveries, even if Webhooks.Run is not running.
	Webhooks *webhook.Webhooks
	// Mails sends test mails and resends mails, even if Mails.Run is not running.
	Mails *mail.Mailer
	// Topups take the customers' payments. If nil, customers cannot pay.
	Topups *topup.Topups
	// Invoices issues documents. If nil, invoices are off.
	Invoices *invoice.Issuer
	// TrustedProxies are the networks of proxies with a trusted X-Forwarded-For.
	TrustedProxies []netip.Prefix
	// Log receives the causes of 503 answers. If nil, nothing is logged.
	Log *slog.Logger
	// OnceSecret is the key of the request fingerprints saved with an Idempotency-Key. If nil, New
	// derives OnceSecret from the current Token.
	OnceSecret []byte
	// Attached cancels a call when the context of its request is done. Subcommands need this. If
	// false, the call continues, because the client may have closed only its sending side.
	Attached bool
}

// New returns the handler of /admin/v1. Request paths include Base.
func New(o Options) http.Handler {
	o.Passwords = cmp.Or(o.Passwords, account.NewPasswords())
	o.Log = cmp.Or(o.Log, slog.New(slog.DiscardHandler))
	if o.Audits == nil {
		o.Audits = operator.NewAudits(o.DB, nil, o.Jobs, o.Log)
	}
	if o.OnceSecret == nil {
		hash := sha256.Sum256([]byte(o.Token.Value()))
		o.OnceSecret = hash[:]
	}
	s := &server{Options: o}
	options := httpapi.Options{Log: o.Log, Enter: s.authenticate}
	var routes []httpapi.Route
	if o.Token.IsSet() {
		options.NotFound = notFound
		for _, r := range s.routes() {
			routes = append(routes, httpapi.Route{Pattern: r.pattern(), Handle: s.handler(r.handle)})
		}
	}
	return httpapi.New(options, routes)
}

// notFound returns the error for an unknown path.
func notFound(r *http.Request) error {
	return fault.New(fault.NotFound, "The operator API has nothing at %s. GET /admin/docs lists its paths, with an example of each.",
		fault.Excerpt(r.URL.Path))
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
		{"GET", "/catalog", noQuery(s.getCatalog)},
		{"PUT", "/catalog", s.putCatalog},
		{"GET", "/catalog/revisions", s.listRevisions},
		{"GET", "/catalog/revisions/{id}", noQuery(s.getRevision)},
		{"GET", "/catalog/changes", s.listChanges},
		{"GET", "/catalog/changes/{id}", noQuery(s.getChange)},
		{"POST", "/catalog/changes/{id}/cancel", noBody(s.cancelChange)},

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
		{"PATCH", "/entries/{id}", s.markEntry},
		{"POST", "/entries/{id}/invoice", s.issueInvoice},
		{"GET", "/statements/{id}", s.statement},
		{"GET", "/statements/{id}/pdf", noQuery(s.statementFile)},

		{"POST", "/accounts/{id}/keys", s.createKey},
		{"GET", "/accounts/{id}/keys", s.listKeys},
		{"GET", "/keys", s.findKeys},
		{"GET", "/keys/{id}", s.getKey},
		{"PATCH", "/keys/{id}", s.changeKey},
		{"DELETE", "/keys/{id}", s.deleteKey},

		{"GET", "/accounts/{id}/webhook", noQuery(s.getWebhook)},
		{"PUT", "/accounts/{id}/webhook", noQuery(s.putWebhook)},
		{"POST", "/accounts/{id}/webhook/roll", noBody(s.rollWebhook)},
		{"POST", "/accounts/{id}/webhook/test", noBody(s.testWebhook)},
		{"GET", "/accounts/{id}/deliveries", s.listDeliveries},
		{"POST", "/deliveries/{id}/resend", noBody(s.resendDelivery)},

		{"GET", "/mails", s.listMails},
		{"POST", "/mails/test", noQuery(s.testMail)},
		{"POST", "/mails/{id}/resend", noBody(s.resendMail)},

		{"POST", "/announcements", noQuery(s.createAnnouncement)},
		{"GET", "/announcements", s.listAnnouncements},
		{"PATCH", "/announcements/{id}", noQuery(s.changeAnnouncement)},
		{"DELETE", "/announcements/{id}", noBody(s.deleteAnnouncement)},

		{"GET", "/usage", s.usage},
		{"POST", "/codes", s.createCodes},
		{"GET", "/codes", s.listCodes},
		{"DELETE", "/codes/{id}", s.voidCode},

		{"GET", "/requests", s.listRequests},
		{"GET", "/requests/{id}", noQuery(s.getRequest)},

		{"GET", "/top-ups", s.listTopups},
		{"GET", "/top-ups/reconciliation", s.reconcileTopups},
		{"GET", "/top-ups/problems", s.listProblems},
		{"POST", "/top-ups/problems/{id}/close", noBody(s.closeProblem)},
		{"GET", "/top-ups/{id}", noQuery(s.getTopup)},
		{"POST", "/top-ups/{id}/refunds", noQuery(s.refundTopup)},
		{"POST", "/top-ups/{id}/check", noBody(s.checkTopup)},
		{"GET", "/invoices", s.listInvoices},
		{"GET", "/invoices/{id}", noQuery(s.getInvoice)},
		{"GET", "/invoices/{id}/pdf", noQuery(s.downloadInvoice)},

		{"GET", "/jobs", s.listJobs},
		{"GET", "/jobs/{id}", noQuery(s.getJob)},
		{"POST", "/jobs/{id}/cancel", noBody(s.cancelJob)},
		{"POST", "/jobs/{id}/requeue", s.requeueJob},

		{"GET", "/lines", s.listLines},
		{"POST", "/lines/{id}/drain", noBody(s.drainLine)},
		{"POST", "/lines/{id}/resume", noBody(s.resumeLine)},

		{"GET", "/secrets", noQuery(s.listSecrets)},
		{"PUT", "/secrets/{id}", noQuery(s.putSecret)},
		{"DELETE", "/secrets/{id}", noBody(s.deleteSecret)},
		{"POST", "/secrets/rotate", noBody(s.rotateSecrets)},

		{"GET", "/audit", s.audit},
		{"GET", "/log", s.listLog},
	}
}
