package operatorpages

import (
	"tollgate/internal/console/page"
	"tollgate/internal/console/part"
)

// filtersOf are what the log can be chosen by, in the address.
func filtersOf(v *page.Visit, path string, names ...string) (f part.Filters, chosen bool) {
	f.Action = page.Base + path
	for _, name := range names {
		field := part.FormField{Name: name, Label: title(name), Value: v.Query(name), Numeric: name == "status" && path == "/operator/requests"}
		if chosen = chosen || field.Value != ""; field.Value != "" {
			f.Clear = page.Base + path
		}
		f.Fields = append(f.Fields, field)
	}
	return f, chosen
}

// searchFilter looks for accounts, and on one page for anything.
func searchFilter(path, q string) part.Filters {
	f := part.Filters{Action: page.Base + path, Fields: []part.FormField{{Name: "q", Label: "Name, email or id", Value: q}}}
	if q != "" {
		f.Clear = page.Base + path
	}
	return f
}
