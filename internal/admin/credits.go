package admin

import (
	"errors"
	"strings"
	"unicode/utf8"

	"tollgate/internal/account"
	"tollgate/internal/fault"
	"tollgate/internal/ledger"
	"tollgate/internal/money"
	"tollgate/internal/store"
	"tollgate/internal/webhook"
)

// maxNote bounds the note of a credit, in characters.
const maxNote = 500

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
	if usd == nil || *usd == 0 {
		return nil, fault.At(fault.InvalidRequest, "usd",
			"usd is required and must not be zero: the US dollars to give, or negative to take back.")
	}
	note = strings.TrimSpace(note)
	if utf8.RuneCountInString(note) > maxNote || !plain(note) {
		return nil, fault.At(fault.InvalidRequest, "note", "note must be one line of at most %d characters.", maxNote)
	}
	var low *ledger.Low
	out, err := s.update(c, body, func(tx *store.Tx) (out any, err error) {
		if _, err := account.GetTx(tx, c.id); err != nil {
			return nil, err
		}
		var balance money.Amount
		balance, low, err = ledger.MoveTx(tx, c.id, *usd, note)
		if errors.Is(err, ledger.ErrRange) {
			return nil, fault.At(fault.InvalidRequest, "usd",
				"This would bring the balance out of the range of -%[1]s to %[1]s US dollars.", money.Max)
		}
		if err == nil && low != nil {
			err = webhook.EmitLowTx(tx, low.Account, low.Balance, low.Level)
		}
		return balanceAnswer{balance}, err
	})
	if err == nil && low != nil {
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
	Note    string       `json:"note,omitempty"`
	Created int64        `json:"created"`
}

func showEntry(e ledger.Entry) entryAnswer {
	return entryAnswer{ID: e.ID, Kind: e.Kind, USD: e.Amount, Balance: e.Balance,
		Request: e.Request, Job: e.Job, Note: e.Note, Created: seconds(e.CreatedMS)}
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
		found, more, err := ledger.EntriesTx(tx, c.id, after, limit)
		return newList(found, more, showEntry), err
	})
}
