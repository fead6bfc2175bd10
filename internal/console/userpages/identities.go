package userpages

import (
	"net/url"
	"slices"

	"tollgate/internal/account"
	"tollgate/internal/console/page"
	"tollgate/internal/console/ui"
	"tollgate/internal/fault"
	"tollgate/internal/identity"
	"tollgate/internal/operator"
	"tollgate/internal/store"
)

// confirmPath is the path of the page to confirm a session.
const confirmPath = "/settings/confirm"

// waysToSignIn are the identities of a user, and buttons to link further providers.
type waysToSignIn struct {
	Confirm *ui.Link // nil if the session is confirmed, or the user has a password
	Linked  ui.DataTable
	Link    []ui.Button
}

// identifying returns handle if the shop has identity providers. Otherwise it returns a handler that answers
// 404.
func (c *console) identifying(handle func(*page.Visit) (page.Responder, error)) func(*page.Visit) (page.Responder, error) {
	return page.OnlyIf(len(c.Identities) > 0, handle)
}

// confirmAddress returns the address of the page to confirm a session. The visitor returns to the page at back.
func confirmAddress(back string) string {
	return page.Base + confirmPath + "?next=" + url.QueryEscape(page.Base+back)
}

// confirmLink returns a link to the page to confirm a session, or nil if the visitor need not confirm the
// session.
func confirmLink(v *page.Visit, back string) *ui.Link {
	if !v.Session.User.NoPassword || v.Session.Confirmed {
		return nil
	}
	return &ui.Link{Href: confirmAddress(back), Text: "confirm first that it is you"}
}

// ownProviders returns the providers that the visitor may use.
func (c *console) ownProviders(v *page.Visit) []*identity.IDProvider {
	return slices.DeleteFunc(slices.Clone(c.Identities), func(p *identity.IDProvider) bool {
		return !p.ForCustomers() && v.Session.User.Role == ""
	})
}

// waysTx returns the visitor's ways to sign in, or nil in a shop without identity providers.
func (c *console) waysTx(tx *store.Tx, v *page.Visit) (*waysToSignIn, error) {
	if len(c.Identities) == 0 {
		return nil, nil
	}
	own, err := account.IdentitiesTx(tx, v.Session.User.ID)
	if err != nil {
		return nil, err
	}
	w := &waysToSignIn{Confirm: confirmLink(v, "/settings"), Linked: ui.DataTable{Caption: "Linked accounts",
		Columns: []ui.Column{{Title: "Account"}, {Title: "Its email"}, {Title: "Linked"}, {Title: "Last used"}, {Title: "Change"}}}}
	for _, i := range own {
		title := c.ProviderTitle(i.Issuer)
		w.Linked.Rows = append(w.Linked.Rows, ui.DataRow{Cells: []any{title, ui.OrDash(i.Email), ui.Moment{MS: i.CreatedMS},
			ui.Moment{MS: i.UsedMS}, ui.Button{Action: page.Base + "/settings/identities/" + i.ID + "/unlink", Label: "Unlink",
				About: ui.Data(title)}}})
	}
	for _, p := range c.ownProviders(v) {
		if !slices.ContainsFunc(own, func(i account.LinkedIdentity) bool { return i.Issuer == p.Issuer }) {
			w.Link = append(w.Link, ui.Button{Action: page.Base + "/settings/link/" + p.Name, Label: ui.Sayf("Link %s", p.Title)})
		}
	}
	return w, nil
}

// ownProvider returns the provider named in the path of the page.
func (c *console) ownProvider(v *page.Visit) (*identity.IDProvider, error) {
	all := c.ownProviders(v)
	i := slices.IndexFunc(all, func(p *identity.IDProvider) bool { return p.Name == v.PathID() })
	if i < 0 {
		return nil, fault.New(fault.NotFound, "There is no such page. Check its address.")
	}
	return all[i], nil
}

// linkProvider sends the visitor to a provider, to link an identity.
func (c *console) linkProvider(v *page.Visit) (page.Responder, error) {
	p, err := c.ownProvider(v)
	if err != nil {
		return nil, err
	}
	if !v.Session.Confirmed {
		return page.Redirect(confirmAddress("/settings")), nil
	}
	return v.BeginFlow(p, account.IdentityFlow{Purpose: account.FlowLink, Next: page.Base + "/settings"})
}

// unlinkIdentity removes an identity of the visitor.
func (c *console) unlinkIdentity(v *page.Visit) (page.Responder, error) {
	if !v.Session.Confirmed {
		return page.Redirect(confirmAddress("/settings")), nil
	}
	var issuers []string
	for _, p := range c.ownProviders(v) {
		if p.ForCustomers() { // other providers cannot sign in to these pages
			issuers = append(issuers, p.Issuer)
		}
	}
	news := operator.IdentityNews{By: operator.Actor{Way: operator.Settings, Name: v.Session.User.Email, Address: v.Address().String()},
		Mails: c.Mails, Base: c.PublicURL, Cause: v.ID, Locale: v.Locale()}
	return v.Done("/settings", "unlinked", func(tx *store.Tx) error {
		return operator.RemoveIdentityTx(tx, v.Session.User.ID, v.PathID(), issuers, c.ProviderTitle, news)
	})
}

// confirmPage asks the visitor to confirm the session.
type confirmPage struct {
	Form      *ui.PostForm // nil if the user has neither a password nor a second factor
	Providers []ui.Button
	Help      string // for a user without any way to confirm the session
}

// confirmForm asks for the password, or for a code if the user has no password.
func confirmForm(u account.User, next string) ui.PostForm {
	field := ui.FormField{Name: "password", Label: "Password", Kind: "password", Complete: "current-password", Required: true}
	if u.NoPassword {
		field = codeField("")
	}
	return ui.PostForm{Action: page.Base + confirmPath, Submit: "Confirm", Cancel: page.Base + "/settings",
		Fields: []ui.FormField{field, {Name: "next", Kind: ui.Hidden, Value: next}}}
}

func (c *console) showConfirm(v *page.Visit) (page.Responder, error) {
	return c.confirmWith(v, confirmForm(v.Session.User, v.Query("next")))
}

func (c *console) confirmWith(v *page.Visit, form ui.PostForm) (page.FullPage, error) {
	content := confirmPage{Form: &form}
	if u := v.Session.User; u.NoPassword {
		if u.FactorMS == 0 {
			content.Form = nil
		}
		own, err := page.Read(v, func(tx *store.Tx) ([]account.LinkedIdentity, error) { return account.IdentitiesTx(tx, u.ID) })
		if err != nil {
			return page.FullPage{}, err
		}
		for _, p := range c.ownProviders(v) {
			if p.CanConfirm() && slices.ContainsFunc(own, func(i account.LinkedIdentity) bool { return i.Issuer == p.Issuer }) {
				content.Providers = append(content.Providers, ui.Button{Action: page.Base + confirmPath + "/" + p.Name,
					Label: ui.Sayf("Sign in with %s again", p.Title), Hidden: []ui.FormField{form.Fields[1]}})
			}
		}
		if content.Form == nil && len(content.Providers) == 0 {
			content.Help = "You need a password for this. Sign out; the page to sign in says how to get a link for one."
		}
	}
	return page.FullPage{Name: "confirm", Title: "Confirm that it is you", Main: content}, nil
}

// confirm confirms the session after the right password, or after the right code if the user has no password.
func (c *console) confirm(v *page.Visit) (page.Responder, error) {
	form := confirmForm(v.Session.User, "")
	return v.Submit(&form, func() (page.Responder, error) {
		check := func() error { return c.confirmPassword(v, &form, "password") }
		if v.Session.User.NoPassword {
			check = func() error { return c.confirmCode(v, &form) }
		}
		if err := check(); err != nil {
			return nil, err
		}
		return page.ToAddress(form.Field("next").Value, "confirm"), v.Update(func(tx *store.Tx) error {
			return account.ConfirmSessionTx(tx, v.Session.ID)
		})
	}, func() (page.FullPage, error) { return c.confirmWith(v, form) })
}

// confirmByProvider sends the visitor to a provider, to sign in again and so confirm the session.
func (c *console) confirmByProvider(v *page.Visit) (page.Responder, error) {
	p, err := c.ownProvider(v)
	if err != nil {
		return nil, err
	}
	form := ui.PostForm{Fields: []ui.FormField{{Name: "next", Kind: ui.Hidden}}}
	if err := v.ReadForm(&form); err != nil {
		return nil, err
	}
	if !p.CanConfirm() {
		return nil, fault.New(fault.InvalidRequest, "%s cannot confirm that it is you. Use your second factor, or set a password.", p.Title)
	}
	return v.BeginFlow(p, account.IdentityFlow{Purpose: account.FlowConfirm,
		Next: string(page.ToAddress(form.Field("next").Value, "confirm"))})
}
