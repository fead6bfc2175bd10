package console

import (
	"context"
	"net/url"

	"tollgate/internal/account"
	"tollgate/internal/console/part"
	"tollgate/internal/operator"
	"tollgate/internal/store"
)

// pageRows is how many rows a page of an operator's list has.
const pageRows = 50

// by is who acts on an operator's page.
func (v *visit) by() operator.Actor {
	return operator.Actor{Way: operator.Console, Name: v.session.User.Email, Address: v.address().String()}
}

// blank refuses a form that is more than its button.
func (v *visit) blank() error { return v.read(&part.Inputs{}) }

// pager leads from one page of a list to the next, with the filters kept.
func (v *visit) pager(path string, more bool, last string) part.Pager {
	values := v.Request.URL.Query()
	values.Del("done")
	var p part.Pager
	if values.Get("after") != "" {
		values.Del("after")
		p.First = addressOf(path, values)
	}
	if more {
		values.Set("after", last)
		p.Next = addressOf(path, values)
	}
	return p
}

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
	return to("/operator/sessions", "ended"), nil
}

// soon makes this node use what was committed before the answer says so. Where
// that fails the node tries on by itself.
func (v *visit) soon(what string, refresh func(ctx context.Context) error) {
	ctx, cancel := context.WithTimeout(v.ctx, refreshTime)
	defer cancel()
	if err := refresh(ctx); err != nil {
		v.c.Log.Warn("console: "+what+" is not in use here yet", "error", err)
	}
}

// addressOf is a path with a query.
func addressOf(path string, values url.Values) string {
	if len(values) == 0 {
		return Base + path
	}
	return Base + path + "?" + values.Encode()
}
