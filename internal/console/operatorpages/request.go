package operatorpages

import (
	"encoding/json"
	"errors"
	"net/url"
	"strconv"

	"tollgate/internal/account"
	"tollgate/internal/catalog"
	"tollgate/internal/console/page"
	"tollgate/internal/console/show"
	"tollgate/internal/console/ui"
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
	ID         string
	State      ui.Badge
	LogDeleted *ui.Notice // set if the log's row was deleted and only the charge remains
	Stats      ui.FigureRow
	Facts      ui.Facts
	Bill       *ui.DataTable
	Attempts   ui.DataTable
	Reply      ui.Snippets
	Refund     *ui.Link // to the form that credits the charge; may be nil
}

// outcomeLabels and sourceLabels are the texts for values of the log.
var (
	outcomeLabels = map[ledger.Outcome]ui.Words{ledger.Billed: "billed", ledger.Failed: "failed",
		ledger.Closed: "closed by its client before the answer began", ledger.Refused: "refused"}
	sourceLabels = map[ledger.UsageSource]ui.Words{ledger.SourceProvider: "the provider", ledger.SourceGateway: "the gateway",
		ledger.SourceBoth:     "the provider (prompt) and the gateway (answer), or the other way round",
		ledger.SourceProgress: "the gateway, until its node died"}
)

// requestData is a request with the objects shown on its page.
type requestData struct {
	requestlog.Receipt
	charge *movement.Charge // set if the log has no row
	owner  string           // the account's name
	key    any              // link to the key
	model  *catalog.Model   // with the prices at the time of the request, or nil
}

// requestTx reads a request. If the log has no row, it reads the request's charge.
func (c *console) requestTx(tx *store.Tx, id string) (f requestData, err error) {
	f.Receipt, err = requestlog.GetTx(tx, id)
	if errors.Is(err, requestlog.ErrNone) {
		charge, err := movement.ChargeTx(tx, id)
		if errors.Is(err, movement.ErrNoCharge) {
			err = fault.New(fault.NotFound, "There is no such request. The log keeps requests for request_retention, and charges forever.")
		}
		if err != nil {
			return f, err
		}
		f.charge, f.Account = &charge, charge.Account
	} else if err != nil {
		return f, err
	}
	names, err := account.AccountNamesTx(tx, []string{f.Account})
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

func (c *console) showRequest(v *page.Visit) (page.Responder, error) {
	f, err := page.Read(v, func(tx *store.Tx) (requestData, error) { return c.requestTx(tx, v.PathID()) })
	if err != nil {
		return nil, err
	}
	content := requestPage{ID: v.PathID()}
	if f.charge != nil {
		content.showCharge(*f.charge, f.owner)
	} else {
		content.showReceipt(f)
	}
	return page.FullPage{Name: "request", Title: ui.Sayf("Request %s", content.ID), Main: content}, nil
}

func (p *requestPage) showReceipt(f requestData) {
	r := f.Receipt
	bill := show.Bill(r, f.model)
	p.State, p.Attempts, p.Bill, p.Reply = show.Status(r.Status, r.Code), attemptsTable(r.Attempts), &bill, show.Reply(r)
	var traced []row.TracedAttempt
	if len(p.Attempts.Rows) > 0 && json.Unmarshal(r.Attempts, &traced) == nil && len(traced) > 0 && traced[0].Submitted > 0 {
		for i := range traced {
			if traced[i].Ended == 0 { // the attempt ended with the request
				traced[i].Ended = r.EndedMS
			}
		}
		p.Attempts = jobAttemptsTable(traced)
	}
	p.Stats = ui.FigureRow{{Label: "Charged", Value: ui.Money{Amount: r.Cost, InFull: true}, Note: costNote(r)},
		{Label: "Held", Value: ui.Money{Amount: r.Held, InFull: true}, Note: ui.Text{Text: ui.Sayf("%s released", ui.ExactUSD(r.Held-r.Cost))}},
		{Label: "First byte", Value: firstByteCell(r.FirstByteMS)}, {Label: "Duration", Value: ui.Duration{MS: r.DurationMS}}}
	p.Facts = ui.Facts{{Name: "Received", Value: ui.Moment{MS: r.CreatedMS}}, {Name: "Outcome", Value: outcomeLabels[r.Outcome]}}
	add := func(name ui.Words, value any) { p.Facts = append(p.Facts, ui.Fact{Name: name, Value: value}) }
	if r.Account != "" {
		add("Account", accountLink(r.Account, f.owner, ""))
	}
	if r.Key != "" {
		add("Key", f.key)
		add("Key id", ui.Ident{ID: r.Key, Href: page.Base + "/operator/requests?key=" + url.QueryEscape(r.Key)})
	}
	add("Model", r.Model)
	add("Endpoint", ui.Text{Text: ui.Data(r.Endpoint), Mono: true})
	add("Line", lineLink(r.Line))
	if words := sourceLabels[r.Source]; words != "" {
		add("Counted by", words)
	}
	if r.Over > 0 {
		add("Usage above the hold", ui.Money{Amount: r.Over})
	}
	if r.StandsFor > 1 {
		add("Stands for", ui.Text{Text: ui.Sayf("%s equal refusals", ui.Thousands(r.StandsFor))})
	}
	if r.Job != "" {
		add("Job", ui.Ident{ID: r.Job, Href: page.Base + "/operator/jobs/" + r.Job})
	}
	if r.Revision > 0 {
		revision := strconv.FormatInt(r.Revision, 10)
		add("Priced by", ui.Link{Text: ui.Sayf("revision %s", revision), Href: page.Base + "/operator/catalog/revisions/" + revision})
	}
	if r.Factor != 0 {
		add("Times the account's factor", "× "+r.Factor.String())
	}
	p.Refund = refundLink(r.Account, r.ID, r.Cost)
}

func (p *requestPage) showCharge(charge movement.Charge, owner string) {
	p.State = ui.Badge{Tone: ui.OK, Label: "billed"}
	p.LogDeleted = &ui.Notice{Tone: ui.Info, Title: "Only the charge is kept.",
		Text: "The request is older than request_retention, so its log entry with tokens and attempts was deleted."}
	p.Stats = ui.FigureRow{{Label: "Charged", Value: ui.Money{Amount: charge.Amount}},
		{Label: "Balance after it", Value: ui.Money{Amount: charge.Balance}}}
	p.Facts = ui.Facts{{Name: "Ended", Value: ui.Moment{MS: charge.EndedMS}}, {Name: "Account", Value: accountLink(charge.Account, owner, "")},
		{Name: "Model", Value: charge.Model}}
	if charge.Job != "" {
		p.Facts = append(p.Facts, ui.Fact{Name: "Job", Value: ui.Ident{ID: charge.Job, Href: page.Base + "/operator/jobs/" + charge.Job}})
	}
	p.Reply, p.Refund = show.ReplyOfCharge(charge), refundLink(charge.Account, charge.Request, charge.Amount)
}

func costNote(r requestlog.Receipt) ui.Text {
	var attempts []line.AttemptRecord
	if json.Unmarshal(r.Attempts, &attempts) != nil {
		return ui.Text{}
	}
	var cost *money.Amount
	for _, a := range attempts {
		cost = money.PlusKnown(cost, a.LineCost)
	}
	if cost == nil {
		return ui.Text{}
	}
	return ui.Text{Text: ui.Sayf("provider cost %s", ui.USD(*cost))}
}

// accountLink returns a link with an account's name, or with its id if the name is empty. view selects the list
// on the account's page; it may be empty.
func accountLink(id, name, view string) ui.Link {
	l := ui.Link{Href: page.Base + "/operator/accounts/" + id, Text: ui.Data(name)}
	if view != "" {
		l.Href += "?view=" + view
	}
	if name == "" {
		l.Text = ui.Data(id)
	}
	return l
}

// lineLink returns a link to a line, or a dash if id is empty.
func lineLink(id string) any {
	if id == "" {
		return ui.OrDash("")
	}
	return ui.Link{Href: page.Base + "/operator/lines/" + url.PathEscape(id), Text: ui.Data(id)}
}

// refundLink returns a link to the credit form, filled in with a request's charge. It returns nil if nothing
// was charged.
func refundLink(accountID, request string, charged money.Amount) *ui.Link {
	if charged <= 0 {
		return nil
	}
	values := url.Values{"usd": {charged.String()}, "note": {"refund of " + request}}
	return &ui.Link{Href: page.AddressOf("/operator/accounts/"+accountID, values) + "#f-usd",
		Text:   ui.Sayf("Give %s back", ui.ExactUSD(charged)),
		Button: true}
}
