// Package page owns the parts that the console's pages share: sessions, sign-in, cookies, headers, forms and
// responses.
//
// Each kind of session has a section with its own handlers, menu and templates. The address of a page contains
// the whole state of the page. An action is a form sent by POST and works without scripts. The response to an
// action is a redirect (303), or a page if a secret must be shown once.
//
// Invariants: a section serves only sessions of its kind; a POST from another site is rejected; pages have no
// inline scripts or styles and are never cached; a page is rendered completely before its first byte is sent.
package page

import (
	"embed"
	"fmt"
	"io/fs"
	"log/slog"
	"net/http"
	"net/netip"
	"net/url"
	"slices"
	"strings"
	"time"

	"tollgate/internal/account"
	"tollgate/internal/announcement"
	"tollgate/internal/availability"
	"tollgate/internal/catalog"
	"tollgate/internal/catalog/vault"
	"tollgate/internal/console/static"
	"tollgate/internal/console/ui"
	"tollgate/internal/httpapi"
	"tollgate/internal/identity"
	"tollgate/internal/invoice"
	"tollgate/internal/job"
	"tollgate/internal/ledger"
	"tollgate/internal/mail"
	"tollgate/internal/media"
	"tollgate/internal/money"
	"tollgate/internal/operator"
	"tollgate/internal/store"
	"tollgate/internal/topup"
	"tollgate/internal/webhook"
)

// Base is the path of the console.
const Base = "/console"

//go:embed html/*.html
var embedded embed.FS

// Options configures the console. All fields are required unless their comment says otherwise.
type Options struct {
	DB *store.DB
	// ReadLimit is shared by all consoles of the node. If it is nil, New creates one.
	ReadLimit *ReadLimit
	// Keys is this node's key cache. The console notifies Keys of every change.
	Keys *account.Keys
	// Passwords hashes users' passwords. SignIns checks passwords and limits attempts.
	Passwords *account.Passwords
	SignIns   *account.SignIns
	// Catalog is this node's catalog watcher. Providers are the adapters for a catalog's lines.
	Catalog   *catalog.Watcher
	Providers map[string]catalog.Provider
	// ProviderHTTP makes the test calls of providers.
	ProviderHTTP *http.Client
	// SecretKeys encrypt the secrets of lines. If empty, the console stores none.
	SecretKeys vault.KeyRing
	// Ledger, Lines, Jobs, Webhooks, Audits and Media belong to this node.
	Ledger   *ledger.Ledger
	Lines    operator.LineControl
	Jobs     *job.Jobs
	Webhooks *webhook.Webhooks
	Mails    *mail.Mailer // if nil, mail is off
	// LowBalance is the balance at which an account without its own level gets a warning. Zero means no
	// warning.
	LowBalance money.Amount
	// SignUps lets customers create accounts. Challenge checks that a person fills in the form. If Challenge is
	// nil, there is no check.
	SignUps   operator.SignUps
	Challenge *Challenge
	// Brand is the appearance of the shop.
	Brand Brand
	// Identities are the identity providers with which people sign in, in the order of their buttons.
	Identities []*identity.IDProvider
	Audits     *operator.Audits
	Media      *media.Store
	// Topups takes the customers' payments. If nil, customers cannot pay.
	Topups *topup.Topups
	// Invoices issues the documents of payments. If nil, invoices are off and customers cannot pay.
	Invoices *invoice.Issuer
	// PublicPrices shows the models and their prices to everybody.
	PublicPrices bool
	// Announcements are this node's announcements to customers.
	Announcements *announcement.Board
	// Availability shows the availability of models to everybody. If nil, there is no such page.
	Availability *availability.Availability
	// Legal has the shop's terms and privacy policy.
	Legal Legal
	// ServeAs serves an API request with a key of an account; see api.PublicHandler. key is the key's id.
	ServeAs func(w http.ResponseWriter, r *http.Request, account, key string)
	// AdminToken allows signing in to the operators' pages. If AdminToken is not set, only users
	// who are operators can sign in there.
	AdminToken *httpapi.OperatorToken
	// PublicURL is the base address for users. If PublicURL is https, cookies are Secure.
	PublicURL string
	// NoPublicURL is true if no setting names a public address. PublicURL is the listen address then.
	NoPublicURL bool
	// OwnAddress is true if the pages have their own address instead of PublicURL.
	OwnAddress bool
	// MediaURL is the base address of result files.
	MediaURL string
	// TrustedProxies are the networks whose forwarding headers may name the client's address.
	TrustedProxies []netip.Prefix
	// Log gets the causes of 503 answers, and a warning if this node cannot use a change at once. If nil,
	// nothing is logged.
	Log *slog.Logger
	// Observe is called after every request. If nil, requests are not observed.
	Observe func(endpoint string, status int, duration time.Duration)
}

// Section is the part of the console for one kind of session.
type Section struct {
	Kind account.SessionKind
	// Path is the path of the first page below Base, and the prefix of all other paths.
	Path     string
	Handlers []Handler
	// Public has the handlers of pages for everybody, with or without a session.
	Public []Handler
	// Menu links to the pages.
	Menu []ui.NavItem
	// Find is the path of the search page below Base. If empty, the menu has no search field.
	Find string
	// Templates has a file html/NAME.html for each page and Fragment.
	Templates fs.FS
}

// Handler handles one method of one path below Base. `{id}` matches one path segment.
type Handler struct {
	method, path string
	handle       func(*Visit) (Responder, error)
	role         account.OperatorRole // set by Needs
}

// Needs returns h for visitors with the role or a role that includes it. Each handler of the operators' section
// must have a role.
func (h Handler) Needs(role account.OperatorRole) Handler {
	h.role = role
	return h
}

// OnlyIf returns handle if exists is true. Otherwise it returns a handler that answers 404.
func OnlyIf(exists bool, handle func(*Visit) (Responder, error)) func(*Visit) (Responder, error) {
	if exists {
		return handle
	}
	return func(*Visit) (Responder, error) { return nil, NoPage() }
}

// OnlyInvoicing is OnlyIf for pages of a shop with invoices.
func (o Options) OnlyInvoicing(handle func(*Visit) (Responder, error)) func(*Visit) (Responder, error) {
	return OnlyIf(o.Invoices != nil, handle)
}

// Get registers a GET handler. The handler must not change anything.
func Get(path string, handle func(*Visit) (Responder, error)) Handler {
	return Handler{method: http.MethodGet, path: path, handle: handle}
}

// Post registers the POST handler of a form.
func Post(path string, handle func(*Visit) (Responder, error)) Handler {
	return Handler{method: http.MethodPost, path: path, handle: handle}
}

// Action registers a POST handler for a button without fields. A request with form fields is
// rejected.
func Action(path string, handle func(*Visit) (Responder, error)) Handler {
	return Post(path, func(v *Visit) (Responder, error) {
		if err := v.NoFields(); err != nil {
			return nil, err
		}
		return handle(v)
	})
}

func (h Handler) pattern() string { return h.method + " " + Base + h.path }

// section is a Section with its parsed templates, by the role of the visitor.
type section struct {
	Section
	pages map[account.OperatorRole]*ui.Pages
}

// server serves the sections.
type server struct {
	Options
	files       *static.Files
	common      *ui.Pages // pages without a section, such as errors
	crossOrigin *http.CrossOriginProtection
	secure      bool        // PublicURL is https, so cookies are Secure
	headers     http.Header // of every response
	brand       ui.Brand
	operators   bool // one of the sections is for operators

	policyWithChallenge string // the content policy of a page with a challenge
}

// New returns the handler of sections. Request paths include Base. New returns an error if an address in the
// options or an embedded file is invalid, or if a handler of the operators' section has no role.
func New(o Options, sections ...Section) (http.Handler, error) {
	srv := &server{Options: o, crossOrigin: http.NewCrossOriginProtection(), secure: strings.HasPrefix(o.PublicURL, "https://")}
	if srv.ReadLimit == nil {
		srv.ReadLimit = NewReadLimit()
	}
	origin, err := originOf(o.PublicURL)
	if err != nil {
		return nil, err
	}
	// The check compares Origin with Host, and a proxy may rewrite Host.
	if err := srv.crossOrigin.AddTrustedOrigin(origin); err != nil {
		return nil, fmt.Errorf("the public address: %w", err)
	}
	mediaOrigin, err := originOf(o.MediaURL)
	if err != nil {
		return nil, err
	}
	if mediaOrigin == origin {
		mediaOrigin = ""
	}
	srv.headers = headers(mediaOrigin, srv.secure)
	if o.Challenge != nil {
		challengeOrigin, err := originOf(o.Challenge.ScriptURL)
		if err != nil {
			return nil, err
		}
		srv.policyWithChallenge = challengePolicy(srv.headers.Get(contentPolicy), challengeOrigin)
	}
	if srv.files, err = static.Read(); err != nil {
		return nil, err
	}
	srv.files, srv.brand = o.Brand.files(srv.files)
	srv.brand.Links = o.publicLinks()
	srv.common = ui.New(srv.files.Path, nil, embedded)
	var routes []httpapi.Route
	add := func(s *section, public bool, handlers []Handler) {
		for _, h := range handlers {
			routes = append(routes, httpapi.Route{Pattern: h.pattern(), Handle: srv.handler(s, h, public)})
		}
	}
	add(nil, true, srv.sharedHandlers())
	for _, spec := range sections {
		s, err := srv.newSection(spec)
		if err != nil {
			return nil, err
		}
		srv.operators = srv.operators || spec.Kind == account.OperatorSession
		add(s, true, append(srv.signInHandlers(spec), spec.Public...))
		add(s, false, spec.Handlers)
	}
	return httpapi.New(httpapi.Options{Log: o.Log, Enter: srv.enter, Refuse: srv.showError, Observe: o.Observe}, routes), nil
}

func (srv *server) sharedHandlers() []Handler {
	return []Handler{
		Get("/static/{id}", srv.static),
		Post("/theme", srv.setTheme),
		Post("/shortcuts", srv.setShortcuts),
		Post("/language", srv.chooseLanguage),
	}
}

// signInHandlers returns the handlers that need no session.
func (srv *server) signInHandlers(s Section) []Handler {
	handlers := []Handler{
		Get(s.Path+"/sign-in/code", srv.codePage),
		Post(s.Path+"/sign-in/code", srv.checkCode),
		Action(s.Path+"/sign-out", srv.signOut),
		Post(s.Path+"/sign-in/with/{id}", srv.withProvider(srv.beginSignIn)),
		Get(s.Path+"/sign-in/with/{id}/callback", srv.withProvider(srv.callback)),
	}
	if s.Kind == account.OperatorSession {
		return append(handlers,
			Get(s.Path+"/sign-in", srv.operatorSignInPage),
			Post(s.Path+"/sign-in", srv.operatorSignIn))
	}
	return append(handlers,
		Get(newAccountPath, OnlyIf(len(srv.Identities) > 0, srv.withSignUp(srv.newAccountPage))),
		Post(newAccountPath, OnlyIf(len(srv.Identities) > 0, srv.withSignUp(srv.createNewAccount))),
		Get(termsPath, OnlyIf(srv.Legal.Terms != nil, srv.legalPage("Terms", srv.Legal.Terms))),
		Get(privacyPath, OnlyIf(srv.Legal.Privacy != nil, srv.legalPage("Privacy", srv.Legal.Privacy))),
		Get(acceptPath, srv.acceptancePage),
		Post(acceptPath, srv.acceptTerms),
		Get(s.Path+"/sign-in", srv.signInPage),
		Post(s.Path+"/sign-in", srv.signIn),
		Get("/link", srv.linkPage),
		Post("/link", srv.checkLink),
		Post("/link/password", srv.useLink),
		Get("/forgot", OnlyIf(srv.Mails.On(), srv.forgotPage)),
		Post("/forgot", OnlyIf(srv.Mails.On(), srv.sendReset)),
		Get("/sign-up", srv.withSignUp(srv.signUpPage)),
		Post("/sign-up", srv.withSignUp(srv.signUp)),
		Get("/verify", srv.withSignUp(srv.verifyPage)),
		Post("/verify", srv.withSignUp(srv.checkVerification)),
		Post("/verify/confirm", srv.withSignUp(srv.verify)))
}

// Patterns returns the patterns that New registers, as `METHOD /path`. It is for tests.
func Patterns(sections ...Section) (all []string) {
	srv := new(server)
	handlers := srv.sharedHandlers()
	for _, s := range sections {
		handlers = append(append(handlers, srv.signInHandlers(s)...), append(slices.Clip(s.Public), s.Handlers...)...)
	}
	for _, h := range handlers {
		all = append(all, h.pattern())
	}
	return all
}

// originOf returns the scheme, host and port of an address. It returns an error if there is no host.
func originOf(address string) (string, error) {
	u, err := url.Parse(address)
	if err != nil || u.Host == "" {
		return "", fmt.Errorf("%q is not a base address", address)
	}
	return u.Scheme + "://" + u.Host, nil
}

const contentPolicy = "Content-Security-Policy"

// headers returns the headers of every response. Inline scripts and styles are forbidden, so
// injected markup cannot run or load anything.
func headers(mediaOrigin string, secure bool) http.Header {
	sources := "'self' blob:"
	if mediaOrigin != "" {
		sources += " " + mediaOrigin
	}
	h := http.Header{}
	h.Set(contentPolicy, "default-src 'none'; script-src 'self'; style-src 'self'; img-src "+sources+"; media-src "+sources+
		"; connect-src 'self'; form-action 'self'; base-uri 'none'; frame-ancestors 'none'; "+
		"require-trusted-types-for 'script'; trusted-types fragment")
	h.Set("X-Content-Type-Options", "nosniff")
	h.Set("Cross-Origin-Opener-Policy", "same-origin")
	h.Set("Cross-Origin-Resource-Policy", "same-origin")
	// With no-referrer, browsers would send forms over plain http with the Origin null.
	h.Set("Referrer-Policy", "same-origin")
	h.Set("Permissions-Policy", "camera=(), microphone=(), geolocation=()")
	h.Set("Cache-Control", "no-store")
	if secure {
		h.Set("Strict-Transport-Security", "max-age=31536000")
	}
	return h
}
