package userpages

import (
	"encoding/json"
	"errors"
	"net/http"
	"net/url"
	"strconv"

	"tollgate/internal/account"
	"tollgate/internal/catalog"
	"tollgate/internal/console/page"
	"tollgate/internal/console/part"
	"tollgate/internal/console/show"
	"tollgate/internal/fault"
	"tollgate/internal/ledger"
	"tollgate/internal/ledger/requestlog"
	"tollgate/internal/store"
)

// requestsPage is the request log of an account.
type requestsPage struct {
	Find    part.Filters
	Filters part.Filters
	Table   part.DataTable
	Pager   part.Pager
	Empty   *part.Empty
}

// requestPage is one request: what happened, and what it cost.
type requestPage struct {
	ID       string
	State    part.Badge
	Meaning  *part.Notice // of an error, for money
	Receipt  part.DataTable
	Timeline part.Timeline
	Facts    part.Facts
	Copy     part.Copying
}

// statusChoices are the statuses that people look for.
var statusChoices = []int{200, 400, 401, 402, 403, 404, 429, 499, 500, 502, 503}

func (c *console) listRequests(v *page.Visit) (page.Outgoing, error) {
	if id := v.Query("request"); id != "" {
		return page.Redirect(page.Base + "/requests/" + url.PathEscape(id)), nil
	}
	f := requestlog.Selection{Account: v.Account(), Model: v.Query("model"), Code: v.Query("code"), After: v.Query("after"),
		Limit: page.Rows}
	if status := v.Query("status"); status != "" {
		f.Status, _ = strconv.Atoi(status) // what is no number chooses nothing
	}
	shown := requestsPage{
		Find: part.Filters{Action: page.Base + "/requests", Fields: []part.FormField{{Name: "request", Label: "Request id"}}},
		Filters: part.Filters{Action: page.Base + "/requests", Fields: []part.FormField{
			{Name: "model", Label: "Model", Kind: part.Choice, Options: c.modelChoices(f.Model)},
			{Name: "status", Label: "Status", Kind: part.Choice, Options: statusOptions(f.Status)},
			{Name: "code", Label: "Code", Value: f.Code},
		}},
	}
	if f.Model != "" || v.Query("status") != "" || f.Code != "" {
		shown.Filters.Clear = page.Base + "/requests"
	}
	if err := v.View(func(tx *store.Tx) error {
		list, err := requestlog.ListTx(tx, f)
		if err != nil {
			return err
		}
		shown.Table = requestsTable(list.Receipts)
		shown.Pager = v.Pager("/requests", list.More, list.Next)
		shown.Empty = show.NoneSince(list, shown.Pager)
		return nil
	}); err != nil {
		return nil, err
	}
	if len(shown.Table.Rows) == 0 && f.After == "" && shown.Empty == nil {
		shown.Empty = noRequests(shown.Filters.Clear)
	}
	return page.Whole{Name: "requests", Title: "Requests", Main: shown}, nil
}

// noRequests says why there are none: nothing has come, or nothing matches.
func noRequests(filtered string) *part.Empty {
	if filtered != "" {
		return page.NoneMatch("/requests", "Clear filters")
	}
	return &part.Empty{Title: "No requests yet", Text: "Create a key and send one; it appears here within a second.",
		Link: &part.Link{Href: page.Base + "/keys/new", Text: "Create a key", Button: true, Main: true}}
}

// modelChoices are the models of the catalog; one that was chosen and is gone
// stays a choice.
func (c *console) modelChoices(chosen string) []part.Option {
	options := []part.Option{{Value: "", Label: "All", On: chosen == ""}}
	known := chosen == ""
	for _, m := range c.Catalog.Current().Models() {
		if m.State == catalog.StateRetired && m.ID != chosen {
			continue
		}
		known = known || m.ID == chosen
		options = append(options, part.Option{Value: m.ID, Label: m.ID, On: m.ID == chosen})
	}
	if !known {
		options = append(options, part.Option{Value: chosen, Label: chosen, On: true})
	}
	return options
}

func statusOptions(chosen int) []part.Option {
	options := []part.Option{{Value: "", Label: "All", On: chosen == 0}}
	for _, status := range statusChoices {
		label := strconv.Itoa(status)
		if words := http.StatusText(status); words != "" {
			label += " " + words
		}
		options = append(options, part.Option{Value: strconv.Itoa(status), Label: label, On: status == chosen})
	}
	return options
}

// requestsTable lists requests.
func requestsTable(list []ledger.Receipt) part.DataTable {
	t := part.DataTable{Caption: "Requests", Columns: []part.Column{
		{Title: "Time"}, {Title: "Model"}, {Title: "Status"}, {Title: "Tokens", Right: true, Fold: true}, {Title: "Cost", Right: true},
		{Title: "Took", Right: true, Fold: true}, {Title: "Request", Fold: true}}}
	for _, r := range list {
		t.Rows = append(t.Rows, part.DataRow{Href: page.Base + "/requests/" + r.ID, Cells: []any{
			part.Moment{MS: r.CreatedMS}, r.Model, show.Status(r.Status, r.Code), show.Tokens(r.Tokens),
			part.Money{Amount: r.Cost}, part.Took{MS: r.DurationMS}, part.Ident{ID: r.ID, Cut: true}}})
	}
	return t
}

func (c *console) showRequest(v *page.Visit) (page.Outgoing, error) {
	var r ledger.Receipt
	var k account.Key
	if err := v.View(func(tx *store.Tx) (err error) {
		if r, err = ledger.OwnRequestTx(tx, v.Account(), v.PathID()); err != nil || r.Key == "" {
			return err
		}
		k, err = account.OwnKeyTx(tx, v.Account(), r.Key)
		var f *fault.Error
		if errors.As(err, &f) && f.Code == fault.NotFound { // deleted since
			k, err = account.Key{ID: r.Key, Name: "a deleted key"}, nil
		}
		return err
	}); errors.Is(err, ledger.ErrNoRequest) {
		return nil, fault.New(fault.NotFound, "There is no request with this id in your log. Check the id; the log does not go back for ever.")
	} else if err != nil {
		return nil, err
	}
	shown := requestPage{ID: r.ID, State: show.Status(r.Status, r.Code), Receipt: receiptTable(r), Timeline: timelineOf(r),
		Copy: part.Copying{ID: "request", Label: "Request id", Value: r.ID}}
	if r.Status >= http.StatusBadRequest && r.Cost == 0 {
		shown.Meaning = &part.Notice{Tone: part.Info, Title: "You were not charged.", Text: meaning(r.Status)}
	}
	shown.Facts = part.Facts{{Name: "Endpoint", Value: part.Text{Text: r.Endpoint, Mono: true}}, {Name: "Model", Value: r.Model}}
	if r.Key != "" {
		shown.Facts = append(shown.Facts, part.Fact{Name: "Key", Value: part.Text{Text: show.KeyName(k)}})
	}
	shown.Facts = append(shown.Facts, part.Fact{Name: "Received", Value: part.Moment{MS: r.CreatedMS}},
		part.Fact{Name: "First byte", Value: part.Took{MS: r.FirstByteMS}}, part.Fact{Name: "Took", Value: part.Took{MS: r.DurationMS}})
	if r.StandsFor > 1 {
		shown.Facts = append(shown.Facts, part.Fact{Name: "Stands for", Value: part.Requests(r.StandsFor) + " that were refused alike"})
	}
	return page.Whole{Name: "request", Title: r.ID, Main: shown}, nil
}

// meaning says what to do about an error.
func meaning(status int) string {
	switch status {
	case http.StatusUnauthorized:
		return "The key was not known, or disabled."
	case http.StatusPaymentRequired:
		return "The balance, or a budget of the key, was too low to hold the highest possible cost. Top up, or raise the limit."
	case http.StatusForbidden:
		return "The key may not use this model, or not from that address."
	case http.StatusTooManyRequests:
		return "More requests came than the key or the model takes at a time. Send it again later."
	}
	if status >= http.StatusInternalServerError {
		return "No provider answered well. Send the request again."
	}
	return "The request was refused as it was. The error that you got says which field to change."
}

// receiptTable are the lines that a charge was made of.
func receiptTable(r ledger.Receipt) part.DataTable {
	t := part.DataTable{Caption: "Receipt", Columns: []part.Column{{Title: "What"}, {Title: "How much", Right: true}}}
	add := func(what string, value any) {
		t.Rows = append(t.Rows, part.DataRow{Cells: []any{what, value}})
	}
	if r.Tokens.Images > 0 {
		add("Images", part.Count{N: r.Tokens.Images})
	}
	if r.Tokens.Prompt > 0 || r.Tokens.Completion > 0 {
		add("Prompt tokens", part.Count{N: r.Tokens.Prompt})
		if r.Tokens.Cached > 0 {
			add("of them from the cache", part.Count{N: r.Tokens.Cached})
		}
		add("Answer tokens", part.Count{N: r.Tokens.Completion})
	}
	add("Held before it ran", part.Money{Amount: r.Held})
	if back := r.Held - r.Cost; back > 0 {
		add("Given back", part.Money{Amount: back})
	}
	t.Foot = []any{"Charged", part.Money{Amount: r.Cost}}
	return t
}

// shownAttempt is what users see of an attempt: no line, and no provider's words.
type shownAttempt struct {
	Skipped    string `json:"skipped"`
	Code       string `json:"code"`
	DurationMS int64  `json:"duration_ms"`
}

// timelineOf is what happened, in its order.
func timelineOf(r ledger.Receipt) part.Timeline {
	all := part.Timeline{{Word: "received", At: part.Moment{MS: r.CreatedMS}}}
	var attempts []shownAttempt
	if json.Unmarshal(r.Attempts, &attempts) == nil {
		for _, a := range attempts {
			switch {
			case a.Skipped != "":
			case a.Code == "":
				all = append(all, part.Stage{Tone: part.OK, Word: "a provider answered",
					Note: part.Text{Text: "in " + part.Span(a.DurationMS), Muted: true}})
			default:
				all = append(all, part.Stage{Tone: part.Bad, Word: "a provider failed",
					Note: part.Text{Text: a.Code + " after " + part.Span(a.DurationMS), Muted: true}})
			}
		}
	}
	end := part.Stage{Tone: part.OK, Word: "answered " + strconv.Itoa(r.Status), At: part.Moment{MS: r.CreatedMS + r.DurationMS}}
	if r.Status >= http.StatusBadRequest {
		end.Tone = part.Bad
	}
	return append(all, end)
}
