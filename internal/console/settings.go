package console

import (
	"errors"
	"net/http"

	"tollgate/internal/account"
	"tollgate/internal/console/part"
	"tollgate/internal/fault"
	"tollgate/internal/store"
)

// settingsPage is the reader and his team.
type settingsPage struct {
	Me       part.Facts
	Password part.Inputs
	Sessions sessionList
	Users    part.DataTable
	NewUser  part.Inputs
}

// sessionList are the browsers that are signed in.
type sessionList struct {
	Table part.DataTable
	All   part.Confirm
}

// maxTeam bounds the users that the page shows.
const maxTeam = 100

func passwordForm() part.Inputs {
	return part.Inputs{Action: Base + "/settings/password", Submit: "Change password", Fields: []part.FormField{
		{Name: "current", Label: "Current password", Kind: "password", Complete: "current-password", Required: true},
		{Name: "password", Label: "New password", Kind: "password", Complete: "new-password", Required: true,
			Hint: "At least 8 characters. All your other sessions end."},
	}}
}

func newUserForm() part.Inputs {
	return part.Inputs{Action: Base + "/settings/users", Submit: "Add user", Fields: []part.FormField{
		{Name: "email", Label: "Email", Kind: "email", Prefix: "new-", Required: true},
		{Name: "password", Label: "First password", Kind: "password", Complete: "new-password", Prefix: "new-", Required: true,
			Hint: "At least 8 characters. Hand it over yourself; nothing is mailed."},
	}}
}

func (c *console) settings(v *visit) (answer, error) {
	return c.settingsWith(v, passwordForm(), newUserForm(), 0)
}

// settingsWith shows the page with forms that may have been refused.
func (c *console) settingsWith(v *visit, password, newUser part.Inputs, status int) (answer, error) {
	shown := settingsPage{Password: password, NewUser: newUser}
	if err := v.view(func(tx *store.Tx) error {
		a, err := account.GetTx(tx, v.account())
		if err != nil {
			return err
		}
		shown.Me = part.Facts{{Name: "Email", Value: v.session.User.Email}, {Name: "Account", Value: a.Name},
			{Name: "Account id", Value: part.Ident{ID: a.ID}}, {Name: "Since", Value: part.Moment{MS: a.CreatedMS}}}
		list, err := account.ListSessionsTx(tx, v.session.User.ID)
		if err != nil {
			return err
		}
		shown.Sessions = sessionsOf(v, list, "/settings/sessions")
		users, _, err := account.ListUsersTx(tx, v.account(), "", maxTeam)
		if err != nil {
			return err
		}
		shown.team(v, users)
		return nil
	}); err != nil {
		return nil, err
	}
	return page{name: "settings", title: "Settings", main: shown, status: status}.done(v, map[string]string{
		"password": "Your password is changed, and all your other sessions have ended.",
		"ended":    "That session has ended.",
		"added":    "The user can sign in now.",
		"changed":  "The user is changed.",
		"deleted":  "The user is deleted, and all its sessions have ended.",
	}), nil
}

// team shows the users of the account, with what can be done about the others.
// Operators are changed by operators.
func (s *settingsPage) team(v *visit, users []account.User) {
	s.Users = part.DataTable{Caption: "Users of this account", Columns: []part.Column{
		{Title: "Email"}, {Title: "State"}, {Title: "Since"}, {Title: "Change"}}}
	for _, u := range users {
		path := Base + "/settings/users/" + u.ID
		state, toggle := part.Badge{Tone: part.OK, Word: "can sign in"}, part.Act{Action: path + "/disable", Word: "Disable", About: u.Email}
		if u.Disabled {
			state, toggle = part.Badge{Word: "disabled"}, part.Act{Action: path + "/enable", Word: "Enable", About: u.Email}
		}
		var change any = part.Text{Text: "you", Muted: true}
		switch {
		case u.ID == v.session.User.ID:
		case u.Operator:
			change = part.Text{Text: "operator", Muted: true}
		default:
			change = part.Group{toggle, v.confirm(part.Confirm{
				ID: "delete-" + u.ID, Button: "Delete", Title: "Delete " + u.Email + "?", Danger: true, Action: path + "/delete",
				Text: []string{"This user cannot sign in any more. Keys and money of the account stay as they are."},
			})}
		}
		s.Users.Rows = append(s.Users.Rows, part.DataRow{Cells: []any{u.Email, state, part.Moment{MS: u.CreatedMS}, change}})
	}
}

// sessionsOf shows sessions, with what ends them.
func sessionsOf(v *visit, list []account.ConsoleSession, path string) sessionList {
	s := sessionList{Table: part.DataTable{Caption: "Signed in", Columns: []part.Column{
		{Title: "Browser"}, {Title: "For"}, {Title: "Address"}, {Title: "Last use"}, {Title: "Since"}, {Title: "Change"}}}}
	for _, one := range list {
		pages := "your account"
		if one.Kind == account.OperatorSession {
			pages = "operator's pages"
		}
		var end any = part.Act{Action: Base + path + "/" + one.ID + "/end", Word: "End", About: browserName(one.Agent)}
		if one.ID == v.session.ID {
			end = part.Badge{Tone: part.OK, Word: "this one"}
		}
		s.Table.Rows = append(s.Table.Rows, part.DataRow{Cells: []any{browserName(one.Agent), pages, part.Text{Text: one.Address, Mono: true},
			part.Moment{MS: one.SeenMS}, part.Moment{MS: one.CreatedMS}, end}})
	}
	s.All = v.confirm(part.Confirm{ID: "end-all", Button: "Sign out everywhere", Title: "Sign out everywhere?", Action: Base + path + "/end",
		Text: []string{"Every browser that is signed in, this one too, has to sign in again. API keys go on."}})
	return s
}

func (c *console) changePassword(v *visit) (answer, error) {
	form := passwordForm()
	if err := v.read(&form); err != nil {
		return nil, err
	}
	current, next := form.Field("current").Value, form.Field("password").Value
	again := func(err error) (answer, error) {
		if err := refused(&form, err); err != nil {
			return nil, err
		}
		return c.settingsWith(v, form, newUserForm(), http.StatusUnprocessableEntity)
	}
	if err := account.CheckPassword(next); err != nil {
		return again(err)
	}
	err := c.Entrance.Confirm(v.ctx, v.session.User, current, v.address())
	if errors.Is(err, account.ErrWrongSignIn) {
		err = fault.At(fault.InvalidRequest, "current", "That is not your password.")
	}
	if err != nil {
		return again(err)
	}
	hash, err := c.Passwords.Hash(v.ctx, next)
	if err != nil {
		return again(err)
	}
	var value string
	if err := v.update(func(tx *store.Tx) error {
		if _, err := account.ChangeUserTx(tx, v.session.User.ID, account.UserChange{PasswordHash: &hash}); err != nil {
			return err
		}
		_, value, err = account.OpenSessionTx(tx, account.NewSession{Kind: account.UserSession, User: v.session.User.ID,
			Address: v.address().String(), Agent: v.Request.UserAgent()})
		return err
	}); err != nil {
		return nil, err
	}
	v.giveCookie(account.UserSession, value)
	return to("/settings", "password"), nil
}

func (c *console) endSession(v *visit) (answer, error) {
	if err := v.update(func(tx *store.Tx) error {
		return account.EndSessionTx(tx, v.session.User.ID, v.PathID())
	}); err != nil {
		return nil, err
	}
	return to("/settings", "ended"), nil
}

func (c *console) endSessions(v *visit) (answer, error) {
	if err := v.update(func(tx *store.Tx) error { return account.EndSessionsTx(tx, v.session.User.ID) }); err != nil {
		return nil, err
	}
	v.takeCookie(account.UserSession)
	return to("/sign-in", ""), nil
}

func (c *console) addUser(v *visit) (answer, error) {
	form := newUserForm()
	if err := v.read(&form); err != nil {
		return nil, err
	}
	add := func() error {
		email, err := account.ParseEmail(form.Field("email").Value)
		if err != nil {
			return err
		}
		hash, err := c.Passwords.Hash(v.ctx, form.Field("password").Value)
		if err != nil {
			return err
		}
		return v.update(func(tx *store.Tx) error {
			_, err := account.CreateUserTx(tx, v.account(), account.SignIn{Email: email, PasswordHash: hash})
			return err
		})
	}
	if err := add(); err != nil {
		if err := refused(&form, err); err != nil {
			return nil, err
		}
		return c.settingsWith(v, passwordForm(), form, http.StatusUnprocessableEntity)
	}
	return to("/settings", "added"), nil
}

// colleague lets act change another user of the visitor's account.
func (c *console) colleague(v *visit, done string, act func(tx *store.Tx, user string) error) (answer, error) {
	if err := v.update(func(tx *store.Tx) error {
		u, err := account.OwnUserTx(tx, v.account(), v.PathID())
		if err != nil {
			return err
		}
		if u.ID == v.session.User.ID || u.Operator {
			return fault.New(fault.PermissionDenied, "You cannot do this to yourself, or to an operator. Ask who runs this service.")
		}
		return act(tx, u.ID)
	}); err != nil {
		return nil, err
	}
	return to("/settings", done), nil
}

func (c *console) disableUser(v *visit) (answer, error) { return c.switchUser(v, true) }
func (c *console) enableUser(v *visit) (answer, error)  { return c.switchUser(v, false) }

func (c *console) switchUser(v *visit, disabled bool) (answer, error) {
	return c.colleague(v, "changed", func(tx *store.Tx, user string) error {
		_, err := account.ChangeUserTx(tx, user, account.UserChange{Disabled: &disabled})
		return err
	})
}

func (c *console) deleteUser(v *visit) (answer, error) {
	return c.colleague(v, "deleted", account.DeleteUserTx)
}
