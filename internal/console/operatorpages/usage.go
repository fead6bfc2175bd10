package operatorpages

import (
	"tollgate/internal/console/page"
	"tollgate/internal/console/show"
	"tollgate/internal/console/ui"
	"tollgate/internal/ledger/spending"
	"tollgate/internal/store"
)

// usageOfAll returns the view of the usage of all accounts.
func (c *console) usageOfAll() show.UsageView {
	return show.UsageView{Path: "/operator/usage", Field: c.usageFieldTx, Groups: []spending.By{spending.ByAccount, spending.ByModel,
		spending.ByLine, spending.ByKey, spending.ByEndpoint, spending.ByDay}}
}

func (c *console) usageFieldTx(tx *store.Tx, by spending.By, value string) (f ui.FormField, id string, err error) {
	switch by {
	case spending.ByAccount:
		return accountFieldTx(tx, value)
	case spending.ByKey:
		return keyFieldTx(tx, value)
	case spending.ByLine:
		return lineField(c.Catalog.Current(), value), value, nil
	case spending.ByModel:
		return modelField(c.Catalog.Current(), value), value, nil
	}
	return show.EndpointField(c.Catalog.Current(), value), value, nil
}

func (c *console) usage(v *page.Visit) (page.Responder, error) {
	u, err := c.usageOfAll().Read(v)
	u.Figures = earnings(false, u.Total)
	return page.FullPage{Name: "usage", Title: "Usage", Main: u}, err
}

func (c *console) downloadUsage(v *page.Visit) (page.Responder, error) {
	return c.usageOfAll().Download(v)
}

// marginNote explains which requests the margin includes.
func marginNote(s spending.Sums) ui.Words {
	if s.LineCosts == s.Requests {
		return "charges minus provider cost"
	}
	return ui.Sayf("%s of %s have a known cost", ui.Thousands(s.LineCosts), ui.Requests(s.Requests))
}

// earnings returns the figures of requests. today is true if the requests are today's.
func earnings(today bool, s spending.Sums) ui.FigureRow {
	cost, margin := any(ui.Text{Text: "–", Muted: true}), any(ui.Text{Text: "–", Muted: true})
	coverage := ui.Words("no request with a known cost")
	if amount, known := s.Margin(); known {
		cost, margin = ui.Money{Amount: s.LineCost}, ui.Money{Amount: amount}
		coverage = ui.Sayf("known of %s", ui.Requests(s.LineCosts))
	}
	charged, failed := ui.Words("Charged"), ui.Words("Errors")
	if today {
		charged, failed = "Charged today (UTC)", "Errors today"
	}
	return ui.FigureRow{
		{Label: charged, Value: ui.Money{Amount: s.Charged}, Note: ui.Text{Text: ui.Requests(s.Requests)}},
		{Label: "Provider cost", Value: cost, Note: ui.Text{Text: coverage}},
		{Label: "Margin", Value: margin, Note: ui.Text{Text: marginNote(s)}},
		{Label: failed, Value: ui.Text{Text: ui.Data(ui.Percent(s.Failed, s.Requests))},
			Note: ui.Text{Text: ui.Sayf("%s of %s that ran", ui.Thousands(s.Failed), ui.Requests(s.Requests))}},
	}
}
