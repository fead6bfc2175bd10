package operatorpages

import (
	"encoding/json"
	"errors"
	"strconv"

	"tollgate/internal/console/page"
	"tollgate/internal/console/part"
	"tollgate/internal/console/show"
	"tollgate/internal/fault"
	"tollgate/internal/job/row"
	"tollgate/internal/ledger"
	"tollgate/internal/store"
)

// requestPage is the receipt of one request.
type requestPage struct {
	ID       string
	State    part.Badge
	Stats    part.FigureRow
	Facts    part.Facts
	Tokens   part.Facts
	Attempts part.DataTable
}

func (c *console) showRequest(v *page.Visit) (page.Outgoing, error) {
	var r ledger.Receipt
	if err := v.View(func(tx *store.Tx) (err error) {
		r, err = ledger.RequestTx(tx, v.PathID())
		if errors.Is(err, ledger.ErrNoRequest) {
			err = fault.New(fault.NotFound, "The log has no such request. Its rows are kept for request_retention.")
		}
		return err
	}); err != nil {
		return nil, err
	}
	shown := requestPage{ID: r.ID, State: show.Status(r.Status, r.Code), Attempts: attemptsTable(r.Attempts)}
	var traced []row.TracedAttempt
	if len(shown.Attempts.Rows) > 0 && json.Unmarshal(r.Attempts, &traced) == nil && len(traced) > 0 && traced[0].Submitted > 0 {
		shown.Attempts = tracedTable(traced)
	}
	shown.Stats = part.FigureRow{{Label: "Charged", Value: part.Money{Amount: r.Cost}},
		{Label: "Held", Value: part.Money{Amount: r.Held}, Note: part.Text{Text: part.USD(r.Held-r.Cost) + " given back"}},
		{Label: "First byte", Value: part.Took{MS: r.FirstByteMS}}, {Label: "Took", Value: part.Took{MS: r.DurationMS}}}
	shown.Facts = part.Facts{{Name: "Received", Value: part.Moment{MS: r.CreatedMS}},
		{Name: "Account", Value: part.Ident{ID: r.Account, Href: page.Base + "/operator/accounts/" + r.Account}},
		{Name: "Key", Value: part.Ident{ID: r.Key, Href: page.Base + "/operator/find?q=" + r.Key}},
		{Name: "Model", Value: r.Model}, {Name: "Endpoint", Value: part.Text{Text: r.Endpoint, Mono: true}},
		{Name: "Line", Value: part.Dashed(r.Line)}}
	if r.Over > 0 {
		shown.Facts = append(shown.Facts, part.Fact{Name: "Usage above the hold", Value: part.Money{Amount: r.Over}})
	}
	if r.StandsFor > 1 {
		shown.Facts = append(shown.Facts, part.Fact{Name: "Stands for", Value: part.Text{Text: part.Thousands(r.StandsFor) +
			" refusals of its kind"}})
	}
	if r.Job != "" {
		shown.Facts = append(shown.Facts, part.Fact{Name: "Job", Value: part.Ident{ID: r.Job, Href: page.Base + "/operator/jobs/" + r.Job}})
	}
	if r.Revision > 0 {
		revision := strconv.FormatInt(r.Revision, 10)
		shown.Facts = append(shown.Facts, part.Fact{Name: "Priced by", Value: part.Link{Text: "revision " + revision,
			Href: page.Base + "/operator/catalog/revisions/" + revision}})
	}
	if r.Factor != 0 {
		shown.Facts = append(shown.Facts, part.Fact{Name: "Times the account's factor", Value: "× " + r.Factor.String()})
	}
	shown.Tokens = part.Facts{{Name: "Prompt", Value: part.Count{N: r.Tokens.Prompt}}, {Name: "Of it cached",
		Value: part.Count{N: r.Tokens.Cached}},
		{Name: "Completion", Value: part.Count{N: r.Tokens.Completion}}, {Name: "Images", Value: part.Count{N: r.Tokens.Images}}}
	return page.Whole{Name: "request", Title: "Request " + r.ID, Main: shown}, nil
}
