package catalog

import (
	"fmt"
	"slices"
	"strings"

	"tollgate/internal/catalog/tree"
	"tollgate/internal/money"
	"tollgate/internal/wire/kind"
)

// UnitPrices are prices by unit. Each is the price of as many units as the unit's measure says.
type UnitPrices map[kind.PriceUnit]money.Price

// Number implements kind.ModelLimits: it returns a further field of the model, its default, or 0.
func (m *Model) Number(name string) int64 {
	if n, ok := m.Numbers[name]; ok {
		return n
	}
	if d := m.Kind.Definition(); d != nil {
		if number := d.NumberNamed(name); number != nil {
			return number.Default
		}
	}
	return 0
}

// List implements kind.ModelLimits.
func (m *Model) List(name string) []string { return m.Lists[name] }

// Flag implements kind.ModelLimits.
func (m *Model) Flag(name string) bool { return m.Flags[name] }

// Priced implements kind.ModelLimits.
func (m *Model) Priced(unit kind.PriceUnit) bool {
	measure := measureOf(m.Kind.Definition(), m.Units)
	return measure != nil && slices.Contains(measure.Units, unit)
}

// UnitPrice returns the price of a unit of the model's measure.
func (m *Model) UnitPrice(unit kind.PriceUnit) money.Price { return m.Units.of(m.Measure(), unit) }

// of returns the price of a unit of a measure.
func (p UnitPrices) of(measure kind.Measure, unit kind.PriceUnit) money.Price {
	if price, ok := p[unit]; ok {
		return price
	}
	return p[measure.Defaults[unit]]
}

// Measure returns the measure of the model's prices. The model must have a kind with a Definition.
func (m *Model) Measure() kind.Measure { return *measureOf(m.Kind.Definition(), m.Units) }

// measureOf returns the measure of a kind with prices, or nil if no measure has a unit in prices.
func measureOf(d *kind.Definition, prices UnitPrices) *kind.Measure {
	for i := range d.Measures {
		for _, unit := range d.Measures[i].Units {
			if _, ok := prices[unit]; ok {
				return &d.Measures[i]
			}
		}
	}
	return nil
}

// HighestUnitCost returns the hold for a request with at most the counts in bound. factor is the
// account's; 0 means 1.
func (m *Model) HighestUnitCost(bound kind.Quantities, factor money.Factor) money.Amount {
	s := m.Units.bill(m.Measure(), bound)
	return s.Hold(factor)
}

// UnitCost returns the cost of the used counts, rounded once. If used is within a bound, the cost is at
// most the HighestUnitCost of the bound.
func (m *Model) UnitCost(used kind.Quantities, factor money.Factor) money.Amount {
	s := m.Units.bill(m.Measure(), used)
	return s.Charge(factor)
}

// UnitCost returns the provider's price for counts of a model. It returns false if the price is
// unknown, or in another measure than the model's.
func (l *Line) UnitCost(m *Model, used kind.Quantities) (money.Amount, bool) {
	prices := l.Costs.costOf(m.ID).Units
	measure := measureOf(m.Kind.Definition(), prices)
	if measure == nil || measure.Name != m.Measure().Name {
		return 0, false
	}
	s := prices.bill(*measure, used)
	return s.Round(), true
}

// bill returns the sum of counts times prices.
func (p UnitPrices) bill(measure kind.Measure, counts kind.Quantities) (s money.Sum) {
	for _, unit := range measure.Units {
		s.Per(clamp(counts[unit], maxUnits), p.of(measure, unit), measure.Per)
	}
	return s
}

// Tree returns the prices in the order of their names.
func (p UnitPrices) Tree() *tree.Value {
	n := tree.Table()
	units := make([]kind.PriceUnit, 0, len(p))
	for unit := range p {
		units = append(units, unit)
	}
	slices.Sort(units)
	for _, unit := range units {
		n.Set(string(unit), tree.Plain(p[unit].String()))
	}
	return n
}

// definedModel reads the fields of models of a kind with a Definition.
func (r *reader) definedModel(t *table, m *Model, d *kind.Definition) {
	for _, number := range d.Numbers {
		if n := t.count(number.Name, 1, number.Max, 0); n > 0 {
			if m.Numbers == nil {
				m.Numbers = map[string]int64{}
			}
			m.Numbers[number.Name] = n
		}
	}
	for _, list := range d.Lists {
		var words []string
		if len(list.Values) > 0 {
			words = oneOf(t, list.Name, list.Values)
		} else {
			words = t.words(list.Name, maxList, func(path string, n *tree.Value) bool { return r.textAt(path, n, 128) != "" })
		}
		if len(words) > 0 {
			if m.Lists == nil {
				m.Lists = map[string][]string{}
			}
			m.Lists[list.Name] = words
		}
	}
	for _, flag := range d.Flags {
		if t.boolean(flag, false) {
			if m.Flags == nil {
				m.Flags = map[string]bool{}
			}
			m.Flags[flag] = true
		}
	}
	n := t.get("price")
	if n == nil {
		t.fault("price", "is required, because nothing runs without a price. It is %s. For a free model, write 0", priceKeys(d))
		return
	}
	m.Units = r.unitPrices(t.pathOf("price"), n, d)
	for _, number := range d.Numbers {
		if _, ok := m.Units[number.RequiredWith]; ok && t.get(number.Name) == nil {
			t.fault(number.Name, "is required with the price %s, because it limits the hold", number.RequiredWith)
		}
	}
	for _, price := range m.Units {
		if m.FreeDailyRequests > 0 && price > 0 {
			r.warnPricedQuota(t, m)
			break
		}
	}
}

// unitPrices reads the prices of one measure of a kind.
func (r *reader) unitPrices(path string, n *tree.Value, d *kind.Definition) UnitPrices {
	t := r.table(path, n)
	if t == nil {
		return nil
	}
	prices := UnitPrices{}
	var measures []kind.Measure
	for _, measure := range d.Measures {
		given := 0
		for _, unit := range measure.Units {
			value := t.get(string(unit))
			if value == nil {
				continue
			}
			given++
			if price, ok := r.price(t.pathOf(string(unit)), value); ok {
				prices[unit] = price
			}
		}
		if given > 0 {
			measures = append(measures, measure)
		}
	}
	switch len(measures) {
	case 0:
		r.fault(path, n, "must be %s", priceKeys(d))
	case 1:
		for _, unit := range measures[0].Units {
			if measures[0].Defaults[unit] == "" && t.get(string(unit)) == nil {
				t.fault(string(unit), "is required: USD per %s", measures[0].Noun)
			}
		}
	default:
		r.fault(path, n, "mixes %s and %s: a model is priced by one of them", measures[0].Noun, measures[1].Noun)
	}
	t.close()
	return prices
}

// priceKeys describes the prices of a kind for faults.
func priceKeys(d *kind.Definition) string {
	var texts []string
	for _, measure := range d.Measures {
		units := make([]string, len(measure.Units))
		for i, unit := range measure.Units {
			units[i] = string(unit)
		}
		texts = append(texts, fmt.Sprintf("%s in USD per %s", strings.Join(units, " and "), measure.Noun))
	}
	return strings.Join(texts, ", or ")
}
