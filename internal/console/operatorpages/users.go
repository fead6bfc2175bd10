package operatorpages

import (
	"slices"
	"strings"

	"tollgate/internal/account"
	"tollgate/internal/console/page"
	"tollgate/internal/console/show"
	"tollgate/internal/console/ui"
	"tollgate/internal/fault"
	"tollgate/internal/operator"
	"tollgate/internal/store"
)

func accountUserForm(id string) ui.PostForm {
	return ui.PostForm{Action: page.Base + "/operator/accounts/" + id + "/users", Submit: "Add user", Fields: show.NewUserFields()}
}

func (c *console) usersTableTx(tx *store.Tx, v *page.Visit, users []account.User) (ui.DataTable, error) {
	var linked []account.LinkedIdentity
	var err error
	if len(c.Identities) > 0 {
		var ids []string
		for _, u := range users {
			ids = append(ids, u.ID)
		}
		linked, err = account.IdentitiesTx(tx, ids...)
	}
	t := ui.DataTable{Caption: "Users", Columns: []ui.Column{
		{Title: "Email"}, {Title: "State"}, {Title: "Second factor"}, {Title: "Since"}, {Title: "Change"}}}
	if c.Legal.Version != "" {
		t.Columns = slices.Insert(t.Columns, termsCell, ui.Column{Title: "Terms accepted"})
	}
	for _, u := range users {
		state := show.UserState(u)
		if u.Role != "" {
			state.Label = ui.Sayf("%s, %s", state.Label, ui.Words(u.Role))
		}
		cells := []any{u.Email, state, show.Factor(u), ui.Moment{MS: u.CreatedMS}, c.userChanges(v, u, linked)}
		if c.Legal.Version != "" {
			cells = slices.Insert(cells, termsCell, any(acceptedTerms(u)))
		}
		t.Rows = append(t.Rows, ui.DataRow{Cells: cells})
	}
	return t, err
}

// termsCell is the index of the column about terms in the table of users.
const termsCell = 3

// acceptedTerms shows the version of the terms that a user has accepted last, and the time.
func acceptedTerms(u account.User) ui.Group {
	if u.TermsVersion == "" {
		return ui.Group{ui.Text{Text: "none", Muted: true}}
	}
	return ui.Group{ui.Text{Text: ui.Data(u.TermsVersion)}, ui.Moment{MS: u.TermsMS}}
}

// seesLinks reports whether the visitor may see the links of customers. With a link, the visitor could set a
// customer's password. So support can only mail links.
func seesLinks(v *page.Visit) bool { return v.Session.Role().Includes(account.Operator) }

// userChanges returns the buttons for a user. linked are the identities of all users on the page.
func (c *console) userChanges(v *page.Visit, u account.User, linked []account.LinkedIdentity) ui.Group {
	if u.Role != "" && v.Session.Role() != account.Owner {
		return ui.Group{ui.Text{Text: "Only an owner can change an operator.", Muted: true}}
	}
	path := page.Base + "/operator/users/" + u.ID
	changes := ui.Group{ui.Button{Action: path + "/disable", Label: "Disable", About: ui.Data(u.Email)}}
	if u.Disabled {
		changes = ui.Group{ui.Button{Action: path + "/enable", Label: "Enable", About: ui.Data(u.Email)}}
		if !u.Barred {
			changes = append(changes, ui.Button{Action: path + "/disable", Label: "Keep disabled", About: ui.Data(u.Email)})
		}
	} else if link := (ui.Button{Action: path + "/link", Label: "Make a link", About: ui.Data(u.Email)}); seesLinks(v) {
		changes = append(ui.Group{link}, changes...)
	} else if c.Mails.On() {
		link.Label = "Mail a link"
		changes = append(ui.Group{link}, changes...)
	}
	if u.ID != v.Session.User.ID {
		changes = append(changes, v.Confirm(ui.Confirm{ID: "delete-" + u.ID, Button: "Delete", Danger: true,
			Title: ui.Sayf("Delete %s?", u.Email), Action: path + "/delete",
			Text: []ui.Words{"This user can no longer sign in, unless an operator or a user of the account adds the user again. " +
				"The account keeps its keys and balance. To keep the user out, disable the user instead."}}))
	}
	if u.FactorMS != 0 {
		changes = append(changes, v.Confirm(ui.Confirm{ID: "factor-" + u.ID, Button: "Turn off second factor", Danger: true,
			Title: ui.Sayf("Turn off the second factor of %s?", u.Email), Action: path + "/factor/off",
			Text: []ui.Words{"For a user who has lost the second factor. Make sure that the request comes from this user: afterwards, the " +
				"password alone is enough to sign in."}}))
	}
	for _, i := range linked {
		if i.User == u.ID && u.ID != v.Session.User.ID {
			title := c.ProviderTitle(i.Issuer)
			changes = append(changes, v.Confirm(ui.Confirm{ID: "unlink-" + i.ID, Button: ui.Sayf("Unlink %s", title), Danger: true,
				Title: ui.Sayf("Unlink %s from %s?", title, u.Email), Action: page.Base + "/operator/identities/" + i.ID + "/unlink",
				Text: []ui.Words{ui.Sayf("The person at %s can no longer sign in as this user, and all sessions of the user end. The user can "+
					"link the provider again, after signing in another way. A user without a password or another provider needs a link "+
					"from you.", strings.TrimSpace(title+" "+i.Email))}}))
		}
	}
	if u.ID != v.Session.User.ID && v.Session.Role() == account.Owner {
		changes = append(changes, roleLink(u))
	}
	return changes
}

func (c *console) addAccountUser(v *page.Visit) (page.Responder, error) {
	a, err := accountOf(v)
	if err != nil {
		return nil, err
	}
	form := accountUserForm(a.ID)
	return v.Submit(&form, func() (page.Responder, error) {
		user, err := show.NewUser(v, &form, c.Passwords, nil)
		if err != nil {
			return nil, err
		}
		if user.PasswordHash == "" {
			return c.createLink(v, func(tx *store.Tx) (operator.ConsoleLink, error) {
				return operator.InviteTx(tx, show.Actor(v), c.Mails, c.PublicURL, a.ID, user)
			})
		}
		return page.Redirect(page.Base + "/operator/accounts/" + a.ID + "?view=users&done=user"), v.Update(func(tx *store.Tx) error {
			_, err := operator.CreateUserTx(tx, show.Actor(v), a.ID, user)
			return err
		})
	}, func() (page.FullPage, error) { return c.accountWith(v, a, accountForms{user: &form}) })
}

// linkUser creates a link for a user. The response shows the link, or for support, the link is mailed. If the
// form is sent again, linkUser creates another link, and the previous link is no longer valid.
func (c *console) linkUser(v *page.Visit) (page.Responder, error) {
	create := func(tx *store.Tx) (operator.ConsoleLink, error) {
		return operator.CreateLinkTx(tx, show.Actor(v), c.Mails, c.PublicURL, v.PathID())
	}
	if seesLinks(v) {
		return c.createLink(v, create)
	}
	if !c.Mails.On() {
		return nil, fault.New(fault.PermissionDenied,
			"Your role may only mail links, and this service sends no mail. Ask an operator to make one.")
	}
	l, err := page.Write(v, create)
	return page.Redirect(page.Base + "/operator/accounts/" + l.User.Account + "?view=users&done=mailed"), err
}

func (c *console) disableUser(v *page.Visit) (page.Responder, error) {
	return c.changeUser(v, "You cannot disable yourself. Another operator can.", "user", userChange(account.UserChange{Disabled: new(true)}))
}

func (c *console) enableUser(v *page.Visit) (page.Responder, error) {
	return c.changeUser(v, "", "user", userChange(account.UserChange{Disabled: new(false)}))
}

func (c *console) deleteUser(v *page.Visit) (page.Responder, error) {
	return c.changeUser(v, "You cannot delete yourself. Another operator can.", "gone", operator.DeleteUserTx)
}

func (c *console) endFactor(v *page.Visit) (page.Responder, error) {
	return c.changeUser(v, "Your own second factor is turned off in your settings, with a code.", "factor",
		userChange(account.UserChange{NoFactor: true}))
}

// unlinkUser removes an identity of a user.
func (c *console) unlinkUser(v *page.Visit) (page.Responder, error) {
	u, err := page.Write(v, func(tx *store.Tx) (account.User, error) {
		return operator.DropIdentityTx(tx, v.PathID(), c.ProviderTitle,
			operator.IdentityNews{By: show.Actor(v), Mails: c.Mails, Base: c.PublicURL, Cause: v.ID})
	})
	return page.Redirect(page.Base + "/operator/accounts/" + u.Account + "?view=users&done=unlinked"), err
}

// changeUser calls change for the user in the path. If selfError is not empty, operators cannot change
// themselves, and selfError is the error message. done selects the notice on the next page.
func (c *console) changeUser(
	v *page.Visit, selfError, done string, change func(*store.Tx, operator.Actor, string) error,
) (page.Responder, error) {
	if selfError != "" && v.PathID() == v.Session.User.ID {
		return nil, fault.New(fault.PermissionDenied, "%s", selfError)
	}
	return page.Write(v, func(tx *store.Tx) (page.Responder, error) {
		u, err := account.GetUserTx(tx, v.PathID())
		if err != nil {
			return nil, err
		}
		return page.Redirect(page.Base + "/operator/accounts/" + u.Account + "?view=users&done=" + done), change(tx, show.Actor(v), u.ID)
	})
}

func userChange(c account.UserChange) func(*store.Tx, operator.Actor, string) error {
	return func(tx *store.Tx, by operator.Actor, user string) error {
		_, err := operator.ChangeUserTx(tx, by, user, c)
		return err
	}
}

// sessionsPage lists the sessions of the visitor's user. After a sign-in with the operator's token, it lists
// the sessions of the token.
type sessionsPage struct {
	Me       ui.Facts
	Sessions show.SessionList
}

func (c *console) listSessions(v *page.Visit) (page.Responder, error) {
	by := ui.Data(v.Session.User.Email)
	if by == "" {
		by = "operator's token"
	}
	content := sessionsPage{Me: ui.Facts{{Name: "Signed in by", Value: by}, {Name: "Since", Value: ui.Moment{MS: v.Session.CreatedMS}}}}
	err := v.View(func(tx *store.Tx) (err error) {
		content.Sessions, err = show.SessionsTx(tx, v, "/operator/sessions", "/operator/sessions")
		return err
	})
	return page.FullPage{Name: "sessions", Title: "Sessions", Main: content}.WithNotice(v, map[string]ui.Words{
		"ended": "That session has ended.",
	}), err
}
