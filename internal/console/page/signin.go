package page

import (
	"errors"
	"net/url"
	"strconv"
	"strings"

	"tollgate/internal/account"
	"tollgate/internal/console/ui"
	"tollgate/internal/fault"
	"tollgate/internal/store"
)

// signInPage is the content of both sign-in pages.
type signInPage struct {
	Title        ui.Words
	Form         ui.PostForm
	Token        *ui.PostForm // form of the operator's token, or nil if no token is set
	NoUsers      bool         // no user can sign in yet, so the form is hidden
	TokenOnly    bool         // no user is an operator: the form is hidden, and the token is the only way in
	LostPassword bool         // shows help for a lost password
	Forgot       bool         // a link for a lost password comes by mail
	OperatorLink bool         // shows a link to the operators' sign-in
	SignUp       bool         // shows a link to the sign-up
	Providers    []ui.Button  // sign in with identity providers
}

// wrongSignIn is the message for every failed sign-in. It does not reveal whether a user has the email.
const wrongSignIn = "Wrong email or password."

func (p signInPage) page() FullPage { return FullPage{Name: "signin", Title: p.Title, Main: p} }

// explainWrong replaces the error of a wrong password, code or link by an error with message. It returns other
// errors unchanged. After too many attempts, it sets Retry-After.
func (v *Visit) explainWrong(err error, message string) error {
	if errors.Is(err, account.ErrWrongSignIn) || errors.Is(err, account.ErrNoLink) {
		return fault.New(fault.InvalidRequest, "%s", message)
	}
	if f := fault.Of(err); f.Code == fault.RateLimitExceeded {
		v.Header().Set("Retry-After", strconv.Itoa(int(f.RetryAfter.Seconds())+1))
	}
	return err
}

func signInForm(action, next string) ui.PostForm {
	return ui.PostForm{Action: action, Submit: "Sign in", Fields: []ui.FormField{
		{Name: "email", Label: "Email", Kind: "email", Complete: "username", Required: true},
		{Name: "password", Label: "Password", Kind: "password", Complete: "current-password", Required: true},
		{Name: "next", Kind: ui.Hidden, Value: next},
	}}
}

func (srv *server) signInPage(v *Visit) (Responder, error) {
	if v.Session.ID != "" {
		return Redirect(consoleAddress(v.Query("next"))), nil
	}
	content := signInPage{Title: "Sign in", Form: signInForm(Base+"/sign-in", v.Query("next")), Forgot: srv.Mails.On(),
		SignUp: srv.SignUps.Rules.On(), Providers: v.providerButtons("next", v.Query("next"))}
	if err := v.View(func(tx *store.Tx) error {
		users, operators, err := account.SignInsTx(tx)
		content.NoUsers, content.OperatorLink = !users, srv.operators && (operators || srv.AdminToken.IsSet())
		content.LostPassword = users
		return err
	}); err != nil {
		return nil, err
	}
	return content.page(), nil
}

func (srv *server) signIn(v *Visit) (Responder, error) {
	form := signInForm(Base+"/sign-in", "")
	return v.Submit(&form, func() (Responder, error) {
		u, err := srv.SignIns.Password(v.Context(), form.Field("email").Value, form.Field("password").Value, v.Address(), v.Marks()...)
		if err != nil {
			return nil, v.explainWrong(err, wrongSignIn)
		}
		return srv.continueSignIn(v, u, form.Field("next").Value)
	}, func() (FullPage, error) {
		return signInPage{Title: "Sign in", Form: form, LostPassword: true, Forgot: srv.Mails.On(),
			SignUp: srv.SignUps.Rules.On(), Providers: v.providerButtons("next", form.Field("next").Value)}.page(), nil
	})
}

// continueSignIn signs a user in after the right password, or asks for the code if the user has a second
// factor.
func (srv *server) continueSignIn(v *Visit, u account.User, next string) (Responder, error) {
	if u.FactorMS != 0 {
		return srv.askForCode(v, u, next)
	}
	return srv.signInUser(v, account.NewSession{User: u.ID, Confirmed: true}, next)
}

// signInUser starts a session of the section and ends oldSessions. It mails the user if the browser is new. The
// caller has checked the password or the identity, and the second factor.
func (srv *server) signInUser(
	v *Visit, n account.NewSession, next string, oldSessions ...account.ConsoleSession,
) (Responder, error) {
	n.Kind = v.section.Kind
	return srv.startSessionAnd(v, n, next, func(tx *store.Tx) error { return srv.mailNewBrowserTx(tx, v, n.User) }, oldSessions...)
}

// startSession gives the browser a new session and ends the visit's session. The new session has a new value,
// so a cookie planted before the sign-in is worthless.
func (srv *server) startSession(v *Visit, n account.NewSession, next string) (Responder, error) {
	return srv.startSessionAnd(v, n, next, func(*store.Tx) error { return nil })
}

// startSessionAnd is startSession with act in the same transaction. It also ends oldSessions.
func (srv *server) startSessionAnd(
	v *Visit, n account.NewSession, next string, act func(tx *store.Tx) error, oldSessions ...account.ConsoleSession,
) (Responder, error) {
	if err := v.newSession(n, func(tx *store.Tx) error {
		if err := act(tx); err != nil {
			return err
		}
		for _, s := range append(oldSessions, v.Session) {
			if err := endSessionTx(tx, s); err != nil {
				return err
			}
		}
		return nil
	}); err != nil {
		return nil, err
	}
	target := consoleAddress(next)
	if n.Kind == account.OperatorSession && !strings.HasPrefix(target, Base+"/operator") {
		target = Base + "/operator"
	}
	return Redirect(target), nil
}

// WithNewSession runs act and gives the visitor's browser a new session and a new mark. act must end all
// sessions of the visitor.
func (v *Visit) WithNewSession(act func(tx *store.Tx) error) error {
	return v.newSession(account.NewSession{Kind: v.section.Kind, User: v.Session.User.ID, Confirmed: v.Session.Confirmed}, act)
}

// newSession runs act and gives the browser a new session. It also gives the browser a new mark if the user is
// signed in.
func (v *Visit) newSession(n account.NewSession, act func(tx *store.Tx) error) error {
	n.Address, n.Agent = v.Address().String(), v.Request.UserAgent()
	signedIn := n.User != "" && n.Kind == v.section.Kind // false between password and code
	var value, mark string
	if err := v.Update(func(tx *store.Tx) (err error) {
		if err := act(tx); err != nil {
			return err
		}
		if _, value, err = account.OpenSessionTx(tx, n); err != nil || !signedIn {
			return err
		}
		if err := account.SetBrowserLocaleTx(tx, n.User, localeOf(v.Request)); err != nil {
			return err
		}
		mark, err = account.MarkBrowserTx(tx, n.User)
		return err
	}); err != nil {
		return err
	}
	v.setCookie(n.Kind, value)
	if signedIn {
		v.setMark(n.User, mark)
	}
	return nil
}

// endSessionTx ends a session. It returns nil if there is no session, or if the session has ended already.
func endSessionTx(tx *store.Tx, s account.ConsoleSession) error {
	if s.ID == "" {
		return nil
	}
	if err := account.EndSessionTx(tx, s.User.ID, s.ID); err != nil && !fault.Is(err, fault.NotFound) {
		return err
	}
	return nil
}

func (srv *server) signOut(v *Visit) (Responder, error) {
	return v.signOutAfter(func(tx *store.Tx) error { return endSessionTx(tx, v.Session) })
}

// EndSessions ends all sessions of the visitor.
func EndSessions(v *Visit) (Responder, error) {
	return v.signOutAfter(func(tx *store.Tx) error { return account.EndSessionsTx(tx, v.Session.User.ID) })
}

// signOutAfter runs end, deletes the session's cookie, and redirects to the sign-in.
func (v *Visit) signOutAfter(end func(tx *store.Tx) error) (Responder, error) {
	if v.Session.ID != "" {
		if err := v.Update(end); err != nil {
			return nil, err
		}
	}
	v.clearCookie(v.section.Kind)
	return v.toSignIn("/sign-in", ""), nil
}

// EndSession returns the handler that ends one of the visitor's sessions, named in the path. The handler
// redirects to listPath.
func EndSession(listPath string) func(*Visit) (Responder, error) {
	return func(v *Visit) (Responder, error) {
		return v.Done(listPath, "ended", func(tx *store.Tx) error { return account.EndSessionTx(tx, v.Session.User.ID, v.PathID()) })
	}
}

func (srv *server) operatorTokenForm(next string) *ui.PostForm {
	if !srv.AdminToken.IsSet() {
		return nil
	}
	return &ui.PostForm{Action: Base + "/operator/sign-in", Submit: "Sign in with the token", Fields: []ui.FormField{
		{Name: "admin_token", Label: "Operator's token", Kind: "password", Complete: "off", Required: true,
			Hint: "The value of the setting admin_token, or the content of the file admin-token beside the database."},
		{Name: "next", Kind: ui.Hidden, Value: next, Prefix: "token-"},
	}}
}

func (srv *server) operatorSignInPage(v *Visit) (Responder, error) {
	if v.Session.ID != "" {
		return To("/operator", ""), nil
	}
	content, err := srv.operatorPage(v, v.Query("next"))
	content.Form = signInForm(Base+"/operator/sign-in", v.Query("next"))
	return content.page(), err
}

// operatorPage returns the operators' sign-in without the form for email and password.
func (srv *server) operatorPage(v *Visit, next string) (signInPage, error) {
	content := signInPage{Title: "Operator's sign-in", Token: srv.operatorTokenForm(next), Providers: v.providerButtons("next", next)}
	err := v.View(func(tx *store.Tx) error {
		_, operators, err := account.SignInsTx(tx)
		content.TokenOnly = !operators && content.Token != nil
		return err
	})
	return content, err
}

// operatorSignIn handles both forms of the operators' sign-in page: email and password, and the operator's
// token.
func (srv *server) operatorSignIn(v *Visit) (Responder, error) {
	form := signInForm(Base+"/operator/sign-in", "")
	form.Fields = append(form.Fields, ui.FormField{Name: "admin_token", Label: "Operator's token", Kind: "password"})
	next, token := "", ""
	return v.Submit(&form, func() (Responder, error) {
		next, token = form.Field("next").Value, form.Field("admin_token").Value
		if token != "" && srv.AdminToken.IsSet() {
			if err := srv.SignIns.Token(v.Context(), srv.AdminToken.Is(token), v.Address()); err != nil {
				return nil, v.explainWrong(err, "Wrong token.")
			}
			return srv.startSession(v, account.NewSession{Kind: account.OperatorSession, Token: token}, next)
		}
		u, err := srv.SignIns.Password(v.Context(), form.Field("email").Value, form.Field("password").Value, v.Address(), v.Marks()...)
		if err == nil && u.Role == "" {
			err = account.ErrWrongSignIn
		}
		if err != nil {
			return nil, v.explainWrong(err, wrongSignIn)
		}
		return srv.continueSignIn(v, u, next)
	}, func() (FullPage, error) {
		content, err := srv.operatorPage(v, next)
		form.Fields = form.Fields[:len(form.Fields)-1]
		if token != "" && content.Token != nil {
			content.Token.Error, form = form.Error, signInForm(form.Action, next)
		} else {
			content.TokenOnly = false
		}
		content.Form = form
		return content.page(), err
	})
}

func (v *Visit) codeForm(next string) ui.PostForm {
	signIn := Base + v.section.Path + "/sign-in"
	return ui.PostForm{Action: signIn + "/code", Submit: "Sign in", Cancel: signIn, Fields: []ui.FormField{
		{Name: "code", Label: "Code", Complete: "one-time-code", Required: true,
			Hint: "The six digits that your authenticator app shows now, or one of your recovery codes."},
		{Name: "next", Kind: ui.Hidden, Value: next},
	}}
}

// askForCode redirects to the code page. It gives the browser a short session, which proves the first factor of
// u.
func (srv *server) askForCode(v *Visit, u account.User, next string) (Responder, error) {
	old, err := v.pendingSession()
	if err != nil {
		return nil, err
	}
	if err := v.newSession(account.NewSession{Kind: v.section.Kind.Halfway(), User: u.ID},
		func(tx *store.Tx) error { return endSessionTx(tx, old) }); err != nil {
		return nil, err
	}
	return v.toSignIn("/sign-in/code", next), nil
}

// toSignIn redirects to the page at path in the section, such as the sign-in. next is the address to return to
// afterwards; it may be empty.
func (v *Visit) toSignIn(path, next string) Redirect {
	address := Base + v.section.Path + path
	if next != "" {
		address += "?next=" + url.QueryEscape(next)
	}
	return Redirect(address)
}

// pendingSession returns the browser's session between the first factor and the code, or a zero session.
func (v *Visit) pendingSession() (s account.ConsoleSession, err error) {
	kind := v.section.Kind.Halfway()
	value := v.server.cookieOf(v.Request, kind)
	if value == "" {
		return s, nil
	}
	err = v.View(func(tx *store.Tx) (err error) {
		s, _, err = account.SessionTx(tx, kind, value, account.SessionSettings{})
		return err
	})
	if errors.Is(err, account.ErrNoSession) {
		return account.ConsoleSession{}, nil
	}
	return s, err
}

func (srv *server) codePage(v *Visit) (Responder, error) {
	next := v.Query("next")
	pending, err := v.pendingSession()
	if err != nil {
		return nil, err
	}
	if pending.ID == "" {
		return v.toSignIn("/sign-in", next), nil
	}
	return signInPage{Title: "Second factor", Form: v.codeForm(next)}.page(), nil
}

// checkCode checks the code of the second factor and signs the user in.
func (srv *server) checkCode(v *Visit) (Responder, error) {
	form := v.codeForm("")
	return v.Submit(&form, func() (Responder, error) {
		next := form.Field("next").Value
		pending, err := v.pendingSession()
		if err != nil {
			return nil, err
		}
		if pending.ID == "" {
			return v.toSignIn("/sign-in", next), nil
		}
		if err := srv.SignIns.Code(v.Context(), pending.User.ID, form.Field("code").Value, v.Address()); err != nil {
			return nil, v.explainWrong(err, "The code is wrong or was already used. Enter the code that your app shows now.")
		}
		out, err := srv.signInUser(v, account.NewSession{User: pending.User.ID, Confirmed: true}, next, pending)
		if err == nil {
			v.clearCookie(pending.Kind)
		}
		return out, err
	}, func() (FullPage, error) {
		form.Field("code").Value = ""
		return signInPage{Title: "Second factor", Form: form}.page(), nil
	})
}
