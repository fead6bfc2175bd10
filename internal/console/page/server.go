package page

import (
	"errors"
	"net/http"
	"net/url"

	"tollgate/internal/account"
	"tollgate/internal/fault"
	"tollgate/internal/httpapi"
	"tollgate/internal/store"
)

// enter sets the headers of a response, and rejects forms sent by other sites.
func (srv *server) enter(x *httpapi.Exchange) error {
	for name, values := range srv.headers {
		x.Header()[name] = values
	}
	if err := srv.crossOrigin.Check(x.Request); err != nil {
		return fault.New(fault.PermissionDenied, "This form was sent by another site and was rejected. Submit it in the console.")
	}
	return nil
}

// handler returns the handler of a path in section s. If s is nil, the path belongs to all
// sections. If public is true, the path needs no session.
func (srv *server) handler(s *section, h Handler, public bool) func(*httpapi.Exchange) error {
	return func(x *httpapi.Exchange) error {
		ctx, done := x.DetachedContext(visitTimeout)
		defer done()
		v := &Visit{Exchange: x, server: srv, section: s, path: h.path, ctx: ctx}
		if !isPlainText(x.PathID()) {
			return NoPage()
		}
		out, err := srv.authorize(v, public)
		if out == nil && err == nil {
			err = v.checkRole(h)
		}
		if out == nil && err == nil {
			out, err = h.handle(v)
		}
		if err != nil {
			return explainUncertain(err)
		}
		return out.send(v)
	}
}

// NoPage returns the error of a page that does not exist.
func NoPage() error { return fault.New(fault.NotFound, "There is no such page. Check its address.") }

// authorize finds the session of a visit. It returns a nil Responder if the visitor may see the page, or else
// the response in place of the page.
func (srv *server) authorize(v *Visit, public bool) (Responder, error) {
	if v.section == nil {
		return nil, nil
	}
	if err := v.loadSession(v.section.Kind); err != nil {
		return nil, err
	}
	if v.Session.ID != "" {
		if !public && v.mustAcceptTerms() {
			return v.toSignIn(acceptPath, v.returnAddress()), nil
		}
		return nil, nil
	}
	if v.section.Kind == account.OperatorSession && !srv.AdminToken.IsSet() {
		var operatorExists bool
		if err := v.View(func(tx *store.Tx) (err error) {
			_, operatorExists, err = account.SignInsTx(tx)
			return err
		}); err != nil {
			return nil, err
		}
		if !operatorExists {
			return nil, NoPage()
		}
	}
	if public {
		return nil, nil
	}
	return Redirect(Base + v.section.Path + "/sign-in?next=" + url.QueryEscape(v.returnAddress())), nil
}

// returnAddress returns the address of the requested page, to return to after a sign-in. It returns an empty
// string if the request is not a GET.
func (v *Visit) returnAddress() string {
	if v.Request.Method != http.MethodGet {
		return ""
	}
	return v.Request.URL.RequestURI()
}

// loadSession sets v.Session to the session of the visit's cookie, and records the use of the
// session. It is a no-op if there is no valid session.
func (v *Visit) loadSession(kind account.SessionKind) error {
	value := v.server.cookieOf(v.Request, kind)
	if value == "" {
		return nil
	}
	stale := false
	err := v.View(func(tx *store.Tx) (err error) {
		v.Session, stale, err = account.SessionTx(tx, kind, value,
			account.SessionSettings{OperatorToken: v.server.AdminToken.Value(), TermsVersion: v.server.Legal.Version})
		return err
	})
	if errors.Is(err, account.ErrNoSession) {
		return nil
	}
	if err == nil && stale {
		err = v.Update(func(tx *store.Tx) error { return account.TouchSessionTx(tx, v.Session.ID) })
	}
	return err
}

func (srv *server) static(v *Visit) (Responder, error) {
	if !srv.files.Serve(v, v.Request, v.PathID()) {
		return nil, fault.New(fault.NotFound, "There is no such file.")
	}
	return NoResponse{}, nil
}
