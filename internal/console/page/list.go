package page

import (
	"net/url"

	"tollgate/internal/console/ui"
)

// Rows is the number of rows on a page of a list.
const Rows = 50

// List is the content of a page with one list.
type List struct {
	Title   ui.Words
	All     ui.Words // text of the link to the whole list
	Path    string   // path of the page below Base
	New     *ui.Link // to the form for a new object; may be nil
	CSV     string   // address of the list as a file; may be empty
	Tabs    ui.Tabs
	Filters ui.Filters
	Coming  []ui.Words // announced changes of prices
	Table   ui.DataTable
	Empty   *ui.EmptyState // replaces an empty table
	Pager   ui.Pager
}

// ReplaceEmpty replaces an empty list by a link to the whole list if filtered is true, and by empty
// otherwise.
func (l *List) ReplaceEmpty(filtered bool, empty ui.EmptyState) {
	switch {
	case len(l.Table.Rows) > 0 || l.Empty != nil || l.Pager.First != "":
	case filtered:
		l.Empty = NoneMatch(l.Path, l.All)
	default:
		l.Empty = &empty
	}
}

// Page returns the page, after ReplaceEmpty.
func (l List) Page(filtered bool, empty ui.EmptyState) FullPage {
	l.ReplaceEmpty(filtered, empty)
	return FullPage{Name: "list", Title: l.Title, Main: l}
}

// CreateLink returns a link to the form for a new object.
func CreateLink(path string, text ui.Words) *ui.Link {
	return &ui.Link{Href: Base + path, Text: text, Icon: "plus", Button: true, Main: true}
}

// formPage is the content of a page with one form.
type formPage struct {
	Title ui.Words
	Form  ui.PostForm
}

// FormPage returns a page with one form.
func FormPage(title ui.Words, form ui.PostForm) FullPage {
	return FullPage{Name: "form", Title: title, Main: formPage{title, form}}
}

// Pager returns the links between the pages of a list and keeps the filters. last is the id of the
// page's last row; the next page begins after last.
func (v *Visit) Pager(path string, more bool, last string) ui.Pager {
	return v.PagerBy("after", path, more, last)
}

// PagerBy is Pager for a page with several lists. name is the list's own parameter in the page's
// address.
func (v *Visit) PagerBy(name, path string, more bool, last string) ui.Pager {
	values := v.Request.URL.Query()
	values.Del("done")
	var p ui.Pager
	if values.Get(name) != "" {
		values.Del(name)
		p.First = AddressOf(path, values)
	}
	if more {
		values.Set(name, last)
		p.Next = AddressOf(path, values)
	}
	return p
}

// Tabs returns tabs for the values of a parameter in the page's address. A tab keeps the other
// parameters and leads to the first page of the list.
func (v *Visit) Tabs(path string, label ui.Words, name string, choices []ui.Option) ui.Tabs {
	tabs := ui.Tabs{Label: label}
	for _, c := range choices {
		values := v.Request.URL.Query()
		for _, param := range []string{"after", "confirm", "done", name} {
			values.Del(param)
		}
		if c.Value != "" {
			values.Set(name, c.Value)
		}
		tabs.Items = append(tabs.Items, ui.Tab{Href: AddressOf(path, values), Text: c.Label, Current: c.Value == v.Query(name)})
	}
	return tabs
}

// AddressOf returns the address of a page below Base, with a query.
func AddressOf(path string, values url.Values) string {
	if len(values) == 0 {
		return Base + path
	}
	return Base + path + "?" + values.Encode()
}

// Last returns the id of a list's last element, or an empty string if the list is empty.
func Last[T any](list []T, id func(T) string) string {
	if len(list) == 0 {
		return ""
	}
	return id(list[len(list)-1])
}

// NoneMatch returns the state of a list in which no row matches the filters. linkText is the text of the link
// to the list without filters.
func NoneMatch(path string, linkText ui.Words) *ui.EmptyState {
	return &ui.EmptyState{Title: "Nothing matches these filters", Link: &ui.Link{Href: Base + path, Text: linkText, Button: true}}
}
