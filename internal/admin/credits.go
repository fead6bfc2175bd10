package admin

import (
	"strconv"
	"time"

	"tollgate/internal/account"
	"tollgate/internal/fault"
	"tollgate/internal/ledger/movement"
	"tollgate/internal/ledger/requestlog"
	"tollgate/internal/ledger/sheet"
	"tollgate/internal/money"
	"tollgate/internal/operator"
	"tollgate/internal/store"
)

// balanceAnswer is the answer to a credit.
type balanceAnswer struct {
	Balance money.Amount `json:"balance_usd"`
}

func (s *server) credit(c *call) (any, error) {
	var usd *money.Amount
	var paid *bool
	var credit operator.Credit
	body, err := c.decodeBody(moneyField("usd", &usd), textField("note", &credit.Note), textField("reference", &credit.Reference),
		flagField("paid", &paid))
	if err != nil {
		return nil, err
	}
	if usd != nil {
		credit.USD = *usd
	}
	credit.Paid = paid != nil && *paid
	var result operator.CreditResult
	out, err := s.update(c, body, func(tx *store.Tx) (out any, err error) {
		result = operator.CreditResult{} // this function may run again after an earlier attempt set result
		// Check after the lookup of a saved answer, because a previous version may have accepted the request.
		if err := credit.Check(); err != nil {
			return nil, err
		}
		result, err = operator.CreditTx(tx, s.actor(c), c.id, credit)
		return balanceAnswer{result.Balance}, err
	})
	if err == nil && result.Low {
		s.Webhooks.Wake()
	}
	if err == nil && result.Repeated {
		c.markReplayed()
	}
	return out, err
}

// entryAnswer is a movement of money (operator.md, Operator API).
type entryAnswer struct {
	ID      string       `json:"id"`
	Kind    string       `json:"kind"`
	USD     money.Amount `json:"usd"`
	Balance money.Amount `json:"balance_usd"`
	Request string       `json:"request_id,omitempty"`
	Job     string       `json:"job_id,omitempty"`
	Model   string       `json:"model,omitempty"`
	Note    string       `json:"note,omitempty"`
	Ref     string       `json:"reference,omitempty"`
	Paid    bool         `json:"paid,omitempty"`
	Created int64        `json:"created"`
}

func showEntry(e movement.Entry) entryAnswer {
	return entryAnswer{Paid: e.Paid, ID: e.ID, Kind: e.Kind, USD: e.Amount, Balance: e.Balance,
		Request: e.Request, Job: e.Job, Model: e.Model, Note: e.Note, Ref: e.Reference, Created: seconds(e.CreatedMS)}
}

// entryColumns are the CSV columns of movements; entryCells returns the values of one movement.
var entryColumns = []string{"id", "kind", "usd", "balance_usd", "request_id", "job_id", "model", "note", "created", "reference", "paid"}

func entryCells(e movement.Entry) []string {
	return []string{e.ID, e.Kind, e.Amount.String(), e.Balance.String(), e.Request, e.Job, sheet.Cell(e.Model), sheet.Cell(e.Note),
		time.UnixMilli(e.CreatedMS).UTC().Format(time.RFC3339), sheet.Cell(e.Reference), strconv.FormatBool(e.Paid)}
}

// csvBatch is the number of rows read in one transaction for CSV.
const csvBatch = 1000

// listEntries answers GET /accounts/{id}/entries. A CSV answer has all selected movements unless the
// query has a limit.
func (s *server) listEntries(c *call) (any, error) {
	values, after, limit, err := c.page("kind", "since", "until", "format")
	if err != nil {
		return nil, err
	}
	f := movement.Selection{Account: c.id, Kind: movement.KindFilter(values.Get("kind")), After: after, Limit: limit}
	if f.Kind != "" && f.Kind != movement.Credits && f.Kind != movement.Charges {
		return nil, fault.At(fault.InvalidRequest, "kind", "kind must be %s or %s.", movement.Credits, movement.Charges)
	}
	if f.SinceMS, f.UntilMS, err = requestlog.Span(values.Get("since"), values.Get("until")); err != nil {
		return nil, err
	}
	asCSV, err := c.wantsCSV(values.Get("format"))
	if err != nil {
		return nil, err
	}
	if asCSV {
		return s.entriesCSV(c, f, values.Has("limit"))
	}
	return view(s, c, func(tx *store.Tx) (any, error) {
		if _, err := account.GetTx(tx, c.id); err != nil {
			return nil, err
		}
		items, more, err := movement.ListTx(tx, f)
		return newList(items, more, showEntry), err
	})
}

// entriesCSV streams movements, so that the memory does not grow with the number of movements.
func (s *server) entriesCSV(c *call, f movement.Selection, hasLimit bool) (any, error) {
	if !hasLimit {
		f.Limit = csvBatch
	}
	read := func() (items []movement.Entry, more bool, err error) {
		err = s.DB.View(c.ctx, func(tx *store.Tx) (err error) {
			if f.After == "" {
				if _, err := account.GetTx(tx, c.id); err != nil {
					return err
				}
			}
			items, more, err = movement.ListTx(tx, f)
			return err
		})
		return items, more && !hasLimit, err
	}
	items, more, err := read()
	if err != nil {
		return nil, err
	}
	return rows{columns: entryColumns, next: func() (cells [][]string, hasMore bool, err error) {
		if items == nil {
			if items, more, err = read(); err != nil {
				return nil, false, err
			}
		}
		for _, e := range items {
			cells = append(cells, entryCells(e))
		}
		if more {
			f.After = items[len(items)-1].ID
		}
		items = nil
		return cells, more, nil
	}}, nil
}
