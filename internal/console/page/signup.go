package page

import (
	"context"
	"time"

	"tollgate/internal/account"
	"tollgate/internal/console/ui"
	"tollgate/internal/operator"
	"tollgate/internal/store"
)

// signUpCookie marks the browser of a sign-up. If the address is verified in another browser, the password must
// be chosen again.
const (
	signUpCookie    = "tollgate-signup"
	signUpCookieAge = 24 * time.Hour
)

// withSignUp returns handle if customers can sign up. Otherwise it returns a handler that answers 404.
func (srv *server) withSignUp(handle func(*Visit) (Responder, error)) func(*Visit) (Responder, error) {
	return OnlyIf(srv.SignUps.Rules.On(), handle)
}

func newPasswordField() ui.FormField {
	return ui.FormField{Name: "password", Label: "Password", Kind: "password", Complete: "new-password", Required: true,
		Hint: "At least 8 characters."}
}

func (srv *server) signUpForm() ui.PostForm {
	form := ui.PostForm{Action: Base + "/sign-up", Submit: "Sign up", Fields: []ui.FormField{
		{Name: "email", Label: "Email", Kind: "email", Complete: "username", Required: true, Hint: "You get a mail to verify it."},
		newPasswordField(),
	}}
	srv.addTerms(&form)
	srv.addChallenge(&form)
	return form
}

// addChallenge adds the challenge to a form, if the shop has one.
func (srv *server) addChallenge(form *ui.PostForm) {
	if srv.Challenge != nil {
		form.Fields = append(form.Fields, ui.FormField{Name: challengeField, Label: "The check", Kind: ui.Widget, Value: srv.Challenge.SiteKey})
	}
}

// checkChallenge checks the visitor's answer to the challenge in a form, if the shop has one.
func (srv *server) checkChallenge(ctx context.Context, v *Visit, form *ui.PostForm) error {
	if srv.Challenge == nil {
		return nil
	}
	return srv.Challenge.check(ctx, form.Field(challengeField).Value, v.Address())
}

// signUpWith shows the sign-up page with a form, which may have errors.
func (srv *server) signUpWith(v *Visit, form ui.PostForm) FullPage {
	content := linkPage{Title: "Sign up", Form: form,
		Footer:    &linkFooter{"You have an account?", ui.Link{Href: Base + "/sign-in", Text: "Sign in"}},
		Providers: v.providerButtons("next", "")}
	return srv.challengePage(v, content)
}

// challengePage returns a page with a form and its challenge, if the shop has one.
func (srv *server) challengePage(v *Visit, content linkPage) FullPage {
	if srv.Challenge != nil {
		content.Form.Field(challengeField).Value = srv.Challenge.SiteKey
		content.Script = srv.Challenge.ScriptURL
		v.Header().Set(contentPolicy, srv.policyWithChallenge)
	}
	return FullPage{Name: "link", Title: content.Title, Main: content}
}

func (srv *server) signUpPage(v *Visit) (Responder, error) {
	if v.Session.ID != "" {
		return Redirect(Base), nil
	}
	return srv.signUpWith(v, srv.signUpForm()), nil
}

// signUp mails a link to verify the address. The response is the same for every address.
func (srv *server) signUp(v *Visit) (Responder, error) {
	form := srv.signUpForm()
	return v.Submit(&form, func() (Responder, error) {
		browser, err := srv.SignIns.RequestSignUp(v.Context(), srv.SignUps.Rules, account.SignUpRequest{
			Email: form.Field("email").Value, Password: form.Field("password").Value, Addr: v.Address(),
			TermsVersion: srv.Legal.Version, FormFault: srv.checkTerms(&form),
			Allow: func(ctx context.Context) error { return srv.checkChallenge(ctx, v, &form) },
			MailTx: func(tx *store.Tx, s account.SignUp, token, account string) error {
				return operator.MailSignUpTx(tx, srv.Mails, srv.PublicURL, s, token, account, v.ID, v.Locale())
			}})
		if err != nil {
			return nil, v.explainWrong(err, "")
		}
		v.sendCookie(signUpCookie, browser, "/", int(signUpCookieAge.Seconds()))
		return FullPage{Name: "link", Title: "Check your inbox", Main: linkPage{Title: "Check your inbox", Footer: backToSignIn(),
			Text: "A mail with a link is on its way to you. The link works once, for a day. " +
				"The mail can take some minutes; check your spam folder too."}}, nil
	}, func() (FullPage, error) { return srv.signUpWith(v, form), nil })
}

func (srv *server) verifyPage(*Visit) (Responder, error) { return showLinkForm("/verify", ""), nil }

// verifyForm asks the visitor to confirm the address. It also asks for a new password if the browser is not the
// one of the sign-up.
func verifyForm(s account.SignUp, token string) ui.PostForm {
	form := ui.PostForm{Action: Base + "/verify/confirm", Submit: "Verify and sign in", Fields: []ui.FormField{
		{Name: "email", Label: "Email", Kind: "email", Complete: "username", ReadOnly: true, Value: s.Email},
		{Name: "link", Kind: ui.Hidden, Value: token},
	}}
	if !s.SameBrowser {
		form.Fields = append(form.Fields, newPasswordField())
	}
	return form
}

func showVerifyForm(s account.SignUp, form ui.PostForm) FullPage {
	content := linkPage{Title: "Verify your address", Text: "Your account begins with this. The link works once.", Form: form}
	if !s.SameBrowser {
		content.Text = "You signed up with another browser, so choose your password again. The link works once."
	}
	return FullPage{Name: "link", Title: content.Title, Main: content}
}

// invalidVerification is the message for every invalid link of a sign-up.
const invalidVerification = "This link is no longer valid: it was used, or it has expired. " +
	"If you verified your address already, sign in. Otherwise sign up again."

// pendingSignUp returns the sign-up of a link's token.
func (srv *server) pendingSignUp(v *Visit, token string) (account.SignUp, error) {
	s, err := srv.SignIns.SignUp(v.Context(), token, v.cookie(signUpCookie), v.Address())
	if err != nil {
		return s, v.explainWrong(err, invalidVerification)
	}
	return s, nil
}

// checkVerification shows the form to verify an address. The link stays valid, because programs may open the
// links in mails.
func (srv *server) checkVerification(v *Visit) (Responder, error) {
	form := LinkForm("/verify")
	return v.Submit(&form, func() (Responder, error) {
		token := TokenOf(form.Field("link").Value)
		s, err := srv.pendingSignUp(v, token)
		if err != nil {
			return nil, err
		}
		return showVerifyForm(s, verifyForm(s, token)), nil
	}, func() (FullPage, error) { return showLinkForm("/verify", form.Error), nil })
}

// verify opens the account of a sign-up and signs its user in.
func (srv *server) verify(v *Visit) (Responder, error) {
	form := verifyForm(account.SignUp{}, "")
	var s account.SignUp // zero if the link is invalid
	return v.Submit(&form, func() (_ Responder, err error) {
		token, password := form.Field("link").Value, form.Field("password").Value
		if s, err = srv.pendingSignUp(v, token); err != nil {
			return nil, err
		}
		form = verifyForm(s, token)
		var u account.User
		err = srv.SignIns.VerifySignUp(v.Context(), token, v.cookie(signUpCookie), password, v.Address(),
			func(tx *store.Tx, in account.SignIn) (err error) {
				u, err = operator.SignUpTx(tx, in, v.Address(), srv.SignUps.Trial)
				return err
			})
		if err != nil {
			return nil, v.explainWrong(err, invalidVerification)
		}
		v.sendCookie(signUpCookie, "", "/", -1)
		return srv.startSession(v, account.NewSession{Kind: v.section.Kind, User: u.ID, Confirmed: true}, "")
	}, func() (FullPage, error) {
		if s.Email == "" {
			return showLinkForm("/verify", form.Error), nil
		}
		return showVerifyForm(s, form), nil
	})
}
