package console

import (
	"errors"
	"net/http"
	"strconv"
	"strings"

	"tollgate/internal/account"
	"tollgate/internal/console/part"
	"tollgate/internal/fault"
	"tollgate/internal/httpapi"
	"tollgate/internal/store"
)

// signInPage is what the pages of both sign-ins show.
type signInPage struct {
	Title string
	Form  part.Inputs
	Token *part.Inputs // of the operator's token; nil: the setting has none
	First bool         // there is nobody who could sign in
}

// wrongSignIn is said of all that is wrong, so that nobody learns who has a
// sign-in here.
const wrongSignIn = "Email or password is not right."

func signInForm(action, next string) part.Inputs {
	return part.Inputs{Action: action, Submit: "Sign in", Fields: []part.FormField{
		{Name: "email", Label: "Email", Kind: "email", Complete: "username", Required: true},
		{Name: "password", Label: "Password", Kind: "password", Complete: "current-password", Required: true},
		{Name: "next", Kind: part.Unshown, Value: next},
	}}
}

func (c *console) signInPage(v *visit) (answer, error) {
	if v.session.ID != "" {
		return redirect{below(v.query("next"))}, nil
	}
	var first bool
	if err := v.view(func(tx *store.Tx) error {
		users, _, err := account.SignInsTx(tx)
		first = !users
		return err
	}); err != nil {
		return nil, err
	}
	shown := signInPage{Title: "Sign in", Form: signInForm(Base+"/sign-in", v.query("next")), First: first}
	return page{name: "signin", title: "Sign in", main: shown}, nil
}

func (c *console) signIn(v *visit) (answer, error) {
	form := signInForm(Base+"/sign-in", "")
	if err := v.read(&form); err != nil {
		return nil, err
	}
	u, err := c.Entrance.Password(v.ctx, form.Field("email").Value, form.Field("password").Value, v.address())
	if err != nil {
		return c.again(v, &signInPage{Title: "Sign in", Form: form}, nil, err)
	}
	return c.open(v, account.NewSession{Kind: account.UserSession, User: u.ID}, form.Field("next").Value)
}

// again shows a sign-in that failed, with what is wrong: above the form of the
// token if that was sent, else above the other.
func (c *console) again(v *visit, shown *signInPage, token *part.Inputs, err error) (answer, error) {
	form, wrong := &shown.Form, wrongSignIn
	if token != nil {
		form, wrong = token, "The token is not right."
	}
	status := http.StatusUnprocessableEntity
	switch f := fault.Of(err); {
	case errors.Is(err, account.ErrWrongSignIn):
		form.Whole = wrong
	case f.Code == fault.RateLimitExceeded:
		form.Whole, status = f.Message, f.Status()
		v.Header().Set("Retry-After", strconv.Itoa(int(f.RetryAfter.Seconds())+1))
	default:
		return nil, err
	}
	form.Forget()
	return page{name: "signin", title: shown.Title, main: *shown, status: status}, nil
}

// open signs a browser in with a session of its own: whatever cookie it came
// with is worth nothing for it.
func (c *console) open(v *visit, n account.NewSession, next string) (answer, error) {
	n.Address, n.Agent = v.address().String(), v.Request.UserAgent()
	var value string
	if err := v.update(func(tx *store.Tx) (err error) {
		if v.session.ID != "" {
			if err := endTx(tx, v.session); err != nil {
				return err
			}
		}
		_, value, err = account.OpenSessionTx(tx, n)
		return err
	}); err != nil {
		return nil, err
	}
	v.giveCookie(n.Kind, value)
	target := below(next)
	if n.Kind == account.OperatorSession && !strings.HasPrefix(target, Base+"/operator") {
		target = Base + "/operator"
	}
	return redirect{target}, nil
}

// endTx ends a session; one that has ended already is fine.
func endTx(tx *store.Tx, s account.ConsoleSession) error {
	err := account.EndSessionTx(tx, s.User.ID, s.ID)
	var f *fault.Error
	if errors.As(err, &f) && f.Code == fault.NotFound {
		return nil
	}
	return err
}

func (c *console) signOut(v *visit) (answer, error) {
	return c.leave(v, account.UserSession, "/sign-in")
}

// leave ends the visit's session and takes its cookie.
func (c *console) leave(v *visit, kind account.SessionKind, next string) (answer, error) {
	if v.session.ID != "" {
		if err := v.update(func(tx *store.Tx) error { return endTx(tx, v.session) }); err != nil {
			return nil, err
		}
	}
	v.takeCookie(kind)
	return to(next, ""), nil
}

// operatorTokenForm asks for the operator's token.
func (c *console) operatorTokenForm(next string) *part.Inputs {
	if c.AdminToken == "" {
		return nil
	}
	return &part.Inputs{Action: Base + "/operator/sign-in", Submit: "Sign in with the token", Fields: []part.FormField{
		{Name: "admin_token", Label: "Operator's token", Kind: "password", Complete: "off", Required: true,
			Hint: "The value of the setting admin_token."},
		{Name: "next", Kind: part.Unshown, Value: next, Prefix: "token-"},
	}}
}

func (c *console) operatorSignInPage(v *visit) (answer, error) {
	if v.session.ID != "" {
		return to("/operator", ""), nil
	}
	next := v.query("next")
	shown := signInPage{Title: "Operator's sign-in", Form: signInForm(Base+"/operator/sign-in", next), Token: c.operatorTokenForm(next)}
	return page{name: "signin", title: shown.Title, main: shown}, nil
}

// operatorSignIn judges either of the page's forms.
func (c *console) operatorSignIn(v *visit) (answer, error) {
	form := signInForm(Base+"/operator/sign-in", "")
	form.Fields = append(form.Fields, part.FormField{Name: "admin_token", Label: "Operator's token", Kind: "password"})
	if err := v.read(&form); err != nil {
		return nil, err
	}
	next, token := form.Field("next").Value, form.Field("admin_token").Value
	shown := signInPage{Title: "Operator's sign-in", Token: c.operatorTokenForm(next)}
	if token != "" && c.AdminToken != "" {
		if err := c.Entrance.Token(v.ctx, httpapi.SameSecret(token, c.AdminToken), v.address()); err != nil {
			shown.Form = signInForm(Base+"/operator/sign-in", next)
			return c.again(v, &shown, shown.Token, err)
		}
		return c.open(v, account.NewSession{Kind: account.OperatorSession, Token: c.AdminToken}, next)
	}
	form.Fields = form.Fields[:len(form.Fields)-1]
	u, err := c.Entrance.Password(v.ctx, form.Field("email").Value, form.Field("password").Value, v.address())
	if err == nil && !u.Operator {
		err = account.ErrWrongSignIn
	}
	if err != nil {
		shown.Form = form
		return c.again(v, &shown, nil, err)
	}
	return c.open(v, account.NewSession{Kind: account.OperatorSession, User: u.ID}, next)
}

func (c *console) operatorSignOut(v *visit) (answer, error) {
	return c.leave(v, account.OperatorSession, "/operator/sign-in")
}
