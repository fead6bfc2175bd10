package operatorpages

import (
	"tollgate/internal/console/page"
	"tollgate/internal/console/part"
	"tollgate/internal/console/show"
	"tollgate/internal/ledger/spending"
	"tollgate/internal/store"
)

// usagePage is the usage and the margin of the service.
type usagePage struct {
	show.Usage
	Figures part.FigureRow
}

// usageOfAll returns the usage page of all accounts.
func (c *console) usageOfAll() show.UsageSide {
	return show.UsageSide{Path: "/operator/usage", Field: c.usageFieldTx, Parts: []spending.By{spending.ByAccount, spending.ByModel,
		spending.ByLine, spending.ByKey, spending.ByEndpoint, spending.ByDay}}
}

// usageFieldTx returns the filter of a part in the usage of all accounts.
func (c *console) usageFieldTx(tx *store.Tx, by spending.By, value string) (f part.FormField, id string, err error) {
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
	return part.FormField{Name: string(by), Label: show.PartWord(by), Kind: part.Choice,
		Options: show.EndpointOptions(c.Catalog.Current(), value)}, value, nil
}

func (c *console) usage(v *page.Visit) (page.Outgoing, error) {
	u, err := c.usageOfAll().Of(v)
	if err != nil {
		return nil, err
	}
	return page.Whole{Name: "usage", Title: "Usage", Main: usagePage{Usage: u, Figures: earned("", u.Total)}}, nil
}

func (c *console) downloadUsage(v *page.Visit) (page.Outgoing, error) {
	return c.usageOfAll().Download(v)
}

// marginOf describes the requests included in the margin.
func marginOf(s spending.Sums) string {
	if s.LineCosts == s.Requests {
		return "charges minus provider cost"
	}
	return "of " + part.Thousands(s.LineCosts) + " of " + part.Requests(s.Requests) + ", whose cost is known"
}

// earned returns the figures of requests. when is a suffix for the labels, such as " today".
func earned(when string, s spending.Sums) part.FigureRow {
	cost, margin := any(part.Text{Text: "–", Muted: true}), any(part.Text{Text: "–", Muted: true})
	of := "the catalog has no cost"
	if left, known := s.Margin(); known {
		cost, margin = part.Money{Amount: s.LineCost}, part.Money{Amount: left}
		of = "known of " + part.Requests(s.LineCosts)
	}
	label := "Charged" + when
	if when != "" {
		label += " (UTC)"
	}
	return part.FigureRow{
		{Label: label, Value: part.Money{Amount: s.Charged}, Note: part.Text{Text: part.Requests(s.Requests)}},
		{Label: "Provider cost", Value: cost, Note: part.Text{Text: of}},
		{Label: "Margin", Value: margin, Note: part.Text{Text: marginOf(s)}},
		{Label: "Errors" + when, Value: part.Text{Text: part.Percent(s.Failed, s.Requests)},
			Note: part.Text{Text: part.Thousands(s.Failed) + " of " + part.Requests(s.Requests) + " that ran"}},
	}
}
