package page

import (
	"errors"
	"net/http"
	"strings"

	"tollgate/internal/account"
	"tollgate/internal/console/part"
)

// linkPage asks for a user's link, or for the user's new password.
type linkPage struct {
	Title, Text string
	Form        part.Inputs
}

// noLink is the message for every invalid link.
const noLink = "This link is not good any more: it was used, has run out, or a newer one was made. Ask who runs this service for another."

// linkForm asks for a link. In a browser with the module, the fragment of the page's address fills
// the form, and the module sends the form.
func linkForm() part.Inputs {
	return part.Inputs{Action: Base + "/link", Submit: "Go on", Cancel: Base + "/sign-in", Fields: []part.FormField{
		{Name: "link", Label: "Link", Required: true, Fragment: true, Hint: "Paste the whole link."},
	}}
}

// newPasswordForm asks for the first or a new password of a link's user. The email is there for the
// reader and for password managers.
func newPasswordForm() part.Inputs {
	return part.Inputs{Action: Base + "/link/password", Submit: "Set password and sign in", Fields: []part.FormField{
		{Name: "email", Label: "Email", Kind: "email", Complete: "username", ReadOnly: true},
		{Name: "password", Label: "New password", Kind: "password", Complete: "new-password", Required: true, Hint: "At least 8 characters."},
		{Name: "code", Label: "Code", Complete: "one-time-code", Required: true,
			Hint: "The six digits that your authenticator app shows now, or one of your recovery codes."},
		{Name: "link", Kind: part.Unshown},
	}}
}

// fit shows a form to a link's user: without a second factor there is no code.
func fit(form *part.Inputs, l account.PasswordLink, token string) {
	form.Field("email").Value, form.Field("link").Value = l.User.Email, token
	if l.User.FactorMS != 0 {
		return
	}
	var fields []part.FormField
	for _, f := range form.Fields {
		if f.Name != "code" {
			fields = append(fields, f)
		}
	}
	form.Fields = fields
}

// tokenOf returns the token of a link. It accepts a bare token too.
func tokenOf(link string) string {
	return strings.TrimSpace(link[strings.LastIndexByte(link, '#')+1:])
}

func (d *server) linkPage(*Visit) (Outgoing, error) {
	return Whole{Name: "link", Title: "Use a link", Main: linkPage{Title: "Use a link", Form: linkForm()}}, nil
}

// takeLink shows the password form for a valid link and does not use the link up.
func (d *server) takeLink(v *Visit) (Outgoing, error) {
	form := linkForm()
	if err := v.Read(&form); err != nil {
		return nil, err
	}
	token := tokenOf(form.Field("link").Value)
	l, err := d.SignIns.Link(v.Context(), token, v.Address())
	if err != nil {
		return d.refuseLink(v, err)
	}
	next := newPasswordForm()
	fit(&next, l, token)
	return passwordPage(l, next, 0), nil
}

// useLink sets the password of a link's user, and signs him in.
func (d *server) useLink(v *Visit) (Outgoing, error) {
	form := newPasswordForm()
	if err := v.Read(&form); err != nil {
		return nil, err
	}
	token, code := form.Field("link").Value, form.Field("code").Value
	l, err := d.SignIns.Link(v.Context(), token, v.Address())
	if err != nil {
		return d.refuseLink(v, err)
	}
	form.Field("code").Value = ""
	fit(&form, l, token)
	err = d.SignIns.UseLink(v.Context(), l, token, form.Field("password").Value, code, v.Address())
	if errors.Is(err, account.ErrNoLink) {
		return d.refuseLink(v, err)
	}
	if err != nil {
		status, failed := refusal(v, &form, noLink, err)
		if failed != nil {
			status, failed = http.StatusUnprocessableEntity, Refused(&form, failed)
		}
		return passwordPage(l, form, status), failed
	}
	return d.open(v, account.NewSession{Kind: v.side.Kind, User: l.User.ID}, "")
}

func passwordPage(l account.PasswordLink, form part.Inputs, status int) Outgoing {
	shown := linkPage{Title: "Set your password", Text: "Use it to sign in from now on. The link works once.", Form: form}
	if l.Kind == account.Reset {
		shown.Text = "It takes the place of the one before, and all your other sessions end. The link is good once."
	}
	return Whole{Name: "link", Title: shown.Title, Main: shown, Status: status}
}

// refuseLink asks for another link instead of an invalid one.
func (d *server) refuseLink(v *Visit, err error) (Outgoing, error) {
	shown := linkPage{Title: "Use a link", Form: linkForm()}
	status, err := refusal(v, &shown.Form, noLink, err)
	return Whole{Name: "link", Title: shown.Title, Main: shown, Status: status}, err
}
