package operatorpages

import (
	"encoding/json"
	"strconv"

	"tollgate/internal/console/page"
	"tollgate/internal/console/part"
	"tollgate/internal/console/show"
	"tollgate/internal/ledger"
	"tollgate/internal/line"
	"tollgate/internal/store"
)

// requestsPage is the log of all accounts.
type requestsPage struct {
	Filters part.Filters
	Table   part.DataTable
	Empty   *part.Empty
	Pager   part.Pager
}

func (c *console) listRequests(v *page.Visit) (page.Outgoing, error) {
	const path = "/operator/requests"
	var shown requestsPage
	var chosen bool
	shown.Filters, chosen = filtersOf(v, path, "account", "key", "model", "line", "code", "status")
	f := ledger.RequestFilter{Account: v.Query("account"), Model: v.Query("model"), Line: v.Query("line"),
		Key: v.Query("key"), Code: v.Query("code"), After: v.Query("after"),
		Limit: page.Rows}
	status := shown.Filters.Fields[5].Value
	if n, err := strconv.Atoi(status); err == nil && n >= 100 && n <= 599 {
		f.Status = n
	} else if status != "" {
		shown.Filters.Fields[5].Wrong = "A status is a number such as 429."
		f.Status = -1
	}
	if f.Status >= 0 {
		if err := v.View(func(tx *store.Tx) error {
			found, more, err := ledger.RequestsTx(tx, f)
			shown.Table = requestsTable(found)
			shown.Pager = v.Pager(path, more, page.Last(found, func(r ledger.Receipt) string { return r.ID }))
			return err
		}); err != nil {
			return nil, err
		}
	}
	if len(shown.Table.Rows) == 0 {
		shown.Empty = &part.Empty{Title: "No requests yet", Text: "Each call of a key appears here within a second, refused ones too."}
		if chosen {
			shown.Empty = page.NoneMatch(path, "Clear filters")
		}
	}
	return page.Whole{Name: "requests", Title: "Requests", Main: shown}, nil
}

// requestsTable lists requests with whose they are and which line answered.
func requestsTable(list []ledger.Receipt) part.DataTable {
	t := part.DataTable{Caption: "Requests", Columns: []part.Column{{Title: "Time"}, {Title: "Account", Fold: true}, {Title: "Model"},
		{Title: "Line", Fold: true}, {Title: "Status"}, {Title: "Tokens", Right: true, Fold: true}, {Title: "Cost", Right: true},
		{Title: "Took", Right: true, Fold: true}, {Title: "Request", Fold: true}}}
	for _, r := range list {
		t.Rows = append(t.Rows, part.DataRow{Href: page.Base + "/operator/requests/" + r.ID, Cells: []any{part.Moment{MS: r.CreatedMS},
			part.Ident{ID: r.Account, Cut: true}, r.Model, part.Dashed(r.Line), show.Status(r.Status, r.Code),
			show.Tokens(r.Tokens),
			part.Money{Amount: r.Cost}, part.Took{MS: r.DurationMS}, part.Ident{ID: r.ID, Cut: true}}})
	}
	return t
}

// attemptsTable shows the attempts of a request with the line and cause of each.
func attemptsTable(raw json.RawMessage) part.DataTable {
	t := part.DataTable{Caption: "Attempts", Columns: []part.Column{{Title: "Line"}, {Title: "Answer"}, {Title: "Cause"},
		{Title: "First byte", Right: true}, {Title: "Took", Right: true}, {Title: "Provider takes", Right: true}}}
	var attempts []line.AttemptRecord
	if json.Unmarshal(raw, &attempts) != nil { // a job's are of another kind
		return t
	}
	for _, a := range attempts {
		answer := part.Badge{Tone: part.OK, Word: "answered"}
		switch {
		case a.Skipped != "":
			answer = part.Badge{Word: "not asked"}
		case a.Code != "":
			answer = part.Badge{Tone: part.Bad, Word: a.Code}
		}
		if a.Status != 0 {
			answer.Word += " " + strconv.Itoa(a.Status)
		}
		t.Rows = append(t.Rows, part.DataRow{Cells: []any{a.Line, answer, part.Text{Text: part.Dashed(a.Cause + stateWords(a.Skipped))},
			part.Took{MS: a.FirstByteMS}, part.Took{MS: a.DurationMS}, known(a.LineCost)}})
	}
	return t
}
