package page

import (
	"context"
	"net/http"
	"net/netip"
	"net/url"
	"path"
	"regexp"
	"strings"
	"time"

	"tollgate/internal/account"
	"tollgate/internal/console/part"
	"tollgate/internal/httpapi"
	"tollgate/internal/store"
)

// visitTimeout bounds what a page asks of the database.
const visitTimeout = 30 * time.Second

// Visit is one request for a page, by somebody who may see it.
type Visit struct {
	*httpapi.Exchange
	// Session is whose visit it is; zero: nobody is signed in.
	Session account.ConsoleSession

	server *server
	side   *side           // nil: of what all sides have
	path   string          // of the route, below Base
	ctx    context.Context // see Context
}

// Context outlives the reader, so that an act is whole.
func (v *Visit) Context() context.Context { return v.ctx }

// Account is whose things the visitor sees.
func (v *Visit) Account() string { return v.Session.User.Account }

// Address is where the visitor comes from.
func (v *Visit) Address() netip.Addr {
	return httpapi.ClientAddress(v.Request, v.server.TrustedProxies)
}

// PublicURL is the base address that users see. While nobody has set it, that by which
// the visitor has come leads here, and the listen address may lead nowhere from where he
// is. A browser says where its reader comes from (Sec-Fetch-Site) to what it trusts alone:
// to https, whoever ends that, and to the machine itself.
func (v *Visit) PublicURL() string {
	host := v.Request.Host
	if !v.server.NoPublicURL || !hostPort.MatchString(host) {
		return v.server.PublicURL
	}
	u := url.URL{Scheme: "http", Host: host}
	if v.Request.TLS != nil || v.Request.Header.Get("Sec-Fetch-Site") != "" && !isLoopback(u.Hostname()) {
		u.Scheme = "https"
	}
	return u.String()
}

// hostPort is a name or an address, with a port or without.
var hostPort = regexp.MustCompile(`^([0-9A-Za-z_-]+(\.[0-9A-Za-z_-]+)*\.?|\[[0-9A-Fa-f:.]+\])(:[0-9]{1,5})?$`)

// isLoopback tells whether a host is the machine itself.
func isLoopback(host string) bool {
	host = strings.ToLower(strings.TrimSuffix(host, "."))
	addr, err := netip.ParseAddr(host)
	return err == nil && addr.IsLoopback() || host == "localhost" || strings.HasSuffix(host, ".localhost")
}

// View runs read on one snapshot. It waits for a place, so never within another View.
func (v *Visit) View(read func(tx *store.Tx) error) error {
	if v.server.Reading != nil {
		leave, err := v.server.Reading(v.ctx, v.Session.ID != "", v.Account())
		if err != nil {
			return err
		}
		defer leave()
	}
	return v.server.DB.View(v.ctx, read)
}

// Part runs read, which reads the part of a page that a word names, on a snapshot of its
// own: where it fails, what Part returns stands in the part's place, and the rest stands
// as ever. nil: it has not failed.
func (v *Visit) Part(word string, read func(tx *store.Tx) error) *part.Notice {
	err := v.View(read)
	if err == nil {
		return nil
	}
	v.server.Log.Error("a part of a page cannot be read", "request", v.ID, "page", v.path, "part", word, "cause", err)
	return &part.Notice{Tone: part.Bad, Title: "The " + word + " cannot be shown at this moment.",
		Text: "The rest of this page is right. Request " + v.ID + ".",
		Link: &part.Link{Href: v.Request.URL.RequestURI(), Text: "Try again"}}
}

// Update runs act in one transaction.
func (v *Visit) Update(act func(tx *store.Tx) error) error { return v.server.DB.Update(v.ctx, act) }

// Query is a parameter of the page's address; empty: it is not there.
func (v *Visit) Query(name string) string {
	value := v.Request.URL.Query().Get(name)
	if !plain(value) || len(value) > 256 {
		return ""
	}
	return value
}

// Heads tells whether the visitor asks for the head of an answer alone, so that what
// stands in its body needs not be read.
func (v *Visit) Heads() bool { return v.Request.Method == http.MethodHead }

// Filled is what a link has filled in of a form: a parameter of the page's address, but
// nothing where the reader comes from elsewhere than a page of this console. A link of
// somebody else's, in a mail too, must fill in no form. A browser that does not say where
// its reader comes from (without TLS) leaves the form as empty.
func (v *Visit) Filled(name string) string {
	if v.Request.Header.Get("Sec-Fetch-Site") != "same-origin" {
		return ""
	}
	return v.Query(name)
}

// Confirm opens a dialog that the page's address asks for.
func (v *Visit) Confirm(c part.Confirm) part.Confirm {
	c.Open = v.Query("confirm") == c.ID
	return c
}

// frame is what stands around a page.
func (v *Visit) frame(p Whole) part.Surround {
	home := Base + v.side.Path
	f := part.Surround{Title: p.Title, Theme: themeOf(v.Request), NoKeys: noKeys(v.Request), Main: p.Main, Home: home,
		Leave: home + "/sign-out", Notices: p.Notices}
	if v.Session.ID == "" {
		return f
	}
	if v.side.Find != "" {
		f.Find = Base + v.side.Find
	}
	f.Who = v.Session.User.Email
	if v.Session.User.ID == "" {
		f.Who = "operator"
	}
	for _, e := range v.side.Menu {
		path := strings.TrimPrefix(e.Href, Base)
		e.Current = path == v.path || path != v.side.Path && strings.HasPrefix(v.path, path+"/")
		f.Nav = append(f.Nav, e)
	}
	return f
}

// below returns an address of the console that somebody sent, and the first page
// for any other.
func below(sent string) string {
	u, err := url.Parse(sent)
	if err != nil || u.Scheme != "" || u.Host != "" || u.User != nil || strings.ContainsAny(sent, "\\\r\n\t") ||
		path.Clean(u.Path) != u.Path || u.Path != Base && !strings.HasPrefix(u.Path, Base+"/") {
		return Base
	}
	return u.RequestURI()
}
