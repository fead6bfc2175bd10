package page

import (
	"tollgate/internal/account"
	"tollgate/internal/console/ui"
	"tollgate/internal/fault"
	"tollgate/internal/mail"
	"tollgate/internal/operator"
	"tollgate/internal/store"
)

func forgotForm() ui.PostForm {
	return ui.PostForm{Action: Base + "/forgot", Submit: "Send a link", Cancel: Base + "/sign-in", Fields: []ui.FormField{
		{Name: "email", Label: "Email", Kind: "email", Complete: "username", Required: true},
	}}
}

func forgotPage(form ui.PostForm) FullPage {
	return FullPage{Name: "link", Title: "Forgot your password?", Main: linkPage{Title: "Forgot your password?",
		Text: "You get a mail with a link to set a new one. The link works once, for an hour.", Form: form}}
}

// forgotPage asks for the email of a user with a forgotten password. The page exists only with mail.
func (srv *server) forgotPage(*Visit) (Responder, error) {
	return forgotPage(forgotForm()), nil
}

// sendReset mails a link to the user with an email. The response is the same for every email.
func (srv *server) sendReset(v *Visit) (Responder, error) {
	form := forgotForm()
	return v.Submit(&form, func() (Responder, error) {
		if form.Field("email").Value == "" {
			return nil, fault.At(fault.InvalidRequest, "email", "Enter the email with which you sign in.")
		}
		err := srv.SignIns.RequestReset(v.Context(), form.Field("email").Value, v.Address(),
			func(tx *store.Tx, l account.PasswordLink, token string) error {
				return operator.MailLinkTx(tx, srv.Mails, operator.LinkAt(srv.PublicURL, l, token), v.Locale())
			})
		if err != nil {
			return nil, v.explainWrong(err, "")
		}
		return FullPage{Name: "link", Title: "Check your inbox", Main: linkPage{Title: "Check your inbox", Footer: backToSignIn(),
			Text: "If a user signs in with this email, a mail with a link is on its way. " +
				"It can take some minutes; check your spam folder too."}}, nil
	}, func() (FullPage, error) { return forgotPage(form), nil })
}

// backToSignIn returns the footer of a page about a mail.
func backToSignIn() *linkFooter {
	return &linkFooter{Text: "No mail, or another address?", Link: ui.Link{Href: Base + "/sign-in", Text: "Back to the sign-in"}}
}

// mailNewBrowserTx mails a user about a sign-in from a new browser. If mail is off, or the browser has a valid
// mark of the user, it is a no-op.
func (srv *server) mailNewBrowserTx(tx *store.Tx, v *Visit, user string) error {
	if !srv.Mails.On() {
		return nil
	}
	isKnown, err := account.KnowsBrowserTx(tx, user, v.Marks())
	if err != nil || isKnown {
		return err
	}
	u, err := account.GetUserTx(tx, user)
	if err != nil {
		return err
	}
	now, err := tx.NowMS()
	if err != nil {
		return err
	}
	sessions := "/settings"
	if v.section.Kind == account.OperatorSession {
		sessions = "/operator/sessions"
	}
	agent := v.Request.UserAgent()
	return account.MailUserTx(tx, srv.Mails, u, mail.Letter{Kind: mail.SignIn, Cause: v.ID,
		Locale: v.Locale(), Link: srv.PublicURL + Base + sessions,
		Values: map[string]string{"time": mail.Time(now), "address": v.Address().String(),
			"browser": agent[:min(len(agent), 200)]}})
}
