package console

import (
	"encoding/json"
	"strconv"

	"tollgate/internal/console/part"
	"tollgate/internal/ledger"
	"tollgate/internal/line"
	"tollgate/internal/store"
)

// operatorRequestsPage is the log of all accounts.
type operatorRequestsPage struct {
	Filters part.Filters
	Table   part.DataTable
	Empty   *part.Empty
	Pager   part.Pager
}

// requestFilters are what the log can be chosen by, in the address.
func (v *visit) requestFilters(path string, names ...string) (f part.Filters, chosen bool) {
	f.Action = Base + path
	for _, name := range names {
		field := part.FormField{Name: name, Label: title(name), Value: v.query(name), Numeric: name == "status" && path == "/operator/requests"}
		if chosen = chosen || field.Value != ""; field.Value != "" {
			f.Clear = Base + path
		}
		f.Fields = append(f.Fields, field)
	}
	return f, chosen
}

func (c *console) operatorRequests(v *visit) (answer, error) {
	const path = "/operator/requests"
	var shown operatorRequestsPage
	var chosen bool
	shown.Filters, chosen = v.requestFilters(path, "account", "key", "model", "line", "code", "status")
	f := ledger.RequestFilter{Account: v.query("account"), Model: v.query("model"), Line: v.query("line"),
		Key: v.query("key"), Code: v.query("code"), After: v.query("after"),
		Limit: pageRows}
	status := shown.Filters.Fields[5].Value
	if n, err := strconv.Atoi(status); err == nil && n >= 100 && n <= 599 {
		f.Status = n
	} else if status != "" {
		shown.Filters.Fields[5].Wrong = "A status is a number such as 429."
		f.Status = -1
	}
	if f.Status >= 0 {
		if err := v.view(func(tx *store.Tx) error {
			found, more, err := ledger.RequestsTx(tx, f)
			shown.Table = operatorRequests(found)
			shown.Pager = v.pager(path, more, lastOf(found, func(r ledger.Receipt) string { return r.ID }))
			return err
		}); err != nil {
			return nil, err
		}
	}
	if len(shown.Table.Rows) == 0 {
		shown.Empty = &part.Empty{Title: "No requests yet", Text: "Each call of a key appears here within a second, refused ones too."}
		if chosen {
			shown.Empty = &part.Empty{Title: "Nothing matches these filters", Link: &part.Link{Href: Base + path, Text: "Clear filters",
				Button: true}}
		}
	}
	return page{name: "operatorrequests", title: "Requests", main: shown}, nil
}

// operatorRequests lists requests with whose they are and which line answered.
func operatorRequests(list []ledger.Receipt) part.DataTable {
	t := part.DataTable{Caption: "Requests", Columns: []part.Column{{Title: "Time"}, {Title: "Account", Fold: true}, {Title: "Model"},
		{Title: "Line", Fold: true}, {Title: "Status"}, {Title: "Tokens", Right: true, Fold: true}, {Title: "Cost", Right: true},
		{Title: "Took", Right: true, Fold: true}, {Title: "Request", Fold: true}}}
	for _, r := range list {
		t.Rows = append(t.Rows, part.DataRow{Href: Base + "/operator/requests/" + r.ID, Cells: []any{part.Moment{MS: r.CreatedMS},
			part.Ident{ID: r.Account, Cut: true}, r.Model, dashed(r.Line), statusBadge(r.Status, r.Code),
			part.Text{Text: part.Thousands(r.Tokens.Prompt) + " > " + part.Thousands(r.Tokens.Completion)},
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
		t.Rows = append(t.Rows, part.DataRow{Cells: []any{a.Line, answer, part.Text{Text: dashed(a.Cause + stateWords(a.Skipped))},
			part.Took{MS: a.FirstByteMS}, part.Took{MS: a.DurationMS}, known(a.LineCost)}})
	}
	return t
}
