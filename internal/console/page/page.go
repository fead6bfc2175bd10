// Package page owns what the console's pages share: sessions, sign-in, cookies, headers,
// forms and responses.
//
// The pages come in sections, one for each kind of session, with handlers, a menu and
// templates. A page is a GET with its whole state in the address. An action is a POST of a
// form, which works without scripts. The response is a redirect (303), or the page itself if
// it shows a secret once.
//
// Invariants: a section serves only sessions of its kind; a POST from another site is
// rejected; pages have no inline scripts or styles and are never cached; a page is rendered
// completely before its first byte is sent.
package page

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
	"tollgate/internal/console/part"
	"tollgate/internal/console/static"
	"tollgate/internal/httpapi"
	"tollgate/internal/store"
)

// Base is the path of the console.
const Base = "/console"

//go:embed html/*.html
var embedded embed.FS

// Options configures New. All fields are required unless their comment says otherwise.
type Options struct {
	DB *store.DB
	// SignIns checks passwords and limits attempts.
	SignIns *account.SignIns
	// AdminToken signs in to the operators' section. If it is empty, only users who are
	// operators can sign in.
	AdminToken *httpapi.OperatorToken
	// PublicURL is the base address for users. If it is https, cookies are secure.
	PublicURL string
	// NoPublicURL reports whether PublicURL is derived from the listen address.
	NoPublicURL bool
	// Apart reports whether the pages have another address than PublicURL.
	Apart bool
	// MediaURL is the base address of result files.
	MediaURL string
	// TrustedProxies may set X-Forwarded-For.
	TrustedProxies []netip.Prefix
	// ReadLimit limits the reads of pages. If it is nil, New creates one.
	ReadLimit *ReadLimit
	// Log records the causes of 503 responses.
	Log *slog.Logger
	// Observe is called after every request. It may be nil.
	Observe func(endpoint string, status int, took time.Duration)
}

// Section is the part of the console for one kind of session.
type Section struct {
	Kind account.SessionKind
	// Path is the path of the first page below Base, and the prefix of all other paths.
	Path     string
	Handlers []Handler
	// Menu links to the pages.
	Menu []part.NavItem
	// Find is the path of the search page below Base. If it is empty, the menu has no
	// search field.
	Find string
	// Templates have a file html/NAME.html for each page and Fragment.
	Templates []fs.FS
}

// Handler handles one method of one path below Base. `{id}` matches one path segment.
type Handler struct {
	method, path string
	answer       func(*Visit) (Outgoing, error)
}

// Get registers a GET handler, which must not change anything.
func Get(path string, answer func(*Visit) (Outgoing, error)) Handler {
	return Handler{http.MethodGet, path, answer}
}

// Post registers the POST handler of a form.
func Post(path string, answer func(*Visit) (Outgoing, error)) Handler {
	return Handler{http.MethodPost, path, answer}
}

// Act registers a POST handler for a button without fields. A request with form fields is
// rejected.
func Act(path string, answer func(*Visit) (Outgoing, error)) Handler {
	return Post(path, func(v *Visit) (Outgoing, error) {
		if err := v.Blank(); err != nil {
			return nil, err
		}
		return answer(v)
	})
}

func (h Handler) pattern() string { return h.method + " " + Base + h.path }

// side is a section with its templates.
type side struct {
	Section
	pages *part.Pages
}

// server serves the sections.
type server struct {
	Options
	files    *static.Files
	alone    *part.Pages // pages without a section, such as errors
	crossing *http.CrossOriginProtection
	secure   bool        // cookies are secure
	headers  http.Header // of every response

	operators bool // one of the sections is the operators'
}

// New returns a handler for sections, which expects paths below Base. It returns an error if
// an address in the options or an embedded file is invalid.
func New(o Options, sections ...Section) (http.Handler, error) {
	d := &server{Options: o, crossing: http.NewCrossOriginProtection(), secure: strings.HasPrefix(o.PublicURL, "https://")}
	if d.ReadLimit == nil {
		d.ReadLimit = NewReadLimit()
	}
	origin, err := originOf(o.PublicURL)
	if err != nil {
		return nil, err
	}
	// A proxy may rewrite Host, which the check compares with Origin.
	if err := d.crossing.AddTrustedOrigin(origin); err != nil {
		return nil, fmt.Errorf("the public address: %w", err)
	}
	media, err := originOf(o.MediaURL)
	if err != nil {
		return nil, err
	}
	if media == origin {
		media = ""
	}
	d.headers = headers(media, d.secure)
	if d.files, err = static.Read(); err != nil {
		return nil, err
	}
	d.alone = part.New(d.files.Path, embedded)
	var all []httpapi.Route
	add := func(s *side, open bool, handlers []Handler) {
		for _, h := range handlers {
			all = append(all, httpapi.Route{Pattern: h.pattern(), Handle: d.answering(s, h, open)})
		}
	}
	add(nil, true, d.sharedHandlers())
	for _, section := range sections {
		s := &side{Section: section, pages: part.New(d.files.Path, append([]fs.FS{embedded}, section.Templates...)...)}
		d.operators = d.operators || section.Kind == account.OperatorSession
		add(s, true, d.signInHandlers(section.Kind))
		add(s, false, section.Handlers)
	}
	return httpapi.New(httpapi.Options{Log: o.Log, Enter: d.enter, Refuse: d.refuse, Observe: o.Observe}, all), nil
}

// sharedHandlers returns the handlers that all sections share.
func (d *server) sharedHandlers() []Handler {
	return []Handler{
		Get("/static/{id}", d.static),
		Post("/theme", d.setTheme),
		Post("/shortcuts", d.setShortcuts),
	}
}

// signInHandlers returns the handlers that need no session.
func (d *server) signInHandlers(kind account.SessionKind) []Handler {
	if kind == account.OperatorSession {
		return []Handler{
			Get("/operator/sign-in", d.operatorSignInPage),
			Post("/operator/sign-in", d.operatorSignIn),
			Get("/operator/sign-in/code", d.codePage),
			Post("/operator/sign-in/code", d.checkCode),
			Act("/operator/sign-out", d.operatorSignOut),
		}
	}
	return []Handler{
		Get("/sign-in", d.signInPage),
		Post("/sign-in", d.signIn),
		Get("/sign-in/code", d.codePage),
		Post("/sign-in/code", d.checkCode),
		Act("/sign-out", d.signOut),
		Get("/link", d.linkPage),
		Post("/link", d.takeLink),
		Post("/link/password", d.useLink),
	}
}

// Patterns returns the patterns that New registers, as `METHOD /path`. It is for tests.
func Patterns(sections ...Section) (all []string) {
	d := new(server)
	handlers := d.sharedHandlers()
	for _, s := range sections {
		handlers = append(append(handlers, d.signInHandlers(s.Kind)...), s.Handlers...)
	}
	for _, h := range handlers {
		all = append(all, h.pattern())
	}
	return all
}

// originOf returns the scheme, host and port of an address.
func originOf(address string) (string, error) {
	u, err := url.Parse(address)
	if err != nil || u.Host == "" {
		return "", fmt.Errorf("%q is no base address", address)
	}
	return u.Scheme + "://" + u.Host, nil
}

// headers returns the headers of every response. Inline scripts and styles are forbidden, so
// injected markup cannot run or load anything.
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
	// With no-referrer, browsers would send forms over plain http with the Origin null.
	h.Set("Referrer-Policy", "same-origin")
	h.Set("Permissions-Policy", "camera=(), microphone=(), geolocation=()")
	h.Set("Cache-Control", "no-store")
	if secure {
		h.Set("Strict-Transport-Security", "max-age=31536000")
	}
	return h
}
