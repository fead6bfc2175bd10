package operatorpages

import (
	"cmp"
	"encoding/json"
	"strconv"

	"tollgate/internal/account"
	"tollgate/internal/console/page"
	"tollgate/internal/console/show"
	"tollgate/internal/console/ui"
	"tollgate/internal/ledger/requestlog"
	"tollgate/internal/line"
	"tollgate/internal/store"
)

func (c *console) listRequests(v *page.Visit) (page.Responder, error) {
	content := page.List{Title: "Requests", All: "All requests", Path: "/operator/requests"}
	if err := v.View(func(tx *store.Tx) (err error) {
		form := listFilter{Path: content.Path, Codes: requestCodes(), Catalog: c.Catalog.Current(),
			Names: []string{"account", "key", "model", "line", "status", "code", "since", "until", "min_duration_ms"}}
		var ids selectedIDs
		if content.Filters, ids, err = form.formTx(tx, v); err != nil {
			return err
		}
		f, ok := selection(v, &content.Filters, ids)
		if !outcomeOf(v, &content.Filters, &f) || !ok {
			return nil
		}
		results, err := requestlog.ListTx(tx, f)
		if err != nil {
			return err
		}
		names, err := accountNamesTx(tx, results.Receipts, func(r requestlog.Receipt) string { return r.Account })
		groups, tabs := show.GroupReceipts(v, content.Path, results.Receipts)
		content.Table, content.Tabs = requestsTable(groups, names), tabs
		content.Pager = v.Pager(content.Path, results.More, results.Next)
		content.Empty = show.NoneSince(results, content.Pager)
		return err
	}); err != nil {
		return nil, err
	}
	return content.Page(content.Filters.Clear != "", ui.EmptyState{Title: "No requests yet",
		Text: "Each request appears here within a second, also if it was rejected."}), nil
}

// outcomeOf reads the filters for status and duration into f. If a value is invalid, its field has the error,
// and outcomeOf returns false.
func outcomeOf(v *page.Visit, filters *ui.Filters, f *requestlog.Selection) bool {
	var err error
	ok := true
	if text := v.Query("status"); text != "" {
		if f.Status, err = strconv.Atoi(text); err != nil || f.Status < 100 || f.Status > 599 {
			filterField(filters, "status").Error, ok = "The status must be a number such as 429.", false
		}
	}
	if text := v.Query("min_duration_ms"); text != "" {
		if f.MinDurationMS, err = strconv.ParseInt(text, 10, 64); err != nil || f.MinDurationMS < 0 {
			filterField(filters, "min_duration_ms").Error, ok = "The duration must be a whole number of milliseconds, such as 10000.", false
		}
	}
	return ok
}

// accountNamesTx returns the names of the accounts in a list, by id.
func accountNamesTx[T any](tx *store.Tx, list []T, accountID func(T) string) (map[string]string, error) {
	ids := make([]string, 0, len(list))
	for _, item := range list {
		ids = append(ids, accountID(item))
	}
	return account.AccountNamesTx(tx, ids)
}

// accountCell shows an account by its name, or by its id if the name is unknown.
func accountCell(names map[string]string, id string) any {
	if name := names[id]; name != "" {
		return ui.Text{Text: ui.Data(name), Title: ui.Data(id)}
	}
	return ui.Ident{ID: ui.OrDash(id), Cut: true}
}

// requestsTable lists requests with their lines. If names is nil, all requests are of one account,
// and the table has no account column.
func requestsTable(list []show.Repeats, names map[string]string) ui.DataTable {
	t := ui.DataTable{Caption: "Requests", Columns: []ui.Column{{Title: "Time"}, {Title: "Account"}, {Title: "Model", Fold: true},
		{Title: "Line", Fold: true}, {Title: "Status"}, {Title: "Tokens", Right: true, Fold: true}, {Title: "Cost", Right: true},
		{Title: "Duration", Right: true, Fold: true}, {Title: "Request", Fold: true}}}
	for _, r := range list {
		t.Rows = append(t.Rows, ui.DataRow{Href: page.Base + "/operator/requests/" + r.ID, Cells: []any{ui.Moment{MS: r.CreatedMS},
			accountCell(names, r.Account), r.Model, ui.OrDash(r.Line), r.Status(), show.Tokens(r.Tokens),
			ui.Money{Amount: r.Cost}, ui.Duration{MS: r.DurationMS}, ui.Ident{ID: r.ID, Cut: true}}})
	}
	if names == nil {
		t = t.Without(1)
	}
	return t
}

func attemptsTable(raw json.RawMessage) ui.DataTable {
	t := ui.DataTable{Caption: "Attempts", Columns: []ui.Column{{Title: "Line"}, {Title: "Answer"}, {Title: "Cause"},
		{Title: "First byte", Right: true}, {Title: "Duration", Right: true}, {Title: "Provider cost", Right: true}}}
	var attempts []line.AttemptRecord
	if json.Unmarshal(raw, &attempts) != nil { // the attempts of a job have another format
		return t
	}
	for _, a := range attempts {
		answer := ui.Badge{Tone: ui.OK, Label: "answered"}
		switch {
		case a.Skipped != "":
			answer = ui.Badge{Label: "not asked"}
		case a.Code != "":
			answer = ui.Badge{Tone: ui.Bad, Label: ui.Data(a.Code)}
		}
		if a.Status != 0 {
			answer.Label = ui.Sayf("%s %s", answer.Label, strconv.Itoa(a.Status))
		}
		t.Rows = append(t.Rows, ui.DataRow{Cells: []any{lineLink(a.Line), answer,
			ui.Text{Text: ui.OrDash(attemptCause(a))},
			firstByteCell(a.FirstByteMS), ui.Duration{MS: a.DurationMS}, knownAmount(a.LineCost)}})
	}
	return t
}

// attemptCause describes why an attempt failed or a line was skipped. It also names the fields left out of the
// request to the line.
func attemptCause(a line.AttemptRecord) ui.Words {
	switch {
	case a.Ignored != "" && a.Cause != "":
		return ui.Sayf("%s; fields left out: %s", a.Cause, a.Ignored)
	case a.Ignored != "":
		return ui.Sayf("fields left out: %s", a.Ignored)
	case a.Skipped == "" || a.Cause == "":
		return cmp.Or(ui.Data(a.Cause), show.StateLabel(a.Skipped))
	}
	return ui.Sayf("%s: %s", show.StateLabel(a.Skipped), a.Cause)
}

// firstByteCell returns the time to the first byte, or a dash if no byte was sent.
func firstByteCell(ms int64) any {
	if ms == 0 {
		return ui.Text{Text: ui.Data(ui.OrDash(""))}
	}
	return ui.Duration{MS: ms}
}
