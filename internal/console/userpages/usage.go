package userpages

import (
	"tollgate/internal/catalog/offer"
	"tollgate/internal/console/page"
	"tollgate/internal/console/part"
	"tollgate/internal/console/show"
	"tollgate/internal/ledger/spending"
	"tollgate/internal/store"
)

// usagePage is who of an account spends what.
type usagePage struct {
	show.Usage
	Figures part.FigureRow
}

// usageOf is the usage of a visitor's account.
func (c *console) usageOf(v *page.Visit) show.UsageSide {
	return show.UsageSide{Path: "/usage", Account: v.Account(), Days: "/requests?span=", Options: c.usageOptions(v.Account()),
		Parts: []spending.By{spending.ByModel, spending.ByKey, spending.ByEndpoint, spending.ByDay}}
}

// usageOptions are what usage of an account can be chosen by.
func (c *console) usageOptions(of string) func(*store.Tx, spending.By, string) ([]part.Option, error) {
	return func(tx *store.Tx, by spending.By, chosen string) ([]part.Option, error) {
		switch by {
		case spending.ByKey:
			return keyOptionsTx(tx, of, chosen)
		case spending.ByModel:
			return c.modelOptions(chosen), nil
		}
		options, listed := []part.Option{{Label: "All"}}, map[string]bool{}
		for _, m := range c.Catalog.Current().Models() {
			for _, path := range offer.Endpoints(m) {
				if !listed[path] {
					options = append(options, part.Option{Value: path, Label: path})
				}
				listed[path] = true
			}
		}
		return show.Chosen(options, chosen), nil
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
