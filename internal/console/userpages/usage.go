package userpages

import (
	"tollgate/internal/console/page"
	"tollgate/internal/console/show"
	"tollgate/internal/console/ui"
	"tollgate/internal/ledger/spending"
	"tollgate/internal/store"
)

func (c *console) usageOf(v *page.Visit) show.UsageView {
	return show.UsageView{Path: "/usage", Account: v.Account(), DayPath: "/requests?span=", Field: c.usageField(v.Account()),
		Groups: []spending.By{spending.ByModel, spending.ByKey, spending.ByEndpoint, spending.ByDay}}
}

func (c *console) usageField(accountID string) func(*store.Tx, spending.By, string) (ui.FormField, string, error) {
	return func(tx *store.Tx, by spending.By, value string) (f ui.FormField, id string, err error) {
		switch by {
		case spending.ByKey:
			f, err = keyFieldTx(tx, accountID, value)
		case spending.ByModel:
			f = c.modelField(value)
		default:
			f = show.EndpointField(c.Catalog.Current(), value)
		}
		return f, value, err
	}
}

func (c *console) usage(v *page.Visit) (page.Responder, error) {
	u, err := c.usageOf(v).Read(v)
	u.Figures = ui.FigureRow{
		{Label: "Charged", Value: ui.Money{Amount: u.Total.Charged}, Note: ui.Text{Text: ui.Credits(u.Total.Charged)}},
		{Label: "Requests", Value: ui.Count{N: u.Total.Requests},
			Note: ui.Text{Text: ui.Sayf("%s of them charged", ui.Thousands(u.Total.Billed))}},
		{Label: "Errors", Value: ui.Text{Text: ui.Data(ui.Percent(u.Total.Failed, u.Total.Requests))},
			Note: ui.Text{Text: ui.Sayf("%s of %s", ui.Thousands(u.Total.Failed), ui.Requests(u.Total.Requests))}},
		{Label: "Tokens", Value: ui.Count{N: u.Total.Prompt + u.Total.Completion},
			Note: ui.Text{Text: ui.Sayf("%s sent, %s answered", ui.Thousands(u.Total.Prompt), ui.Thousands(u.Total.Completion))}},
	}
	return page.FullPage{Name: "usage", Title: "Usage", Main: u}, err
}

func (c *console) downloadUsage(v *page.Visit) (page.Responder, error) {
	return c.usageOf(v).Download(v)
}
