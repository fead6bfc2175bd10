package operatorpages

import (
	"maps"
	"slices"
	"strings"

	"tollgate/internal/console/page"
	"tollgate/internal/console/show"
	"tollgate/internal/console/ui"
	"tollgate/internal/operator"
	"tollgate/internal/store"
)

func (c *console) showLog(v *page.Visit) (page.Responder, error) {
	content := page.List{Title: "Log", All: "All log", Path: "/operator/log"}
	var acts []ui.Option
	for _, name := range operator.Acts() {
		acts = append(acts, ui.Option{Value: name, Label: ActLabel(name)})
	}
	if err := v.View(func(tx *store.Tx) (err error) {
		var ids selectedIDs
		if content.Filters, ids, err = (listFilter{Path: content.Path, Names: []string{"account", "object"}}).formTx(tx, v); err != nil {
			return err
		}
		content.Filters.Fields = append([]ui.FormField{show.Choice("act", "Act", v.Query("act"), acts)}, content.Filters.Fields...)
		if v.Query("act") != "" {
			content.Filters.Clear = page.Base + content.Path
		}
		if content.Filters.Invalid() {
			return nil
		}
		list, more, err := operator.LogTx(tx, operator.LogFilter{Act: v.Query("act"), Object: v.Query("object"), Account: ids.Account,
			After: v.Query("after"), Limit: page.Rows})
		if err != nil {
			return err
		}
		names, err := accountNamesTx(tx, list, func(e operator.LogRow) string { return e.Account })
		content.Table = logTable(list, names)
		content.Pager = v.Pager(content.Path, more, page.Last(list, func(e operator.LogRow) string { return e.ID }))
		return err
	}); err != nil {
		return nil, err
	}
	return content.Page(content.Filters.Clear != "", ui.EmptyState{Title: "Nothing was logged yet",
		Text: "The log has every operator action, from the console, the operator API and the shell."}), nil
}

// ActLabel describes an act in words, such as "credit account" for account.credit.
func ActLabel(act string) ui.Words {
	object, verb, _ := strings.Cut(act, ".")
	return ui.Words(strings.ReplaceAll(verb+" "+object, "_", " "))
}

// logTable lists acts. If names is nil, all acts are about one account, and the table has no
// account column.
func logTable(list []operator.LogRow, names map[string]string) ui.DataTable {
	t := ui.DataTable{Caption: "What operators did",
		Columns: []ui.Column{{Title: "When"}, {Title: "Who"}, {Title: "Act"}, {Title: "Account"}, {Title: "Object"},
			{Title: "Before and after"}}}
	for _, e := range list {
		who := show.ActorName(e.Actor)
		if e.Address != "" {
			who = ui.Sayf("%s, %s", who, e.Address)
		}
		accountCell := any(ui.Text{Text: "–", Muted: true})
		if e.Account != "" {
			accountCell = accountLink(e.Account, names[e.Account], "")
		}
		t.Rows = append(t.Rows, ui.DataRow{Cells: []any{ui.Moment{MS: e.AtMS}, ui.Text{Text: who}, ActLabel(e.Act), accountCell,
			ui.Ident{ID: e.Object, Href: objectHref(e), Cut: true},
			ui.Text{Text: ui.Data(ui.OrDash(formatChange(e.Before, e.After))), Lines: true}}})
	}
	if names == nil {
		t = t.Without(3)
	}
	return t
}

// objectHref returns the address of an act's object, or an empty string if the object has no page.
func objectHref(e operator.LogRow) string {
	object, _, _ := strings.Cut(e.Act, ".")
	switch object {
	case "account", "webhook":
		return page.Base + "/operator/accounts/" + e.Object
	case "user", "key":
		return page.Base + "/operator/accounts/" + e.Account
	case "job":
		return page.Base + "/operator/jobs/" + e.Object
	case "line":
		return page.Base + "/operator/lines/" + e.Object
	case "code":
		return page.Base + "/operator/codes"
	case "topup":
		return page.Base + "/operator/top-ups/" + e.Object
	case "catalog":
		if e.Act == operator.CatalogApply {
			return page.Base + "/operator/catalog/revisions/" + e.Object
		}
		return page.Base + changesPath + "/" + e.Object
	}
	return ""
}

// formatChange lists the changes of an act, one per line.
func formatChange(before, after operator.Details) string {
	names := slices.Sorted(maps.Keys(before))
	for _, name := range slices.Sorted(maps.Keys(after)) {
		if _, ok := before[name]; !ok {
			names = append(names, name)
		}
	}
	var lines []string
	for _, name := range names {
		oldValue, hasOld := before[name]
		newValue, hasNew := after[name]
		line := strings.ReplaceAll(strings.TrimSuffix(name, "_usd"), "_", " ") + ": "
		if name == "usd" {
			line = "amount: "
		}
		switch {
		case hasOld && hasNew:
			line += show.Value(name, oldValue) + " → " + show.Value(name, newValue)
		case hasOld:
			line += show.Value(name, oldValue) + " → none"
		default:
			line += show.Value(name, newValue)
		}
		lines = append(lines, line)
	}
	return strings.Join(lines, "\n")
}
