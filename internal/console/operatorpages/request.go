package operatorpages

import (
	"encoding/json"
	"errors"
	"net/url"
	"strconv"

	"tollgate/internal/account"
	"tollgate/internal/catalog"
	"tollgate/internal/console/page"
	"tollgate/internal/console/part"
	"tollgate/internal/console/show"
	"tollgate/internal/fault"
	"tollgate/internal/job/row"
	"tollgate/internal/ledger"
	"tollgate/internal/ledger/movement"
	"tollgate/internal/ledger/requestlog"
	"tollgate/internal/line"
	"tollgate/internal/money"
	"tollgate/internal/store"
)

// requestPage is the receipt of one request.
type requestPage struct {
	ID       string
	State    part.Badge
	Gone     *part.Notice // the log has forgotten it, and only its charge is kept
	Stats    part.FigureRow
	Facts    part.Facts
	Bill     *part.DataTable
	Attempts part.DataTable
	Reply    part.Snippets
	Refund   *part.Link // link to a credit for its charge
}

// outcomeWords and sourceWords are the words for values of the log.
var (
	outcomeWords = map[ledger.Outcome]string{ledger.Billed: "billed", ledger.Failed: "failed",
		ledger.Closed: "left by its client before the answer began", ledger.Refused: "refused"}
	sourceWords = map[ledger.UsageSource]string{ledger.SourceProvider: "the provider", ledger.SourceGateway: "the gateway",
		ledger.SourceBoth:     "the provider (prompt) and the gateway (answer), or the other way round",
		ledger.SourceProgress: "the gateway, until its node died"}
)

// foundRequest is a request with the names for its page.
type foundRequest struct {
	requestlog.Receipt
	kept  *movement.Charge // where the log has forgotten it
	owner string           // its account's name
	key   any              // link to its key
	model *catalog.Model   // with its prices at the time, or nil
}

// requestTx reads a request. If the log has no row, it reads the stored charge.
func (c *console) requestTx(tx *store.Tx, id string) (f foundRequest, err error) {
	f.Receipt, err = requestlog.GetTx(tx, id)
	if errors.Is(err, requestlog.ErrNone) {
		kept, err := movement.ChargeTx(tx, id)
		if errors.Is(err, movement.ErrNoCharge) {
			err = fault.New(fault.NotFound, "There is no such request. Its row of the log is kept for request_retention, its charge for good.")
		}
		if err != nil {
			return f, err
		}
		f.kept, f.Account = &kept, kept.Account
	} else if err != nil {
		return f, err
	}
	names, err := account.NamesTx(tx, []string{f.Account})
	if err != nil {
		return f, err
	}
	f.owner = names[f.Account]
	if f.key, err = keyLinkTx(tx, f.Key); err != nil {
		return f, err
	}
	if f.Revision > 0 {
		if f.model, err = c.archive.ModelTx(tx, f.Revision, f.Model); errors.Is(err, catalog.ErrNoRevision) {
			err = nil
		}
	}
	return f, err
}

func (c *console) showRequest(v *page.Visit) (page.Outgoing, error) {
	var f foundRequest
	if err := v.View(func(tx *store.Tx) (err error) {
		f, err = c.requestTx(tx, v.PathID())
		return err
	}); err != nil {
		return nil, err
	}
	shown := requestPage{ID: v.PathID()}
	if f.kept != nil {
		shown.keptCharge(*f.kept, f.owner)
	} else {
		shown.receipt(f)
	}
	return page.Whole{Name: "request", Title: "Request " + shown.ID, Main: shown}, nil
}

// receipt shows a request of the log.
func (p *requestPage) receipt(f foundRequest) {
	r := f.Receipt
	bill := show.Bill(r, f.model)
	p.State, p.Attempts, p.Bill, p.Reply = show.Status(r.Status, r.Code), attemptsTable(r.Attempts), &bill, show.Reply(r)
	var traced []row.TracedAttempt
	if len(p.Attempts.Rows) > 0 && json.Unmarshal(r.Attempts, &traced) == nil && len(traced) > 0 && traced[0].Submitted > 0 {
		for i := range traced {
			if traced[i].Ended == 0 { // with the request
				traced[i].Ended = r.EndedMS
			}
		}
		p.Attempts = tracedTable(traced)
	}
	p.Stats = part.FigureRow{{Label: "Charged", Value: part.Money{Amount: r.Cost}, Note: takenOf(r)},
		{Label: "Held", Value: part.Money{Amount: r.Held}, Note: part.Text{Text: part.USD(r.Held-r.Cost) + " given back"}},
		{Label: "First byte", Value: firstByte(r.FirstByteMS)}, {Label: "Took", Value: part.Took{MS: r.DurationMS}}}
	p.Facts = part.Facts{{Name: "Came", Value: part.Moment{MS: r.CreatedMS}}, {Name: "Outcome", Value: outcomeWords[r.Outcome]}}
	add := func(name string, value any) { p.Facts = append(p.Facts, part.Fact{Name: name, Value: value}) }
	if r.Account != "" {
		add("Account", accountLink(r.Account, f.owner, ""))
	}
	if r.Key != "" {
		add("Key", f.key)
		add("Key id", part.Ident{ID: r.Key, Href: page.Base + "/operator/requests?key=" + url.QueryEscape(r.Key)})
	}
	add("Model", r.Model)
	add("Endpoint", part.Text{Text: r.Endpoint, Mono: true})
	add("Line", lineLink(r.Line))
	if words := sourceWords[r.Source]; words != "" {
		add("Counted by", words)
	}
	if r.Over > 0 {
		add("Usage above the hold", part.Money{Amount: r.Over})
	}
	if r.StandsFor > 1 {
		add("Stands for", part.Text{Text: part.Thousands(r.StandsFor) + " refusals of its kind"})
	}
	if r.Job != "" {
		add("Job", part.Ident{ID: r.Job, Href: page.Base + "/operator/jobs/" + r.Job})
	}
	if r.Revision > 0 {
		revision := strconv.FormatInt(r.Revision, 10)
		add("Priced by", part.Link{Text: "revision " + revision, Href: page.Base + "/operator/catalog/revisions/" + revision})
	}
	if r.Factor != 0 {
		add("Times the account's factor", "× "+r.Factor.String())
	}
	p.Refund = refundLink(r.Account, r.ID, r.Cost)
}

// keptCharge shows the stored charge of a request without a row in the log.
func (p *requestPage) keptCharge(k movement.Charge, owner string) {
	p.State = part.Badge{Tone: part.OK, Word: "billed"}
	p.Gone = &part.Notice{Tone: part.Info, Title: "Only the charge is kept.",
		Text: "The request is older than request_retention, so its log entry with tokens and attempts was deleted."}
	p.Stats = part.FigureRow{{Label: "Charged", Value: part.Money{Amount: k.Amount}},
		{Label: "Balance after it", Value: part.Money{Amount: k.Balance}}}
	p.Facts = part.Facts{{Name: "Ended", Value: part.Moment{MS: k.EndedMS}}, {Name: "Account", Value: accountLink(k.Account, owner, "")},
		{Name: "Model", Value: k.Model}}
	if k.Job != "" {
		p.Facts = append(p.Facts, part.Fact{Name: "Job", Value: part.Ident{ID: k.Job, Href: page.Base + "/operator/jobs/" + k.Job}})
	}
	p.Reply, p.Refund = show.ReplyOfCharge(k), refundLink(k.Account, k.Request, k.Amount)
}

// takenOf returns the provider cost of a request.
func takenOf(r requestlog.Receipt) part.Text {
	var attempts []line.AttemptRecord
	if json.Unmarshal(r.Attempts, &attempts) != nil {
		return part.Text{}
	}
	var taken *money.Amount
	for _, a := range attempts {
		taken = money.PlusKnown(taken, a.LineCost)
	}
	if taken == nil {
		return part.Text{}
	}
	return part.Text{Text: "provider cost " + part.USD(*taken)}
}

// accountLink returns a link to an account by its name, or to the list view of the account.
func accountLink(id, name, view string) part.Link {
	l := part.Link{Href: page.Base + "/operator/accounts/" + id, Text: name}
	if view != "" {
		l.Href += "?view=" + view
	}
	if name == "" {
		l.Text = id
	}
	return l
}

// lineLink returns a link to a line, or a dash.
func lineLink(id string) any {
	if id == "" {
		return part.Dashed("")
	}
	return part.Link{Href: page.Base + "/operator/lines/" + url.PathEscape(id), Text: id}
}

// refundLink returns a link to the credit form, filled in with the charge. It returns nil if
// nothing was charged.
func refundLink(of, request string, charged money.Amount) *part.Link {
	if charged <= 0 {
		return nil
	}
	filled := url.Values{"usd": {charged.String()}, "note": {"refund of " + request}}
	return &part.Link{Href: page.AddressOf("/operator/accounts/"+of, filled) + "#f-usd", Text: "Give " + part.ExactUSD(charged) + " back",
		Button: true}
}
