package page

import (
	"net/url"

	"tollgate/internal/console/ui"
)

// Rows is the number of rows on a page of a list.
const Rows = 50

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

// NoneMatch is the content of a list if no row matches the filters. word is the text of the link to
// the list without filters.
func NoneMatch(path, word string) *ui.EmptyState {
	return &ui.EmptyState{Title: "Nothing matches these filters", Link: &ui.Link{Href: Base + path, Text: word, Button: true}}
}
