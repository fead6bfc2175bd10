package offer

import (
	"maps"
	"slices"
	"strconv"
	"strings"

	"tollgate/internal/catalog"
	"tollgate/internal/money"
)

// Item is what a price is for.
type Item string

// The items of prices.
const (
	Input          Item = "input"
	Output         Item = "output"
	CachedInput    Item = "cached_input"
	CacheWrite     Item = "cache_write"
	CacheWriteHour Item = "cache_write_hour"
	Tool           Item = "tool"
	Option         Item = "option"
	Other          Item = "other" // a tier, or a unit of a kind
	FreeRequests   Item = "free_requests"
)

// Items returns all items.
func Items() []Item {
	return []Item{Input, Output, CachedInput, CacheWrite, CacheWriteHour, Tool, Option, Other, FreeRequests}
}

func (i Item) isCache() bool { return i == CachedInput || i == CacheWrite || i == CacheWriteHour }

// PriceChange is a price that changes, in US dollars with a $. Before or After is empty if the model has
// no such price.
type PriceChange struct {
	Item          Item
	Name          string // of a tool, an option with its value, a tier or a unit
	Above         int64  // the price is for prompts with more tokens; 0 for all
	Before, After string
}

// PriceChanges compares the prices of a model for an account with a factor. It omits the price of a
// cached prompt if its old and new values are those of the input price.
func PriceChanges(before, after *catalog.Model, factor money.Factor) (changes []PriceChange) {
	old, next := priceLines(before, factor), priceLines(after, factor)
	same := func(a PriceChange) func(PriceChange) bool {
		return func(b PriceChange) bool { return a.Item == b.Item && a.Name == b.Name && a.Above == b.Above }
	}
	for _, line := range next {
		if i := slices.IndexFunc(old, same(line)); i >= 0 {
			line.Before = old[i].After
			old = slices.Delete(old, i, i+1)
		}
		if line.Before != line.After {
			changes = append(changes, line)
		}
	}
	for _, line := range old {
		line.Before, line.After = line.After, ""
		changes = append(changes, line)
	}
	return slices.DeleteFunc(slices.Clone(changes), func(c PriceChange) bool {
		input := c
		input.Item = Input
		return c.Item.isCache() && slices.Contains(changes, input)
	})
}

// priceLines lists the prices of a model. It sets After and leaves Before empty.
func priceLines(m *catalog.Model, factor money.Factor) (lines []PriceChange) {
	add := func(item Item, name string, above int64, price money.Price) {
		lines = append(lines, PriceChange{Item: item, Name: name, Above: above, After: Dollars(price, factor)})
	}
	switch {
	case m.Kind.Definition() != nil:
		for _, unit := range m.Measure().Units {
			add(Other, strings.ReplaceAll(string(unit), "_", " "), 0, m.UnitPrice(unit))
		}
	case m.Kind.IsJob():
		for _, tier := range m.Tiers {
			add(Other, tier.Name, 0, tier.Price)
		}
	default:
		rates := func(r *catalog.Rates, above int64) {
			add(Input, "", above, r.Input)
			add(Output, "", above, r.Output)
			add(CachedInput, "", above, r.CachedInput)
			add(CacheWrite, "", above, r.CacheWrite)
			add(CacheWriteHour, "", above, r.CacheWrite1h)
		}
		rates(&m.Price.Rates, 0)
		for i := range m.Price.Bands {
			rates(&m.Price.Bands[i].Rates, m.Price.Bands[i].PromptTokens)
		}
		for _, tool := range slices.Sorted(maps.Keys(m.Price.Tools)) {
			add(Tool, tool, 0, m.Price.Tools[tool])
		}
		for _, option := range slices.Sorted(maps.Keys(m.Price.Options)) {
			for _, value := range slices.Sorted(maps.Keys(m.Price.Options[option])) {
				lines = append(lines, PriceChange{Item: Option, Name: option + ": " + value,
					After: "× " + m.Price.Options[option][value].String()})
			}
		}
	}
	if m.FreeDailyRequests > 0 {
		lines = append(lines, PriceChange{Item: FreeRequests, After: strconv.FormatInt(m.FreeDailyRequests, 10)})
	}
	return lines
}

// Dollars formats a price times an account's factor, exact and with at least two decimals.
func Dollars(price money.Price, factor money.Factor) string {
	whole, decimals, _ := strings.Cut(AccountPrice(price, factor), ".")
	return "$" + whole + "." + decimals + strings.Repeat("0", max(0, 2-len(decimals)))
}
