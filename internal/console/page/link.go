package page

import (
	"errors"
	"slices"
	"strings"

	"tollgate/internal/account"
	"tollgate/internal/console/ui"
)

// linkPage is the content of a page with a text, one form, and buttons of identity providers. Links, the
// sign-up and the terms use it.
type linkPage struct {
	Title, Text ui.Words
	Form        ui.PostForm
	Footer      *linkFooter // nil without a footer
	Script      string      // address of a challenge's script; empty without a challenge
	Providers   []ui.Button // one for each identity provider; may be empty
}

// linkFooter is a sentence below a form that ends with a link.
type linkFooter struct {
	Text ui.Words
	Link ui.Link
}

// invalidLink is the message for every invalid link.
const invalidLink = "This link is no longer valid: it was used, has expired, or was replaced by a newer one. " +
	"Ask your operator for a new link."

// LinkForm asks for a link and sends the link to path. If the page's address has a fragment, console.js fills
// in the form and sends it.
func LinkForm(path string) ui.PostForm {
	return ui.PostForm{Action: Base + path, Submit: "Go on", Cancel: Base + "/sign-in", Fields: []ui.FormField{
		{Name: "link", Label: "Link", Required: true, Fragment: true, Hint: "Paste the whole link."},
	}}
}

// newPasswordForm asks the user of a link for a new password. The email is shown for the user and for password
// managers.
func newPasswordForm() ui.PostForm {
	return ui.PostForm{Action: Base + "/link/password", Submit: "Set password and sign in", Fields: []ui.FormField{
		{Name: "email", Label: "Email", Kind: "email", Complete: "username", ReadOnly: true},
		{Name: "password", Label: "New password", Kind: "password", Complete: "new-password", Required: true, Hint: "At least 8 characters."},
		{Name: "code", Label: "Code", Complete: "one-time-code", Required: true,
			Hint: "The six digits that your authenticator app shows now, or one of your recovery codes."},
		{Name: "link", Kind: ui.Hidden},
	}}
}

// fillPasswordForm fills in the form for the user of a link. It removes the field for the code if the user has
// no second factor.
func fillPasswordForm(form *ui.PostForm, l account.PasswordLink, token string) {
	form.Field("email").Value, form.Field("link").Value = l.User.Email, token
	if l.User.FactorMS == 0 {
		form.Fields = slices.DeleteFunc(form.Fields, func(f ui.FormField) bool { return f.Name == "code" })
	}
}

// TokenOf returns the token of a link. It accepts a bare token too.
func TokenOf(link string) string {
	return strings.TrimSpace(link[strings.LastIndexByte(link, '#')+1:])
}

func (srv *server) linkPage(*Visit) (Responder, error) { return showLinkForm("/link", ""), nil }

// showLinkForm returns the page with LinkForm. message is the error of a rejected link; it may be empty.
func showLinkForm(path string, message ui.Words) FullPage {
	form := LinkForm(path)
	form.Error = message
	return FullPage{Name: "link", Title: "Use a link", Main: linkPage{Title: "Use a link", Form: form}}
}

// checkLink shows the password form for a valid link. The link stays valid.
func (srv *server) checkLink(v *Visit) (Responder, error) {
	form := LinkForm("/link")
	return v.Submit(&form, func() (Responder, error) {
		token := TokenOf(form.Field("link").Value)
		l, err := srv.SignIns.Link(v.Context(), token, v.Address())
		if err != nil {
			return nil, v.explainWrong(err, invalidLink)
		}
		passwordForm := newPasswordForm()
		fillPasswordForm(&passwordForm, l, token)
		return srv.passwordPage(v, l, passwordForm), nil
	}, func() (FullPage, error) { return showLinkForm("/link", form.Error), nil })
}

// useLink sets the password of a link's user and signs the user in.
func (srv *server) useLink(v *Visit) (Responder, error) {
	form := newPasswordForm()
	var l account.PasswordLink // zero if the link is invalid
	return v.Submit(&form, func() (_ Responder, err error) {
		token, code := form.Field("link").Value, form.Field("code").Value
		if l, err = srv.SignIns.Link(v.Context(), token, v.Address()); err != nil {
			return nil, v.explainWrong(err, invalidLink)
		}
		form.Field("code").Value = ""
		fillPasswordForm(&form, l, token)
		if err := srv.SignIns.UseLink(v.Context(), l, token, form.Field("password").Value, code, v.Address()); err != nil {
			if errors.Is(err, account.ErrNoLink) {
				l = account.PasswordLink{}
			}
			return nil, v.explainWrong(err, invalidLink)
		}
		return srv.startSession(v, account.NewSession{Kind: v.section.Kind, User: l.User.ID, Confirmed: true}, "")
	}, func() (FullPage, error) {
		if l.User.ID == "" {
			return showLinkForm("/link", form.Error), nil
		}
		return srv.passwordPage(v, l, form), nil
	})
}

func (srv *server) passwordPage(v *Visit, l account.PasswordLink, form ui.PostForm) FullPage {
	content := linkPage{Title: "Set your password", Text: "Use it to sign in from now on. The link works once.", Form: form}
	if l.Kind == account.Invitation {
		content.Providers = v.providerButtons("link", form.Field("link").Value)
	}
	if l.Kind == account.Reset {
		content.Text = "It replaces your old password and ends all your other sessions. The link works once."
	}
	return FullPage{Name: "link", Title: content.Title, Main: content}
}
