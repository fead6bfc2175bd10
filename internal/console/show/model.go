package show

import (
	"fmt"
	"strings"

	"tollgate/internal/catalog"
	"tollgate/internal/catalog/offer"
	"tollgate/internal/console/ui"
	"tollgate/internal/money"
	"tollgate/internal/wire/kind"
)

// Price returns a price times an account's factor, in US dollars, exact, with at least two
// decimals.
func Price(price money.Price, factor money.Factor) string {
	whole, decimals, _ := strings.Cut(offer.AccountPrice(price, factor), ".")
	return "$" + whole + "." + decimals + strings.Repeat("0", max(0, 2-len(decimals)))
}

// Kinds returns the kinds of models as options.
func Kinds() (options []ui.Option) {
	for _, kind := range catalog.Kinds() {
		options = append(options, ui.Option{Value: string(kind), Label: ui.Title(string(kind))})
	}
	return options
}

// ModelState returns the badge of a model's state.
func ModelState(s catalog.ModelState) ui.Badge {
	switch s {
	case catalog.StateOpen:
		return ui.Badge{Tone: ui.OK, Label: "open"}
	case catalog.StateMaintenance:
		return ui.Badge{Tone: ui.Warn, Label: "maintenance"}
	case catalog.StateComingSoon:
		return ui.Badge{Tone: ui.Info, Label: "coming soon"}
	}
	return ui.Badge{Label: string(s)}
}

// PriceUnit returns the unit of a tier's price, or the measure of other prices.
func PriceUnit(m *catalog.Model) string {
	switch {
	case m.Kind.Definition() != nil:
		return m.Measure().Noun
	case m.Kind == catalog.KindImage:
		return "image"
	case m.PerClip:
		return "clip"
	}
	return "second"
}

// UnitName returns a unit in words: input audio for input_audio.
func UnitName(unit kind.PriceUnit) string { return strings.ReplaceAll(string(unit), "_", " ") }

// ShortPrice returns the price of a model for an account with a factor, in one line.
func ShortPrice(m *catalog.Model, factor money.Factor) string {
	if m.FreeDailyRequests > 0 {
		return "free, " + ui.Thousands(m.FreeDailyRequests) + " requests a day"
	}
	if m.Kind == catalog.KindChat {
		return fmt.Sprintf("%s in, %s out per million tokens", Price(m.Price.Input, factor), Price(m.Price.Output, factor))
	}
	if m.Kind.Definition() != nil {
		units := m.Measure().Units
		if len(units) == 1 {
			return Price(m.UnitPrice(units[0]), factor) + " per " + m.Measure().Noun
		}
		var prices []string
		for _, unit := range units {
			prices = append(prices, fmt.Sprintf("%s %s", Price(m.UnitPrice(unit), factor), UnitName(unit)))
		}
		return strings.Join(prices, ", ") + " per " + m.Measure().Noun
	}
	price := fmt.Sprintf("%s per %s (%s)", Price(m.Tiers[0].Price, factor), PriceUnit(m), m.Tiers[0].Name)
	if len(m.Tiers) > 1 {
		price = "from " + price
	}
	return price
}

// KindFields returns the further fields of a model of a kind with a Definition, without zeros and
// empty lists.
func KindFields(m *catalog.Model) (fields ui.Facts) {
	d := m.Kind.Definition()
	add := func(name, value string) {
		fields = append(fields, ui.Fact{Name: ui.Title(strings.ReplaceAll(name, "_", " ")), Value: value})
	}
	for _, number := range d.Numbers {
		if n := m.Number(number.Name); n > 0 {
			add(number.Name, ui.Thousands(n))
		}
	}
	for _, list := range d.Lists {
		if words := m.List(list.Name); len(words) > 0 {
			add(list.Name, strings.Join(words, ", "))
		}
	}
	for _, flag := range d.Flags {
		if m.Flag(flag) {
			add(flag, "yes")
		}
	}
	return fields
}
