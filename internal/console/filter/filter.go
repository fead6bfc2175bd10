// Package filter owns how operators choose what their lists show: accounts by their names
// or what is looked for, keys by their hints, models, lines and endings from what there is.
//
// Invariants: what can be chosen is bounded, however many accounts there are; what an
// address has and nothing fits chooses nothing, and the field says so.
package filter

import (
	"errors"
	"slices"
	"strconv"
	"strings"
	"time"

	"tollgate/internal/account"
	"tollgate/internal/catalog"
	"tollgate/internal/console/page"
	"tollgate/internal/console/part"
	"tollgate/internal/console/show"
	"tollgate/internal/fault"
	"tollgate/internal/ledger"
	"tollgate/internal/ledger/requestlog"
	"tollgate/internal/store"
)

// namedAccounts is up to how many accounts a filter names; of more one is looked for.
const namedAccounts = 100

// Meant are the ids of whose things an address chooses; empty: anybody's.
type Meant struct{ Account, Key string }

// Chooser is what a list can be chosen by.
type Chooser struct {
	Path    string   // of the list, below page.Base
	Names   []string // of the fields, as they stand in the address
	Codes   []string // that the list's entries may end with
	Catalog *catalog.Snapshot
}

// ReadTx reads what a visit's address chooses, by names where there are names. What is
// wrong with it stands beside its field.
func (c Chooser) ReadTx(tx *store.Tx, v *page.Visit) (f part.Filters, of Meant, err error) {
	f.Action = page.Base + c.Path
	for _, name := range c.Names {
		value := v.Query(name)
		field := part.FormField{Name: name, Label: part.Title(name), Value: value}
		switch name {
		case "account":
			field, of.Account, err = AccountTx(tx, value)
		case "key":
			field, of.Key, err = KeyTx(tx, value)
		case "model":
			field = Model(c.Catalog, value)
		case "line":
			field = Line(c.Catalog, value)
		case "code":
			field.Options = proposals(c.Codes)
		case "status":
			field.Numeric, field.Options = true, proposals(statuses())
		case "since", "until":
			field.Label = map[string]string{"since": "From (UTC)", "until": "To (UTC)"}[name]
			if _, err := time.Parse(time.DateOnly, value); err == nil || value == "" {
				field.Kind = "date"
			}
		case "min_duration_ms":
			field.Label, field.Numeric, field.After = "Took at least", true, "ms"
		}
		if err != nil {
			return f, of, err
		}
		if value != "" {
			f.Clear = page.Base + c.Path
		}
		f.Fields = append(f.Fields, field)
	}
	return f, of, nil
}

// AccountTx chooses an account by its name: one of all, or, where they are too many,
// one that is looked for by its name, email or id. What was asked for means the account of
// this id; empty: none, and the field says why, or nothing was asked for.
func AccountTx(tx *store.Tx, asked string) (f part.FormField, id string, err error) {
	f = part.FormField{Name: "account", Label: "Account (name or id)", Value: asked}
	list, many, err := account.ListTx(tx, "", namedAccounts)
	if err != nil {
		return f, "", err
	}
	if !many {
		f = part.FormField{Name: "account", Label: "Account", Kind: part.Choice, Options: []part.Option{{Value: "", Label: "All"}}}
		f.Options = show.Chosen(append(f.Options, byName(list)...), asked)
	}
	if asked == "" || strings.HasPrefix(asked, "acct_") {
		return f, asked, nil
	}
	found, _, err := account.SearchTx(tx, asked, "", namedAccounts)
	named := slices.DeleteFunc(slices.Clone(found), func(a account.Account) bool { return !strings.EqualFold(a.Name, asked) })
	switch {
	case len(found) == 1:
		id = found[0].ID
	case len(named) == 1: // others have the whole of its name in theirs
		id = named[0].ID
	case len(found) == 0:
		f.Wrong = "No account has this in its name, email or id."
	default:
		f.Wrong = "Several accounts have this. Choose one."
		if many {
			f.Options = byName(found)
		}
	}
	return f, id, err
}

// byName are accounts as choices, in the order of their names.
func byName(list []account.Account) (options []part.Option) {
	slices.SortStableFunc(list, func(a, b account.Account) int {
		return strings.Compare(strings.ToLower(a.Name), strings.ToLower(b.Name))
	})
	for _, a := range list {
		options = append(options, part.Option{Value: a.ID, Label: a.Name})
	}
	return options
}

// KeyTx chooses a key by its id, or by the hint that its owner reads out, where one
// key alone has it. What was asked for means the key of this id; empty: none, and the field
// says so, or nothing was asked for.
func KeyTx(tx *store.Tx, asked string) (f part.FormField, id string, err error) {
	f = part.FormField{Name: "key", Label: "Key (hint or id)", Value: asked}
	if asked == "" || strings.HasPrefix(asked, "key_") {
		return f, asked, nil
	}
	keys, more, err := account.KeysByHintTx(tx, asked, "", 2)
	if more || len(keys) != 1 {
		f.Wrong = "No single key has this hint."
		return f, "", err
	}
	return f, keys[0].ID, err
}

// choice chooses one of some names; what was chosen and is none of them stays a choice.
func choice(name, label string, names []string, value string) part.FormField {
	f := part.FormField{Name: name, Label: label, Kind: part.Choice, Options: []part.Option{{Value: "", Label: "All"}}}
	f.Options = show.Chosen(append(f.Options, proposals(names)...), value)
	return f
}

// Model chooses one of a catalog's models.
func Model(s *catalog.Snapshot, value string) part.FormField {
	f := part.FormField{Name: "model", Label: "Model", Kind: part.Choice, Options: []part.Option{{Value: "", Label: "All"}}}
	for _, m := range s.Models() {
		f.Options = append(f.Options, part.Option{Value: m.ID, Label: show.ModelLabel(s, m.ID)})
	}
	f.Options = show.Chosen(f.Options, value)
	return f
}

// Line chooses one of a catalog's lines.
func Line(s *catalog.Snapshot, value string) part.FormField {
	var ids []string
	for _, l := range s.AllLines() {
		ids = append(ids, l.ID)
	}
	return choice("line", "Line", ids, value)
}

// proposals are words as options: what can be chosen, or what a field that takes any text
// proposes.
func proposals(words []string) (options []part.Option) {
	for _, word := range words {
		options = append(options, part.Option{Value: word, Label: word})
	}
	return options
}

// RequestCodes are those that requests end with, but for providers' own.
func RequestCodes() []string {
	codes := []string{string(fault.ClientClosed)}
	for _, row := range fault.Table() {
		codes = append(codes, string(row.Code))
	}
	slices.Sort(codes)
	return slices.Compact(codes)
}

// statuses are those that requests end with.
func statuses() []string {
	all := []string{"200", "202", strconv.Itoa(ledger.StatusClosed)}
	for _, row := range fault.Table() {
		all = append(all, strconv.Itoa(row.Status))
	}
	slices.Sort(all)
	return slices.Compact(all)
}

// JobCodes are those that jobs fail with.
func JobCodes() (codes []string) {
	for _, row := range fault.JobTable() {
		codes = append(codes, string(row.Code))
	}
	slices.Sort(codes)
	return slices.Compact(codes)
}

// Field is a field of filters by its name.
func Field(f *part.Filters, name string) *part.FormField {
	return &f.Fields[slices.IndexFunc(f.Fields, func(field part.FormField) bool { return field.Name == name })]
}

// Selection is which requests or jobs a visit's address chooses, and of when; false:
// something is wrong with it, which stands beside the fields.
func Selection(v *page.Visit, shown *part.Filters, of Meant) (f requestlog.Selection, fine bool) {
	f = requestlog.Selection{Account: of.Account, Key: of.Key, Model: v.Query("model"), Line: v.Query("line"), Code: v.Query("code"),
		After: v.Query("after"), Limit: page.Rows}
	var err error
	f.SinceMS, f.UntilMS, err = requestlog.Span(v.Query("since"), v.Query("until"))
	if bad, ok := errors.AsType[*fault.Error](err); ok {
		Field(shown, bad.Param).Wrong = "A day such as 2026-05-31."
	}
	return f, !shown.Wrong()
}
