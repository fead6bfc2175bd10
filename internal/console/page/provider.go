package page

import (
	"errors"
	"net/http"
	"slices"
	"strings"

	"tollgate/internal/account"
	"tollgate/internal/console/ui"
	"tollgate/internal/fault"
	"tollgate/internal/identity"
	"tollgate/internal/operator"
	"tollgate/internal/store"
)

// flowCookie is the cookie of a visit to an identity provider. Only the browser with the cookie can end the
// visit.
const flowCookie = "tollgate-flow"

// maxProviderAnswer bounds each parameter of a provider's answer, in bytes.
const maxProviderAnswer = 4096

// provider returns the identity provider with a name for a kind of session, or nil.
func (srv *server) provider(kind account.SessionKind, name string) *identity.IDProvider {
	i := slices.IndexFunc(srv.Identities, func(p *identity.IDProvider) bool {
		return p.Name == name && (kind == account.OperatorSession && p.ForOperators() || kind == account.UserSession && p.ForCustomers())
	})
	if i < 0 {
		return nil
	}
	return srv.Identities[i]
}

// ProviderTitle returns the title of the identity provider with an issuer, or the issuer if the provider was
// removed.
func (o Options) ProviderTitle(issuer string) string {
	for _, p := range o.Identities {
		if p.Issuer == issuer {
			return p.Title
		}
	}
	return issuer
}

// withProvider returns a handler that calls handle with the identity provider in the path. The handler answers
// 404 if there is no such provider.
func (srv *server) withProvider(handle func(*Visit, *identity.IDProvider) (Responder, error)) func(*Visit) (Responder, error) {
	return func(v *Visit) (Responder, error) {
		p := srv.provider(v.section.Kind, v.PathID())
		if p == nil {
			return nil, NoPage()
		}
		return handle(v, p)
	}
}

// providerButtons returns a sign-in button for each identity provider of the section. Each button sends value
// in the hidden field.
func (v *Visit) providerButtons(field, value string) (all []ui.Button) {
	for _, p := range v.server.Identities {
		if v.server.provider(v.section.Kind, p.Name) != nil {
			all = append(all, ui.Button{Action: Base + v.section.Path + "/sign-in/with/" + p.Name, Label: ui.Sayf("Continue with %s", p.Title),
				Hidden: []ui.FormField{{Name: field, Kind: ui.Hidden, Value: value}}})
		}
	}
	return all
}

// beginSignIn sends the browser to a provider, to sign in or to accept an invitation.
func (srv *server) beginSignIn(v *Visit, p *identity.IDProvider) (Responder, error) {
	form := ui.PostForm{Fields: []ui.FormField{{Name: "next", Kind: ui.Hidden}, {Name: "link", Kind: ui.Hidden}}}
	if err := v.ReadForm(&form); err != nil {
		return nil, err
	}
	next := consoleAddress(form.Field("next").Value)
	if v.Session.ID != "" {
		return Redirect(next), nil
	}
	f := account.IdentityFlow{Purpose: account.FlowSignIn, Next: next}
	if token := form.Field("link").Value; token != "" {
		f.Purpose, f.Link = account.FlowInvitation, account.InvitationHash(token)
	}
	return v.BeginFlow(p, f)
}

// BeginFlow sends the browser to a provider. The caller sets the flow's Purpose, Next and Link.
func (v *Visit) BeginFlow(p *identity.IDProvider, f account.IdentityFlow) (Responder, error) {
	if err := v.server.SignIns.CountFlow(v.Context(), v.Address()); err != nil {
		return nil, err
	}
	f.Provider, f.Kind, f.Session = p.Name, v.section.Kind, v.Session.ID
	var cookie, state string
	if err := v.Update(func(tx *store.Tx) (err error) {
		f, cookie, state, err = account.BeginFlowTx(tx, f)
		return err
	}); err != nil {
		return nil, err
	}
	address, err := p.AuthorizationURL(v.Context(), v.providerRequest(p, f, state))
	if err != nil {
		return v.providerFailed(p, err), nil
	}
	v.sendCookie(flowCookie, cookie, "/", int(account.FlowAge.Seconds()))
	// A redirect after a form is subject to the policy form-action. A refresh is not.
	v.Header().Set("Refresh", "0; url="+address)
	return FullPage{Name: "link", Title: ui.Sayf("On to %s", p.Title), Main: linkPage{Title: ui.Sayf("On to %s", p.Title),
		Footer: &linkFooter{"Nothing happens?", ui.Link{Href: address, Text: ui.Sayf("Go on to %s", p.Title)}}}}, nil
}

// providerRequest returns the authorization request of a flow. The redirect URI begins with PublicURL and never
// with the Host of the request.
func (v *Visit) providerRequest(p *identity.IDProvider, f account.IdentityFlow, state string) identity.AuthRequest {
	return identity.AuthRequest{State: state, Nonce: f.Nonce, Verifier: f.Verifier, Anew: f.Purpose == account.FlowConfirm,
		RedirectURI: v.server.PublicURL + Base + v.section.Path + "/sign-in/with/" + p.Name + "/callback"}
}

// providerPage tells the visitor why a visit to a provider has failed.
func (v *Visit) providerPage(p *identity.IDProvider, status int, text ui.Words) FullPage {
	back := ui.Link{Href: Base + v.section.Path + "/sign-in", Text: "To the sign-in"}
	if v.Session.ID != "" {
		back = ui.Link{Href: Base + "/settings", Text: "To your settings"}
	}
	return FullPage{Name: "link", Title: ui.Sayf("Sign-in with %s", p.Title), Status: status,
		Main: linkPage{Title: ui.Sayf("Sign-in with %s", p.Title), Text: text, Footer: &linkFooter{"", back}}}
}

// providerFailed shows the error of a provider. It logs all errors except RefusedError.
func (v *Visit) providerFailed(p *identity.IDProvider, err error) FullPage {
	if refused, ok := errors.AsType[*identity.RefusedError](err); ok {
		return v.providerPage(p, http.StatusForbidden, ui.Data(refused.Text))
	}
	v.server.Log.Warn("console: sign-in with an identity provider failed", "request", v.ID, "provider", p.Name, "error", err)
	if errors.Is(err, identity.ErrInvalid) {
		return v.providerPage(p, http.StatusUnprocessableEntity, ui.Sayf("The answer of %s was not valid, so you are not signed in. "+
			"Try again. If it happens again, tell who runs this service: request %s.", p.Title, v.ID))
	}
	return v.providerPage(p, http.StatusServiceUnavailable,
		ui.Sayf("%s does not answer at the moment. Try again in a minute, or use another way. Request %s.", p.Title, v.ID))
}

// callback handles the provider's answer at the end of a visit.
func (srv *server) callback(v *Visit, p *identity.IDProvider) (Responder, error) {
	params := v.Request.URL.Query()
	f, err := Write(v, func(tx *store.Tx) (account.IdentityFlow, error) {
		return account.TakeFlowTx(tx, v.cookie(flowCookie), params.Get("state"))
	})
	if err == nil && (f.Provider != p.Name || f.Kind != v.section.Kind) {
		err = account.ErrNoFlow
	}
	if errors.Is(err, account.ErrNoFlow) {
		return v.providerPage(p, http.StatusUnprocessableEntity, ui.Sayf("This answer of %s belongs to no sign-in in this browser: "+
			"it was used, took longer than ten minutes, or another one was begun since. Try again.", p.Title)), nil
	}
	if err != nil {
		return nil, err
	}
	v.sendCookie(flowCookie, "", "/", -1)
	if code := params.Get("error"); code != "" {
		return v.providerPage(p, http.StatusUnprocessableEntity, providerError(p, code, params.Get("error_description"))), nil
	}
	answer := identity.Callback{Code: params.Get("code"), Issuer: params.Get("iss")}
	if answer.Code == "" || len(answer.Code) > maxProviderAnswer || len(answer.Issuer) > maxProviderAnswer {
		return v.providerPage(p, http.StatusUnprocessableEntity, ui.Sayf("The answer of %s has no usable code. Try again.", p.Title)), nil
	}
	person, err := p.Identify(v.Context(), answer, v.providerRequest(p, f, params.Get("state")))
	if err != nil {
		return v.providerFailed(p, err), nil
	}
	switch f.Purpose {
	case account.FlowInvitation:
		return srv.acceptInvitation(v, p, person, f)
	case account.FlowLink, account.FlowConfirm:
		if v.Session.ID == "" || v.Session.ID != f.Session {
			return v.providerPage(p, http.StatusForbidden, "Your session has ended since. Sign in and try again."), nil
		}
		if f.Purpose == account.FlowConfirm {
			return srv.confirmByProvider(v, p, person, f)
		}
		return srv.linkIdentity(v, p, person, f)
	}
	return srv.signInPerson(v, p, person, f)
}

// providerError returns the text for an error in the address. Anybody can make such an address, so the text has
// only excerpts of the parameters.
func providerError(p *identity.IDProvider, code, description string) ui.Words {
	if code == "access_denied" {
		return ui.Sayf("You have not signed in at %s, or it does not let you in here.", p.Title)
	}
	if description == "" {
		return ui.Sayf("%s answers: %s. Try again.", p.Title, fault.Excerpt(code))
	}
	return ui.Sayf("%s answers: %s (%s). Try again.", p.Title, fault.Excerpt(code), fault.Excerpt(description))
}

// news describes a change of the visitor's identities.
func (v *Visit) news(name, provider string) operator.IdentityNews {
	return operator.IdentityNews{By: operator.Actor{Way: operator.Settings, Name: name, Address: v.Address().String()},
		Mails: v.server.Mails, Base: v.server.PublicURL, Cause: v.ID, Locale: v.Locale(), Provider: provider}
}

func identityOf(person identity.Person) account.LinkedIdentity {
	return account.LinkedIdentity{Issuer: person.Issuer, Subject: person.Subject, Email: readable(person.Email)}
}

// readable returns a provider's email, or an empty string if the email is not fit to be stored and shown.
func readable(email string) string {
	if !isPlainText(email) || len(email) > 254 {
		return ""
	}
	return email
}

// takenText is the message for account.ErrIdentityTaken.
func takenText(p *identity.IDProvider) ui.Words {
	return ui.Sayf("Another user signs in with this %[1]s account. Sign out, go on with %[1]s, and unlink it there first.", p.Title)
}

// linkIdentity links an identity to the visitor's user. The visitor has confirmed the session before the flow.
func (srv *server) linkIdentity(v *Visit, p *identity.IDProvider, person identity.Person, f account.IdentityFlow) (Responder, error) {
	user := v.Session.User
	err := v.Update(func(tx *store.Tx) error {
		return operator.AddIdentityTx(tx, user.ID, identityOf(person), v.news(user.Email, p.Title))
	})
	if text := explainIdentity(p, err); text != "" {
		return v.providerPage(p, http.StatusUnprocessableEntity, text), nil
	}
	return To(strings.TrimPrefix(f.Next, Base), "linked"), err
}

// explainIdentity returns the text for an error about a new identity, or an empty text if the visitor cannot
// correct the error.
func explainIdentity(p *identity.IDProvider, err error) ui.Words {
	if errors.Is(err, account.ErrIdentityTaken) {
		return takenText(p)
	}
	if f, ok := errors.AsType[*fault.Error](err); ok && f.Status() < http.StatusInternalServerError {
		return faultWords(f)
	}
	return ""
}

// confirmByProvider confirms the session of a visitor after a new sign-in at a provider.
func (srv *server) confirmByProvider(v *Visit, p *identity.IDProvider, person identity.Person, f account.IdentityFlow) (Responder, error) {
	// The clocks of two machines may differ by some seconds.
	const skewMS = 30_000
	if person.SignedInAt.IsZero() || person.SignedInAt.UnixMilli() < f.CreatedMS-skewMS {
		return v.providerPage(p, http.StatusUnprocessableEntity, ui.Sayf("%s does not say that you have signed in anew, so this "+
			"confirms nothing. Use your second factor, or set a password.", p.Title)), nil
	}
	own := false
	if err := v.Update(func(tx *store.Tx) error {
		i, found, err := account.IdentityTx(tx, person.Issuer, person.Subject)
		if own = found && i.User == v.Session.User.ID; err != nil || !own {
			return err
		}
		return account.ConfirmSessionTx(tx, v.Session.ID)
	}); err != nil {
		return nil, err
	}
	if !own {
		return v.providerPage(p, http.StatusForbidden, ui.Sayf("You do not sign in with this %s account, so it confirms nothing.", p.Title)), nil
	}
	return Redirect(f.Next), nil
}
