package userpages

import (
	"cmp"
	"slices"
	"strings"

	"tollgate/internal/catalog"
	"tollgate/internal/console/page"
	"tollgate/internal/console/show"
	"tollgate/internal/console/ui"
	"tollgate/internal/money"
)

// modelRow is a row of the list of models.
type modelRow struct {
	id            string
	href          string      // address of the model's page; may be empty
	kind          ui.Group    // with badges
	input, output ui.Words    // prices, with the unit unless it is a million tokens
	in, out       money.Price // for sorting
	context       int64       // in tokens; zero if the kind has no context
	abilities     []ui.Words
}

func newModelRow(s *catalog.Snapshot, m *catalog.Model, factor money.Factor) modelRow {
	r := modelRow{id: m.ID, context: m.ContextWindow, abilities: abilities(m)}
	r.kind = ui.Group{ui.Text{Text: show.KindName(m.Kind)}}
	for _, badge := range show.ModelBadges(s, m) {
		if badge != any(show.ModelState(catalog.StateOpen)) {
			r.kind = append(r.kind, badge)
		}
	}
	switch {
	case m.FreeDailyRequests > 0:
		r.input = "free"
	case m.Kind == catalog.KindChat:
		r.in, r.out = m.Price.Input, m.Price.Output
		r.input, r.output = show.Price(r.in, factor), show.Price(r.out, factor)
	case m.Kind.IsJob():
		r.out = m.Tiers[0].Price
		r.output = show.ShortPrice(m, factor)
	default:
		r.in = m.UnitPrice(m.Measure().Units[0])
		r.input = show.ShortPrice(m, factor)
	}
	return r
}

// abilities describes each ability and limit of a model in a few words.
func abilities(m *catalog.Model) (words []ui.Words) {
	add := func(applies bool, word ui.Words) {
		if applies {
			words = append(words, word)
		}
	}
	add(m.FreeDailyRequests > 0, ui.Sayf("%s requests a day", ui.Thousands(m.FreeDailyRequests)))
	switch m.Kind {
	case catalog.KindChat:
		add(m.Reasoning, "thinks")
		add(true, ui.Sayf("answers up to %s tokens", ui.Thousands(m.MaxOutputTokens)))
		add(len(m.Price.Tools) > 0, "hosted tools")
	case catalog.KindImage:
		add(true, ui.Sayf("up to %s", ui.Plural(int(m.MaxImages), "%s image", "%s images")))
		add(m.MaxReferences > 0, "edits")
	case catalog.KindVideo:
		add(true, durations(m))
		add(m.MaxReferences > 0, "from pictures")
		add(m.Audio == catalog.SoundOn || m.Audio == catalog.SoundOptional, "sound")
	default:
		for _, number := range m.Kind.Definition().Numbers {
			if n := m.Number(number.Name); n > 0 && strings.HasPrefix(number.Name, "max_") {
				add(true, ui.Sayf("up to %s %s", ui.Thousands(n), show.LimitName(number.Name)))
			}
		}
	}
	return words
}

// modelOrders are the orders of the list, by the value of the parameter sort. The default is the order of the
// catalog.
var modelOrders = map[string]func(a, b modelRow) int{
	"name":    func(a, b modelRow) int { return strings.Compare(a.id, b.id) },
	"input":   func(a, b modelRow) int { return cmp.Compare(a.in, b.in) },
	"output":  func(a, b modelRow) int { return cmp.Compare(a.out, b.out) },
	"context": func(a, b modelRow) int { return cmp.Compare(b.context, a.context) },
}

// modelsTable lists models on the page at path, in the order named by the page's address. It may reorder rows.
func modelsTable(v *page.Visit, path string, rows []modelRow) ui.DataTable {
	order := v.Query("sort")
	if compare, ok := modelOrders[order]; ok {
		slices.SortStableFunc(rows, compare)
	}
	sorted := func(column ui.Column, name, direction string) ui.Column {
		values := v.Request.URL.Query()
		values.Set("sort", name)
		column.Sort = page.AddressOf(path, values)
		if order == name {
			column.Sorted = direction
		}
		return column
	}
	t := ui.DataTable{Caption: "Models", Columns: []ui.Column{
		sorted(ui.Column{Title: "Model"}, "name", "ascending"), {Title: "Kind"},
		sorted(ui.Column{Title: "Input / 1M tokens", Right: true}, "input", "ascending"),
		sorted(ui.Column{Title: "Output / 1M tokens", Right: true}, "output", "ascending"),
		sorted(ui.Column{Title: "Context", Right: true, Fold: true}, "context", "descending"), {Title: "Abilities", Fold: true}}}
	for _, r := range rows {
		window := any("")
		if r.context > 0 {
			window = ui.Count{N: r.context}
		}
		t.Rows = append(t.Rows, ui.DataRow{Href: r.href, Cells: []any{
			r.id, r.kind, ui.Text{Text: r.input}, ui.Text{Text: r.output}, window, ui.Text{Text: ui.JoinComma(r.abilities), Muted: true}}})
	}
	return t
}
