package operatorpages

import (
	"slices"

	"tollgate/internal/console/page"
	"tollgate/internal/console/show"
	"tollgate/internal/console/ui"
	"tollgate/internal/store"
	"tollgate/internal/webhook"
)

func (c *console) listDeliveries(v *page.Visit) (page.Responder, error) {
	content := page.List{Title: "Deliveries", All: "All deliveries", Path: "/operator/deliveries"}
	f := webhook.DeliveryFilter{State: v.Query("state"), After: v.Query("after"), Limit: page.Rows}
	var err error
	if content.Tabs, err = show.DeliveryTabs(v, content.Path); err != nil {
		return nil, err
	}
	if err := v.View(func(tx *store.Tx) (err error) {
		var ids selectedIDs
		if content.Filters, ids, err = (listFilter{Path: content.Path, Names: []string{"account"}}).formTx(tx, v); err != nil {
			return err
		}
		if f.State != "" {
			content.Filters.Fields = append(content.Filters.Fields, ui.FormField{Name: "state", Kind: ui.Hidden, Value: f.State})
		}
		if content.Filters.Invalid() {
			return nil
		}
		f.Account = ids.Account
		list, more, err := c.Webhooks.LogTx(tx, f)
		if err != nil {
			return err
		}
		names, err := accountNamesTx(tx, list, func(d webhook.Delivery) string { return d.Account })
		content.Table = deliveriesTable(list)
		content.Table.Columns = slices.Insert(content.Table.Columns, 1, ui.Column{Title: "Account"})
		for i, d := range list {
			link := ui.Link{Href: page.Base + "/operator/accounts/" + d.Account + "?view=webhook", Text: ui.Data(names[d.Account])}
			content.Table.Rows[i].Cells = slices.Insert(content.Table.Rows[i].Cells, 1, any(link))
		}
		content.Pager = v.Pager(content.Path, more, page.Last(list, func(d webhook.Delivery) string { return d.ID }))
		return err
	}); err != nil {
		return nil, err
	}
	return content.Page(content.Filters.Clear != "" || f.State != "", ui.EmptyState{Title: "Nothing was delivered yet",
		Text: "Webhook deliveries appear here, with each attempt's answer, for delivery_retention (30 days unless you set it)."}), nil
}
