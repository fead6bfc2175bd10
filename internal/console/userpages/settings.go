package userpages

import (
	"errors"

	"tollgate/internal/account"
	"tollgate/internal/console/page"
	"tollgate/internal/console/show"
	"tollgate/internal/console/ui"
	"tollgate/internal/fault"
	"tollgate/internal/mail"
	"tollgate/internal/operator"
	"tollgate/internal/store"
)

// settingsPage shows the visitor's own settings and the users of the account.
type settingsPage struct {
	Me       ui.Facts
	Locale   mail.Locale
	Address  *ui.PostForm // nil without mail
	Password ui.PostForm
	Ways     *waysToSignIn // nil without identity providers
	Factor   ui.Badge
	Mails    bool // mail is on, so the user can choose mails
	Sessions show.SessionList
	Users    ui.DataTable
	Pager    ui.Pager // pages of users
	NewUser  ui.PostForm
}

// Languages returns the languages to choose from.
func (s settingsPage) Languages() []ui.Language { return page.Languages(s.Locale) }

// passwordForm returns the form for a new password. It asks for the current password if the user has one.
func passwordForm(v *page.Visit) ui.PostForm {
	form := ui.PostForm{Action: page.Base + "/settings/password", Submit: "Change password", Fields: []ui.FormField{
		{Name: "password", Label: "New password", Kind: "password", Complete: "new-password", Required: true,
			Hint: "At least 8 characters. This ends all your other sessions."},
	}}
	if v.Session.User.NoPassword {
		form.Submit = "Set a password"
		return form
	}
	form.Fields = append([]ui.FormField{{Name: "current", Label: "Current password", Kind: "password", Complete: "current-password",
		Required: true}}, form.Fields...)
	return form
}

// newUserForm returns the form for a new user of the account. With mail, the form has no password. Otherwise a
// customer could add the address of a stranger and sign in with it.
func (c *console) newUserForm() ui.PostForm {
	form := ui.PostForm{Action: page.Base + "/settings/users", Submit: "Add user", Fields: show.NewUserFields()}
	if c.Mails.On() {
		form.Submit, form.Fields = "Invite", form.Fields[:1]
		form.Fields[0].Hint = "A mail with a link goes there. The user sets a password with it."
	}
	return form
}

func (c *console) settings(v *page.Visit) (page.Responder, error) {
	return c.settingsWith(v, settingsForms{})
}

// settingsForms are the rejected forms of the page. The page shows a new form in place of a nil one.
type settingsForms struct{ password, newUser, address *ui.PostForm }

// settingsWith shows the page with forms, which may have errors.
func (c *console) settingsWith(v *page.Visit, forms settingsForms) (page.FullPage, error) {
	content := settingsPage{Locale: v.Locale(), Password: passwordForm(v), Mails: c.Mails.On(), NewUser: c.newUserForm()}
	if forms.password != nil {
		content.Password = *forms.password
	}
	if forms.newUser != nil {
		content.NewUser = *forms.newUser
	}
	if content.Address = forms.address; forms.address == nil && c.Mails.On() {
		content.Address = new(addressForm(v))
	}
	if err := v.View(func(tx *store.Tx) error {
		a, err := account.GetTx(tx, v.Account())
		if err != nil {
			return err
		}
		content.Me = ui.Facts{{Name: "Email", Value: v.Session.User.Email}, {Name: "Account", Value: a.Name},
			{Name: "Account id", Value: ui.Ident{ID: a.ID}}, {Name: "Since", Value: ui.Moment{MS: a.CreatedMS}}}
		u, err := account.GetUserTx(tx, v.Session.User.ID)
		if err != nil {
			return err
		}
		content.Factor = show.Factor(u)
		if content.Ways, err = c.waysTx(tx, v); err != nil {
			return err
		}
		if content.Sessions, err = show.SessionsTx(tx, v, "/settings", "/settings/sessions"); err != nil {
			return err
		}
		users, more, err := account.ListUsersTx(tx, v.Account(), v.Query("after"), page.Rows)
		content.listUsers(v, users)
		content.Pager = v.Pager("/settings", more, page.Last(users, func(u account.User) string { return u.ID }))
		return err
	}); err != nil {
		return page.FullPage{}, err
	}
	return page.FullPage{Name: "settings", Title: "Settings", Main: content}.WithNotice(v, map[string]ui.Words{
		"password": "Your password is changed, and all your other sessions have ended.",
		"factor":   "Your second factor is off: your password is enough to sign in.",
		"address":  "If the address is free, a mail with a link is on its way to it. Your old address gets a notice.",
		"verified": "From now on you sign in with your new email.",
		"ended":    "That session has ended.",
		"linked":   "From now on you can sign in that way too. A mail tells you about it.",
		"unlinked": "That no longer signs you in.",
		"confirm":  "Thank you. For ten minutes you need not confirm it again.",
		"added":    "The user can sign in now.",
		"invited":  "The user is invited. A mail with a link is on its way.",
		"changed":  "The user is changed.",
		"deleted":  "The user is deleted, and all its sessions have ended.",
	}), nil
}

// listUsers lists the users of the account with buttons to change the other users. Only operators can
// change operators and users disabled by operators.
func (s *settingsPage) listUsers(v *page.Visit, users []account.User) {
	s.Users = ui.DataTable{Caption: "Users of this account", Columns: []ui.Column{
		{Title: "Email"}, {Title: "State"}, {Title: "Since"}, {Title: "Change"}}}
	for _, u := range users {
		path := page.Base + "/settings/users/" + u.ID
		toggle := ui.Button{Action: path + "/disable", Label: "Disable", About: ui.Data(u.Email)}
		if u.Disabled {
			toggle = ui.Button{Action: path + "/enable", Label: "Enable", About: ui.Data(u.Email)}
		}
		var change any = ui.Text{Text: "you", Muted: true}
		switch {
		case u.ID == v.Session.User.ID:
		case u.Role != "":
			change = ui.Text{Text: "operator", Muted: true}
		case u.Barred:
			change = ui.Text{Text: "by the operator", Muted: true}
		default:
			change = ui.Group{toggle, v.Confirm(ui.Confirm{
				ID: "delete-" + u.ID, Button: "Delete", Title: ui.Sayf("Delete %s?", u.Email), Danger: true, Action: path + "/delete",
				Text: []ui.Words{"This user can no longer sign in. The keys and the balance of the account stay as they are."},
			})}
		}
		s.Users.Rows = append(s.Users.Rows, ui.DataRow{Cells: []any{u.Email, show.UserState(u), ui.Moment{MS: u.CreatedMS}, change}})
	}
}

func (c *console) changePassword(v *page.Visit) (page.Responder, error) {
	form := passwordForm(v)
	return v.Submit(&form, func() (page.Responder, error) {
		newPassword := form.Field("password").Value
		if err := errors.Join(c.confirmPassword(v, &form, "current"), account.CheckPassword(newPassword)); err != nil {
			return nil, err
		}
		hash, err := c.Passwords.Hash(v.Context(), newPassword)
		if err != nil {
			return nil, err
		}
		return page.To("/settings", "password"), v.WithNewSession(func(tx *store.Tx) error {
			_, err := account.ChangeUserTx(tx, v.Session.User.ID, account.UserChange{PasswordHash: &hash})
			return err
		})
	}, func() (page.FullPage, error) { return c.settingsWith(v, settingsForms{password: &form}) })
}

// confirmPassword returns an error for a field of a form unless the field has the visitor's password. If the
// visitor has no password, the session must be confirmed.
func (c *console) confirmPassword(v *page.Visit, form *ui.PostForm, field string) error {
	if v.Session.User.NoPassword {
		if !v.Session.Confirmed {
			return fault.New(fault.InvalidRequest, "Confirm first that it is you: the settings have a button for it.")
		}
		return nil
	}
	err := c.SignIns.Confirm(v.Context(), v.Session.User, form.Field(field).Value, v.Address(), v.Marks()...)
	if errors.Is(err, account.ErrWrongSignIn) {
		return fault.At(fault.InvalidRequest, field, "That is not your password.")
	}
	return err
}

func (c *console) addUser(v *page.Visit) (page.Responder, error) {
	form := c.newUserForm()
	return v.Submit(&form, func() (page.Responder, error) {
		user, err := show.NewUser(v, &form, c.Passwords, func() error { return c.SignIns.CountUserAdd(v.Context(), v.Account()) })
		if err != nil {
			return nil, err
		}
		return page.Write(v, func(tx *store.Tx) (page.Responder, error) {
			u, err := account.CreateOwnUserTx(tx, v.Account(), user)
			if err != nil || !u.NoPassword {
				return page.To("/settings", "added"), err
			}
			l, token, err := account.CreateLinkTx(tx, u.ID)
			if err != nil {
				return nil, err
			}
			if c.Mails.On() {
				return page.To("/settings", "invited"), operator.MailLinkTx(tx, c.Mails, operator.LinkAt(c.PublicURL, l, token), v.Locale())
			}
			link := operator.LinkAt(v.PublicURL(), l, token)
			return show.NewLink(c.Brand, "User added", v.PublicURL(), link, page.Base+"/settings").Page(), nil
		})
	}, func() (page.FullPage, error) { return c.settingsWith(v, settingsForms{newUser: &form}) })
}

// changeColleague calls act for another user of the visitor's account, named in the path.
func (c *console) changeColleague(v *page.Visit, done string, act func(tx *store.Tx, user string) error) (page.Responder, error) {
	return v.Done("/settings", done, func(tx *store.Tx) error {
		u, err := account.ColleagueTx(tx, v.Account(), v.Session.User.ID, v.PathID())
		if err != nil {
			return err
		}
		return act(tx, u.ID)
	})
}

func (c *console) disableUser(v *page.Visit) (page.Responder, error) { return c.switchUser(v, true) }
func (c *console) enableUser(v *page.Visit) (page.Responder, error)  { return c.switchUser(v, false) }

func (c *console) switchUser(v *page.Visit, disabled bool) (page.Responder, error) {
	return c.changeColleague(v, "changed", func(tx *store.Tx, user string) error {
		_, err := account.ChangeUserTx(tx, user, account.UserChange{Disabled: &disabled})
		return err
	})
}

func (c *console) deleteUser(v *page.Visit) (page.Responder, error) {
	return c.changeColleague(v, "deleted", account.DeleteUserTx)
}
