package page

import (
	"net/http"
	"net/url"
	"slices"
	"strings"

	"tollgate/internal/account"
	"tollgate/internal/console/ui"
)

// Names of the cookies. Browsers reject a cookie with the prefix if another host or plain http sets
// it.
const (
	cookieName   = "tollgate"
	cookiePrefix = "__Host-"
	themeCookie  = "tollgate-theme"
	keysCookie   = "tollgate-keys"
	markCookie   = "tollgate-browser-" // and the name of a user's mark
)

func nameOfCookie(kind account.SessionKind, secure bool) string {
	name := cookieName + map[account.SessionKind]string{account.OperatorSession: "-op", account.UserSession.Halfway(): "-code",
		account.OperatorSession.Halfway(): "-op-code"}[kind]
	if secure {
		return cookiePrefix + name
	}
	return name
}

// secureFor reports whether the visit's cookie is Secure. An address for operators only is not the
// public URL: there the Origin header decides.
func (srv *server) secureFor(r *http.Request) bool {
	if !srv.OwnAddress {
		return srv.secure
	}
	return strings.HasPrefix(r.Header.Get("Origin"), "https://")
}

// cookieOf returns the value of a session's cookie, or an empty string if there is no cookie.
func (srv *server) cookieOf(r *http.Request, kind account.SessionKind) string {
	for _, secure := range []bool{true, false} {
		if !srv.OwnAddress && secure != srv.secure {
			continue
		}
		if found, err := r.Cookie(nameOfCookie(kind, secure)); err == nil {
			return found.Value
		}
	}
	return ""
}

// SetCookie hands a session's value to the browser, for as long as it is open at
// the most.
func (v *Visit) SetCookie(kind account.SessionKind, value string) {
	secure := v.server.secureFor(v.Request)
	http.SetCookie(v, &http.Cookie{Name: nameOfCookie(kind, secure), Value: value, Path: "/", MaxAge: int(account.MaxSession(kind).Seconds()),
		Secure: secure, HttpOnly: true, SameSite: http.SameSiteLaxMode})
}

// SetMark sets the browser's mark of a user after a sign-in (account.MarkBrowserTx). Signing out
// leaves the mark in the browser.
func (v *Visit) SetMark(user, mark string) {
	secure := v.server.secureFor(v.Request)
	name := markCookie + account.MarkName(user)
	if secure {
		name = cookiePrefix + name
	}
	http.SetCookie(v, &http.Cookie{Name: name, Value: mark, Path: "/", MaxAge: int(account.MarkLasts.Seconds()),
		Secure: secure, HttpOnly: true, SameSite: http.SameSiteLaxMode})
}

// Marks returns up to account.MaxMarks marks of users with an earlier sign-in in the visitor's
// browser.
func (v *Visit) Marks() []string {
	var marks []string
	for _, c := range v.Request.Cookies() {
		if strings.HasPrefix(strings.TrimPrefix(c.Name, cookiePrefix), markCookie) && len(marks) < account.MaxMarks {
			marks = append(marks, c.Value)
		}
	}
	return marks
}

// ClearCookie makes the browser forget a session's value.
func (v *Visit) ClearCookie(kind account.SessionKind) {
	secure := v.server.secureFor(v.Request)
	http.SetCookie(v, &http.Cookie{Name: nameOfCookie(kind, secure), Path: "/", MaxAge: -1, Secure: secure, HttpOnly: true,
		SameSite: http.SameSiteLaxMode})
}

// themeOf returns the reader's theme, or an empty string for the theme of the reader's system.
func themeOf(r *http.Request) string {
	if chosen, err := r.Cookie(themeCookie); err == nil && (chosen.Value == "light" || chosen.Value == "dark") {
		return chosen.Value
	}
	return ""
}

// noKeys reports whether the reader has turned the shortcuts off.
func noKeys(r *http.Request) bool {
	chosen, err := r.Cookie(keysCookie)
	return err == nil && chosen.Value == "off"
}

// setTheme saves the reader's theme: light, dark or the system's.
func (srv *server) setTheme(v *Visit) (Responder, error) {
	return srv.setChoice(v, themeCookie, ui.FormField{Name: "theme", Label: "Theme"}, "light", "dark")
}

// setShortcuts keeps whether a reader wants shortcuts on the keyboard, as most do.
func (srv *server) setShortcuts(v *Visit) (Responder, error) {
	return srv.setChoice(v, keysCookie, ui.FormField{Name: "keys", Label: "Shortcuts"}, "off")
}

// setChoice saves a reader's choice in a cookie. The server writes the choice into the page, so the
// page does not flash. Any value outside values means the default and deletes the cookie. setChoice
// redirects to the page of the form.
func (srv *server) setChoice(v *Visit, cookie string, field ui.FormField, values ...string) (Responder, error) {
	form := ui.PostForm{Fields: []ui.FormField{field}}
	if err := v.ReadForm(&form); err != nil {
		return nil, err
	}
	chosen := http.Cookie{Name: cookie, Value: form.Fields[0].Value, Path: Base, MaxAge: 365 * 24 * 3600,
		Secure: srv.secureFor(v.Request), HttpOnly: true, SameSite: http.SameSiteLaxMode}
	if !slices.Contains(values, chosen.Value) {
		chosen.Value, chosen.MaxAge = "", -1
	}
	http.SetCookie(v, &chosen)
	from, err := url.Parse(v.Request.Referer())
	if err != nil {
		return To("", ""), nil
	}
	return Redirect(consoleAddress(from.RequestURI())), nil
}
