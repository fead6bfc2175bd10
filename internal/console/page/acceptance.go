package page

import (
	"tollgate/internal/account"
	"tollgate/internal/console/ui"
	"tollgate/internal/fault"
	"tollgate/internal/store"
)

// termsField is the name of the check box that accepts the terms.
const termsField = "terms"

// addTerms adds the check box for the terms to a form, if the shop asks for it.
func (srv *server) addTerms(form *ui.PostForm) {
	if srv.Legal.Version == "" {
		return
	}
	links := []ui.Link{{Href: Base + termsPath, Text: "Read the terms", NewTab: true}}
	if srv.Legal.Privacy != nil {
		links = append(links, ui.Link{Href: Base + privacyPath, Text: "Read the privacy policy", NewTab: true})
	}
	form.Fields = append(form.Fields, ui.FormField{Name: termsField, Kind: ui.Check, Value: srv.Legal.Version, Required: true,
		Label: "I accept the terms of this service.", Links: links})
}

// checkTerms returns an error unless the form accepts the current terms. A form without the check box passes.
func (srv *server) checkTerms(form *ui.PostForm) error {
	box := form.Field(termsField)
	if box == nil {
		return nil
	}
	sent, old := box.Checked, box.Value
	box.Value = srv.Legal.Version
	box.Checked = sent && old == box.Value
	switch {
	case !sent:
		return fault.At(fault.InvalidRequest, termsField, "Accept the terms to go on.")
	case !box.Checked:
		return fault.At(fault.InvalidRequest, termsField, "The terms have changed since this page was opened. Read them again and accept them.")
	}
	return nil
}

// mustAcceptTerms reports whether the visitor must accept the terms to use the pages of a session. Operators
// need not.
func (v *Visit) mustAcceptTerms() bool {
	return v.server.Legal.Version != "" && v.section.Kind == account.UserSession && v.Session.User.Role == "" && !v.Session.Accepted
}

func (srv *server) acceptanceForm(next string) ui.PostForm {
	form := ui.PostForm{Action: Base + acceptPath, Submit: "Continue", Fields: []ui.FormField{{Name: "next", Kind: ui.Hidden, Value: next}}}
	srv.addTerms(&form)
	return form
}

func acceptanceWith(form ui.PostForm) FullPage {
	return FullPage{Name: "link", Title: "Terms of this service", Main: linkPage{Title: "Terms of this service", Form: form,
		Text: "The terms are new, or have changed since you accepted them. Accept them to go on here. Your API keys work in any case."}}
}

// acceptancePage asks a user to accept the terms. Other visitors have nothing to accept.
func (srv *server) acceptancePage(v *Visit) (Responder, error) {
	next := v.Query("next")
	switch {
	case v.Session.ID == "":
		return v.toSignIn("/sign-in", next), nil
	case !v.mustAcceptTerms():
		return Redirect(consoleAddress(next)), nil
	}
	return acceptanceWith(srv.acceptanceForm(next)), nil
}

// acceptTerms records that the visitor accepts the current terms.
func (srv *server) acceptTerms(v *Visit) (Responder, error) {
	form := srv.acceptanceForm("")
	return v.Submit(&form, func() (Responder, error) {
		next := form.Field("next").Value
		if v.Session.ID == "" {
			return v.toSignIn("/sign-in", next), nil
		}
		if !v.mustAcceptTerms() {
			return Redirect(consoleAddress(next)), nil
		}
		if err := srv.checkTerms(&form); err != nil {
			return nil, err
		}
		return Redirect(consoleAddress(next)), v.Update(func(tx *store.Tx) error {
			return account.AcceptTermsTx(tx, v.Session.User.ID, srv.Legal.Version, v.Address())
		})
	}, func() (FullPage, error) { return acceptanceWith(form), nil })
}
