package page

import (
	"cmp"
	"context"
	"net/http"
	"net/netip"
	"net/url"
	"path"
	"regexp"
	"strings"
	"time"

	"tollgate/internal/account"
	"tollgate/internal/console/ui"
	"tollgate/internal/httpapi"
	"tollgate/internal/store"
)

// visitTimeout bounds the database work of a page.
const visitTimeout = 30 * time.Second

// Visit is one request for a page by an authorized visitor.
type Visit struct {
	*httpapi.Exchange
	// Session is the visitor's session. It is zero if the visitor is not signed in.
	Session account.ConsoleSession

	server  *server
	section *section        // nil if the path belongs to no section
	path    string          // the route's path below Base
	ctx     context.Context // see Context
}

// Context returns the context of the visit. It is not canceled when the visitor disconnects, so that a change
// is never left half done.
func (v *Visit) Context() context.Context { return v.ctx }

// Account returns the visitor's account.
func (v *Visit) Account() string { return v.Session.User.Account }

// Address returns the visitor's address.
func (v *Visit) Address() netip.Addr {
	return httpapi.ClientAddress(v.Request, v.server.TrustedProxies)
}

// PublicURL returns the base address for clients. If no public URL is set, it returns the address of the
// request, because the visitor may not reach the listen address. Browsers send Sec-Fetch-Site only over https
// and to the loopback host. So the header reveals https even behind a proxy.
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

// hostPort matches a host name or an address, with or without a port.
var hostPort = regexp.MustCompile(`^([0-9A-Za-z_-]+(\.[0-9A-Za-z_-]+)*\.?|\[[0-9A-Fa-f:.]+\])(:[0-9]{1,5})?$`)

// isLoopback reports whether a host is the local machine.
func isLoopback(host string) bool {
	host = strings.ToLower(strings.TrimSuffix(host, "."))
	addr, err := netip.ParseAddr(host)
	return err == nil && addr.IsLoopback() || host == "localhost" || strings.HasSuffix(host, ".localhost")
}

// View runs read on one snapshot. View waits for the read limit, so read must not call View: the inner call may
// wait for the outer one.
func (v *Visit) View(read func(tx *store.Tx) error) error {
	done, err := v.server.ReadLimit.begin(v.ctx, v.Session.ID != "", v.Account())
	if err != nil {
		return err
	}
	defer done()
	return v.server.DB.View(v.ctx, read)
}

// Read is Visit.View for a function with a result.
func Read[T any](v *Visit, read func(tx *store.Tx) (T, error)) (out T, err error) {
	err = v.View(func(tx *store.Tx) (err error) {
		out, err = read(tx)
		return err
	})
	return out, err
}

// TryView runs read for the part of a page called name. If read fails, TryView logs the error and returns a
// notice to show in place of the part. Otherwise it returns nil.
func (v *Visit) TryView(name ui.Words, read func(tx *store.Tx) error) *ui.Notice {
	err := v.View(read)
	if err == nil {
		return nil
	}
	v.server.Log.Error("part of a page cannot be read", "request", v.ID, "page", v.path, "part", name.String(), "cause", err)
	return &ui.Notice{Tone: ui.Bad, Title: ui.Sayf("The %s cannot be shown at this moment.", name),
		Text: ui.Sayf("The rest of this page is correct. Request %s.", v.ID),
		Link: &ui.Link{Href: v.Request.URL.RequestURI(), Text: "Try again"}}
}

// Update runs act in one transaction.
func (v *Visit) Update(act func(tx *store.Tx) error) error { return v.server.DB.Update(v.ctx, act) }

// Write is Visit.Update for a function with a result.
func Write[T any](v *Visit, act func(tx *store.Tx) (T, error)) (out T, err error) {
	err = v.Update(func(tx *store.Tx) (err error) {
		out, err = act(tx)
		return err
	})
	return out, err
}

// Done runs act in one transaction and then redirects to the page at path; see To.
func (v *Visit) Done(path, done string, act func(tx *store.Tx) error) (Responder, error) {
	return To(path, done), v.Update(act)
}

// Query returns a parameter of the page's address. It returns an empty string if the parameter is
// missing, has control characters or is longer than 256 bytes.
func (v *Visit) Query(name string) string {
	value := v.Request.URL.Query().Get(name)
	if !isPlainText(value) || len(value) > 256 {
		return ""
	}
	return value
}

// IsHead reports whether the request is a HEAD request. The response has no body, so a handler need not read
// the content.
func (v *Visit) IsHead() bool { return v.Request.Method == http.MethodHead }

// OperatorsHere reports whether this server also serves the operators' pages.
func (v *Visit) OperatorsHere() bool { return v.server.operators }

// Say returns a text in the visitor's language, for a form value or an address.
func (v *Visit) Say(w ui.Words) (string, error) {
	return v.section.pages[v.Session.Role()].Say(v.Locale(), w)
}

// Prefill returns a form value from the page's address if the visitor followed a link of this console.
// Otherwise it returns an empty string, so that a foreign link, for example in an email, cannot fill in a form.
// Without TLS, browsers do not reveal the origin of the link, so the form stays empty.
func (v *Visit) Prefill(name string) string {
	if v.Request.Header.Get("Sec-Fetch-Site") != "same-origin" {
		return ""
	}
	return v.Query(name)
}

// Confirm returns the dialog c. The dialog is open if the parameter confirm of the page's address names it.
func (v *Visit) Confirm(c ui.Confirm) ui.Confirm {
	c.Open = v.Query("confirm") == c.ID
	return c
}

// layout returns the layout of a page, with title, menu and notices.
func (v *Visit) layout(p FullPage) ui.Layout {
	home := Base + v.section.Path
	f := ui.Layout{Title: p.Title, Locale: v.Locale(), Languages: Languages(v.Locale()), Brand: v.server.brand,
		Theme: themeOf(v.Request), NoShortcuts: noShortcuts(v.Request), Main: p.Main, Home: home,
		SignOut: home + "/sign-out", Notices: p.Notices}
	if v.Session.ID == "" {
		f.Wide = p.Wide
		return f
	}
	if v.section.Find != "" {
		f.Find = Base + v.section.Find
	}
	f.User = ui.Data(v.Session.User.Email)
	if v.section.Kind == account.OperatorSession {
		f.User, f.Role = cmp.Or(f.User, "operator's token"), ui.Words(v.Session.Role())
	}
	for _, e := range v.section.Menu {
		path := strings.TrimPrefix(e.Href, Base)
		e.Current = path == v.path || path != v.section.Path && strings.HasPrefix(v.path, path+"/")
		f.Nav = append(f.Nav, e)
	}
	return f
}

// consoleAddress returns address if it belongs to the console, or the first page otherwise.
func consoleAddress(address string) string {
	u, err := url.Parse(address)
	if err != nil || u.Scheme != "" || u.Host != "" || u.User != nil || strings.ContainsAny(address, "\\\r\n\t") ||
		path.Clean(u.Path) != u.Path || u.Path != Base && !strings.HasPrefix(u.Path, Base+"/") {
		return Base
	}
	return u.RequestURI()
}
