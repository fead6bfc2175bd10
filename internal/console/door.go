package console

import (
	"bytes"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"net/http"
	"net/url"
	"strings"
	"unicode"
	"unicode/utf8"

	"tollgate/internal/account"
	"tollgate/internal/console/part"
	"tollgate/internal/fault"
	"tollgate/internal/httpapi"
	"tollgate/internal/store"
)

// enter puts the headers on an answer, and refuses forms of other sites.
func (c *console) enter(x *httpapi.Exchange) error {
	for name, values := range c.headers {
		x.Header()[name] = values
	}
	if err := c.crossing.Check(x.Request); err != nil {
		return fault.New(fault.PermissionDenied, "This form was sent by another site, so nothing was done. Open the console and do it there.")
	}
	return nil
}

// answering is the handler of a route.
func (c *console) answering(r route) func(*httpapi.Exchange) error {
	return func(x *httpapi.Exchange) error {
		ctx, done := x.Outliving(visitTimeout)
		defer done()
		v := &visit{Exchange: x, c: c, ctx: ctx, route: r}
		if !plain(x.PathID()) {
			return fault.New(fault.NotFound, "There is no such page. Check its address.")
		}
		out, err := c.letIn(v)
		if out == nil && err == nil {
			out, err = r.handle(v)
		}
		if err != nil {
			return explained(err)
		}
		return out.send(v)
	}
}

// letIn finds out whose visit it is, and answers in place of the page where its
// reader may not see it.
func (c *console) letIn(v *visit) (answer, error) {
	operators := strings.HasPrefix(v.route.path, "/operator")
	kind := account.UserSession
	if operators {
		kind = account.OperatorSession
	}
	if err := v.recognize(kind); err != nil {
		return nil, err
	}
	if v.session.ID != "" {
		return nil, nil
	}
	if operators && c.AdminToken == "" {
		var anybodyIs bool
		if err := v.view(func(tx *store.Tx) (err error) {
			_, anybodyIs, err = account.SignInsTx(tx)
			return err
		}); err != nil {
			return nil, err
		}
		if !anybodyIs {
			return nil, fault.New(fault.NotFound, "There is no such page. Check its address.")
		}
	}
	switch {
	case v.route.who == anybody:
		return nil, nil
	case operators:
		return redirect{Base + "/operator/sign-in?next=" + url.QueryEscape(v.back())}, nil
	}
	return redirect{Base + "/sign-in?next=" + url.QueryEscape(v.back())}, nil
}

// back is where a sign-in leads to: to the page that was asked for.
func (v *visit) back() string {
	if v.Request.Method != http.MethodGet {
		return ""
	}
	return v.Request.URL.RequestURI()
}

// recognize finds the session of the visit's cookie, and notes its use.
func (v *visit) recognize(kind account.SessionKind) error {
	value := v.c.cookieOf(v.Request, kind)
	if value == "" {
		return nil
	}
	stale := false
	err := v.view(func(tx *store.Tx) (err error) {
		v.session, stale, err = account.SessionTx(tx, kind, value, v.c.AdminToken)
		return err
	})
	if errors.Is(err, account.ErrNoSession) {
		return nil
	}
	if err == nil && stale {
		err = v.update(func(tx *store.Tx) error { return account.SeenTx(tx, v.session.ID) })
	}
	return err
}

// Names of the cookies. The prefix makes browsers refuse one that another host,
// or plain http, has set.
const (
	cookieName   = "tollgate"
	cookiePrefix = "__Host-"
	themeCookie  = "tollgate-theme"
)

func nameOfCookie(kind account.SessionKind, secure bool) string {
	name := cookieName
	if kind == account.OperatorSession {
		name += "-op"
	}
	if secure {
		return cookiePrefix + name
	}
	return name
}

// secureFor tells whether the cookie of a visit is for https alone. An address of
// the operator's own is not the public one: there the visitor's browser says how
// it came.
func (c *console) secureFor(r *http.Request) bool {
	if c.Side != Operators {
		return c.secure
	}
	return strings.HasPrefix(r.Header.Get("Origin"), "https://")
}

// cookieOf returns the value of a session's cookie; empty: there is none.
func (c *console) cookieOf(r *http.Request, kind account.SessionKind) string {
	for _, secure := range []bool{true, false} {
		if c.Side != Operators && secure != c.secure {
			continue
		}
		if found, err := r.Cookie(nameOfCookie(kind, secure)); err == nil {
			return found.Value
		}
	}
	return ""
}

// giveCookie hands a session's value to the browser, for as long as it is open at
// the most.
func (v *visit) giveCookie(kind account.SessionKind, value string) {
	secure := v.c.secureFor(v.Request)
	http.SetCookie(v, &http.Cookie{Name: nameOfCookie(kind, secure), Value: value, Path: "/", MaxAge: int(account.Longest(kind).Seconds()),
		Secure: secure, HttpOnly: true, SameSite: http.SameSiteLaxMode})
}

// takeCookie makes the browser forget a session's value.
func (v *visit) takeCookie(kind account.SessionKind) {
	secure := v.c.secureFor(v.Request)
	http.SetCookie(v, &http.Cookie{Name: nameOfCookie(kind, secure), Path: "/", MaxAge: -1, Secure: secure, HttpOnly: true,
		SameSite: http.SameSiteLaxMode})
}

// themeOf is the theme that a reader chose; empty: as his system has it.
func themeOf(r *http.Request) string {
	if chosen, err := r.Cookie(themeCookie); err == nil && (chosen.Value == "light" || chosen.Value == "dark") {
		return chosen.Value
	}
	return ""
}

// setTheme keeps a reader's choice in a cookie, so that the server writes it into
// the page and nothing flashes.
func (c *console) setTheme(v *visit) (answer, error) {
	form := part.Inputs{Fields: []part.FormField{{Name: "theme", Label: "Theme"}}}
	if err := v.read(&form); err != nil {
		return nil, err
	}
	chosen := http.Cookie{Name: themeCookie, Value: form.Field("theme").Value, Path: Base, MaxAge: 365 * 24 * 3600,
		Secure: c.secureFor(v.Request), HttpOnly: true, SameSite: http.SameSiteLaxMode}
	if chosen.Value != "light" && chosen.Value != "dark" {
		chosen.Value, chosen.MaxAge = "", -1
	}
	http.SetCookie(v, &chosen)
	from, err := url.Parse(v.Request.Referer())
	if err != nil {
		return to("", ""), nil
	}
	return redirect{below(from.RequestURI())}, nil
}

// static answers the files that never change.
func (c *console) static(v *visit) (answer, error) {
	if !c.files.Serve(v, v.Request, v.PathID()) {
		return nil, fault.New(fault.NotFound, "There is no such file.")
	}
	return sent{}, nil
}

// explained is the error that a reader sees: it tells where a change may have
// been made.
func explained(err error) error {
	if errors.Is(err, store.ErrUncertain) {
		f := fault.Of(err)
		f.Message = "The database did not confirm the change, so it may have been made. Look before you repeat it."
		return f
	}
	return err
}

// failure is what the page of an error shows.
type failure struct {
	Title, Text, Request string
	Again                string // the address to try again; empty: it would not help
}

// refuse shows an error as a page.
func (c *console) refuse(x *httpapi.Exchange, f *fault.Error) {
	x.Header().Del("WWW-Authenticate")
	shown := failure{Title: "This did not work", Text: f.Message, Request: x.ID}
	switch {
	case f.Code == fault.NotFound:
		shown.Title = "Not found"
		if x.Endpoint() == "unknown" {
			shown.Text = "There is no such page. Check its address."
		}
	case f.Status() == http.StatusServiceUnavailable:
		shown.Title = "Not available at this moment"
		if f.Cause != nil {
			shown.Text = "The service has a temporary problem. Running requests go on. Try again in a moment."
		}
		if x.Request.Method == http.MethodGet {
			shown.Again = x.Request.URL.RequestURI()
		}
	}
	var whole bytes.Buffer
	frame := part.Surround{Title: shown.Title, Theme: themeOf(x.Request), Home: Base, Main: shown}
	contentType := "text/html; charset=utf-8"
	if err := c.pages.Render(&whole, "error", frame); err != nil {
		c.Log.Error("the page of an error cannot be drawn", "request", x.ID, "cause", err)
		contentType = "text/plain; charset=utf-8"
		whole.WriteString(shown.Text)
	}
	x.Header().Set("Content-Type", contentType)
	x.WriteHeader(f.Status())
	_, _ = x.Write(whole.Bytes()) // the reader may be gone
}

// entityTag names a content.
func entityTag(content []byte) string {
	sum := sha256.Sum256(content)
	return `"` + hex.EncodeToString(sum[:12]) + `"`
}

// plain tells whether a text from outside can be part of anything that is
// stored: UTF-8 without control characters.
func plain(s string) bool {
	return utf8.ValidString(s) && !strings.ContainsFunc(s, unicode.IsControl)
}
