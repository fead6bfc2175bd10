package page

import (
	"errors"
	"net/http"
	"strconv"
	"strings"

	"tollgate/internal/account"
	"tollgate/internal/console/part"
	"tollgate/internal/fault"
	"tollgate/internal/store"
)

// signInPage is the content of both sign-in pages.
type signInPage struct {
	Title string
	Form  part.Inputs
	Token *part.Inputs // form of the operator's token, or nil if no token is set
	First bool         // no user can sign in yet, so the form is hidden
	Only  bool         // no user is an operator: the form is hidden, and the token is the only way in
	Lost  bool         // shows help for a lost password
	Runs  bool         // shows a link to the operators' sign-in
}

// wrongSignIn is the message for every failed sign-in, so that the message does not show whether an
// email has a user here.
const wrongSignIn = "Email or password is not right."

func signInForm(action, next string) part.Inputs {
	return part.Inputs{Action: action, Submit: "Sign in", Fields: []part.FormField{
		{Name: "email", Label: "Email", Kind: "email", Complete: "username", Required: true},
		{Name: "password", Label: "Password", Kind: "password", Complete: "current-password", Required: true},
		{Name: "next", Kind: part.Unshown, Value: next},
	}}
}

func (d *server) signInPage(v *Visit) (Outgoing, error) {
	if v.Session.ID != "" {
		return Redirect(below(v.Query("next"))), nil
	}
	shown := signInPage{Title: "Sign in", Form: signInForm(Base+"/sign-in", v.Query("next"))}
	if err := v.View(func(tx *store.Tx) error {
		users, operators, err := account.SignInsTx(tx)
		shown.First, shown.Runs = !users, d.operators && (operators || d.AdminToken.IsSet())
		shown.Lost = users
		return err
	}); err != nil {
		return nil, err
	}
	return Whole{Name: "signin", Title: "Sign in", Main: shown}, nil
}

func (d *server) signIn(v *Visit) (Outgoing, error) {
	form := signInForm(Base+"/sign-in", "")
	if err := v.Read(&form); err != nil {
		return nil, err
	}
	u, err := d.SignIns.Password(v.Context(), form.Field("email").Value, form.Field("password").Value, v.Address(), v.Marks()...)
	if err != nil {
		shown := signInPage{Title: "Sign in", Form: form, Lost: true}
		return d.again(v, &shown, &shown.Form, wrongSignIn, err)
	}
	return d.known(v, u, form.Field("next").Value)
}

// known continues after the right password of a user: with the code, if the user has a second
// factor.
func (d *server) known(v *Visit, u account.User, next string) (Outgoing, error) {
	if u.FactorMS != 0 {
		return d.halfway(v, u, next)
	}
	return d.open(v, account.NewSession{Kind: v.side.Kind, User: u.ID}, next)
}

// again shows the sign-in page after a failure, with the error above one of its forms.
func (d *server) again(v *Visit, shown *signInPage, form *part.Inputs, wrong string, err error) (Outgoing, error) {
	status, err := refusal(v, form, wrong, err)
	if err != nil {
		return nil, err
	}
	return Whole{Name: "signin", Title: shown.Title, Main: *shown, Status: status}, nil
}

// refusal writes the error of a failed sign-in above a form and returns the status. It returns any
// other error, and the whole page fails.
func refusal(v *Visit, form *part.Inputs, wrong string, err error) (status int, failed error) {
	status = http.StatusUnprocessableEntity
	switch f := fault.Of(err); {
	case errors.Is(err, account.ErrWrongSignIn), errors.Is(err, account.ErrNoLink):
		form.Whole = wrong
	case f.Code == fault.RateLimitExceeded:
		form.Whole, status = f.Message(), f.Status()
		v.Header().Set("Retry-After", strconv.Itoa(int(f.RetryAfter.Seconds())+1))
	default:
		return 0, err
	}
	form.Forget()
	return status, nil
}

// open signs a browser in with a session of its own: whatever cookie it came
// with is worth nothing for it. The sessions before end.
func (d *server) open(v *Visit, n account.NewSession, next string, before ...account.ConsoleSession) (Outgoing, error) {
	if err := v.signInAs(n, append(before, v.Session)...); err != nil {
		return nil, err
	}
	target := below(next)
	if n.Kind == account.OperatorSession && !strings.HasPrefix(target, Base+"/operator") {
		target = Base + "/operator"
	}
	return Redirect(target), nil
}

// signInAs gives the browser a new session and ends the sessions in before.
func (v *Visit) signInAs(n account.NewSession, before ...account.ConsoleSession) error {
	n.Address, n.Agent = v.Address().String(), v.Request.UserAgent()
	whole := n.User != "" && n.Kind == v.side.Kind // not halfway
	var value, mark string
	if err := v.Update(func(tx *store.Tx) (err error) {
		for _, s := range before {
			if s.ID == "" {
				continue
			}
			if err := endTx(tx, s); err != nil {
				return err
			}
		}
		if _, value, err = account.OpenSessionTx(tx, n); err != nil || !whole {
			return err
		}
		mark, err = account.MarkBrowserTx(tx, n.User)
		return err
	}); err != nil {
		return err
	}
	v.GiveCookie(n.Kind, value)
	if whole {
		v.GiveMark(n.User, mark)
	}
	return nil
}

// endTx ends a session. It returns nil if the session has ended already.
func endTx(tx *store.Tx, s account.ConsoleSession) error {
	err := account.EndSessionTx(tx, s.User.ID, s.ID)
	var f *fault.Error
	if errors.As(err, &f) && f.Code == fault.NotFound {
		return nil
	}
	return err
}

func (d *server) signOut(v *Visit) (Outgoing, error) {
	return d.leave(v, account.UserSession, "/sign-in")
}

// leave ends the visit's session and takes its cookie.
func (d *server) leave(v *Visit, kind account.SessionKind, next string) (Outgoing, error) {
	if v.Session.ID != "" {
		if err := v.Update(func(tx *store.Tx) error { return endTx(tx, v.Session) }); err != nil {
			return nil, err
		}
	}
	v.TakeCookie(kind)
	return To(next, ""), nil
}

// operatorTokenForm asks for the operator's token.
func (d *server) operatorTokenForm(next string) *part.Inputs {
	if !d.AdminToken.IsSet() {
		return nil
	}
	return &part.Inputs{Action: Base + "/operator/sign-in", Submit: "Sign in with the token", Fields: []part.FormField{
		{Name: "admin_token", Label: "Operator's token", Kind: "password", Complete: "off", Required: true,
			Hint: "The value of the setting admin_token, or the content of the file admin-token beside the database."},
		{Name: "next", Kind: part.Unshown, Value: next, Prefix: "token-"},
	}}
}

func (d *server) operatorSignInPage(v *Visit) (Outgoing, error) {
	if v.Session.ID != "" {
		return To("/operator", ""), nil
	}
	next := v.Query("next")
	shown, err := d.operatorPage(v, next)
	if err != nil {
		return nil, err
	}
	shown.Form = signInForm(Base+"/operator/sign-in", next)
	return Whole{Name: "signin", Title: shown.Title, Main: shown}, nil
}

// operatorPage returns the operators' sign-in without the form for email and password.
func (d *server) operatorPage(v *Visit, next string) (signInPage, error) {
	shown := signInPage{Title: "Operator's sign-in", Token: d.operatorTokenForm(next)}
	err := v.View(func(tx *store.Tx) error {
		_, operators, err := account.SignInsTx(tx)
		shown.Only = !operators && shown.Token != nil
		return err
	})
	return shown, err
}

// operatorSignIn checks either of the page's forms.
func (d *server) operatorSignIn(v *Visit) (Outgoing, error) {
	form := signInForm(Base+"/operator/sign-in", "")
	form.Fields = append(form.Fields, part.FormField{Name: "admin_token", Label: "Operator's token", Kind: "password"})
	if err := v.Read(&form); err != nil {
		return nil, err
	}
	next, token := form.Field("next").Value, form.Field("admin_token").Value
	shown, err := d.operatorPage(v, next)
	if err != nil {
		return nil, err
	}
	if token != "" && d.AdminToken.IsSet() {
		if err := d.SignIns.Token(v.Context(), d.AdminToken.Is(token), v.Address()); err != nil {
			shown.Form = signInForm(Base+"/operator/sign-in", next)
			return d.again(v, &shown, shown.Token, "The token is not right.", err)
		}
		return d.open(v, account.NewSession{Kind: account.OperatorSession, Token: token}, next)
	}
	form.Fields = form.Fields[:len(form.Fields)-1]
	u, err := d.SignIns.Password(v.Context(), form.Field("email").Value, form.Field("password").Value, v.Address(), v.Marks()...)
	if err == nil && !u.Operator {
		err = account.ErrWrongSignIn
	}
	if err != nil {
		shown.Form, shown.Only = form, false
		return d.again(v, &shown, &shown.Form, wrongSignIn, err)
	}
	return d.known(v, u, next)
}

func (d *server) operatorSignOut(v *Visit) (Outgoing, error) {
	return d.leave(v, account.OperatorSession, "/operator/sign-in")
}
