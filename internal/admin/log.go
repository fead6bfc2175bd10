package admin

import (
	"tollgate/internal/account"
	"tollgate/internal/httpapi"
	"tollgate/internal/operator"
	"tollgate/internal/store"
)

// actor returns the actor of a call.
func (s *server) actor(c *call) operator.Actor {
	if s.Attached {
		return operator.Actor{Way: operator.Shell, Role: account.Owner}
	}
	return operator.Actor{Way: operator.Token, Role: account.Owner, Address: httpapi.ClientAddress(c.Request, s.TrustedProxies).String()}
}

// logAnswer is a row of the operators' log.
type logAnswer struct {
	ID      string           `json:"id"`
	Created int64            `json:"created"`
	Way     operator.Way     `json:"way"`
	Name    string           `json:"name,omitempty"`
	Address string           `json:"address,omitempty"`
	Act     string           `json:"act"`
	Object  string           `json:"object"`
	Account string           `json:"account,omitempty"`
	Before  operator.Details `json:"before"`
	After   operator.Details `json:"after"`
}

func showLogRow(e operator.LogRow) logAnswer {
	return logAnswer{ID: e.ID, Created: seconds(e.AtMS), Way: e.Way, Name: e.Name, Address: e.Address, Act: e.Act, Object: e.Object,
		Account: e.Account, Before: e.Before, After: e.After}
}

func (s *server) listLog(c *call) (any, error) {
	values, after, limit, err := c.page("act", "object", "account")
	if err != nil {
		return nil, err
	}
	f := operator.LogFilter{Act: values.Get("act"), Object: values.Get("object"), Account: values.Get("account"), After: after, Limit: limit}
	return view(s, c, func(tx *store.Tx) (any, error) {
		items, more, err := operator.LogTx(tx, f)
		return newList(items, more, showLogRow), err
	})
}
