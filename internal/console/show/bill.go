package show

import (
	"time"

	"tollgate/internal/catalog"
	"tollgate/internal/console/ui"
	"tollgate/internal/ledger"
	"tollgate/internal/ledger/requestlog"
	"tollgate/internal/money"
)

// billLine is a line of a bill.
type billLine struct {
	item     string
	quantity string // how much of it
	price    string // empty if unknown
	amount   money.Amount
}

// Bill returns the lines of a request's charge, with the prices of m, the model in the catalog
// revision of the request. If m is nil, the lines have no prices. The log has no counts of tools,
// cache writes or higher price tiers, so their sum is one line. If the lines cannot explain the
// charge, they have no prices either.
func Bill(r requestlog.Receipt, m *catalog.Model) ui.DataTable {
	t := ui.DataTable{Caption: "Receipt", Columns: []ui.Column{{Title: "What"}, {Title: "How much", Right: true},
		{Title: "Price"}, {Title: "Amount", Right: true, Exact: true}}}
	for _, l := range billLines(r, m) {
		shownAmount := any(ui.Text{Text: "–", Muted: true})
		if l.price != "" || l.quantity == "" {
			shownAmount = ui.Money{Amount: l.amount}
		}
		t.Rows = append(t.Rows, ui.DataRow{Cells: []any{l.item, ui.OrDash(l.quantity), ui.OrDash(l.price), shownAmount}})
	}
	t.Foot = []any{"Charged", "", "", ui.Money{Amount: r.Cost}}
	return t
}

func billLines(r requestlog.Receipt, m *catalog.Model) []billLine {
	if m == nil {
		return countLines(r.Tokens)
	}
	lines := tokenLines(r, m)
	if m.Kind != catalog.KindChat {
		lines = unitLines(r, m)
	}
	var sum money.Amount
	for _, l := range lines {
		sum += l.amount
	}
	rest := r.Cost - sum
	switch maxRounding := money.Amount(len(lines)); { // each line is rounded separately
	case lines == nil:
		return countLines(r.Tokens)
	case -maxRounding <= rest && rest <= maxRounding:
		return lines
	case m.Kind == catalog.KindChat && rest > 0:
		return append(lines, billLine{item: "Cache writes, tools and options", amount: rest})
	case rest < 0 && r.Over > 0:
		return append(lines, billLine{item: "Above the reserved amount, not charged", amount: rest})
	}
	return countLines(r.Tokens)
}

// countLines returns lines without prices.
func countLines(n ledger.Tokens) (lines []billLine) {
	add := func(item string, n int64, unit string) {
		if n > 0 {
			lines = append(lines, billLine{item: item, quantity: formatQuantity(n, unit)})
		}
	}
	add("Prompt", n.Prompt, "token")
	add("of these from the cache", n.Cached, "token")
	add("Answer", n.Completion, "token")
	add("Images", n.Images, "image")
	add("Clips", n.Clips, "clip")
	return lines
}

func formatQuantity(n int64, unit string) string {
	if n != 1 {
		unit += "s"
	}
	return ui.Thousands(n) + " " + unit
}

// tokenLines returns the tokens of a chat request at their prices.
func tokenLines(r requestlog.Receipt, m *catalog.Model) (lines []billLine) {
	n := r.Tokens
	rates := m.RatesFor(n.Prompt)
	add := func(item string, tokens int64, price money.Price) {
		if tokens <= 0 {
			return
		}
		var s money.Sum
		s.Tokens(tokens, price, money.One)
		lines = append(lines, billLine{item: item, quantity: formatQuantity(tokens, "token"),
			price: Price(price, r.Factor) + " per million", amount: s.Charge(r.Factor)})
	}
	add("Prompt", n.Prompt-n.Cached, rates.Input)
	add("Prompt from the cache", n.Cached, rates.CachedInput)
	add("Answer", n.Completion, rates.Output)
	return lines
}

// unitLines returns the images or the seconds of a job, at the price of the only tier that
// explains the charge.
func unitLines(r requestlog.Receipt, m *catalog.Model) (lines []billLine) {
	n := r.Tokens.Images
	switch {
	case m.PerClip:
		n = r.Tokens.Clips
	case m.Kind == catalog.KindVideo:
		n = r.Tokens.VideoMS / time.Second.Milliseconds()
	}
	for _, tier := range m.Tiers {
		var s money.Sum
		s.Each(n, tier.Price, money.One)
		if amount := s.Charge(r.Factor); n > 0 && amount == r.Cost {
			lines = append(lines, billLine{item: tier.Name, quantity: formatQuantity(n, PriceUnit(m)),
				price: Price(tier.Price, r.Factor) + " per " + PriceUnit(m), amount: amount})
		}
	}
	if len(lines) != 1 {
		return nil // no tier or several tiers explain the charge
	}
	return lines
}
