package userpages

import (
	"tollgate/internal/catalog"
	"tollgate/internal/console/show"
	"tollgate/internal/console/ui"
	"tollgate/internal/money"
)

// comingPrices describes the announced changes of prices, one line for each change of a model. factors has the
// price factors of the shown models, by id.
func (c *console) comingPrices(factors map[string]money.Factor) (lines []ui.Words) {
	for _, change := range c.Catalog.Coming() {
		for i := range change.Models {
			after := &change.Models[i]
			factor, shown := factors[after.ID]
			now, ok := c.Catalog.Current().Model(after.ID)
			if !shown || !ok {
				continue
			}
			if changes := priceChanges(now, after, factor); len(changes) > 0 {
				lines = append(lines, ui.Sayf("%s from %s: %s", after.ID, ui.UTC(change.AtMS), ui.JoinSemicolon(changes)))
			}
		}
	}
	return lines
}

// priceChanges describes the differences between two versions of a model's prices.
func priceChanges(before, after *catalog.Model, factor money.Factor) (changes []ui.Words) {
	rows, old := pricesOf(before, factor).Rows, map[any]any{}
	for _, row := range rows {
		old[row.Cells[0]] = row.Cells[1]
	}
	add := func(item any, words ui.Words) { changes = append(changes, ui.Sayf("%s %s", item, words)) }
	for _, row := range pricesOf(after, factor).Rows {
		item, price := row.Cells[0], row.Cells[1].(ui.Words)
		switch was, ok := old[item]; {
		case !ok:
			add(item, price)
		case was != price:
			add(item, ui.Sayf("%s, was %s", price, was))
		}
		delete(old, item)
	}
	for _, row := range rows {
		if _, isRemoved := old[row.Cells[0]]; isRemoved {
			add(row.Cells[0], "without a price of its own")
		}
	}
	if before.FreeDailyRequests != after.FreeDailyRequests {
		changes = append(changes, ui.Sayf("%s, was %s", show.ShortPrice(after, factor), show.ShortPrice(before, factor)))
	}
	return changes
}
