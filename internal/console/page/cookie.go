package page

import (
	"net/http"
	"net/url"
	"slices"
	"strings"

	"tollgate/internal/account"
	"tollgate/internal/console/ui"
)

// Names of the cookies. Browsers accept a cookie with cookiePrefix only over https and only from this
// host.
const (
	cookieName      = "tollgate"
	cookiePrefix    = "__Host-"
	themeCookie     = "tollgate-theme"
	shortcutsCookie = "tollgate-keys"
	markCookie      = "tollgate-browser-" // followed by account.MarkName of the user
)

// sessionCookie returns the name of the cookie of a kind of session, without cookiePrefix.
func sessionCookie(kind account.SessionKind) string {
	return cookieName + map[account.SessionKind]string{account.OperatorSession: "-op", account.UserSession.Halfway(): "-code",
		account.OperatorSession.Halfway(): "-op-code"}[kind]
}

// secureFor reports whether the cookies of a response are Secure. With OwnAddress, PublicURL is not the address
// of the pages, so the Origin header decides.
func (srv *server) secureFor(r *http.Request) bool {
	if !srv.OwnAddress {
		return srv.secure
	}
	return strings.HasPrefix(r.Header.Get("Origin"), "https://")
}

// cookieOf returns the value of a session's cookie, or an empty string if there is no cookie.
func (srv *server) cookieOf(r *http.Request, kind account.SessionKind) string {
	for _, prefix := range []string{cookiePrefix, ""} {
		if secure := prefix != ""; !srv.OwnAddress && secure != srv.secure {
			continue
		}
		if cookie, err := r.Cookie(prefix + sessionCookie(kind)); err == nil {
			return cookie.Value
		}
	}
	return ""
}

// cookie returns the value of a cookie that was set for all paths, or an empty string if there is no cookie.
func (v *Visit) cookie(name string) string {
	if v.server.secureFor(v.Request) {
		name = cookiePrefix + name
	}
	if c, err := v.Request.Cookie(name); err == nil {
		return c.Value
	}
	return ""
}

// setCookie stores a session's value in the browser for the maximum lifetime of the session.
func (v *Visit) setCookie(kind account.SessionKind, value string) {
	v.sendCookie(sessionCookie(kind), value, "/", int(account.MaxSession(kind).Seconds()))
}

// clearCookie deletes a session's value from the browser.
func (v *Visit) clearCookie(kind account.SessionKind) { v.sendCookie(sessionCookie(kind), "", "/", -1) }

// setMark stores a user's mark in the browser. The mark proves that the user has signed in with this browser
// (see account.MarkBrowserTx). A sign-out does not delete the mark.
func (v *Visit) setMark(user, mark string) {
	v.sendCookie(markCookie+account.MarkName(user), mark, "/", int(account.MarkLifetime.Seconds()))
}

// sendCookie sets a cookie for maxAge seconds, or deletes the cookie if maxAge is negative. If the cookie is
// Secure and for all paths, its name gets cookiePrefix.
func (v *Visit) sendCookie(name, value, path string, maxAge int) {
	secure := v.server.secureFor(v.Request)
	if secure && path == "/" {
		name = cookiePrefix + name
	}
	http.SetCookie(v, &http.Cookie{Name: name, Value: value, Path: path, MaxAge: maxAge, Secure: secure, HttpOnly: true,
		SameSite: http.SameSiteLaxMode})
}

// Marks returns up to account.MaxMarks marks of users who have signed in with the visitor's browser.
func (v *Visit) Marks() []string {
	var marks []string
	for _, c := range v.Request.Cookies() {
		if strings.HasPrefix(strings.TrimPrefix(c.Name, cookiePrefix), markCookie) && len(marks) < account.MaxMarks {
			marks = append(marks, c.Value)
		}
	}
	return marks
}

func themeOf(r *http.Request) string {
	if choice, err := r.Cookie(themeCookie); err == nil && (choice.Value == "light" || choice.Value == "dark") {
		return choice.Value
	}
	return ""
}

// noShortcuts reports whether the visitor has turned off the keyboard shortcuts.
func noShortcuts(r *http.Request) bool {
	choice, err := r.Cookie(shortcutsCookie)
	return err == nil && choice.Value == "off"
}

// setTheme saves the visitor's theme: light, dark or the system's.
func (srv *server) setTheme(v *Visit) (Responder, error) {
	return srv.setChoice(v, themeCookie, &ui.FormField{Name: "theme", Label: "Theme"}, "light", "dark")
}

// setShortcuts turns the keyboard shortcuts on or off for a visitor. The shortcuts are on by default.
func (srv *server) setShortcuts(v *Visit) (Responder, error) {
	return srv.setChoice(v, shortcutsCookie, &ui.FormField{Name: "keys", Label: "Shortcuts"}, "off")
}

// setChoice saves a visitor's choice in a cookie and redirects to the page of the form. The server reads the
// cookie when it renders a page, so the default is never visible first. Any value outside values means the
// default and deletes the cookie.
func (srv *server) setChoice(v *Visit, cookie string, field *ui.FormField, values ...string) (Responder, error) {
	form := ui.PostForm{Fields: []ui.FormField{*field}}
	if err := v.ReadForm(&form); err != nil {
		return nil, err
	}
	*field = form.Fields[0]
	if choice := field.Value; slices.Contains(values, choice) {
		v.sendCookie(cookie, choice, Base, 365*24*3600)
	} else {
		v.sendCookie(cookie, "", Base, -1)
	}
	referer, err := url.Parse(v.Request.Referer())
	if err != nil {
		return To("", ""), nil
	}
	return Redirect(consoleAddress(referer.RequestURI())), nil
}
