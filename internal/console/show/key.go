package show

import (
	"strings"

	"tollgate/internal/account"
	"tollgate/internal/console/page"
	"tollgate/internal/console/ui"
	"tollgate/internal/money"
)

// Keys lists keys.
func Keys(list []account.Key) ui.DataTable {
	t := ui.DataTable{Caption: "Keys of this account", Columns: []ui.Column{
		{Title: "Name"}, {Title: "Key"}, {Title: "State"}, {Title: "Limits", Fold: true}, {Title: "Today", Right: true, Fold: true},
		{Title: "Total", Right: true, Fold: true}, {Title: "Last use", Fold: true}}}
	for _, k := range list {
		t.Rows = append(t.Rows, ui.DataRow{Cells: []any{KeyName(k), ui.Ident{ID: k.Hint, Cut: true}, KeyState(k), keyLimits(k),
			ui.Money{Amount: k.Ledger.SpentToday}, ui.Money{Amount: k.Ledger.Spent}, ui.Moment{MS: k.Ledger.LastUsedMS}}})
	}
	return t
}

// KeyName returns the name of a key. If the key has no name, the end of its secret serves as the name.
func KeyName(k account.Key) string {
	if k.Name == "" {
		return labelOfHint(k.Hint)
	}
	return k.Name
}

// labelOfHint returns the label of a key without a name, from the hint of its secret. It returns other texts
// unchanged.
func labelOfHint(hint string) string {
	if start, end, ok := strings.Cut(hint, "..."); ok && strings.HasPrefix(start, "sk-") {
		return "Key …" + end
	}
	return hint
}

// KeyState returns the badge of a key's state.
func KeyState(k account.Key) ui.Badge {
	switch {
	case k.Ledger.AccountDisabled:
		return ui.Badge{Tone: ui.Bad, Label: "account disabled"}
	case k.Ledger.Limits.Disabled:
		return ui.Badge{Label: "disabled"}
	}
	return ui.Badge{Tone: ui.OK, Label: "works"}
}

// KeySwitch returns the button to turn a key off or on. path is the path of the key's page.
func KeySwitch(k account.Key, path string) ui.Button {
	if k.Ledger.Limits.Disabled {
		return ui.Button{Action: path + "/enable", Label: "Enable", About: ui.Data(KeyName(k))}
	}
	return ui.Button{Action: path + "/disable", Label: "Disable", About: ui.Data(KeyName(k))}
}

// KeyNotDeleted is the error message if the visitor has not typed the name of the key.
const KeyNotDeleted = "The name does not match, so the key was not deleted."

// KeyPage is the content of a key's page. Its template is key.html.
type KeyPage struct {
	Name   string
	State  ui.Badge
	Switch ui.Button
	Delete ui.Confirm
	Stats  ui.FigureRow
	Facts  ui.Facts
	Uses   ui.Tabs     // links to the requests and the usage of the key
	Form   ui.PostForm // settings; may have errors
	Codes  ui.Snippets // examples; may be empty
}

// NewKeyPage returns the page of a key at an address, without Uses.Items and Codes. deleteError is the error of
// a rejected deletion; it may be empty. effect describes the effect of a deletion.
func NewKeyPage(v *page.Visit, k account.Key, address string, form ui.PostForm, deleteError, effect ui.Words) KeyPage {
	p := KeyPage{Name: KeyName(k), State: KeyState(k), Switch: KeySwitch(k, address), Form: form,
		Uses: ui.Tabs{Label: "Usage of the key"}}
	p.Delete = v.Confirm(ui.Confirm{ID: "delete", Button: "Delete", Title: ui.Sayf("Delete the key %s?", p.Name), Danger: true,
		Type: p.Name, Action: address + "/delete", Error: deleteError, Text: []ui.Words{effect}})
	p.Delete.Open = p.Delete.Open || deleteError != ""
	p.Stats = ui.FigureRow{{Label: "Spent today (UTC)", Value: ui.Money{Amount: k.Ledger.SpentToday}},
		{Label: "Spent in total", Value: ui.Money{Amount: k.Ledger.Spent}}, {Label: "On hold", Value: ui.Money{Amount: k.Ledger.Held}}}
	p.Facts = ui.Facts{{Name: "Key", Value: ui.Text{Text: ui.Data(k.Hint), Mono: true}}, {Name: "Id", Value: ui.Ident{ID: k.ID}},
		{Name: "Last use", Value: ui.Moment{MS: k.Ledger.LastUsedMS}}, {Name: "Created", Value: ui.Moment{MS: k.CreatedMS}}}
	return p
}

func keyLimits(k account.Key) ui.Text {
	var limits []ui.Words
	l := k.Ledger.Limits
	if l.RPM != nil {
		limits = append(limits, ui.Sayf("%s/min", ui.Thousands(*l.RPM)))
	}
	limits = append(limits, MoneyLimits(l.DailyBudget, l.TotalLimit)...)
	if n := len(k.AllowedModels); n > 0 {
		limits = append(limits, ui.Plural(n, "%s model", "%s models"))
	}
	if n := len(k.AllowedIPs); n > 0 {
		limits = append(limits, ui.Plural(n, "%s address", "%s addresses"))
	}
	if len(limits) == 0 {
		return ui.Text{Text: "none", Muted: true}
	}
	return ui.Text{Text: ui.JoinComma(limits)}
}

// MoneyLimits describes the daily budget and the total limit of a key. It leaves out a limit if it is nil.
func MoneyLimits(daily, total *money.Amount) (limits []ui.Words) {
	if daily != nil {
		limits = append(limits, ui.Sayf("%s/day", ui.USD(*daily)))
	}
	if total != nil {
		limits = append(limits, ui.Sayf("%s in all", ui.USD(*total)))
	}
	return limits
}
