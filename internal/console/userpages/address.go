package userpages

import (
	"errors"

	"tollgate/internal/account"
	"tollgate/internal/console/page"
	"tollgate/internal/console/ui"
	"tollgate/internal/fault"
	"tollgate/internal/operator"
	"tollgate/internal/store"
)

// mailing returns handle if the shop sends mails. Otherwise it returns a handler that answers 404.
func (c *console) mailing(handle func(*page.Visit) (page.Responder, error)) func(*page.Visit) (page.Responder, error) {
	return page.OnlyIf(c.Mails.On(), handle)
}

func addressForm(v *page.Visit) ui.PostForm {
	return ui.PostForm{Action: page.Base + "/settings/email", Submit: "Change email", Fields: append([]ui.FormField{
		{Name: "email", Label: "New email", Kind: "email", Complete: "email", Required: true, Prefix: "address-",
			Hint: "You get a mail with a link to verify it. Until then you sign in with the old one."},
	}, passwordFields(v, "address-")...)}
}

// changeAddress mails a link to the visitor's new address. The response is the same for every address.
func (c *console) changeAddress(v *page.Visit) (page.Responder, error) {
	form := addressForm(v)
	return v.Submit(&form, func() (page.Responder, error) {
		if err := c.confirmPassword(v, &form, "password"); err != nil {
			return nil, err
		}
		return page.To("/settings", "address"), c.SignIns.RequestAddress(v.Context(), v.Session.User.ID, form.Field("email").Value,
			func(tx *store.Tx, change account.AddressChange, token string) error {
				return operator.MailAddressTx(tx, c.Mails, c.PublicURL, change, token, v.ID, v.Locale())
			})
	}, func() (page.FullPage, error) { return c.settingsWith(v, settingsForms{address: &form}) })
}

const newAddressTitle = "Verify your new email"

// newAddressPage asks for the link in the mail.
func (c *console) newAddressPage(*page.Visit) (page.Responder, error) {
	return page.FormPage(newAddressTitle, page.LinkForm("/settings/email/check")), nil
}

// invalidAddressLink is the message for every invalid link to a new address.
const invalidAddressLink = "This link is not valid for you: it was used, has expired, was replaced by a newer one, or belongs to another " +
	"user. Ask for a new one in your settings."

func explainAddress(err error) error {
	if errors.Is(err, account.ErrNoLink) {
		return fault.New(fault.InvalidRequest, "%s", invalidAddressLink)
	}
	return err
}

func verifyAddressForm(email, token string) ui.PostForm {
	return ui.PostForm{Action: page.Base + "/settings/email/confirm", Submit: "Sign in with this email", Cancel: page.Base + "/settings",
		Fields: []ui.FormField{
			{Name: "email", Label: "New email", Kind: "email", ReadOnly: true, Value: email},
			{Name: "link", Kind: ui.Hidden, Value: token},
		}}
}

// checkAddress shows the button to change the address. The link stays valid.
func (c *console) checkAddress(v *page.Visit) (page.Responder, error) {
	form := page.LinkForm("/settings/email/check")
	return v.Submit(&form, func() (page.Responder, error) {
		token := page.TokenOf(form.Field("link").Value)
		email, err := c.SignIns.Address(v.Context(), v.Session.User.ID, token, v.Address())
		if err != nil {
			return nil, explainAddress(err)
		}
		return page.FormPage(newAddressTitle, verifyAddressForm(email, token)), nil
	}, func() (page.FullPage, error) { return page.FormPage(newAddressTitle, form), nil })
}

// verifyAddress changes the visitor's email.
func (c *console) verifyAddress(v *page.Visit) (page.Responder, error) {
	form := verifyAddressForm("", "")
	return v.Submit(&form, func() (page.Responder, error) {
		return v.Done("/settings", "verified", func(tx *store.Tx) error {
			return explainAddress(account.VerifyAddressTx(tx, v.Session.User.ID, form.Field("link").Value))
		})
	}, func() (page.FullPage, error) {
		again := page.LinkForm("/settings/email/check")
		again.Error = form.Error
		return page.FormPage(newAddressTitle, again), nil
	})
}
