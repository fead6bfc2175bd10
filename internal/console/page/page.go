// Package page owns what every page of the console stands on: whose visit it is
// and who is let in, sign-ins and their cookies, headers, forms, and what a visit
// is answered with.
//
// The pages themselves come in sections, one for each kind of session; a section
// says which there are, what its menu leads to, and has a template for each. A page
// is a GET whose whole state is in its address; an act is a POST of a form, which
// works without scripts and answers 303, or the page itself where it shows a secret
// once.
//
// Invariants: what a section has is answered to sessions of its kind alone; a POST
// from another site is refused; nothing of a page is inline, and no page may be kept
// by a cache; a page is drawn whole before its first byte is sent.
package page

import (
	"context"
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

// Base is the path that the console is mounted at.
const Base = "/console"

//go:embed html/*.html
var embedded embed.FS

// Options are what pages stand on. All are required unless said otherwise.
type Options struct {
	DB *store.DB
	// Entrance judges sign-ins.
	Entrance *account.Entrance
	// AdminToken signs in to the operators' section; none: only operators among the
	// users do.
	AdminToken *httpapi.OperatorToken
	// PublicURL is the base address that users see. If it is https, cookies are
	// for https alone.
	PublicURL string
	// NoPublicURL tells that nobody has set it: it is that of the listen address then.
	NoPublicURL bool
	// Apart tells that the pages are at another address than the public one.
	Apart bool
	// MediaURL is the base address of result files.
	MediaURL string
	// TrustedProxies are believed where they say whom they forward for.
	TrustedProxies []netip.Prefix
	// Reading waits for a place among the pages that read the database, and returns what
	// gives it back; a visitor who is not known yet has no account. nil: none waits.
	Reading func(ctx context.Context, known bool, account string) (leave func(), err error)
	// Log gets the causes of 503 answers.
	Log *slog.Logger
	// Observe is told of every answered request; nil: nobody is.
	Observe func(endpoint string, status int, took time.Duration)
}

// Section is the pages that one kind of session opens.
type Section struct {
	Kind account.SessionKind
	// Path is that of the first page, below Base; those of the others begin with it.
	Path     string
	Handlers []Handler
	// Menu leads to the pages, in the order in which they stand.
	Menu []part.NavItem
	// Find is the page below Base that finds what q names; empty: there is no box
	// beside the menu.
	Find string
	// Templates are folders with html/NAME.html, one a page or Fragment.
	Templates []fs.FS
}

// Handler is one method of one path below Base, and what answers it. `{id}` stands
// for one path segment.
type Handler struct {
	method, path string
	answer       func(*Visit) (Outgoing, error)
}

// Get shows something, and changes nothing.
func Get(path string, answer func(*Visit) (Outgoing, error)) Handler {
	return Handler{http.MethodGet, path, answer}
}

// Post does something that a form asks for.
func Post(path string, answer func(*Visit) (Outgoing, error)) Handler {
	return Handler{http.MethodPost, path, answer}
}

// Act is Post of a form that is no more than its button: what has fields is refused.
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

// door lets visits in.
type door struct {
	Options
	files    *static.Files
	alone    *part.Pages // those of no section: of errors
	crossing *http.CrossOriginProtection
	secure   bool        // cookies are for https alone
	headers  http.Header // of every page

	operators bool // the pages of operators are at this address too
}

// New returns the handler of sections, which expects whole paths. An error is a
// fault of the build or of an address in the options.
func New(o Options, sections ...Section) (http.Handler, error) {
	d := &door{Options: o, crossing: http.NewCrossOriginProtection(), secure: strings.HasPrefix(o.PublicURL, "https://")}
	origin, err := originOf(o.PublicURL)
	if err != nil {
		return nil, err
	}
	// A proxy may rewrite Host, by which forms are told to be our own.
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
	add(nil, true, d.everywhere())
	for _, section := range sections {
		s := &side{Section: section, pages: part.New(d.files.Path, append([]fs.FS{embedded}, section.Templates...)...)}
		d.operators = d.operators || section.Kind == account.OperatorSession
		add(s, true, d.signIns(section.Kind))
		add(s, false, section.Handlers)
	}
	return httpapi.New(httpapi.Options{Log: o.Log, Enter: d.enter, Refuse: d.refuse, Observe: o.Observe}, all), nil
}

// everywhere is what stands beside all sections.
func (d *door) everywhere() []Handler {
	return []Handler{
		Get("/static/{id}", d.static),
		Post("/theme", d.setTheme),
		Post("/shortcuts", d.setShortcuts),
	}
}

// signIns is what answers who is not signed in too.
func (d *door) signIns(kind account.SessionKind) []Handler {
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

// Patterns lists what New answers as `METHOD /path`, with {id} for an id: for
// tests.
func Patterns(sections ...Section) (all []string) {
	d := new(door)
	handlers := d.everywhere()
	for _, s := range sections {
		handlers = append(append(handlers, d.signIns(s.Kind)...), s.Handlers...)
	}
	for _, h := range handlers {
		all = append(all, h.pattern())
	}
	return all
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
