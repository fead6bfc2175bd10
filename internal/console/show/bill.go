package show

import (
	"tollgate/internal/catalog"
	"tollgate/internal/console/ui"
	"tollgate/internal/ledger/measure"
	"tollgate/internal/ledger/requestlog"
	"tollgate/internal/money"
	"tollgate/internal/wire/kind"
)

// billLine is a line of a bill.
type billLine struct {
	item     ui.Words
	quantity ui.Words // such as 1,200 tokens; may be empty
	price    ui.Words // empty if unknown
	amount   money.Amount
}

// Bill returns the lines of a request's charge. m is the model in the catalog revision of the request. If m is
// nil, the lines have no prices. The log does not count tools, cache writes or higher price tiers, so one line
// has the sum of these charges. If the lines cannot explain the charge, they have no prices either.
func Bill(r requestlog.Receipt, m *catalog.Model) ui.DataTable {
	t := ui.DataTable{Caption: "Receipt", Columns: []ui.Column{{Title: "What"}, {Title: "How much", Right: true},
		{Title: "Price"}, {Title: "Amount", Right: true, Exact: true}}}
	for _, l := range billLines(r, m) {
		amount := any(ui.Text{Text: "–", Muted: true})
		if l.price != "" || l.quantity == "" {
			amount = ui.Money{Amount: l.amount}
		}
		t.Rows = append(t.Rows, ui.DataRow{Cells: []any{l.item, ui.OrDash(l.quantity), ui.OrDash(l.price), amount}})
	}
	t.Foot = []any{ui.Words("Charged"), "", "", ui.Money{Amount: r.Cost}}
	return t
}

func billLines(r requestlog.Receipt, m *catalog.Model) []billLine {
	if m == nil {
		return countLines(r)
	}
	var lines []billLine
	switch {
	case m.Kind.Definition() != nil:
		lines = measureLines(r, m)
	case m.Kind.IsJob():
		lines = unitLines(r, m)
	default:
		lines = tokenLines(r, m)
	}
	var sum money.Amount
	for _, l := range lines {
		sum += l.amount
	}
	rest := r.Cost - sum
	switch maxRounding := money.Amount(len(lines)); { // each line is rounded separately
	case lines == nil:
		return countLines(r)
	case -maxRounding <= rest && rest <= maxRounding:
		return lines
	case m.Kind == catalog.KindChat && rest > 0:
		return append(lines, billLine{item: "Cache writes, tools and options", amount: rest})
	case rest < 0 && r.Over > 0:
		return append(lines, billLine{item: "Above the reserved amount, not charged", amount: rest})
	}
	return countLines(r)
}

// countLines returns the lines of a bill without prices.
func countLines(r requestlog.Receipt) (lines []billLine) {
	add := func(item ui.Words, n int64, unit ui.Words) {
		if n > 0 {
			lines = append(lines, billLine{item: item, quantity: formatQuantity(n, unit)})
		}
	}
	add("Prompt", r.Tokens.Prompt, "token")
	add("of these from the cache", r.Tokens.Cached, "token")
	add("Answer", r.Tokens.Completion, "token")
	switch unit := r.Quantity.Unit; {
	case unit == measure.VideoMS:
		add("Clips", 1, "clip")
	case r.Quantity.N > 0:
		lines = append(lines, billLine{item: ui.Words(unit.Title()), quantity: Count(r.Quantity)})
	}
	return lines
}

// Count returns a quantity in words, such as 2 images.
func Count(q measure.Quantity) ui.Words {
	n := q.Unit.Whole(q.N)
	return ui.Sayf("%s %s", ui.Thousands(n), ui.Words(q.Unit.Noun(n)))
}

// formatQuantity returns a number of units in words. unit is the singular.
func formatQuantity(n int64, unit ui.Words) ui.Words {
	if n != 1 {
		unit = map[ui.Words]ui.Words{
			"token": "tokens", "request": "requests", "image": "images", "clip": "clips", "second": "seconds"}[unit]
	}
	return ui.Sayf("%s %s", ui.Thousands(n), unit)
}

// tokenLines returns lines for the tokens of a chat request.
func tokenLines(r requestlog.Receipt, m *catalog.Model) (lines []billLine) {
	n := r.Tokens
	rates := m.RatesFor(n.Prompt)
	add := func(item ui.Words, tokens int64, price money.Price) {
		if tokens <= 0 {
			return
		}
		var s money.Sum
		s.Tokens(tokens, price, money.One)
		lines = append(lines, billLine{item: item, quantity: formatQuantity(tokens, "token"),
			price: ui.Sayf("%s per million", Price(price, r.Factor)), amount: s.Charge(r.Factor)})
	}
	add("Prompt", n.Prompt-n.Cached, rates.Input)
	add("Prompt from the cache", n.Cached, rates.CachedInput)
	add("Answer", n.Completion, rates.Output)
	return lines
}

// measureLines returns lines for the units that the model's prices measure. If text and sound have different
// prices, it returns nil, because a receipt does not distinguish their tokens.
func measureLines(r requestlog.Receipt, m *catalog.Model) (lines []billLine) {
	measured := m.Measure()
	add := func(unit kind.PriceUnit, n int64, quantity ui.Words) {
		if n > 0 {
			lines = append(lines, billLine{item: ui.Title(UnitName(unit)), quantity: quantity,
				price:  ui.Sayf("%s per %s", Price(m.UnitPrice(unit), r.Factor), ui.Words(measured.Noun)),
				amount: m.UnitCost(kind.Quantities{unit: n}, r.Factor)})
		}
	}
	switch {
	case measured.Quantity != "":
		add(measured.Units[0], r.Quantity.N, Count(r.Quantity))
		return lines
	case !measured.CountsTokens():
		add(measured.Units[0], 1, formatQuantity(1, "request"))
		return lines
	}
	for _, side := range []struct {
		output bool
		tokens int64
	}{{false, r.Tokens.Prompt}, {true, r.Tokens.Completion}} {
		units := measured.TokenUnits(side.output)
		if len(units) > 1 && m.UnitPrice(units[0]) != m.UnitPrice(units[1]) {
			return nil
		}
		if len(units) > 0 {
			add(units[0], side.tokens, formatQuantity(side.tokens, "token"))
		}
	}
	return lines
}

// unitLines returns a line for the images or the seconds of a job. It returns nil unless the price of exactly
// one tier explains the charge.
func unitLines(r requestlog.Receipt, m *catalog.Model) (lines []billLine) {
	n := r.Quantity.Unit.Whole(r.Quantity.N)
	if m.PerClip && r.Quantity.Unit == measure.VideoMS {
		n = 1
	}
	for _, tier := range m.Tiers {
		var s money.Sum
		s.Each(n, tier.Price, money.One)
		if amount := s.Charge(r.Factor); n > 0 && amount == r.Cost {
			lines = append(lines, billLine{item: ui.Data(tier.Name), quantity: formatQuantity(n, PriceUnit(m)),
				price: ui.Sayf("%s per %s", Price(tier.Price, r.Factor), PriceUnit(m)), amount: amount})
		}
	}
	if len(lines) != 1 {
		return nil // no tier or several tiers explain the charge
	}
	return lines
}
