package userpages

import (
	"cmp"
	"net/http"
	"net/url"
	"slices"
	"strconv"
	"time"

	"tollgate/internal/account"
	"tollgate/internal/catalog"
	"tollgate/internal/console/page"
	"tollgate/internal/console/show"
	"tollgate/internal/console/ui"
	"tollgate/internal/ledger/measure"
	"tollgate/internal/ledger/requestlog"
	"tollgate/internal/store"
)

// statusChoices are the common statuses in the filter.
var statusChoices = []int{200, 202, 400, 401, 402, 403, 404, 429, 499, 502, 503}

// slowChoices are the minimum durations in the filter, in milliseconds.
var slowChoices = []int64{1_000, 10_000, 60_000}

// spanDays is the number of single days to choose from in the filter.
const spanDays = 7

// requestFilters are the query parameters of the filters.
var requestFilters = []string{"span", "key", "model", "status", "code", "slow"}

// requestsOf reads the filters from the page's address. chosen has the valid filters. Unknown values are
// ignored.
func requestsOf(v *page.Visit, nowMS int64) (f requestlog.Selection, chosen url.Values) {
	f, chosen = requestlog.Selection{Account: v.Account(), After: v.Query("after")}, url.Values{}
	for _, name := range requestFilters {
		value := v.Query(name)
		switch name {
		case "span":
			if f.SinceMS, f.UntilMS = spanOf(value, nowMS); f.SinceMS == 0 {
				value = ""
			}
		case "key":
			f.Key = value
		case "model":
			f.Model = value
		case "code":
			f.Code = value
		case "status":
			if f.Status, _ = strconv.Atoi(value); f.Status < 100 || f.Status > 599 {
				f.Status, value = 0, ""
			}
		case "slow":
			if f.MinDurationMS, _ = strconv.ParseInt(value, 10, 64); f.MinDurationMS <= 0 {
				f.MinDurationMS, value = 0, ""
			}
		}
		if value != "" {
			chosen.Set(name, value)
		}
	}
	return f, chosen
}

// spanOf reads a span: a number of days up to now, or a UTC day. It returns zeros for any other text. untilMS
// is 0 if the span has no end.
func spanOf(span string, nowMS int64) (sinceMS, untilMS int64) {
	if day, err := time.Parse(time.DateOnly, span); err == nil && day.Year() >= 1970 {
		return day.UnixMilli(), day.AddDate(0, 0, 1).UnixMilli()
	}
	if days, err := strconv.Atoi(span); err == nil && days > 0 && days <= 366 {
		return time.UnixMilli(nowMS).AddDate(0, 0, -days).UnixMilli(), 0
	}
	return 0, 0
}

func spanField(chosen string, nowMS int64) ui.FormField {
	options := []ui.Option{{Value: "1", Label: "Last 24 hours"}, {Value: "7", Label: "Last 7 days"}, {Value: "30", Label: "Last 30 days"}}
	for back := range spanDays {
		day := time.UnixMilli(nowMS).UTC().AddDate(0, 0, -back)
		options = append(options, ui.Option{Value: ui.Day(day), Label: ui.Sayf("%s UTC", ui.Day(day))})
	}
	return show.Choice("span", "Time (UTC)", chosen, options)
}

func (c *console) listRequests(v *page.Visit) (page.Responder, error) {
	content := page.List{Title: "Requests", All: "All requests", Path: "/requests"}
	var f requestlog.Selection
	var chosen url.Values
	if err := v.View(func(tx *store.Tx) error {
		nowMS, err := tx.NowMS()
		if err != nil {
			return err
		}
		f, chosen = requestsOf(v, nowMS)
		f.Limit = page.Rows
		key, err := keyFieldTx(tx, v.Account(), f.Key)
		if err != nil {
			return err
		}
		content.Filters = ui.Filters{Action: page.Base + "/requests", Fields: []ui.FormField{spanField(chosen.Get("span"), nowMS), key,
			c.modelField(f.Model), statusField(chosen.Get("status")), show.Choice("code", "Code", f.Code, show.Codes()),
			slowField(chosen.Get("slow"))}}
		list, err := requestlog.ListTx(tx, f)
		groups, tabs := show.GroupReceipts(v, content.Path, list.Receipts)
		content.Table, content.Tabs = requestsTable(groups), tabs
		content.Pager = v.Pager("/requests", list.More, list.Next)
		content.Empty = show.NoneSince(list, content.Pager)
		return err
	}); err != nil {
		return nil, err
	}
	content.CSV = page.AddressOf("/requests/table", chosen)
	if len(chosen) > 0 {
		content.Filters.Clear = page.Base + "/requests"
	}
	return content.Page(len(chosen) > 0, ui.EmptyState{Title: "No requests yet",
		Text: "Create a key and send a request. It appears here within a second.", Link: page.CreateLink("/keys/new", "Create a key")}), nil
}

func (c *console) modelField(chosen string) ui.FormField {
	var ids []string
	for _, m := range c.Catalog.Current().Models() {
		if m.State != catalog.StateRetired {
			ids = append(ids, m.ID)
		}
	}
	return show.Choice("model", "Model", chosen, show.Words(ids))
}

// chosenKeysTx returns the newest keys of an account, and true if there are more. It adds a chosen older key at
// the end.
func chosenKeysTx(tx *store.Tx, accountID, chosen string) ([]account.Key, bool, error) {
	keys, more, err := account.NewestKeysTx(tx, accountID, maxKeys)
	if err != nil || !more || chosen == "" || slices.ContainsFunc(keys, func(k account.Key) bool { return k.ID == chosen }) {
		return keys, more, err
	}
	olderKey, err := account.AccountKeyTx(tx, accountID, chosen)
	switch {
	case err == nil:
		keys = append(keys, olderKey)
	case account.IsNotFound(err):
		err = nil
	}
	return keys, more, err
}

// keyFieldTx returns the field to choose one of an account's newest keys. A chosen older or deleted key is an
// option too.
func keyFieldTx(tx *store.Tx, accountID, chosen string) (ui.FormField, error) {
	keys, more, err := chosenKeysTx(tx, accountID, chosen)
	var options []ui.Option
	for _, k := range keys {
		options = append(options, ui.Option{Value: k.ID, Label: ui.Data(show.KeyName(k))})
	}
	f := show.Choice("key", "Key", chosen, options)
	if more {
		f.Options = append(f.Options, ui.Option{Label: olderKeys, Disabled: true})
	}
	return f, err
}

func statusField(chosen string) ui.FormField {
	var options []ui.Option
	for _, status := range statusChoices {
		label := ui.Sayf("%s %s", status, cmp.Or(ui.Data(http.StatusText(status)), "client left"))
		options = append(options, ui.Option{Value: strconv.Itoa(status), Label: label})
	}
	return show.Choice("status", "Status", chosen, options)
}

func slowField(chosen string) ui.FormField {
	var options []ui.Option
	for _, ms := range slowChoices {
		options = append(options, ui.Option{Value: strconv.FormatInt(ms, 10), Label: ui.FormatDuration(ms)})
	}
	return show.Choice("slow", "Duration at least", chosen, options)
}

func requestsTable(list []show.Repeats) ui.DataTable {
	t := ui.DataTable{Caption: "Requests", Columns: []ui.Column{
		{Title: "Time"}, {Title: "Model"}, {Title: "Status"}, {Title: "Tokens", Right: true, Fold: true}, {Title: "Cost", Right: true},
		{Title: "Duration", Right: true, Fold: true}, {Title: "Request", Fold: true}}}
	for _, r := range list {
		t.Rows = append(t.Rows, ui.DataRow{Href: page.Base + "/requests/" + r.ID, Cells: []any{
			ui.Moment{MS: r.CreatedMS}, r.Model, r.Status(), show.Tokens(r.Tokens),
			ui.Money{Amount: r.Cost}, ui.Duration{MS: r.DurationMS}, ui.Ident{ID: r.ID, Cut: true}}})
	}
	return t
}

// downloadRequests returns the selected requests, newest first, as a CSV file.
func (c *console) downloadRequests(v *page.Visit) (page.Responder, error) {
	nowMS := int64(0) // time of the first batch
	return v.ListFile("requests", func(tx *store.Tx, after string, limit int) (t ui.DataTable, next string, err error) {
		if nowMS == 0 {
			if nowMS, err = tx.NowMS(); err != nil {
				return t, "", err
			}
		}
		f, _ := requestsOf(v, nowMS)
		f.After, f.Limit = after, limit
		list, err := requestlog.ListTx(tx, f)
		if list.More {
			next = list.Next
		}
		return requestsFile(list.Receipts), next, err
	}), nil
}

// requestsFile returns the log for programs, with the names of the API as titles.
func requestsFile(list []requestlog.Receipt) ui.DataTable {
	var t ui.DataTable
	for _, name := range []string{"id", "created", "endpoint", "model", "key", "job_id", "status", "code", "prompt_tokens", "cached_tokens",
		"completion_tokens", "image_count", "clip_count", "cost_usd", "held_usd", "first_byte_ms", "duration_ms", "stands_for", "unit",
		"quantity"} {
		t.Columns = append(t.Columns, ui.Column{Title: ui.Data(name)})
	}
	for _, r := range list {
		counts := measure.Of(r.Quantity.Unit, 1, r.Quantity.N)
		t.Rows = append(t.Rows, ui.DataRow{Cells: []any{r.ID, ui.Moment{MS: r.CreatedMS}, r.Endpoint, r.Model, r.Key, r.Job,
			ui.Count{N: int64(r.Status)}, r.Code, ui.Count{N: r.Tokens.Prompt}, ui.Count{N: r.Tokens.Cached},
			ui.Count{N: r.Tokens.Completion}, ui.Count{N: counts[measure.Image].N}, ui.Count{N: counts[measure.VideoMS].Requests},
			ui.Money{Amount: r.Cost}, ui.Money{Amount: r.Held}, ui.Duration{MS: r.FirstByteMS}, ui.Duration{MS: r.DurationMS},
			ui.Count{N: r.StandsFor}, string(r.Quantity.Unit), ui.Count{N: r.Quantity.N}}})
	}
	return t
}
