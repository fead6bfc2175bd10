package admin

import (
	"tollgate/internal/fault"
	"tollgate/internal/ledger/sheet"
	"tollgate/internal/money"
	"tollgate/internal/operator"
	"tollgate/internal/store"
)

// statementRow is an account's row of a statement (operator.md, Operator API).
type statementRow struct {
	Account string       `json:"account,omitempty"`
	Name    string       `json:"name,omitempty"`
	Paid    money.Amount `json:"paid_usd"`
	Unpaid  money.Amount `json:"unpaid_usd"`
	Trial   money.Amount `json:"trial_usd"`
	Charged money.Amount `json:"charged_usd"`
	Due     money.Amount `json:"due_usd"`
	Balance money.Amount `json:"balance_usd"`
}

// statementAnswer is the statement of all accounts for a month.
type statementAnswer struct {
	Object  string         `json:"object"`
	Month   string         `json:"month"`
	Running bool           `json:"running"`
	Total   statementRow   `json:"total"`
	Data    []statementRow `json:"data"`
}

func showStatementRow(r operator.StatementRow) statementRow {
	return statementRow{r.Account, r.Name, r.Paid, r.Unpaid, r.Trial, r.Charged, r.Due, r.Balance}
}

// statementColumns are the CSV columns of a statement.
var statementColumns = []string{"account", "name", "paid_usd", "unpaid_usd", "trial_usd", "charged_usd", "due_usd", "balance_usd"}

func (s *server) statementOf(c *call) (operator.Statement, error) {
	return view(s, c, func(tx *store.Tx) (operator.Statement, error) { return operator.StatementTx(tx, c.id) })
}

// statement answers GET /statements/{id}. The id is a month.
func (s *server) statement(c *call) (any, error) {
	values, err := c.query("format")
	if err != nil {
		return nil, err
	}
	asCSV, err := c.wantsCSV(values.Get("format"))
	if err != nil {
		return nil, err
	}
	st, err := s.statementOf(c)
	if err != nil {
		return nil, err
	}
	if asCSV {
		return rows{columns: statementColumns, next: func() (cells [][]string, more bool, err error) {
			for _, r := range st.Rows {
				cells = append(cells, []string{r.Account, sheet.Cell(r.Name), r.Paid.String(), r.Unpaid.String(), r.Trial.String(), r.Charged.String(),
					r.Due.String(), r.Balance.String()})
			}
			return cells, false, nil
		}}, nil
	}
	out := statementAnswer{Object: "statement", Month: st.First.Format(operator.MonthFormat), Running: st.Running,
		Total: showStatementRow(st.Total), Data: []statementRow{}}
	for _, r := range st.Rows {
		out.Data = append(out.Data, showStatementRow(r))
	}
	return out, nil
}

// statementFile returns a statement as a PDF file.
func (s *server) statementFile(c *call) (any, error) {
	st, err := s.statementOf(c)
	if err != nil {
		return nil, err
	}
	raw, err := st.Sheet().PDF()
	return text{contentType: "application/pdf", body: raw}, err
}

// markEntry answers PATCH /entries/{id}.
func (s *server) markEntry(c *call) (any, error) {
	var paid *bool
	if _, err := c.decodeBody(flagField("paid", &paid)); err != nil {
		return nil, err
	}
	if paid == nil {
		return nil, fault.At(fault.InvalidRequest, "paid", "paid is required: true or false.")
	}
	return change(s, c, func(tx *store.Tx) (any, error) {
		e, err := operator.MarkPaidTx(tx, s.actor(c), c.id, *paid)
		return showEntry(e), err
	})
}
