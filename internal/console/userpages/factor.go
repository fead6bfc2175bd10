package userpages

import (
	"errors"
	"net/http"
	"net/url"
	"strings"

	"tollgate/internal/account"
	"tollgate/internal/console/page"
	"tollgate/internal/console/part"
	"tollgate/internal/console/show"
	"tollgate/internal/fault"
	"tollgate/internal/store"
)

// factorPage is the reader's second factor with the possible changes.
type factorPage struct {
	State    part.Badge
	Recovery *part.Snippets // once, when it was turned on or they were renewed
	Setup    *factorSetup   // once, when it was begun
	Retry    *part.Inputs   // confirms it without the secret
	Begin    *part.Inputs
	Facts    part.Facts
	Renew    *part.Inputs // the recovery codes
	End      *part.Inputs
}

// factorSetup brings the secret into an app.
type factorSetup struct {
	QR      part.QR
	Secret  part.Copying
	Confirm part.Inputs
}

func passwordField() part.FormField {
	return part.FormField{Name: "password", Label: "Password", Kind: "password", Complete: "current-password", Required: true}
}

func beginFactorForm() part.Inputs {
	return part.Inputs{Action: page.Base + "/settings/factor", Submit: "Set up", Fields: []part.FormField{passwordField()}}
}

func confirmFactorForm() part.Inputs {
	return part.Inputs{Action: page.Base + "/settings/factor/confirm", Submit: "Turn on", Fields: []part.FormField{
		{Name: "code", Label: "Code that the app shows", Complete: "one-time-code", Numeric: true, Required: true,
			Hint: "This ends all your other sessions."},
	}}
}

// codeField asks for a code of the second factor. prefix distinguishes the code fields of several
// forms on a page.
func codeField(prefix string) part.FormField {
	return part.FormField{Name: "code", Label: "Code", Complete: "one-time-code", Required: true, Prefix: prefix,
		Hint: "The six digits that your authenticator app shows now, or one of your recovery codes."}
}

func renewRecoveryForm() part.Inputs {
	return part.Inputs{Action: page.Base + "/settings/factor/recovery", Submit: "Create new codes",
		Fields: []part.FormField{codeField("renew-")}}
}

func endFactorForm() part.Inputs {
	return part.Inputs{Action: page.Base + "/settings/factor/off", Submit: "Turn off", Danger: true,
		Fields: []part.FormField{passwordField(), codeField("")}}
}

// showFactor shows the second factor and the possible changes.
func (c *console) showFactor(v *page.Visit) (page.Outgoing, error) {
	return c.factorWith(v, factorPage{}, 0)
}

// factorWith shows the page with rejected forms and with the changes possible now. If a form of
// shown is no longer possible, only its error is shown.
func (c *console) factorWith(v *page.Visit, shown factorPage, status int) (page.Outgoing, error) {
	var notices []part.Notice
	dropped := func(form *part.Inputs) *part.Inputs {
		if form != nil && form.Whole != "" {
			notices = append(notices, part.Notice{Tone: part.Bad, Text: form.Whole, Focus: true})
		}
		return nil
	}
	if err := v.View(func(tx *store.Tx) error {
		u, err := account.GetUserTx(tx, v.Session.User.ID)
		if err != nil {
			return err
		}
		shown.State = show.Factor(u)
		if u.FactorMS == 0 {
			shown.End, shown.Renew = dropped(shown.End), dropped(shown.Renew)
			if shown.Begin == nil && shown.Setup == nil {
				shown.Begin = new(beginFactorForm())
			}
			return nil
		}
		shown.Begin, shown.Retry = dropped(shown.Begin), dropped(shown.Retry)
		if shown.Recovery == nil {
			shown.offer()
		}
		left, err := account.RecoveryTx(tx, u.ID)
		shown.Facts = part.Facts{{Name: "On since", Value: part.Moment{MS: u.FactorMS}},
			{Name: "Recovery codes left", Value: part.Count{N: left}}}
		return err
	}); err != nil {
		return nil, err
	}
	return page.Whole{Name: "factor", Title: "Second factor", Main: shown, Status: status, Notices: notices}, nil
}

// offer adds the forms of an active second factor, unless shown has them already.
func (f *factorPage) offer() {
	if f.Renew == nil {
		f.Renew = new(renewRecoveryForm())
	}
	if f.End == nil {
		f.End = new(endFactorForm())
	}
}

// beginFactor creates a secret and shows it in the same response.
func (c *console) beginFactor(v *page.Visit) (page.Outgoing, error) {
	form := beginFactorForm()
	if err := v.Read(&form); err != nil {
		return nil, err
	}
	var secret string
	err := c.confirmPassword(v, "password", form.Field("password").Value)
	if err == nil {
		err = v.Update(func(tx *store.Tx) (err error) {
			secret, err = account.BeginFactorTx(tx, v.Session.User.ID)
			return err
		})
	}
	if err != nil {
		if err := page.Refused(&form, err); err != nil {
			return nil, err
		}
		return c.factorWith(v, factorPage{Begin: &form}, http.StatusUnprocessableEntity)
	}
	return c.factorWith(v, factorPage{Setup: &factorSetup{
		QR:      part.QR{Label: "QR code of the secret", Text: authenticatorAddress(show.Host(v.PublicURL()), v.Session.User.Email, secret)},
		Secret:  part.Copying{ID: "secret", Label: "Secret, not shown again", Value: secret},
		Confirm: confirmFactorForm(),
	}}, 0)
}

// authenticatorAddress returns the otpauth address for a QR code. Apps show the issuer beside the
// email.
func authenticatorAddress(issuer, email, secret string) string {
	return "otpauth://totp/" + url.PathEscape(issuer) + ":" + url.PathEscape(email) +
		"?secret=" + secret + "&issuer=" + url.QueryEscape(issuer)
}

// confirmFactor turns the second factor on and shows the recovery codes in the same response.
func (c *console) confirmFactor(v *page.Visit) (page.Outgoing, error) {
	form := confirmFactorForm()
	if err := v.Read(&form); err != nil {
		return nil, err
	}
	var recovery []string
	err := renewing(v, func(tx *store.Tx) (err error) {
		recovery, err = account.ConfirmFactorTx(tx, v.Session.User.ID, form.Field("code").Value)
		return err
	})
	if err != nil {
		if err := page.Refused(&form, err); err != nil {
			return nil, err
		}
		return c.factorWith(v, factorPage{Retry: &form}, http.StatusUnprocessableEntity)
	}
	return c.showRecovery(v, recovery, "Your second factor is on.")
}

// showRecovery shows new recovery codes once, with a notice of the change.
func (c *console) showRecovery(v *page.Visit, recovery []string, done string) (page.Outgoing, error) {
	out, err := c.factorWith(v, factorPage{Recovery: &part.Snippets{ID: "recovery",
		Tabs: []part.Snippet{{Name: "Not shown again", Text: strings.Join(recovery, "\n")}}}}, 0)
	if shown, ok := out.(page.Whole); ok {
		shown.Notices = []part.Notice{{Tone: part.OK, Focus: true, Title: done, Text: "Store the recovery codes now."}}
		return shown, nil
	}
	return out, err
}

// renewRecovery replaces the recovery codes after a valid code and shows the new ones in the same
// response.
func (c *console) renewRecovery(v *page.Visit) (page.Outgoing, error) {
	form := renewRecoveryForm()
	if err := v.Read(&form); err != nil {
		return nil, err
	}
	var recovery []string
	err := c.confirmCode(v, &form)
	if err == nil {
		err = v.Update(func(tx *store.Tx) (err error) {
			recovery, err = account.RenewRecoveryTx(tx, v.Session.User.ID)
			return err
		})
	}
	if err != nil {
		if err := page.Refused(&form, err); err != nil {
			return nil, err
		}
		form.Field("code").Value = ""
		return c.factorWith(v, factorPage{Renew: &form}, http.StatusUnprocessableEntity)
	}
	return c.showRecovery(v, recovery, "Those before are void.")
}

// endFactor turns the second factor off after a valid password and code.
func (c *console) endFactor(v *page.Visit) (page.Outgoing, error) {
	form := endFactorForm()
	if err := v.Read(&form); err != nil {
		return nil, err
	}
	if err := c.confirmBoth(v, &form); err != nil {
		if err := page.Refused(&form, err); err != nil {
			return nil, err
		}
		form.Field("code").Value = ""
		return c.factorWith(v, factorPage{End: &form}, http.StatusUnprocessableEntity)
	}
	if err := v.Update(func(tx *store.Tx) error { return account.EndFactorTx(tx, v.Session.User.ID) }); err != nil {
		return nil, err
	}
	return page.To("/settings", "factor"), nil
}

// confirmBoth returns an error unless the form has the visitor's password and a valid code. A code
// is used up only if the password is right.
func (c *console) confirmBoth(v *page.Visit, form *part.Inputs) error {
	if err := c.confirmPassword(v, "password", form.Field("password").Value); err != nil {
		return err
	}
	return c.confirmCode(v, form)
}

// confirmCode refuses a form without a code, and uses it up.
func (c *console) confirmCode(v *page.Visit, form *part.Inputs) error {
	err := c.SignIns.Code(v.Context(), v.Session.User.ID, form.Field("code").Value, v.Address())
	if errors.Is(err, account.ErrWrongSignIn) {
		return fault.At(fault.InvalidRequest, "code", "That code is not right, or was used already.")
	}
	return err
}
