package page

import (
	"errors"
	"net/url"

	"tollgate/internal/account"
	"tollgate/internal/console/ui"
	"tollgate/internal/store"
)

func (v *Visit) codeForm(next string) ui.PostForm {
	signIn := Base + v.section.Path + "/sign-in"
	return ui.PostForm{Action: signIn + "/code", Submit: "Sign in", Cancel: signIn, Fields: []ui.FormField{
		{Name: "code", Label: "Code", Complete: "one-time-code", Required: true,
			Hint: "The six digits that your authenticator app shows now, or one of your recovery codes."},
		{Name: "next", Kind: ui.Hidden, Value: next},
	}}
}

// askForCode remembers for a while that a browser has sent the right password of a user, and redirects
// to the code page.
func (srv *server) askForCode(v *Visit, u account.User, next string) (Responder, error) {
	before, err := v.pendingSession()
	if err != nil {
		return nil, err
	}
	if err := v.newSession(account.NewSession{Kind: v.section.Kind.Halfway(), User: u.ID},
		func(tx *store.Tx) error { return endTx(tx, before) }); err != nil {
		return nil, err
	}
	return v.toSignIn("/sign-in/code", next), nil
}

// toSignIn redirects to a page of the section's sign-in. next is the address after the sign-in.
func (v *Visit) toSignIn(path, next string) Redirect {
	address := Base + v.section.Path + path
	if next != "" {
		address += "?next=" + url.QueryEscape(next)
	}
	return Redirect(address)
}

// pendingSession returns the browser's session between password and code, or a zero session if the browser
// has none.
func (v *Visit) pendingSession() (s account.ConsoleSession, err error) {
	kind := v.section.Kind.Halfway()
	value := v.server.cookieOf(v.Request, kind)
	if value == "" {
		return s, nil
	}
	err = v.View(func(tx *store.Tx) (err error) {
		s, _, err = account.SessionTx(tx, kind, value, "")
		return err
	})
	if errors.Is(err, account.ErrNoSession) {
		return account.ConsoleSession{}, nil
	}
	return s, err
}

func (srv *server) codePage(v *Visit) (Responder, error) {
	next := v.Query("next")
	half, err := v.pendingSession()
	if err != nil {
		return nil, err
	}
	if half.ID == "" {
		return v.toSignIn("/sign-in", next), nil
	}
	return signInPage{Title: "Second factor", Form: v.codeForm(next)}.page(), nil
}

// checkCode signs in a user with the right code after the right password.
func (srv *server) checkCode(v *Visit) (Responder, error) {
	form := v.codeForm("")
	return v.Submit(&form, func() (Responder, error) {
		next := form.Field("next").Value
		half, err := v.pendingSession()
		if err != nil {
			return nil, err
		}
		if half.ID == "" {
			return v.toSignIn("/sign-in", next), nil
		}
		if err := srv.SignIns.Code(v.Context(), half.User.ID, form.Field("code").Value, v.Address()); err != nil {
			return nil, v.explainWrong(err, "The code is wrong or was already used. Enter the code that your app shows now.")
		}
		out, err := srv.startSession(v, account.NewSession{Kind: v.section.Kind, User: half.User.ID}, next, half)
		if err == nil {
			v.clearCookie(half.Kind)
		}
		return out, err
	}, func() (FullPage, error) {
		form.Field("code").Value = ""
		return signInPage{Title: "Second factor", Form: form}.page(), nil
	})
}
