package ui

import (
	"strings"
	"testing"
)

// renderPage returns a page with one component.
func renderPage(t *testing.T, layout Layout, component any) string {
	t.Helper()
	layout.Main, layout.Locale = component, "en"
	page, err := newPages(`<h1>Kit</h1>{{render .}}`).Render("kit", layout)
	if err != nil {
		t.Fatal(err)
	}
	return string(page)
}

// want checks that a page has each of parts.
func want(t *testing.T, page string, parts ...string) {
	t.Helper()
	for _, p := range parts {
		if !strings.Contains(page, p) {
			t.Errorf("the page has no %q: %s", p, page)
		}
	}
}

// TestMenuHasLetters checks that each entry of the menu has its own letter, and that the help lists
// the letters.
func TestMenuHasLetters(t *testing.T) {
	t.Parallel()
	layout := Layout{Nav: []NavItem{{Href: "/a", Text: "Codes"}, {Href: "/b", Text: "Catalog"}, {Href: "/c", Text: "CO2"}, {Href: "/d",
		Text: "7"}}}
	page := renderPage(t, layout, nil)
	want(t, page, `href="/a" data-letter="c"`, `href="/b" data-letter="a"`, `href="/c" data-letter="o"`,
		`<kbd>g</kbd> <kbd>a</kbd></dt><dd>Catalog</dd>`, `value="off">Turn shortcuts off`)
	if strings.Contains(page, `href="/d" data-letter`) || strings.Contains(page, "data-find") || strings.Contains(page, "data-keys") {
		t.Errorf("an entry without letters has one, or there is a search box, or shortcuts are off: %s", page)
	}
	layout.Find, layout.NoShortcuts = "/console/find", true
	want(t, renderPage(t, layout, nil), `action="/console/find" role="search"`, `data-find`, `data-keys="off"`, `value="on">Turn shortcuts on`)
}

// TestPageWithoutMenuShowsName checks that a page without a menu shows the product's name.
func TestPageWithoutMenuShowsName(t *testing.T) {
	t.Parallel()
	want(t, renderPage(t, Layout{Home: "/console"}, nil), `<header class="plate"><a class="brand" href="/console">`)
}

// TestTablesOnPhones checks that a narrow table stays a table, and that an empty cell takes no line
// of a card.
func TestTablesOnPhones(t *testing.T) {
	t.Parallel()
	table := DataTable{Columns: []Column{{Title: "What"}, {Title: "For"}, {Title: "Much", Right: true}},
		Rows: []DataRow{{Cells: []any{"a", "", Money{}}}}}
	if page := renderPage(t, Layout{}, table); strings.Contains(page, `"cards"`) {
		t.Errorf("a table of three columns is shown as cards: %s", page)
	}
	table.Rows[0].Href = "/console/x"
	want(t, renderPage(t, Layout{}, table), `"cards"`, `data-label="For" class="blank"`, `data-label="Much" class="right"`)
	table.Rows[0].Href = ""
	table.Columns, table.Rows[0].Cells = append(table.Columns, Column{Title: "d"}), append(table.Rows[0].Cells, "d")
	want(t, renderPage(t, Layout{}, table), `"cards"`)
}

// TestFiltersFold checks that a phone folds several fields under a summary with the state of the
// filters. A single field and a form with an error are not folded.
func TestFiltersFold(t *testing.T) {
	t.Parallel()
	f := Filters{Fields: []FormField{{Name: "a", Label: "A"}, {Name: "b", Kind: Hidden}}}
	if page := renderPage(t, Layout{}, f); strings.Contains(page, `class="folder"`) {
		t.Errorf("a form with one field is folded: %s", page)
	}
	f.Fields = append(f.Fields, FormField{Name: "c", Label: "C"})
	want(t, renderPage(t, Layout{}, f), `<details class="folder"><summary>Filters</summary>`)
	f.Clear, f.Fields[0].Error = "/console/x", "no"
	want(t, renderPage(t, Layout{}, f), `<details class="folder" open><summary>Filters (in use)</summary>`)
}
