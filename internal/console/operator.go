package console

import (
	"tollgate/internal/account"
	"tollgate/internal/console/part"
	"tollgate/internal/store"
)

// operatorPage is who is signed in to the operator's pages.
type operatorPage struct {
	Me       part.Facts
	Sessions sessionList
}

func (c *console) operatorSessions(v *visit) (answer, error) {
	by := v.session.User.Email
	if by == "" {
		by = "the operator's token"
	}
	shown := operatorPage{Me: part.Facts{{Name: "Signed in by", Value: by}, {Name: "Since", Value: part.Moment{MS: v.session.CreatedMS}}}}
	if err := v.view(func(tx *store.Tx) error {
		list, err := account.ListSessionsTx(tx, v.session.User.ID)
		shown.Sessions = sessionsOf(v, list, "/operator/sessions")
		return err
	}); err != nil {
		return nil, err
	}
	return page{name: "operator", title: "Sessions", main: shown}.done(v, map[string]string{
		"ended": "That session has ended.",
	}), nil
}

func (c *console) endOperatorSessions(v *visit) (answer, error) {
	if err := v.update(func(tx *store.Tx) error { return account.EndSessionsTx(tx, v.session.User.ID) }); err != nil {
		return nil, err
	}
	v.takeCookie(account.OperatorSession)
	return to("/operator/sign-in", ""), nil
}

func (c *console) endOperatorSession(v *visit) (answer, error) {
	if err := v.update(func(tx *store.Tx) error {
		return account.EndSessionTx(tx, v.session.User.ID, v.PathID())
	}); err != nil {
		return nil, err
	}
	return to("/operator", "ended"), nil
}
