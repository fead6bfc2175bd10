package operatorpages

import (
	"strconv"
	"time"

	"tollgate/internal/console/page"
	"tollgate/internal/console/show"
	"tollgate/internal/console/ui"
	"tollgate/internal/store"
)

// reconcilePage compares a provider's payments with the top-ups.
type reconcilePage struct {
	Choice ui.Filters
	Notice ui.Notice
	Table  ui.DataTable
}

// reconcile asks a payment provider for its payments and compares them with the top-ups.
func (c *console) reconcile(v *page.Visit) (page.Responder, error) {
	infos := c.Topups.Infos()
	info, providers := infos[0], []ui.Option{}
	for _, i := range infos {
		providers = append(providers, ui.Option{Value: i.Name, Label: ui.Data(i.Title)})
		if i.Name == v.Query("provider") {
			info = i
		}
	}
	days, periods := 7, []ui.Option{}
	for _, n := range []int{7, 30, 90} {
		text := strconv.Itoa(n)
		periods = append(periods, ui.Option{Value: text, Label: ui.Sayf("Last %s days", text)})
		if text == v.Query("days") {
			days = n
		}
	}
	content := reconcilePage{Choice: ui.Filters{Action: page.Base + "/operator/top-ups/reconciliation", Fields: []ui.FormField{
		{Name: "provider", Label: "Provider", Kind: ui.Choice, Options: show.Select(providers, info.Name)},
		{Name: "days", Label: "Period", Kind: ui.Choice, Options: show.Select(periods, strconv.Itoa(days))},
	}}}
	now, err := page.Read(v, (*store.Tx).NowMS)
	if err != nil {
		return nil, err
	}
	r, err := c.Topups.Reconcile(v.Context(), info.Name, time.UnixMilli(now).AddDate(0, 0, -days).UnixMilli())
	switch {
	case err != nil:
		c.Log.Warn("console: the payments of a provider could not be compared", "provider", info.Name, "error", err)
		content.Notice = ui.Notice{Tone: ui.Bad, Title: "The payments could not be compared.",
			Text: "Reload this page in some minutes, or choose a shorter period. The log has the cause."}
	case len(r.Differences) == 0:
		content.Notice = ui.Notice{Tone: ui.OK, Title: "No differences.",
			Text: ui.Sayf("%s at %s and %s here.", ui.Plural(r.Payments, "%s payment", "%s payments"), info.Title,
				ui.Plural(r.Topups, "%s credited top-up", "%s credited top-ups"))}
	default:
		content.Notice = ui.Notice{Tone: ui.Warn, Title: ui.Sayf("%s.", ui.Plural(len(r.Differences), "%s difference", "%s differences")),
			Text: ui.Sayf("A payment of the last minutes may only be on its way. Otherwise open the top-up and ask %s.", info.Title)}
	}
	content.Table = ui.DataTable{Caption: "Differences", Columns: []ui.Column{{Title: "Top-up"}, {Title: "Difference"}, {Title: "Here"},
		{Title: ui.Sayf("At %s", info.Title)}, {Title: "Payment", Fold: true}}}
	for _, d := range r.Differences {
		content.Table.Rows = append(content.Table.Rows, ui.DataRow{Href: page.Base + "/operator/top-ups/" + d.Topup, Cells: []any{
			ui.Ident{ID: d.Topup, Cut: true}, ui.Text{Text: ui.Data(d.What)}, ui.Text{Text: ui.Data(d.Here)}, ui.Text{Text: ui.Data(d.There)},
			ui.Ident{ID: d.Payment, Cut: true}}})
	}
	return page.FullPage{Name: "reconcile", Title: "Reconciliation", Main: content}, nil
}
