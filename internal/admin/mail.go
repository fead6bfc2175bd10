package admin

import (
	"tollgate/internal/fault"
	"tollgate/internal/mail"
	"tollgate/internal/operator"
	"tollgate/internal/store"
)

// mailAnswer is a mail of the outbox (operator.md, Operator API). It does not have the mail's text.
type mailAnswer struct {
	ID       string `json:"id"`
	Kind     string `json:"kind"`
	Account  string `json:"account,omitempty"`
	To       string `json:"to"`
	Subject  string `json:"subject"`
	State    string `json:"state"`
	Attempts int64  `json:"attempts"`
	Error    string `json:"error,omitempty"`
	Next     int64  `json:"next_attempt_at,omitempty"`
	Sent     int64  `json:"sent,omitempty"`
	Created  int64  `json:"created"`
}

func showMail(e mail.OutboxMail) mailAnswer {
	return mailAnswer{ID: e.ID, Kind: string(e.Kind), Account: e.Account, To: e.To, Subject: e.Subject, State: e.State, Attempts: e.Attempts,
		Error: e.Error, Next: seconds(e.NextMS), Sent: seconds(e.SentMS), Created: seconds(e.CreatedMS)}
}

func (s *server) listMails(c *call) (any, error) {
	query, after, limit, err := c.page("state", "account")
	if err != nil {
		return nil, err
	}
	return view(s, c, func(tx *store.Tx) (any, error) {
		f := mail.OutboxFilter{Account: query.Get("account"), State: query.Get("state"), After: after, Limit: limit}
		items, more, err := mail.ListTx(tx, f)
		return newList(items, more, showMail), err
	})
}

func (s *server) testMail(c *call) (any, error) {
	to := ""
	if _, err := c.decodeBody(textField("to", &to)); err != nil {
		return nil, err
	}
	if to == "" {
		return nil, fault.At(fault.InvalidRequest, "to", "to is required: the address that gets the test mail.")
	}
	e, err := operator.TestMail(c.ctx, s.DB, s.Mails, s.actor(c), to)
	if err != nil {
		return nil, err
	}
	return showMail(e), nil
}

func (s *server) resendMail(c *call) (any, error) {
	e, err := operator.ResendMail(c.ctx, s.DB, s.Mails, s.actor(c), c.id)
	if err != nil {
		return nil, err
	}
	return showMail(e), nil
}
