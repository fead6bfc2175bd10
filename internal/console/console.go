// Package console owns the web console below /console and selects the sections that a listen
// address serves: the users' pages, the operators' pages, or both.
//
// Package userpages has the pages of accounts' users, and package operatorpages the pages of
// operators. Both use package page for sessions, forms and responses, package ui for components,
// and package show for content common to both sections. The immutable files are in package static.
//
// Invariant: an address for one section serves no page of the other section. Only the files of
// static are served on both.
package console

import (
	"log/slog"
	"net/http"
	"net/netip"
	"time"

	"tollgate/internal/account"
	"tollgate/internal/catalog"
	"tollgate/internal/console/operatorpages"
	"tollgate/internal/console/page"
	"tollgate/internal/console/userpages"
	"tollgate/internal/httpapi"
	"tollgate/internal/job"
	"tollgate/internal/media"
	"tollgate/internal/operator"
	"tollgate/internal/store"
	"tollgate/internal/webhook"
)

// Base is the path of the console.
const Base = page.Base

// Sections selects the sections that a listen address serves.
type Sections int

const (
	AllSections     Sections = iota // the pages of users and of the operator
	UserSection                     // only the users' pages; the operators' pages have an address of their own
	OperatorSection                 // only the operators' pages
)

// Options configures New. All fields are required unless their comment says otherwise.
type Options struct {
	DB *store.DB
	// ReadLimit is shared by all consoles of the node. If it is nil, New creates one.
	ReadLimit *page.ReadLimit
	// Keys is this node's key cache. The console notifies Keys of every change.
	Keys *account.Keys
	// Passwords hashes users' passwords. SignIns checks sign-ins.
	Passwords *account.Passwords
	SignIns   *account.SignIns
	// Catalog is this node's catalog watcher. Providers are the adapters for a catalog's lines.
	Catalog   *catalog.Watcher
	Providers map[string]catalog.Provider
	// Lines, Jobs, Webhooks and Audits belong to this node.
	Lines    operator.LineControl
	Jobs     *job.Jobs
	Webhooks *webhook.Webhooks
	Audits   *operator.Audits
	Media    *media.Store
	// Writable returns an error if this node cannot write to the database.
	Writable func() error
	// ServeAs serves an API request with a key of an account (api.Door).
	ServeAs func(w http.ResponseWriter, r *http.Request, account, key string)
	// AdminToken allows signing in to the operators' pages. If AdminToken is not set, only users
	// who are operators can sign in there.
	AdminToken *httpapi.OperatorToken
	// PublicURL is the base address for users. If PublicURL is https, cookies are Secure.
	PublicURL string
	// NoPublicURL reports whether PublicURL is the listen address because no setting names a public
	// address.
	NoPublicURL bool
	// MediaURL is the base address of result files.
	MediaURL string
	// TrustedProxies are the networks whose forwarding headers may name the client's address.
	TrustedProxies []netip.Prefix
	// Log gets the causes of 503 answers. If nil, the causes are discarded.
	Log *slog.Logger
	// Observe is called after every request. If nil, requests are not observed.
	Observe  func(endpoint string, status int, took time.Duration)
	Sections Sections
}

// New returns the handler of /console. Request paths include Base. New returns an error if an
// embedded file or an address in the settings is invalid.
func New(o Options) (http.Handler, error) {
	if o.Log == nil {
		o.Log = slog.New(slog.DiscardHandler)
	}
	return page.New(page.Options{DB: o.DB, ReadLimit: o.ReadLimit, SignIns: o.SignIns, AdminToken: o.AdminToken, PublicURL: o.PublicURL,
		NoPublicURL: o.NoPublicURL, OwnAddress: o.Sections == OperatorSection, MediaURL: o.MediaURL, TrustedProxies: o.TrustedProxies, Log: o.Log,
		Observe: o.Observe}, o.sections()...)
}

// sections returns the selected sections.
func (o Options) sections() (all []page.Section) {
	if o.Sections != OperatorSection {
		all = append(all, userpages.Section(userpages.Options{Keys: o.Keys, Passwords: o.Passwords, SignIns: o.SignIns, Catalog: o.Catalog,
			Lines: o.Lines, Jobs: o.Jobs, Webhooks: o.Webhooks, Media: o.Media, ServeAs: o.ServeAs}))
	}
	if o.Sections != UserSection {
		all = append(all, operatorpages.Section(operatorpages.Options{DB: o.DB, Keys: o.Keys, Passwords: o.Passwords, SignIns: o.SignIns,
			Catalog: o.Catalog, Providers: o.Providers, Lines: o.Lines, Jobs: o.Jobs, Webhooks: o.Webhooks, Audits: o.Audits,
			Writable: o.Writable, AdminToken: o.AdminToken, PublicURL: o.PublicURL, NoPublicURL: o.NoPublicURL,
			Log: o.Log}))
	}
	return all
}

// Routes returns the routes of the console as `METHOD /path`, with {id} in place of an id, for
// tests.
func Routes() []string { return page.Patterns(Options{}.sections()...) }
