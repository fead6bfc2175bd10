// Package console owns the web console below /console: its pages, who may see
// which, and the forms on them. It has no rules of its own about money, keys or
// receivers: a page calls what the APIs call.
//
// A page is a GET whose whole state is in its address; an act is a POST of a
// form, which works without scripts and answers 303, or the page itself where it
// shows a secret once. routes.go lists all of them; a page is a file of handlers
// here and a template of its name in pages/, made of the components of package
// part.
//
// Invariants: a page of an account's user shows that account's things alone,
// and the account comes from the session, never from what was sent; GET changes
// nothing; a POST from another site is refused; nothing of a page is inline, and
// no page may be kept by a cache; a secret is shown in the answer that made it
// and nowhere else.
package console

import (
	"embed"
	"fmt"
	"io/fs"
	"log/slog"
	"net/http"
	"net/netip"
	"net/url"
	"strings"
	"time"

	"tollgate/internal/account"
	"tollgate/internal/catalog"
	"tollgate/internal/console/part"
	"tollgate/internal/console/static"
	"tollgate/internal/httpapi"
	"tollgate/internal/job"
	"tollgate/internal/media"
	"tollgate/internal/operator"
	"tollgate/internal/store"
	"tollgate/internal/webhook"
)

// Base is the path that the console is mounted at.
const Base = "/console"

//go:embed pages/*.html
var embedded embed.FS

// Side says which of the console's pages an address has.
type Side int

// The sides.
const (
	Whole     Side = iota // the pages of users and of the operator
	Users                 // those of users: the operator's have an address of their own
	Operators             // those of the operator
)

// Options are what the console works with. All are required unless said
// otherwise.
type Options struct {
	DB *store.DB
	// Keys is this node's key cache; it is told of every change.
	Keys *account.Keys
	// Passwords hashes those of users, and Entrance judges sign-ins by them.
	Passwords *account.Passwords
	Entrance  *account.Entrance
	// Catalog is this node's watcher, and Providers are the adapters that a
	// catalog's lines may use.
	Catalog   *catalog.Watcher
	Providers map[string]catalog.Provider
	// Lines, Jobs, Webhooks and Audits are those of this node.
	Lines    operator.LineControl
	Jobs     *job.Jobs
	Webhooks *webhook.Webhooks
	Audits   *operator.Audits
	Media    *media.Store
	// Writable returns why the database takes no writes of this node; nil: it does.
	Writable func() error
	// ServeAs answers a request to the API with a key of an account (api.Door).
	ServeAs func(w http.ResponseWriter, r *http.Request, account, key string)
	// AdminToken signs in to the operator's pages; empty: only operators among
	// the users do.
	AdminToken string
	// PublicURL is the base address that users see. If it is https, cookies are
	// for https alone.
	PublicURL string
	// MediaURL is the base address of result files.
	MediaURL string
	// TrustedProxies are believed where they say whom they forward for.
	TrustedProxies []netip.Prefix
	// Log gets the causes of 503 answers; nil: nobody does.
	Log *slog.Logger
	// Observe is told of every answered request; nil: nobody is.
	Observe func(endpoint string, status int, took time.Duration)
	Side    Side
}

// console answers the pages.
type console struct {
	Options
	pages    *part.Pages
	files    *static.Files
	crossing *http.CrossOriginProtection
	secure   bool        // cookies are for https alone
	headers  http.Header // of every page
}

// New returns the handler of /console, which expects whole paths. An error is a
// fault of the build or of an address in the settings.
func New(o Options) (http.Handler, error) {
	if o.Log == nil {
		o.Log = slog.New(slog.DiscardHandler)
	}
	c := &console{Options: o, crossing: http.NewCrossOriginProtection(), secure: strings.HasPrefix(o.PublicURL, "https://")}
	origin, err := originOf(o.PublicURL)
	if err != nil {
		return nil, err
	}
	// A proxy may rewrite Host, by which forms are told to be our own.
	if err := c.crossing.AddTrustedOrigin(origin); err != nil {
		return nil, fmt.Errorf("the public address: %w", err)
	}
	media, err := originOf(o.MediaURL)
	if err != nil {
		return nil, err
	}
	if media == origin {
		media = ""
	}
	c.headers = headers(media, c.secure)
	if c.files, err = static.New(Base + "/static"); err != nil {
		return nil, err
	}
	pages, err := fs.Sub(embedded, "pages")
	if err != nil {
		return nil, err
	}
	if c.pages, err = part.Parse(pages, c.files.Path); err != nil {
		return nil, err
	}
	var all []httpapi.Route
	for _, r := range c.routes() {
		if r.of(c.Side) {
			all = append(all, httpapi.Route{Pattern: r.pattern(), Handle: c.answering(r)})
		}
	}
	return httpapi.New(httpapi.Options{Log: o.Log, Enter: c.enter, Refuse: c.refuse, Observe: o.Observe}, all), nil
}

// originOf is the scheme, host and port of an address.
func originOf(address string) (string, error) {
	u, err := url.Parse(address)
	if err != nil || u.Host == "" {
		return "", fmt.Errorf("%q is no base address", address)
	}
	return u.Scheme + "://" + u.Host, nil
}

// headers are those of every answer of the console. Nothing is inline, so that
// markup which got into a page could load and run nothing.
func headers(media string, secure bool) http.Header {
	from := "'self' blob:"
	if media != "" {
		from += " " + media
	}
	h := http.Header{}
	h.Set("Content-Security-Policy", "default-src 'none'; script-src 'self'; style-src 'self'; img-src "+from+"; media-src "+from+
		"; connect-src 'self'; form-action 'self'; base-uri 'none'; frame-ancestors 'none'; "+
		"require-trusted-types-for 'script'; trusted-types fragment")
	h.Set("X-Content-Type-Options", "nosniff")
	h.Set("Cross-Origin-Opener-Policy", "same-origin")
	h.Set("Cross-Origin-Resource-Policy", "same-origin")
	// Not no-referrer: with it browsers send forms on plain http with an Origin
	// of null, which is nobody's.
	h.Set("Referrer-Policy", "same-origin")
	h.Set("Permissions-Policy", "camera=(), microphone=(), geolocation=()")
	h.Set("Cache-Control", "no-store")
	if secure {
		h.Set("Strict-Transport-Security", "max-age=31536000")
	}
	return h
}
