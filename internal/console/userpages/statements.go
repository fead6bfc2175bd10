package userpages

import (
	"cmp"
	"slices"
	"time"

	"tollgate/internal/account"
	"tollgate/internal/console/page"
	"tollgate/internal/console/show"
	"tollgate/internal/console/ui"
	"tollgate/internal/fault"
	"tollgate/internal/ledger/books"
	"tollgate/internal/ledger/movement"
	"tollgate/internal/ledger/spending"
	"tollgate/internal/money"
	"tollgate/internal/operator"
	"tollgate/internal/store"
)

// statementPage shows the statement of one month.
type statementPage struct {
	Month   ui.Words
	Running bool     // the month has not ended
	Whose   ui.Facts // the account and the days of the statement
	Figures ui.FigureRow
	Table   ui.DataTable
	CSV     string // address of the table as a file
}

// statement is one month's money, in UTC. closing is opening + credits + takenBack - charges.
type statement struct {
	first     time.Time // the month's first day
	opening   money.Amount
	credits   money.Amount
	takenBack money.Amount // zero or less
	charges   money.Amount
	closing   money.Amount
	running   bool      // the month has not ended
	until     time.Time // the last day of the statement
}

const (
	// shownStatements is the maximum number of months in the list.
	shownStatements = 36
	// shownCredits is the maximum number of a month's credits with rows of their own.
	shownCredits = 100
	// maxModels bounds the rows of usage read for statements: a row per day or per model.
	maxModels = 10_000
)

// statements returns the statements of an account's months since sinceMS, the newest first. It calculates
// backwards from the present balance. A charge belongs to the day on which its request arrived, as in usage.
// charges are by UTC day.
func statements(balance money.Amount, entries []movement.CreditEntry, charges map[int64]money.Amount, sinceMS, nowMS int64) []statement {
	since, now := time.UnixMilli(sinceMS).UTC(), time.UnixMilli(nowMS).UTC()
	var list []statement
	for month := firstOf(now); !month.Before(firstOf(since)) && len(list) < shownStatements; month = month.AddDate(0, -1, 0) {
		s := statement{first: month, until: month.AddDate(0, 1, -1)}
		if len(list) == 0 {
			s.until, s.running = now, true
		}
		list = append(list, s)
	}
	statementOfDay := func(day int64) *statement {
		first := firstOf(time.Unix(day*24*60*60, 0).UTC())
		i := slices.IndexFunc(list, func(s statement) bool { return s.first.Equal(first) })
		if i < 0 {
			return &statement{} // the month is not listed
		}
		return &list[i]
	}
	for _, g := range entries {
		s := statementOfDay(g.Day)
		s.credits, s.takenBack = s.credits+max(0, g.Amount), s.takenBack+min(0, g.Amount)
	}
	for day, amount := range charges {
		statementOfDay(day).charges += amount
	}
	for i := range list {
		s := &list[i]
		s.closing = balance
		s.opening = s.closing - s.credits - s.takenBack + s.charges
		balance = s.opening
	}
	return list
}

func firstOf(t time.Time) time.Time { return time.Date(t.Year(), t.Month(), 1, 0, 0, 0, 0, time.UTC) }

func statementsTx(tx *store.Tx, accountID string) (account.Account, []statement, error) {
	a, err := account.GetTx(tx, accountID)
	if err != nil {
		return a, nil, err
	}
	nowMS, err := tx.NowMS()
	if err != nil {
		return a, nil, err
	}
	oldest := time.UnixMilli(nowMS).UTC().AddDate(0, -shownStatements, 0)
	since := books.DayOf(max(0, oldest.UnixMilli()))
	entries, err := movement.CreditEntriesTx(tx, accountID, since)
	if err != nil {
		return a, nil, err
	}
	days, err := spending.ReadTx(tx, spending.Query{Account: accountID, Since: since, By: []spending.By{spending.ByDay}, Limit: maxModels})
	if err != nil {
		return a, nil, err
	}
	chargesByDay := map[int64]money.Amount{}
	for _, d := range days {
		date, err := time.Parse(time.DateOnly, d.Day)
		if err != nil {
			return a, nil, err
		}
		chargesByDay[books.DayOf(date.UnixMilli())] = d.Charged
	}
	return a, statements(a.Money.Balance, entries, chargesByDay, a.CreatedMS, nowMS), nil
}

func (c *console) listStatements(v *page.Visit) (page.Responder, error) {
	return page.Read(v, func(tx *store.Tx) (page.Responder, error) {
		_, list, err := statementsTx(tx, v.Account())
		return page.FullPage{Name: "statements", Title: "Statements", Main: statementsTable(list)}, err
	})
}

func statementsTable(list []statement) ui.DataTable {
	t := ui.DataTable{Caption: "Statements by month, in UTC", Columns: []ui.Column{{Title: "Month"},
		{Title: "Opening balance", Right: true},
		{Title: "Credits", Right: true}, {Title: "Taken back", Right: true}, {Title: "Charges", Right: true},
		{Title: "Closing balance", Right: true}}}
	for _, s := range list {
		t.Rows = append(t.Rows, ui.DataRow{Href: page.Base + "/billing/statements/" + s.first.Format(operator.MonthFormat),
			Cells: []any{ui.Month(s.first), ui.Money{Amount: s.opening}, ui.Money{Amount: s.credits},
				ui.Money{Amount: s.takenBack}, ui.Money{Amount: -s.charges}, ui.Money{Amount: s.closing, InFull: true}}})
	}
	return t
}

func statementOf(v *page.Visit) (content statementPage, err error) {
	err = v.View(func(tx *store.Tx) error {
		a, list, err := statementsTx(tx, v.Account())
		if err != nil {
			return err
		}
		s, err := findMonth(list, v.PathID())
		if err != nil {
			return err
		}
		content = statementPage{Month: ui.Month(s.first), Running: s.running,
			CSV: page.Base + "/billing/statements/" + v.PathID() + "/table"}
		content.Whose = ui.Facts{{Name: "Account", Value: a.Name}, {Name: "Id", Value: ui.Ident{ID: a.ID}},
			{Name: "Days", Value: ui.Text{Text: ui.Sayf("%s to %s, UTC%s", ui.Day(s.first), ui.Day(s.until), s.soFar())}}}
		content.Figures = ui.FigureRow{{Label: "Closing balance", Value: ui.Money{Amount: s.closing, InFull: true}},
			{Label: "Opening balance", Value: ui.Money{Amount: s.opening, InFull: true}},
			{Label: "Credits", Value: ui.Money{Amount: s.credits + s.takenBack, InFull: true}},
			{Label: "Charges", Value: ui.Money{Amount: -s.charges, InFull: true}}}
		content.Table, err = s.tableTx(tx, a.ID)
		return err
	})
	return content, err
}

// findMonth returns the statement of a month, such as 2026-05.
func findMonth(list []statement, month string) (statement, error) {
	i := slices.IndexFunc(list, func(s statement) bool { return s.first.Format(operator.MonthFormat) == month })
	if i < 0 {
		return statement{}, fault.New(fault.NotFound, "There is no statement of this month.")
	}
	return list[i], nil
}

// soFar returns a suffix for the date of a month that has not ended.
func (s statement) soFar() ui.Words {
	if s.running {
		return ", so far"
	}
	return ""
}

func (s statement) end() time.Time { return s.first.AddDate(0, 1, 0) }

// tableTx returns the rows of a statement: its credits, and its charges by model.
func (s statement) tableTx(tx *store.Tx, accountID string) (ui.DataTable, error) {
	t := ui.DataTable{Caption: ui.Sayf("Statement of %s", ui.Month(s.first)), Columns: []ui.Column{{Title: "What"},
		{Title: "For"}, {Title: "Charged requests", Right: true}, {Title: "Amount", Right: true, Exact: true}}}
	add := func(label, reason ui.Words, requests any, amount money.Amount) {
		t.Rows = append(t.Rows, ui.DataRow{Cells: []any{label, reason, requests, ui.Money{Amount: amount}}})
	}
	add("Opening balance", ui.Data(ui.Day(s.first)), "", s.opening)
	credits, more, err := movement.ListTx(tx, movement.Selection{Account: accountID, Kind: movement.Credits, SinceMS: s.first.UnixMilli(),
		UntilMS: s.end().UnixMilli(), Limit: shownCredits})
	if err != nil {
		return t, err
	}
	var total money.Amount
	for _, e := range credits {
		total += e.Amount
	}
	if more || total != s.credits+s.takenBack {
		add("Credits", "less what was taken back", "", s.credits+s.takenBack)
		credits = nil
	}
	for _, e := range slices.Backward(credits) {
		label := "Credit"
		if e.Amount < 0 {
			label = "Taken back"
		}
		add(ui.Data(label+", "+ui.Day(time.UnixMilli(e.CreatedMS).UTC())), show.Reason(e), "", e.Amount)
	}
	models, err := spending.ReadTx(tx, spending.Query{Account: accountID, Since: books.DayOf(s.first.UnixMilli()),
		Until: books.DayOf(s.end().UnixMilli()),
		By:    []spending.By{spending.ByModel}, Limit: maxModels})
	if err != nil {
		return t, err
	}
	slices.SortStableFunc(models, func(a, b spending.UsageRow) int { return cmp.Compare(b.Charged, a.Charged) })
	for _, m := range models {
		if m.Charged == 0 {
			continue
		}
		add("Charges", ui.Data(m.Model), ui.Count{N: m.Billed}, -m.Charged)
	}
	t.Foot = []any{ui.Words("Closing balance"), ui.Sayf("%s%s", ui.Day(s.until), s.soFar()), "", ui.Money{Amount: s.closing, InFull: true}}
	return t, nil
}

func (c *console) showStatement(v *page.Visit) (page.Responder, error) {
	content, err := statementOf(v)
	return page.FullPage{Name: "statement", Title: ui.Sayf("Statement of %s", content.Month), Main: content}, err
}

// downloadStatement returns a statement as a CSV file with the closing balance as the last row.
func (c *console) downloadStatement(v *page.Visit) (page.Responder, error) {
	var content statementPage
	var err error
	if v.IsHead() {
		err = statementExists(v)
	} else {
		content, err = statementOf(v)
		content.Table.Rows = append(content.Table.Rows, ui.DataRow{Cells: content.Table.Foot})
	}
	return page.CSVFile("statement-"+v.PathID(), content.Table), err
}

// statementExists returns an error if the month in the path has no statement. It does not read the rows of the
// statement.
func statementExists(v *page.Visit) error {
	return v.View(func(tx *store.Tx) error {
		a, err := account.GetTx(tx, v.Account())
		if err != nil {
			return err
		}
		nowMS, err := tx.NowMS()
		if err != nil {
			return err
		}
		_, err = findMonth(statements(0, nil, nil, a.CreatedMS, nowMS), v.PathID())
		return err
	})
}
