package page

import (
	"errors"
	"net/http"

	"tollgate/internal/account"
	"tollgate/internal/console/ui"
	"tollgate/internal/fault"
	"tollgate/internal/identity"
	"tollgate/internal/operator"
	"tollgate/internal/store"
)

// newAccountPath is the path of the page for a new customer after a visit to a provider.
const newAccountPath = "/sign-up/with"

// signInPerson signs in the user with the person's identity. A matching email is not enough. An unknown person
// may create an account, or must sign in another way and link the provider.
func (srv *server) signInPerson(v *Visit, p *identity.IDProvider, person identity.Person, f account.IdentityFlow) (Responder, error) {
	var u account.User
	found, keepsRole := false, false
	if err := v.Update(func(tx *store.Tx) (err error) {
		keepsRole = false
		var i account.LinkedIdentity
		if i, found, err = account.IdentityTx(tx, person.Issuer, person.Subject); err != nil || !found {
			return err
		}
		if u, err = account.GetUserTx(tx, i.User); err != nil {
			return err
		}
		if p.Roles.Claim != "" {
			claimed := account.OperatorRole(person.Role)
			if u, keepsRole, err = operator.ClaimRoleTx(tx, v.news(u.Email, p.Title).By, u, i, claimed); err != nil {
				return err
			}
			if !keepsRole { // if the user keeps the old role, the next sign-in tries again
				i.Role = claimed
			}
		}
		i.Email = readable(person.Email)
		return account.UseIdentityTx(tx, i)
	}); err != nil {
		return nil, err
	}
	if keepsRole {
		srv.Log.Warn("console: the last owner keeps the role that a claim would take away; make another user an owner first",
			"user", u.Email, "provider", p.Name, "claimed", person.Role)
	}
	if !found {
		return srv.unknownPerson(v, p, person, f)
	}
	return srv.signInKnown(v, p, person, u, f.Next)
}

// signInKnown signs a user in after a visit to a provider. It asks for the second factor unless the provider
// has checked one.
func (srv *server) signInKnown(v *Visit, p *identity.IDProvider, person identity.Person, u account.User, next string) (Responder, error) {
	switch {
	case u.Disabled:
		return v.providerPage(p, http.StatusForbidden, "You cannot sign in here at the moment. Ask who runs this service."), nil
	case v.section.Kind == account.OperatorSession && u.Role == "":
		return v.providerPage(p, http.StatusForbidden, "You are not an operator of this service."), nil
	case u.FactorMS != 0 && !person.SecondFactor:
		return srv.askForCode(v, u, next)
	}
	return srv.signInUser(v, account.NewSession{User: u.ID}, next)
}

// unknownPerson offers a new account to a person without a user, or explains how to link the provider.
func (srv *server) unknownPerson(v *Visit, p *identity.IDProvider, person identity.Person, f account.IdentityFlow) (Responder, error) {
	text := ui.Sayf("No user signs in with this %[1]s account yet. Sign in as before, and then link %[1]s in your settings.", p.Title)
	if !srv.SignUps.Rules.On() || v.section.Kind != account.UserSession {
		return v.providerPage(p, http.StatusForbidden, text), nil
	}
	if !person.EmailVerified {
		return v.providerPage(p, http.StatusForbidden,
			ui.Sayf("%s Without an account, sign up with your email, because %s does not confirm that it is yours.",
				text, p.Title)), nil
	}
	email, err := account.ParseEmail(person.Email)
	if err == nil {
		err = srv.SignUps.Rules.CheckEmail(email)
	}
	if refusal, ok := errors.AsType[*fault.Error](err); ok {
		return v.providerPage(p, http.StatusForbidden, ui.Sayf("%s %s", text, faultWords(refusal))), nil
	}
	taken, cookie := false, ""
	if err := v.Update(func(tx *store.Tx) (err error) {
		if _, taken, err = account.HolderTx(tx, email); err != nil || taken {
			return err
		}
		_, cookie, _, err = account.BeginFlowTx(tx, account.IdentityFlow{Purpose: account.FlowSignUp, Provider: p.Name, Kind: f.Kind,
			Next: f.Next, Issuer: person.Issuer, Subject: person.Subject, Email: email})
		return err
	}); err != nil {
		return nil, err
	}
	if taken {
		return v.providerPage(p, http.StatusForbidden, text), nil
	}
	v.sendCookie(flowCookie, cookie, "/", int(account.FlowAge.Seconds()))
	return To(newAccountPath, ""), nil
}

// acceptInvitation links an identity to an invited user, in place of a password, and signs the user in.
func (srv *server) acceptInvitation(v *Visit, p *identity.IDProvider, person identity.Person, f account.IdentityFlow) (Responder, error) {
	u, err := Write(v, func(tx *store.Tx) (account.User, error) {
		return operator.AcceptInvitationTx(tx, f.Link, identityOf(person), v.news("", p.Title))
	})
	if errors.Is(err, account.ErrNoLink) {
		return v.providerPage(p, http.StatusUnprocessableEntity, invalidLink), nil
	}
	if text := explainIdentity(p, err); text != "" {
		return v.providerPage(p, http.StatusUnprocessableEntity, text), nil
	}
	if err != nil {
		return nil, err
	}
	return srv.signInKnown(v, p, person, u, f.Next)
}

func (srv *server) newAccountForm(f account.IdentityFlow) ui.PostForm {
	form := ui.PostForm{Action: Base + newAccountPath, Submit: "Create the account", Cancel: Base + "/sign-in", Fields: []ui.FormField{
		{Name: "email", Label: "Email", Kind: "email", ReadOnly: true, Value: f.Email},
	}}
	srv.addTerms(&form)
	srv.addChallenge(&form)
	return form
}

func (srv *server) newAccountWith(v *Visit, f account.IdentityFlow, form ui.PostForm) FullPage {
	title := f.Provider
	if p := srv.provider(account.UserSession, f.Provider); p != nil {
		title = p.Title
	}
	return srv.challengePage(v, linkPage{Title: "Create an account", Form: form,
		Text: ui.Sayf("You sign in with %[1]s from now on. Nobody here has used it before. If you have an account already, cancel, "+
			"sign in as before, and link %[1]s in your settings.", title)})
}

// newAccountPage offers a new account to a person after a visit to a provider.
func (srv *server) newAccountPage(v *Visit) (Responder, error) {
	f, err := Read(v, func(tx *store.Tx) (account.IdentityFlow, error) {
		return account.SignUpFlowTx(tx, v.cookie(flowCookie))
	})
	if errors.Is(err, account.ErrNoFlow) {
		return To("/sign-up", ""), nil
	}
	if err != nil {
		return nil, err
	}
	return srv.newAccountWith(v, f, srv.newAccountForm(f)), nil
}

// createNewAccount creates the account of a person at a provider and signs its user in.
func (srv *server) createNewAccount(v *Visit) (Responder, error) {
	cookie := v.cookie(flowCookie)
	form := srv.newAccountForm(account.IdentityFlow{})
	var f account.IdentityFlow
	return v.Submit(&form, func() (_ Responder, err error) {
		if f, err = Read(v, func(tx *store.Tx) (account.IdentityFlow, error) { return account.SignUpFlowTx(tx, cookie) }); err != nil {
			return nil, explainSignUpFlow(err)
		}
		form.Field("email").Value = f.Email
		if err := srv.checkTerms(&form); err != nil {
			return nil, err
		}
		if err := srv.SignIns.CountIdentitySignUp(v.Context(), v.Address()); err != nil {
			return nil, v.explainWrong(err, "")
		}
		if err := srv.checkChallenge(v.Context(), v, &form); err != nil {
			return nil, err
		}
		u, err := Write(v, func(tx *store.Tx) (account.User, error) { return srv.createNewAccountTx(tx, v, cookie) })
		if err != nil {
			return nil, explainSignUpFlow(err)
		}
		v.sendCookie(flowCookie, "", "/", -1)
		return srv.startSession(v, account.NewSession{Kind: v.section.Kind, User: u.ID}, f.Next)
	}, func() (FullPage, error) { return srv.newAccountWith(v, f, form), nil })
}

// createNewAccountTx uses a flow up and creates its account. Errors include account.ErrNoFlow and
// account.ErrIdentityTaken.
func (srv *server) createNewAccountTx(tx *store.Tx, v *Visit, cookie string) (account.User, error) {
	f, err := account.TakeSignUpFlowTx(tx, cookie)
	if err != nil {
		return account.User{}, err
	}
	p := srv.provider(account.UserSession, f.Provider)
	if p == nil || p.Issuer != f.Issuer {
		return account.User{}, account.ErrNoFlow
	}
	if err := srv.SignUps.Rules.CheckEmail(f.Email); err != nil {
		return account.User{}, err
	}
	u, err := operator.SignUpTx(tx, account.SignIn{Email: f.Email, TermsVersion: srv.Legal.Version}, v.Address(), srv.SignUps.Trial)
	if err != nil {
		return account.User{}, err
	}
	return u, operator.AddIdentityTx(tx, u.ID, account.LinkedIdentity{Issuer: f.Issuer, Subject: f.Subject, Email: f.Email},
		v.news(f.Email, p.Title))
}

// explainSignUpFlow replaces the error of an expired or used flow by a message for the visitor. It returns
// other errors unchanged.
func explainSignUpFlow(err error) error {
	if errors.Is(err, account.ErrNoFlow) || errors.Is(err, account.ErrIdentityTaken) {
		return fault.New(fault.InvalidRequest, "This sign-up took longer than ten minutes, or was finished elsewhere. Go back to the sign-in "+
			"and begin again.")
	}
	return err
}
