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

// enter puts the headers on an answer, and refuses forms of other sites.
func (d *server) enter(x *httpapi.Exchange) error {
	for name, values := range d.headers {
		x.Header()[name] = values
	}
	if err := d.crossing.Check(x.Request); err != nil {
		return fault.New(fault.PermissionDenied, "This form was sent by another site, so nothing was done. Open the console and do it there.")
	}
	return nil
}

// answering returns the handler of a path of section s. If s is nil, the path belongs to all
// sections. An open path needs no session.
func (d *server) answering(s *side, h Handler, open bool) func(*httpapi.Exchange) error {
	return func(x *httpapi.Exchange) error {
		ctx, done := x.Outliving(visitTimeout)
		defer done()
		v := &Visit{Exchange: x, server: d, side: s, path: h.path, ctx: ctx}
		if !plain(x.PathID()) {
			return noPage()
		}
		out, err := d.letIn(v, open)
		if out == nil && err == nil {
			out, err = h.answer(v)
		}
		if err != nil {
			return explained(err)
		}
		return out.send(v)
	}
}

func noPage() error { return fault.New(fault.NotFound, "There is no such page. Check its address.") }

// letIn finds the session of a visit. It returns an answer instead of the page if the visitor may
// not see the page.
func (d *server) letIn(v *Visit, open bool) (Outgoing, error) {
	if v.side == nil {
		return nil, nil
	}
	if err := v.recognize(v.side.Kind); err != nil || v.Session.ID != "" {
		return nil, err
	}
	if v.side.Kind == account.OperatorSession && !d.AdminToken.IsSet() {
		var anybodyIs bool
		if err := v.View(func(tx *store.Tx) (err error) {
			_, anybodyIs, err = account.SignInsTx(tx)
			return err
		}); err != nil {
			return nil, err
		}
		if !anybodyIs {
			return nil, noPage()
		}
	}
	if open {
		return nil, nil
	}
	return Redirect(Base + v.side.Path + "/sign-in?next=" + url.QueryEscape(v.back())), nil
}

// back returns the address after a sign-in: the requested page, or an empty string if the request
// is not a GET.
func (v *Visit) back() string {
	if v.Request.Method != http.MethodGet {
		return ""
	}
	return v.Request.URL.RequestURI()
}

// recognize finds the session of the visit's cookie, and notes its use.
func (v *Visit) recognize(kind account.SessionKind) error {
	value := v.server.cookieOf(v.Request, kind)
	if value == "" {
		return nil
	}
	stale := false
	err := v.View(func(tx *store.Tx) (err error) {
		v.Session, stale, err = account.SessionTx(tx, kind, value, v.server.AdminToken.Value())
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

// static answers the immutable files.
func (d *server) static(v *Visit) (Outgoing, error) {
	if !d.files.Serve(v, v.Request, v.PathID()) {
		return nil, fault.New(fault.NotFound, "There is no such file.")
	}
	return Sent{}, nil
}
