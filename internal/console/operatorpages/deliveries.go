package operatorpages

import (
	"slices"

	"tollgate/internal/console/page"
	"tollgate/internal/console/ui"
	"tollgate/internal/fault"
	"tollgate/internal/store"
	"tollgate/internal/webhook"
)

// deliveriesPage lists the deliveries to all accounts' receivers.
type deliveriesPage struct {
	Tabs    ui.Tabs
	Filters ui.Filters
	Table   ui.DataTable
	Empty   *ui.EmptyState
	Pager   ui.Pager
}

// deliveryStates are the states in the filter with their labels.
var deliveryStates = []struct{ state, word string }{
	{"", "All"}, {"failed", "Failed"}, {"pending", "Waiting"}, {"delivered", "Delivered"},
}

func (c *console) listDeliveries(v *page.Visit) (page.Responder, error) {
	const path = "/operator/deliveries"
	var shown deliveriesPage
	f := webhook.DeliveryFilter{State: v.Query("state"), After: v.Query("after"), Limit: page.Rows}
	shown.Tabs.Label = "State"
	for _, s := range deliveryStates {
		values := v.Request.URL.Query()
		values.Del("after")
		values.Set("state", s.state)
		shown.Tabs.Items = append(shown.Tabs.Items, ui.Tab{Href: page.AddressOf(path, values), Text: s.word, Current: s.state == f.State})
	}
	if !slices.ContainsFunc(shown.Tabs.Items, func(t ui.Tab) bool { return t.Current }) {
		return nil, fault.New(fault.InvalidRequest, "There is no state %q of deliveries.", fault.Shown(f.State))
	}
	if err := v.View(func(tx *store.Tx) (err error) {
		var ids selectedIDs
		if shown.Filters, ids, err = (listFilter{Path: path, Names: []string{"account"}}).formTx(tx, v); err != nil {
			return err
		}
		if f.State != "" {
			shown.Filters.Fields = append(shown.Filters.Fields, ui.FormField{Name: "state", Kind: ui.Hidden, Value: f.State})
		}
		if shown.Filters.Invalid() {
			return nil
		}
		f.Account = ids.Account
		list, more, err := c.Webhooks.LogTx(tx, f)
		if err != nil {
			return err
		}
		names, err := accountNamesTx(tx, list, func(d webhook.Delivery) string { return d.Account })
		shown.Table = deliveriesTable(list)
		shown.Table.Columns = slices.Insert(shown.Table.Columns, 1, ui.Column{Title: "Account"})
		for i, d := range list {
			whose := ui.Link{Href: page.Base + "/operator/accounts/" + d.Account + "?view=webhook", Text: names[d.Account]}
			shown.Table.Rows[i].Cells = slices.Insert(shown.Table.Rows[i].Cells, 1, any(whose))
		}
		shown.Pager = v.Pager(path, more, page.Last(list, func(d webhook.Delivery) string { return d.ID }))
		return err
	}); err != nil {
		return nil, err
	}
	if len(shown.Table.Rows) == 0 {
		shown.Empty = &ui.EmptyState{Title: "Nothing was delivered yet", Text: "Webhook deliveries appear here for as " +
			"long as webhook deliveries are kept, with each attempt's answer."}
		if shown.Filters.Clear != "" || f.State != "" {
			shown.Empty = page.NoneMatch(path, "All deliveries")
		}
	}
	return page.FullPage{Name: "deliveries", Title: "Deliveries", Main: shown}, nil
}
