package operatorpages

import (
	"encoding/json"
	"maps"
	"slices"
	"strconv"
	"strings"

	"tollgate/internal/console/page"
	"tollgate/internal/console/show"
	"tollgate/internal/console/ui"
	"tollgate/internal/money"
	"tollgate/internal/operator"
	"tollgate/internal/store"
)

// showLog lists the operators' acts.
func (c *console) showLog(v *page.Visit) (page.Responder, error) {
	shown := page.List{Title: "Log", Path: "/operator/log"}
	act := ui.FormField{Name: "act", Label: "Act", Kind: ui.Choice, Options: []ui.Option{{Value: "", Label: "all"}}}
	for _, name := range operator.Acts() {
		act.Options = append(act.Options, ui.Option{Value: name, Label: actLabel(name), On: name == v.Query("act")})
	}
	if err := v.View(func(tx *store.Tx) (err error) {
		var ids selectedIDs
		if shown.Filters, ids, err = (listFilter{Path: shown.Path, Names: []string{"account", "object"}}).formTx(tx, v); err != nil {
			return err
		}
		shown.Filters.Fields = append([]ui.FormField{act}, shown.Filters.Fields...)
		if v.Query("act") != "" {
			shown.Filters.Clear = page.Base + shown.Path
		}
		if shown.Filters.Invalid() {
			return nil
		}
		list, more, err := operator.LogTx(tx, operator.LogFilter{Act: v.Query("act"), Object: v.Query("object"), Account: ids.Account,
			After: v.Query("after"), Limit: page.Rows})
		if err != nil {
			return err
		}
		names, err := accountNamesTx(tx, list, func(e operator.LogRow) string { return e.Account })
		shown.Table = logTable(list, names)
		shown.Pager = v.Pager(shown.Path, more, page.Last(list, func(e operator.LogRow) string { return e.ID }))
		return err
	}); err != nil {
		return nil, err
	}
	return shown.Page(shown.Filters.Clear != "", ui.EmptyState{Title: "Nothing was logged yet",
		Text: "The log has every operator action, from the console, the operator API and the shell."}), nil
}

// actLabel returns the words of an act: account.credit is "credit account".
func actLabel(act string) string {
	what, does, _ := strings.Cut(act, ".")
	return does + " " + what
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
			who += ", " + e.Address
		}
		whose := any(ui.Text{Text: "–", Muted: true})
		if e.Account != "" {
			whose = accountLink(e.Account, names[e.Account], "")
		}
		t.Rows = append(t.Rows, ui.DataRow{Cells: []any{ui.Moment{MS: e.AtMS}, ui.Text{Text: who}, actLabel(e.Act), whose,
			ui.Ident{ID: e.Object, Href: objectHref(e), Cut: true}, ui.Text{Text: ui.OrDash(formatChange(e.Before, e.After)), Lines: true}}})
	}
	if names == nil {
		t = t.Without(3)
	}
	return t
}

// objectHref returns the address of an act's object, or an empty string if it has no page.
func objectHref(e operator.LogRow) string {
	what, _, _ := strings.Cut(e.Act, ".")
	switch what {
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
	case "catalog":
		return page.Base + "/operator/catalog/revisions/" + e.Object
	}
	return ""
}

// formatChange lists the changes of an act, one a line.
func formatChange(before, after operator.Details) string {
	names := slices.Sorted(maps.Keys(before))
	for _, name := range slices.Sorted(maps.Keys(after)) {
		if _, there := before[name]; !there {
			names = append(names, name)
		}
	}
	var lines []string
	for _, name := range names {
		was, had := before[name]
		is, has := after[name]
		line := strings.ReplaceAll(strings.TrimSuffix(name, "_usd"), "_", " ") + ": "
		if name == "usd" {
			line = "amount: "
		}
		switch {
		case had && has:
			line += formatValue(name, was) + " → " + formatValue(name, is)
		case had:
			line += formatValue(name, was) + " → none"
		default:
			line += formatValue(name, is)
		}
		lines = append(lines, line)
	}
	return strings.Join(lines, "\n")
}

// formatValue writes a value of the log for people: money, times and switches as such.
func formatValue(name string, value any) string {
	switch v := value.(type) {
	case nil:
		return "none"
	case string:
		if v == "" {
			return "none"
		}
		return v
	case bool:
		if v {
			return "yes"
		}
		return "no"
	case float64:
		switch {
		case strings.HasSuffix(name, "_usd") || name == "usd":
			return formatUSD(v)
		case name == "expires" && v > 0:
			return ui.UTC(int64(v) * 1000)
		}
	case []any:
		all := make([]string, len(v))
		for i, element := range v {
			all[i] = formatValue("", element)
		}
		if len(all) == 0 {
			return "none"
		}
		return strings.Join(all, ", ")
	case map[string]any:
		var all []string
		for _, key := range slices.Sorted(maps.Keys(v)) {
			all = append(all, key+" "+formatValue("", v[key]))
		}
		if len(all) == 0 {
			return "none"
		}
		return strings.Join(all, ", ")
	}
	raw, err := json.Marshal(value)
	if err != nil {
		return ""
	}
	return string(raw)
}

// formatUSD formats an amount of the log with all of its digits.
func formatUSD(v float64) string {
	text := strconv.FormatFloat(v, 'f', -1, 64)
	if amount, err := money.Parse(text); err == nil {
		return ui.ExactUSD(amount)
	}
	return text + " USD"
}
