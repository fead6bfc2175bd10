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
	"tollgate/internal/console/show"
	"tollgate/internal/console/ui"
	"tollgate/internal/fault"
	"tollgate/internal/ledger"
	"tollgate/internal/ledger/requestlog"
	"tollgate/internal/store"
)

// maxAccountOptions is the maximum number of accounts to choose from in a filter. If there are more accounts,
// the filter takes a name, email or id instead.
const maxAccountOptions = 100

// selectedIDs are the ids selected by the filters. An empty id selects everything.
type selectedIDs struct{ Account, Key string }

// listFilter describes the filters of a list.
type listFilter struct {
	Path    string   // the list's path below page.Base
	Names   []string // names of the fields and of their query parameters
	Codes   []string // suggestions for the field code
	Catalog *catalog.Snapshot
}

// formTx returns the form with the values in the page's address, and the selected ids. An invalid value selects
// nothing, and its field has the error.
func (l listFilter) formTx(tx *store.Tx, v *page.Visit) (f ui.Filters, ids selectedIDs, err error) {
	f.Action = page.Base + l.Path
	for _, name := range l.Names {
		value := v.Query(name)
		field := ui.FormField{Name: name, Label: ui.Words(ui.Title(name)), Value: value}
		switch name {
		case "account":
			field, ids.Account, err = accountFieldTx(tx, value)
		case "key":
			field, ids.Key, err = keyFieldTx(tx, value)
		case "model":
			field = modelField(l.Catalog, value)
		case "line":
			field = lineField(l.Catalog, value)
		case "code":
			field.Options = show.Words(l.Codes)
		case "status":
			field.Numeric, field.Options = true, show.Words(statuses())
		case "since", "until":
			field.Label = map[string]ui.Words{"since": "From (UTC)", "until": "To (UTC)"}[name]
			if _, err := time.Parse(time.DateOnly, value); err == nil || value == "" {
				field.Kind = "date"
			}
		case "min_duration_ms":
			field.Label, field.Numeric, field.After = "Duration at least", true, "ms"
		}
		if err != nil {
			return f, ids, err
		}
		if value != "" {
			f.Clear = page.Base + l.Path
		}
		f.Fields = append(f.Fields, field)
	}
	return f, ids, nil
}

// accountFieldTx returns the field to select an account, and the id of the account named by value. If there are
// more than maxAccountOptions accounts, the field takes a name, email or id. The id is empty if value is empty
// or does not name exactly one account.
func accountFieldTx(tx *store.Tx, value string) (f ui.FormField, id string, err error) {
	f = ui.FormField{Name: "account", Label: "Account (name or id)", Value: value}
	list, more, err := account.ListTx(tx, "", maxAccountOptions)
	if err != nil {
		return f, "", err
	}
	if !more {
		f = show.Choice("account", "Account", value, accountOptions(list))
	}
	if value == "" || strings.HasPrefix(value, "acct_") {
		return f, value, nil
	}
	matches, _, err := account.SearchTx(tx, value, "", maxAccountOptions)
	exact := slices.DeleteFunc(slices.Clone(matches), func(a account.Account) bool { return !strings.EqualFold(a.Name, value) })
	switch {
	case len(matches) == 1:
		id = matches[0].ID
	case len(exact) == 1: // the other accounts only contain this text
		id = exact[0].ID
	case len(matches) == 0:
		f.Error = "No account has this text in its name, email or id."
	default:
		f.Error = "Several accounts have this. Choose one."
		if more {
			f.Options = accountOptions(matches)
		}
	}
	return f, id, err
}

// accountOptions returns the accounts as options, sorted by name.
func accountOptions(list []account.Account) (options []ui.Option) {
	slices.SortStableFunc(list, func(a, b account.Account) int {
		return strings.Compare(strings.ToLower(a.Name), strings.ToLower(b.Name))
	})
	for _, a := range list {
		options = append(options, ui.Option{Value: a.ID, Label: ui.Data(a.Name)})
	}
	return options
}

// keyFieldTx returns the field to select a key by its id or hint, and the id of the key named by
// value. The id is empty if value is empty or not exactly one key has the hint.
func keyFieldTx(tx *store.Tx, value string) (f ui.FormField, id string, err error) {
	f = ui.FormField{Name: "key", Label: "Key (hint or id)", Value: value}
	if value == "" || strings.HasPrefix(value, "key_") {
		return f, value, nil
	}
	keys, more, err := account.KeysByHintTx(tx, value, "", 2)
	if more || len(keys) != 1 {
		f.Error = "No single key has this hint."
		return f, "", err
	}
	return f, keys[0].ID, err
}

func modelField(s *catalog.Snapshot, value string) ui.FormField {
	var options []ui.Option
	for _, m := range s.Models() {
		options = append(options, ui.Option{Value: m.ID, Label: show.ModelLabel(s, m.ID)})
	}
	return show.Choice("model", "Model", value, options)
}

func lineField(s *catalog.Snapshot, value string) ui.FormField {
	var ids []string
	for _, l := range s.AllLines() {
		ids = append(ids, l.ID)
	}
	return show.Choice("line", "Line", value, show.Words(ids))
}

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

func jobCodes() (codes []string) {
	for _, row := range fault.JobTable() {
		codes = append(codes, string(row.Code))
	}
	slices.Sort(codes)
	return slices.Compact(codes)
}

func filterField(f *ui.Filters, name string) *ui.FormField {
	return &f.Fields[slices.IndexFunc(f.Fields, func(field ui.FormField) bool { return field.Name == name })]
}

// selection returns the requests or jobs selected by the page's address. If a value is invalid, its field has
// the error, and ok is false.
func selection(v *page.Visit, filters *ui.Filters, ids selectedIDs) (f requestlog.Selection, ok bool) {
	f = requestlog.Selection{Account: ids.Account, Key: ids.Key, Model: v.Query("model"), Line: v.Query("line"), Code: v.Query("code"),
		After: v.Query("after"), Limit: page.Rows}
	var err error
	f.SinceMS, f.UntilMS, err = requestlog.Span(v.Query("since"), v.Query("until"))
	if invalid, isFault := errors.AsType[*fault.Error](err); isFault {
		filterField(filters, invalid.Param).Error = "A day such as 2026-05-31."
	}
	return f, !filters.Invalid()
}
