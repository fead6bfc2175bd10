package admin

import (
	"tollgate/internal/account"
	"tollgate/internal/ledger/movement"
	"tollgate/internal/money"
	"tollgate/internal/operator"
	"tollgate/internal/store"
)

// balanceAnswer is the answer of a credit.
type balanceAnswer struct {
	Balance money.Amount `json:"balance_usd"`
}

func (s *server) credit(c *call) (any, error) {
	body, err := c.readObject()
	if err != nil {
		return nil, err
	}
	var usd *money.Amount
	var note string
	if err := body.decode(moneyField("usd", &usd), textField("note", &note)); err != nil {
		return nil, err
	}
	given := operator.Credit{Note: note}
	if usd != nil {
		given.USD = *usd
	}
	if err := given.Check(); err != nil {
		return nil, err
	}
	low := false
	out, err := s.update(c, body, func(tx *store.Tx) (out any, err error) {
		var balance money.Amount
		balance, low, err = operator.CreditTx(tx, s.by(c), c.id, given)
		return balanceAnswer{balance}, err
	})
	if err == nil && low {
		s.Webhooks.Wake()
	}
	return out, err
}

// entryAnswer is one movement of money as operator.md shows it.
type entryAnswer struct {
	ID      string       `json:"id"`
	Kind    string       `json:"kind"`
	USD     money.Amount `json:"usd"`
	Balance money.Amount `json:"balance_usd"`
	Request string       `json:"request_id,omitempty"`
	Job     string       `json:"job_id,omitempty"`
	Model   string       `json:"model,omitempty"`
	Note    string       `json:"note,omitempty"`
	Created int64        `json:"created"`
}

func showEntry(e movement.Entry) entryAnswer {
	return entryAnswer{ID: e.ID, Kind: e.Kind, USD: e.Amount, Balance: e.Balance,
		Request: e.Request, Job: e.Job, Model: e.Model, Note: e.Note, Created: seconds(e.CreatedMS)}
}

func (s *server) listEntries(c *call) (any, error) {
	_, after, limit, err := c.page()
	if err != nil {
		return nil, err
	}
	return view(s, c, func(tx *store.Tx) (any, error) {
		if _, err := account.GetTx(tx, c.id); err != nil {
			return nil, err
		}
		found, more, err := movement.EntriesTx(tx, c.id, after, limit)
		return newList(found, more, showEntry), err
	})
}
