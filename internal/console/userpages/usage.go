package userpages

import (
	"tollgate/internal/console/page"
	"tollgate/internal/console/part"
	"tollgate/internal/console/show"
	"tollgate/internal/ledger/spending"
	"tollgate/internal/store"
)

// usagePage is the usage of an account.
type usagePage struct {
	show.Usage
	Figures part.FigureRow
}

// usageOf returns the usage page of the visitor's account.
func (c *console) usageOf(v *page.Visit) show.UsageSide {
	return show.UsageSide{Path: "/usage", Account: v.Account(), Days: "/requests?span=", Field: c.usageField(v.Account()),
		Parts: []spending.By{spending.ByModel, spending.ByKey, spending.ByEndpoint, spending.ByDay}}
}

// usageField returns the function for the filters of an account's usage.
func (c *console) usageField(of string) func(*store.Tx, spending.By, string) (part.FormField, string, error) {
	return func(tx *store.Tx, by spending.By, value string) (f part.FormField, id string, err error) {
		f = part.FormField{Name: string(by), Label: show.PartWord(by), Kind: part.Choice}
		switch by {
		case spending.ByKey:
			f.Options, err = keyOptionsTx(tx, of, value)
		case spending.ByModel:
			f.Options = c.modelOptions(value)
		default:
			f.Options = show.EndpointOptions(c.Catalog.Current(), value)
		}
		return f, value, err
	}
}

func (c *console) usage(v *page.Visit) (page.Outgoing, error) {
	u, err := c.usageOf(v).Of(v)
	if err != nil {
		return nil, err
	}
	shown := usagePage{Usage: u, Figures: part.FigureRow{
		{Label: "Charged", Value: part.Money{Amount: u.Total.Charged}, Note: part.Text{Text: part.Credits(u.Total.Charged)}},
		{Label: "Requests", Value: part.Count{N: u.Total.Requests}, Note: part.Text{Text: part.Thousands(u.Total.Billed) + " of them charged"}},
		{Label: "Errors", Value: part.Text{Text: part.Percent(u.Total.Failed, u.Total.Requests)},
			Note: part.Text{Text: part.Thousands(u.Total.Failed) + " of " + part.Requests(u.Total.Requests)}},
		{Label: "Tokens", Value: part.Count{N: u.Total.Prompt + u.Total.Completion},
			Note: part.Text{Text: part.Thousands(u.Total.Prompt) + " sent, " + part.Thousands(u.Total.Completion) + " answered"}},
	}}
	return page.Whole{Name: "usage", Title: "Usage", Main: shown}, nil
}

func (c *console) downloadUsage(v *page.Visit) (page.Outgoing, error) {
	return c.usageOf(v).Download(v)
}
