package userpages

import (
	"tollgate/internal/console/page"
	"tollgate/internal/console/part"
	"tollgate/internal/console/show"
	"tollgate/internal/ledger/spending"
)

// usagePage is who of an account spends what.
type usagePage struct {
	show.Usage
	Figures part.FigureRow
}

// usageOf is the usage of a visitor's account.
func usageOf(v *page.Visit) show.UsageSide {
	return show.UsageSide{Path: "/usage", Account: v.Account(),
		Parts: []spending.By{spending.ByModel, spending.ByKey, spending.ByEndpoint, spending.ByDay}}
}

func (c *console) usage(v *page.Visit) (page.Outgoing, error) {
	u, err := usageOf(v).Of(v)
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

func (c *console) downloadUsage(v *page.Visit) (page.Outgoing, error) { return usageOf(v).Download(v) }
