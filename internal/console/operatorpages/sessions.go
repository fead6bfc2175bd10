package operatorpages

import (
	"tollgate/internal/console/page"
	"tollgate/internal/console/show"
	"tollgate/internal/console/ui"
	"tollgate/internal/store"
)

// sessionsPage lists the sessions of the visitor's user or, after a sign-in with the token, of the
// token.
type sessionsPage struct {
	Me       ui.Facts
	Sessions show.SessionList
}

func (c *console) listSessions(v *page.Visit) (page.Responder, error) {
	by := v.Session.User.Email
	if by == "" {
		by = "the operator's token"
	}
	shown := sessionsPage{Me: ui.Facts{{Name: "Signed in by", Value: by}, {Name: "Since", Value: ui.Moment{MS: v.Session.CreatedMS}}}}
	err := v.View(func(tx *store.Tx) (err error) {
		shown.Sessions, err = show.SessionsTx(tx, v, "/operator/sessions", "/operator/sessions")
		return err
	})
	return page.FullPage{Name: "sessions", Title: "Sessions", Main: shown}.WithNotice(v, map[string]string{
		"ended": "That session has ended.",
	}), err
}
