package show

import (
	"strings"

	"tollgate/internal/account"
	"tollgate/internal/console/part"
)

// Keys lists keys.
func Keys(list []account.Key) part.DataTable {
	t := part.DataTable{Caption: "Keys of this account", Columns: []part.Column{
		{Title: "Name"}, {Title: "Key"}, {Title: "State"}, {Title: "Limits", Fold: true}, {Title: "Today", Right: true, Fold: true},
		{Title: "Total", Right: true, Fold: true}, {Title: "Last use", Fold: true}}}
	for _, k := range list {
		var hint any = part.Ident{ID: k.Hint, Cut: true}
		if k.Name == "" {
			hint = "" // the hint is the key's name already
		}
		t.Rows = append(t.Rows, part.DataRow{Cells: []any{KeyName(k), hint, KeyState(k), keyLimits(k),
			part.Money{Amount: k.Ledger.SpentToday}, part.Money{Amount: k.Ledger.Spent}, part.Moment{MS: k.Ledger.LastUsedMS}}})
	}
	return t
}

// KeyName returns the name of a key, or its hint if the key has no name.
func KeyName(k account.Key) string {
	if k.Name == "" {
		return k.Hint
	}
	return k.Name
}

// KeyState returns the badge of a key's state.
func KeyState(k account.Key) part.Badge {
	switch {
	case k.Ledger.AccountDisabled:
		return part.Badge{Tone: part.Bad, Word: "account disabled"}
	case k.Ledger.Limits.Disabled:
		return part.Badge{Word: "disabled"}
	}
	return part.Badge{Tone: part.OK, Word: "works"}
}

// KeySwitch returns the button to turn a key off or on. path is the path of the key's page.
func KeySwitch(k account.Key, path string) part.Act {
	if k.Ledger.Limits.Disabled {
		return part.Act{Action: path + "/enable", Word: "Enable", About: KeyName(k)}
	}
	return part.Act{Action: path + "/disable", Word: "Disable", About: KeyName(k)}
}

// keyLimits summarizes the limits of a key.
func keyLimits(k account.Key) part.Text {
	var limits []string
	l := k.Ledger.Limits
	if l.RPM != nil {
		limits = append(limits, part.Thousands(*l.RPM)+"/min")
	}
	if l.DailyBudget != nil {
		limits = append(limits, part.USD(*l.DailyBudget)+"/day")
	}
	if l.TotalLimit != nil {
		limits = append(limits, part.USD(*l.TotalLimit)+" in all")
	}
	if n := len(k.AllowedModels); n > 0 {
		limits = append(limits, part.Plural(n, "model"))
	}
	if n := len(k.AllowedIPs); n > 0 {
		limits = append(limits, part.Plural(n, "address"))
	}
	if len(limits) == 0 {
		return part.Text{Text: "none", Muted: true}
	}
	return part.Text{Text: strings.Join(limits, ", ")}
}

// KeyFigures returns the spending and the holds of a key.
func KeyFigures(k account.Key) part.FigureRow {
	return part.FigureRow{
		{Label: "Spent today (UTC)", Value: part.Money{Amount: k.Ledger.SpentToday}},
		{Label: "Spent in total", Value: part.Money{Amount: k.Ledger.Spent}},
		{Label: "On hold", Value: part.Money{Amount: k.Ledger.Held}},
	}
}

// KeyFacts returns the identity and the dates of a key.
func KeyFacts(k account.Key) part.Facts {
	return part.Facts{{Name: "Key", Value: part.Text{Text: k.Hint, Mono: true}}, {Name: "Id", Value: part.Ident{ID: k.ID}},
		{Name: "Last use", Value: part.Moment{MS: k.Ledger.LastUsedMS}}, {Name: "Created", Value: part.Moment{MS: k.CreatedMS}}}
}
