package show

import (
	"strings"

	"tollgate/internal/catalog"
	"tollgate/internal/catalog/offer"
	"tollgate/internal/console/ui"
	"tollgate/internal/money"
	"tollgate/internal/wire/kind"
)

// Price formats a price times an account's factor, in US dollars, with all digits and at least two decimals. A
// factor of 0 means 1.
func Price(price money.Price, factor money.Factor) ui.Words {
	return ui.Data(offer.Dollars(price, factor))
}

// Kinds returns the kinds of models as options.
func Kinds() (options []ui.Option) {
	for _, kind := range catalog.Kinds() {
		options = append(options, ui.Option{Value: string(kind), Label: KindName(kind)})
	}
	return options
}

// KindName returns the name of a kind of models.
func KindName(kind catalog.Kind) ui.Words { return ui.Words(ui.Title(string(kind))) }

// LimitName returns the noun of a limit in the catalog, such as "input tokens" for max_input_tokens.
func LimitName(limit string) ui.Words {
	return ui.Words(strings.NewReplacer("max_", "", "file_mb", "MB", "_", " ").Replace(limit))
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
	return ui.Badge{Label: ui.Words(s)}
}

// PriceUnit returns the unit of a model's price in words, such as image or second. The model must not be a chat
// model.
func PriceUnit(m *catalog.Model) ui.Words {
	switch {
	case m.Kind.Definition() != nil:
		return ui.Words(m.Measure().Noun)
	case m.Kind == catalog.KindImage:
		return "image"
	case m.PerClip:
		return "clip"
	}
	return "second"
}

// UnitName returns a unit in words, such as "input audio" for input_audio.
func UnitName(unit kind.PriceUnit) ui.Words {
	return ui.Words(strings.ReplaceAll(string(unit), "_", " "))
}

// ShortPrice describes the price of a model for an account with a factor, in one line.
func ShortPrice(m *catalog.Model, factor money.Factor) ui.Words {
	if m.FreeDailyRequests > 0 {
		return ui.Sayf("free, %s requests a day", ui.Thousands(m.FreeDailyRequests))
	}
	if m.Kind == catalog.KindChat {
		return ui.Sayf("%s in, %s out per million tokens", Price(m.Price.Input, factor), Price(m.Price.Output, factor))
	}
	if m.Kind.Definition() != nil {
		units := m.Measure().Units
		if len(units) == 1 {
			return ui.Sayf("%s per %s", Price(m.UnitPrice(units[0]), factor), ui.Words(m.Measure().Noun))
		}
		var prices []ui.Words
		for _, unit := range units {
			prices = append(prices, ui.Sayf("%s %s", Price(m.UnitPrice(unit), factor), UnitName(unit)))
		}
		return ui.Sayf("%s per %s", ui.JoinComma(prices), ui.Words(m.Measure().Noun))
	}
	price := ui.Sayf("%s per %s (%s)", Price(m.Tiers[0].Price, factor), PriceUnit(m), m.Tiers[0].Name)
	if len(m.Tiers) > 1 {
		price = ui.Sayf("from %s", price)
	}
	return price
}

// FieldTitle returns the title of a field of the catalog.
func FieldTitle(name string) string { return ui.Title(strings.ReplaceAll(name, "_", " ")) }

// KindFields returns the fields that the kind of a model defines, without zeros and empty lists. The kind must
// have a Definition.
func KindFields(m *catalog.Model) (fields ui.Facts) {
	d := m.Kind.Definition()
	add := func(name string, value any) {
		fields = append(fields, ui.Fact{Name: ui.Words(FieldTitle(name)), Value: value})
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
			add(flag, ui.Words("yes"))
		}
	}
	return fields
}
