package operatorpages

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

// namedAccounts is up to how many accounts a filter names; of more it asks for an id.
const namedAccounts = 100

// filtersTx are what a list can be chosen by, in the address: by names where there are
// names. codes are those that the list's entries may end with.
func (c *console) filtersTx(tx *store.Tx, v *page.Visit, path string, codes []string, names ...string) (f part.Filters, err error) {
	f.Action = page.Base + path
	for _, name := range names {
		value := v.Query(name)
		field := part.FormField{Name: name, Label: title(name), Value: value}
		switch name {
		case "account":
			field, err = accountFieldTx(tx, value)
		case "key":
			field.Label = "Key (hint or id)"
		case "model":
			field = choice(name, "Model", modelIDs(c.Catalog.Current()), value)
		case "line":
			field = choice(name, "Line", lineIDs(c.Catalog.Current()), value)
		case "code":
			field.Options = proposals(codes)
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
			return f, err
		}
		if value != "" {
			f.Clear = page.Base + path
		}
		f.Fields = append(f.Fields, field)
	}
	return f, nil
}

// accountFieldTx chooses an account by its name, unless they are too many.
func accountFieldTx(tx *store.Tx, value string) (part.FormField, error) {
	field := part.FormField{Name: "account", Label: "Account id", Value: value}
	list, more, err := account.ListTx(tx, "", namedAccounts)
	if err != nil || more {
		return field, err
	}
	slices.SortStableFunc(list, func(a, b account.Account) int {
		return strings.Compare(strings.ToLower(a.Name), strings.ToLower(b.Name))
	})
	field = part.FormField{Name: "account", Label: "Account", Kind: part.Choice, Options: []part.Option{{Value: "", Label: "All"}}}
	for _, a := range list {
		field.Options = append(field.Options, part.Option{Value: a.ID, Label: a.Name})
	}
	field.Options = show.Chosen(field.Options, value)
	return field, nil
}

// choice chooses one of some names; what was chosen and is none of them stays a choice.
func choice(name, label string, names []string, value string) part.FormField {
	f := part.FormField{Name: name, Label: label, Kind: part.Choice, Options: []part.Option{{Value: "", Label: "All"}}}
	for _, one := range names {
		f.Options = append(f.Options, part.Option{Value: one, Label: one})
	}
	f.Options = show.Chosen(f.Options, value)
	return f
}

func modelIDs(s *catalog.Snapshot) (ids []string) {
	for _, m := range s.Models() {
		ids = append(ids, m.ID)
	}
	return ids
}

func lineIDs(s *catalog.Snapshot) (ids []string) {
	for _, l := range s.AllLines() {
		ids = append(ids, l.ID)
	}
	return ids
}

// proposals are what a field that takes any text proposes.
func proposals(words []string) (options []part.Option) {
	for _, word := range words {
		options = append(options, part.Option{Value: word, Label: word})
	}
	return options
}

// requestCodes and statuses are those that requests end with, but for providers' own.
func requestCodes() []string {
	codes := []string{string(fault.ClientClosed)}
	for _, row := range fault.Table() {
		codes = append(codes, string(row.Code))
	}
	slices.Sort(codes)
	return slices.Compact(codes)
}

func statuses() []string {
	all := []string{"200", "202", strconv.Itoa(ledger.StatusClosed)}
	for _, row := range fault.Table() {
		all = append(all, strconv.Itoa(row.Status))
	}
	slices.Sort(all)
	return slices.Compact(all)
}

// jobCodes are those that jobs fail with.
func jobCodes() (codes []string) {
	for _, row := range fault.JobTable() {
		codes = append(codes, string(row.Code))
	}
	slices.Sort(codes)
	return slices.Compact(codes)
}

// fieldOf is a field of filters by its name.
func fieldOf(f *part.Filters, name string) *part.FormField {
	return &f.Fields[slices.IndexFunc(f.Fields, func(field part.FormField) bool { return field.Name == name })]
}

// keyTx is the key that a filter means: by its id, or by the hint that its owner reads
// out, where one key alone has it. Empty: none.
func keyTx(tx *store.Tx, asked string) (key string, err error) {
	if asked == "" || strings.HasPrefix(asked, "key_") {
		return asked, nil
	}
	keys, more, err := account.KeysByHintTx(tx, asked, "", 2)
	if err != nil || more || len(keys) != 1 {
		return "", err
	}
	return keys[0].ID, nil
}

// chosenTx reads whose requests or jobs a page's address chooses, and of when; none:
// something is wrong with it, which stands beside the fields, and nothing is chosen.
func chosenTx(tx *store.Tx, v *page.Visit, shown *part.Filters) (f requestlog.Selection, none bool, err error) {
	f = requestlog.Selection{Account: v.Query("account"), Model: v.Query("model"), Line: v.Query("line"), Code: v.Query("code"),
		After: v.Query("after"), Limit: page.Rows}
	if asked := v.Query("key"); asked != "" {
		if f.Key, err = keyTx(tx, asked); err != nil {
			return f, true, err
		}
		if f.Key == "" {
			fieldOf(shown, "key").Wrong, none = "No single key has this hint.", true
		}
	}
	f.SinceMS, f.UntilMS, err = requestlog.Span(v.Query("since"), v.Query("until"))
	if bad, ok := errors.AsType[*fault.Error](err); ok {
		fieldOf(shown, bad.Param).Wrong, none = "A day such as 2026-05-31.", true
	}
	return f, none, nil
}

// searchFilter looks for accounts, and on one page for anything.
func searchFilter(path, q string) part.Filters {
	f := part.Filters{Action: page.Base + path, Fields: []part.FormField{{Name: "q", Label: "Name, email or id", Value: q}}}
	if q != "" {
		f.Clear = page.Base + path
	}
	return f
}
