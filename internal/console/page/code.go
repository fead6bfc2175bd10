package page

import (
	"errors"
	"net/url"

	"tollgate/internal/account"
	"tollgate/internal/console/part"
	"tollgate/internal/store"
)

// codeForm asks for the code of the second factor.
func (v *Visit) codeForm(next string) part.Inputs {
	signIn := Base + v.side.Path + "/sign-in"
	return part.Inputs{Action: signIn + "/code", Submit: "Sign in", Cancel: signIn, Fields: []part.FormField{
		{Name: "code", Label: "Code", Complete: "one-time-code", Required: true,
			Hint: "The six digits that your authenticator app shows now, or one of your recovery codes."},
		{Name: "next", Kind: part.Unshown, Value: next},
	}}
}

// halfway remembers for a while that a browser has sent the right password of a user, and redirects
// to the code page.
func (d *server) halfway(v *Visit, u account.User, next string) (Outgoing, error) {
	before, err := v.half()
	if err != nil {
		return nil, err
	}
	if err := v.signInAs(account.NewSession{Kind: v.side.Kind.Halfway(), User: u.ID}, before); err != nil {
		return nil, err
	}
	return v.toSignIn("/sign-in/code", next), nil
}

// toSignIn redirects to a page of the section's sign-in. next is the address after the sign-in.
func (v *Visit) toSignIn(path, next string) Redirect {
	address := Base + v.side.Path + path
	if next != "" {
		address += "?next=" + url.QueryEscape(next)
	}
	return Redirect(address)
}

// half returns the browser's session between password and code, or a zero session if the browser
// has none.
func (v *Visit) half() (s account.ConsoleSession, err error) {
	kind := v.side.Kind.Halfway()
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

func (d *server) codePage(v *Visit) (Outgoing, error) {
	next := v.Query("next")
	half, err := v.half()
	if err != nil {
		return nil, err
	}
	if half.ID == "" {
		return v.toSignIn("/sign-in", next), nil
	}
	return Whole{Name: "signin", Title: "Second factor", Main: signInPage{Title: "Second factor", Form: v.codeForm(next)}}, nil
}

// checkCode signs in a user with the right code after the right password.
func (d *server) checkCode(v *Visit) (Outgoing, error) {
	form := v.codeForm("")
	if err := v.Read(&form); err != nil {
		return nil, err
	}
	next := form.Field("next").Value
	half, err := v.half()
	if err != nil {
		return nil, err
	}
	if half.ID == "" {
		return v.toSignIn("/sign-in", next), nil
	}
	if err := d.SignIns.Code(v.Context(), half.User.ID, form.Field("code").Value, v.Address()); err != nil {
		form.Field("code").Value = ""
		shown := signInPage{Title: "Second factor", Form: form}
		return d.again(v, &shown, &shown.Form, "That code is not right, or was used already. Type the one that your app shows now.", err)
	}
	out, err := d.open(v, account.NewSession{Kind: v.side.Kind, User: half.User.ID}, next, half)
	if err == nil {
		v.TakeCookie(half.Kind)
	}
	return out, err
}
