package operatorpages

import (
	"cmp"

	"tollgate/internal/account"
	"tollgate/internal/console/page"
	"tollgate/internal/console/show"
	"tollgate/internal/console/ui"
	"tollgate/internal/fault"
	"tollgate/internal/operator"
	"tollgate/internal/store"
)

// operatorsPath is the path of the list of operators.
const operatorsPath = "/operator/operators"

func (c *console) listOperators(v *page.Visit) (page.Responder, error) {
	content := page.List{Title: "Operators", All: "All operators", Path: operatorsPath, New: page.CreateLink(operatorsPath+"/new",
		"Invite an operator"),
		Table: ui.DataTable{Caption: "Operators", Columns: []ui.Column{{Title: "Email"}, {Title: "Role"}, {Title: "State"},
			{Title: "Second factor"}, {Title: "Since", Fold: true}, {Title: "Change"}}}}
	if err := v.View(func(tx *store.Tx) error {
		list, more, err := account.ListOperatorsTx(tx, v.Query("after"), page.Rows)
		content.Table.Rows = nil
		for _, u := range list {
			var change any = roleLink(u)
			if u.ID == v.Session.User.ID {
				change = ui.Text{Text: "you", Muted: true}
			}
			content.Table.Rows = append(content.Table.Rows, ui.DataRow{Cells: []any{
				ui.Link{Href: page.Base + "/operator/accounts/" + u.Account + "?view=users", Text: ui.Data(u.Email)}, ui.Words(u.Role),
				show.UserState(u), show.Factor(u), ui.Moment{MS: u.CreatedMS}, change}})
		}
		content.Pager = v.Pager(operatorsPath, more, page.Last(list, func(u account.User) string { return u.ID }))
		return err
	}); err != nil {
		return nil, err
	}
	return content.Page(false, ui.EmptyState{Title: "No operator has a name yet",
		Text: "Operators without a name sign in with the operator's token. Invite them, so that the log names them and each has a role."},
	).WithNotice(v, map[string]ui.Words{
		"role": "Saved. The role applies at once, also to open pages.",
	}), nil
}

// roleLink returns a link to the form for a user's role.
func roleLink(u account.User) ui.Link {
	return ui.Link{Href: page.Base + operatorsPath + "/" + u.ID, Text: "Role", Button: true}
}

// roleChoice returns the field to choose a role. more are options after the roles.
func roleChoice(selected string, more ...ui.Option) ui.FormField {
	options := []ui.Option{{Value: string(account.Support), Label: "Support: sees everything, changes nothing"},
		{Value: string(account.Operator), Label: "Operator: everything but the operators themselves"},
		{Value: string(account.Owner), Label: "Owner: everything, with the operators"}}
	return ui.FormField{Name: "role", Label: "Role", Kind: ui.Choice, Required: true, Options: show.Select(append(options, more...), selected)}
}

func inviteForm(v *page.Visit) ui.PostForm {
	return ui.PostForm{Action: page.Base + operatorsPath + "/new", Submit: "Invite", Cancel: page.Base + operatorsPath, Fields: []ui.FormField{
		{Name: "email", Label: "Email", Kind: "email", Required: true,
			Hint: "For a new user. If this address signs in already, open its account and change the role there."},
		roleChoice(string(account.Support)),
		secretField(v, "Required to change who is an operator."),
	}}
}

func (c *console) newOperator(v *page.Visit) (page.Responder, error) {
	return page.FormPage("Invite an operator", inviteForm(v)), nil
}

// inviteOperator creates a user with a role and shows the user's link once. With mail, the link is mailed too.
func (c *console) inviteOperator(v *page.Visit) (page.Responder, error) {
	form := inviteForm(v)
	return v.Submit(&form, func() (page.Responder, error) {
		email, err := account.ParseEmail(form.Field("email").Value)
		if err != nil {
			return nil, err
		}
		role, err := account.ParseRole(form.Field("role").Value)
		if err != nil {
			return nil, err
		}
		if err := c.confirmIdentity(v, form.Field("secret").Value, "nobody was invited"); err != nil {
			return nil, err
		}
		return c.createLink(v, func(tx *store.Tx) (operator.ConsoleLink, error) {
			return operator.InviteOperatorTx(tx, show.Actor(v), c.Mails, c.PublicURL, account.SignIn{Email: email, Role: role})
		})
	}, func() (page.FullPage, error) { return page.FormPage("Invite an operator", form), nil })
}

// noRole is the value of the option for no role.
const noRole = "none"

func roleForm(v *page.Visit, u account.User) ui.PostForm {
	role := roleChoice(cmp.Or(string(u.Role), noRole), ui.Option{Value: noRole, Label: "None: no operator"})
	return ui.PostForm{Action: page.Base + operatorsPath + "/" + u.ID, Submit: "Save", Cancel: page.Base + operatorsPath,
		Fields: []ui.FormField{role, secretField(v, "Required to change who is an operator.")}}
}

// userOfRole returns the user named in the path. It returns an error if this is the visitor, because nobody may
// change their own role.
func userOfRole(v *page.Visit) (account.User, error) {
	if v.PathID() == v.Session.User.ID {
		return account.User{}, fault.New(fault.PermissionDenied, "You cannot change your own role. Another owner can.")
	}
	return page.Read(v, func(tx *store.Tx) (account.User, error) { return account.GetUserTx(tx, v.PathID()) })
}

func (c *console) showRole(v *page.Visit) (page.Responder, error) {
	u, err := userOfRole(v)
	return page.FormPage(ui.Sayf("Role of %s", u.Email), roleForm(v, u)), err
}

func (c *console) changeRole(v *page.Visit) (page.Responder, error) {
	u, err := userOfRole(v)
	if err != nil {
		return nil, err
	}
	form := roleForm(v, u)
	return v.Submit(&form, func() (page.Responder, error) {
		var role account.OperatorRole
		if name := form.Field("role").Value; name != noRole {
			if role, err = account.ParseRole(name); err != nil {
				return nil, err
			}
		}
		if err := c.confirmIdentity(v, form.Field("secret").Value, "the role is as before"); err != nil {
			return nil, err
		}
		return v.Done(operatorsPath, "role", func(tx *store.Tx) error {
			_, err := operator.SetRoleTx(tx, show.Actor(v), u.ID, role)
			return err
		})
	}, func() (page.FullPage, error) { return page.FormPage(ui.Sayf("Role of %s", u.Email), form), nil })
}
