package userpages

import (
	"errors"
	"net/url"
	"strings"

	"tollgate/internal/account"
	"tollgate/internal/console/page"
	"tollgate/internal/console/show"
	"tollgate/internal/console/ui"
	"tollgate/internal/fault"
	"tollgate/internal/store"
)

// factorPage shows the visitor's second factor with the forms to change it.
type factorPage struct {
	State    ui.Badge
	Recovery *ui.Snippets // new recovery codes, shown once
	Setup    *factorSetup // new secret, shown once
	Retry    *ui.PostForm // to repeat the confirmation; the secret is not shown again
	Begin    *ui.PostForm
	Facts    ui.Facts
	Renew    *ui.PostForm // to renew the recovery codes
	End      *ui.PostForm
	Confirm  *ui.Link // to the confirmation of the session, or nil if none is needed
}

// factorSetup shows the secret for an authenticator app.
type factorSetup struct {
	QR      ui.QR
	Secret  ui.CopyField
	Confirm ui.PostForm
}

// passwordFields asks for the visitor's password. It returns no field if the visitor has no password. prefix
// distinguishes the fields of several forms on a page.
func passwordFields(v *page.Visit, prefix string) []ui.FormField {
	if v.Session.User.NoPassword {
		return nil
	}
	return []ui.FormField{{Name: "password", Label: "Password", Kind: "password", Complete: "current-password", Required: true,
		Prefix: prefix}}
}

func beginFactorForm(v *page.Visit) ui.PostForm {
	return ui.PostForm{Action: page.Base + "/settings/factor", Submit: "Set up", Fields: passwordFields(v, "")}
}

func confirmFactorForm() ui.PostForm {
	return ui.PostForm{Action: page.Base + "/settings/factor/confirm", Submit: "Turn on", Fields: []ui.FormField{
		{Name: "code", Label: "Code that the app shows", Complete: "one-time-code", Numeric: true, Required: true,
			Hint: "This ends all your other sessions."},
	}}
}

// codeField asks for a code of the second factor. prefix distinguishes the code fields of several
// forms on a page.
func codeField(prefix string) ui.FormField {
	return ui.FormField{Name: "code", Label: "Code", Complete: "one-time-code", Required: true, Prefix: prefix,
		Hint: "The six digits that your authenticator app shows now, or one of your recovery codes."}
}

func renewRecoveryForm() ui.PostForm {
	return ui.PostForm{Action: page.Base + "/settings/factor/recovery", Submit: "Create new codes",
		Fields: []ui.FormField{codeField("renew-")}}
}

func endFactorForm(v *page.Visit) ui.PostForm {
	return ui.PostForm{Action: page.Base + "/settings/factor/off", Submit: "Turn off", Danger: true,
		Fields: append(passwordFields(v, ""), codeField(""))}
}

func (c *console) showFactor(v *page.Visit) (page.Responder, error) {
	return c.factorWith(v, factorPage{})
}

// factorWith shows the page with the rejected forms in content, and with new forms for the other changes. If a
// rejected form is no longer possible, the page shows only its error.
func (c *console) factorWith(v *page.Visit, content factorPage) (page.FullPage, error) {
	var notices []ui.Notice
	dropForm := func(form *ui.PostForm) *ui.PostForm {
		if form != nil && form.Error != "" {
			notices = append(notices, ui.Notice{Tone: ui.Bad, Text: form.Error, Focus: true})
		}
		return nil
	}
	if err := v.View(func(tx *store.Tx) error {
		u, err := account.GetUserTx(tx, v.Session.User.ID)
		if err != nil {
			return err
		}
		content.State = show.Factor(u)
		content.Confirm = confirmLink(v, "/settings/factor")
		if u.FactorMS == 0 {
			content.End, content.Renew = dropForm(content.End), dropForm(content.Renew)
			if content.Begin == nil && content.Setup == nil {
				content.Begin = new(beginFactorForm(v))
			}
			return nil
		}
		content.Begin, content.Retry = dropForm(content.Begin), dropForm(content.Retry)
		if content.Recovery == nil {
			content.addForms(v)
		}
		codesLeft, err := account.CountRecoveryTx(tx, u.ID)
		content.Facts = ui.Facts{{Name: "Enabled", Value: ui.Moment{MS: u.FactorMS}},
			{Name: "Recovery codes left", Value: ui.Count{N: codesLeft}}}
		return err
	}); err != nil {
		return page.FullPage{}, err
	}
	return page.FullPage{Name: "factor", Title: "Second factor", Main: content, Notices: notices}, nil
}

// addForms adds the forms of an active second factor, unless the page has them already.
func (f *factorPage) addForms(v *page.Visit) {
	if f.Renew == nil {
		f.Renew = new(renewRecoveryForm())
	}
	if f.End == nil {
		f.End = new(endFactorForm(v))
	}
}

// beginFactor creates a secret and shows it in the same response.
func (c *console) beginFactor(v *page.Visit) (page.Responder, error) {
	form := beginFactorForm(v)
	return v.Submit(&form, func() (page.Responder, error) {
		if err := c.confirmPassword(v, &form, "password"); err != nil {
			return nil, err
		}
		secret, err := page.Write(v, func(tx *store.Tx) (string, error) { return account.BeginFactorTx(tx, v.Session.User.ID) })
		if err != nil {
			return nil, err
		}
		address := authenticatorAddress(show.ServiceName(c.Brand, v.PublicURL()), v.Session.User.Email, secret)
		return c.factorWith(v, factorPage{Setup: &factorSetup{
			QR:      ui.QR{Label: "QR code of the secret", Text: address},
			Secret:  ui.CopyField{ID: "secret", Label: "Secret, not shown again", Value: secret},
			Confirm: confirmFactorForm(),
		}})
	}, func() (page.FullPage, error) { return c.factorWith(v, factorPage{Begin: &form}) })
}

// authenticatorAddress returns the otpauth address for a QR code. Apps show the issuer beside the email. A
// colon separates both, so the issuer must not have one.
func authenticatorAddress(issuer, email, secret string) string {
	issuer = strings.ReplaceAll(issuer, ":", " ")
	return "otpauth://totp/" + url.PathEscape(issuer) + ":" + url.PathEscape(email) +
		"?secret=" + secret + "&issuer=" + url.QueryEscape(issuer)
}

// confirmFactor turns the second factor on and shows the recovery codes in the same response.
func (c *console) confirmFactor(v *page.Visit) (page.Responder, error) {
	form := confirmFactorForm()
	return v.Submit(&form, func() (page.Responder, error) {
		var recovery []string
		if err := v.WithNewSession(func(tx *store.Tx) (err error) {
			recovery, err = account.ConfirmFactorTx(tx, v.Session.User.ID, form.Field("code").Value)
			return err
		}); err != nil {
			return nil, err
		}
		return c.showRecovery(v, recovery, "Your second factor is on.")
	}, func() (page.FullPage, error) { return c.factorWith(v, factorPage{Retry: &form}) })
}

// showRecovery shows new recovery codes once, with title as the notice of the change.
func (c *console) showRecovery(v *page.Visit, recovery []string, title ui.Words) (page.Responder, error) {
	content, err := c.factorWith(v, factorPage{Recovery: &ui.Snippets{ID: "recovery",
		Tabs: []ui.Snippet{{Name: "Not shown again", Text: ui.Data(strings.Join(recovery, "\n"))}}}})
	content.Notices = []ui.Notice{{Tone: ui.OK, Focus: true, Title: title, Text: "Store the recovery codes now."}}
	return content, err
}

// renewRecovery replaces the recovery codes after a valid code and shows the new ones in the same
// response.
func (c *console) renewRecovery(v *page.Visit) (page.Responder, error) {
	form := renewRecoveryForm()
	return v.Submit(&form, func() (page.Responder, error) {
		if err := c.confirmCode(v, &form); err != nil {
			return nil, err
		}
		recovery, err := page.Write(v, func(tx *store.Tx) ([]string, error) { return account.RenewRecoveryTx(tx, v.Session.User.ID) })
		if err != nil {
			return nil, err
		}
		return c.showRecovery(v, recovery, "The previous codes no longer work.")
	}, func() (page.FullPage, error) {
		form.Field("code").Value = ""
		return c.factorWith(v, factorPage{Renew: &form})
	})
}

// endFactor turns the second factor off after a valid password and code.
func (c *console) endFactor(v *page.Visit) (page.Responder, error) {
	form := endFactorForm(v)
	return v.Submit(&form, func() (page.Responder, error) {
		if err := c.confirmPassword(v, &form, "password"); err != nil {
			return nil, err
		}
		if err := c.confirmCode(v, &form); err != nil { // a code works once, so the password is checked first
			return nil, err
		}
		return v.Done("/settings", "factor", func(tx *store.Tx) error { return account.EndFactorTx(tx, v.Session.User.ID) })
	}, func() (page.FullPage, error) {
		form.Field("code").Value = ""
		return c.factorWith(v, factorPage{End: &form})
	})
}

// confirmCode uses up the code in a form. It returns an error for the field if the code is wrong.
func (c *console) confirmCode(v *page.Visit, form *ui.PostForm) error {
	err := c.SignIns.Code(v.Context(), v.Session.User.ID, form.Field("code").Value, v.Address())
	if errors.Is(err, account.ErrWrongSignIn) {
		return fault.At(fault.InvalidRequest, "code", "The code is wrong or was used already.")
	}
	return err
}
