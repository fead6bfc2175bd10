package catalog

import (
	"fmt"
	"maps"
	"slices"
	"strings"

	"tollgate/internal/catalog/tree"
	"tollgate/internal/money"
	"tollgate/internal/wire"
	"tollgate/internal/wire/kind"
	"tollgate/internal/wire/kind/registry"
)

// Costs are the prices of a line's provider, as entered by the operator. The gateway uses Costs
// only to show a line's profit and to warn about prices below cost.
type Costs struct {
	Default Cost            // for models without an entry in Models
	Models  map[string]Cost // by model id
}

// Cost is a provider's price for a model, or for all models of a kind.
type Cost struct {
	Rates   *Rates                 // chat; nil if unknown
	Tiers   map[string]money.Price // images and video, in the unit of the model's price
	Units   UnitPrices             // models of a kind with a Definition, by the units of their price
	PerUnit *money.Price           // for tiers without an entry in Tiers; nil if unknown
}

// isEmpty reports whether c has no price.
func (c Cost) isEmpty() bool {
	return c.Rates == nil && len(c.Tiers) == 0 && len(c.Units) == 0 && c.PerUnit == nil
}

// costs reads the prices of a line's provider from the line's member cost. Rates and tiers directly
// in cost apply to all models.
func (r *reader) costs(t *table, l *LineSpec, modelsByID map[string]*Model) Costs {
	out := Costs{Models: map[string]Cost{}}
	entries := t.child("cost")
	if entries == nil {
		return out
	}
	defaults := tree.Table()
	defaults.Pos = entries.node.Pos
	entries.each(MaxModels, func(name, path string, value *tree.Value) {
		_, isModel := l.Models[name]
		switch isPrice := slices.Contains(ratesNames, name) || tierName.MatchString(name) || isPriceUnit(name); {
		case isPrice && value.Kind != tree.TableKind:
			defaults.Fields = append(defaults.Fields, tree.Field{Name: name, Value: value, Pos: value.Pos})
		case !isModel:
			r.reportUnknown(path, value, "is neither a rate, nor a resolution tier, nor a model of this line")
		case value.Kind != tree.TableKind && modelsByID[name] != nil && modelsByID[name].Kind.IsJob():
			if p, ok := r.price(path, value); ok {
				out.Models[name] = Cost{PerUnit: &p}
			}
		default:
			if c := r.cost(path, value, modelsByID[name]); !c.isEmpty() {
				out.Models[name] = c
			}
		}
	})
	if len(defaults.Fields) > 0 {
		out.Default = r.defaultCost(t.pathOf("cost"), defaults, l, modelsByID)
	}
	return out
}

// cost reads rates and tiers. If m is not nil, only the rates or tiers of m are allowed.
func (r *reader) cost(path string, n *tree.Value, m *Model) Cost {
	var out Cost
	t := r.table(path, n)
	if t == nil {
		return out
	}
	if m != nil && m.Kind.Definition() != nil {
		return Cost{Units: r.unitPrices(path, n, m.Kind.Definition())}
	}
	isChat, isMedia := m == nil || m.Kind == KindChat, m == nil || m.Kind.IsJob()
	if isChat && (m != nil || slices.ContainsFunc(ratesNames, func(name string) bool { return n.Get(name) != nil })) {
		rates := t.rates(nil)
		out.Rates = &rates
	}
	for _, f := range n.Fields {
		if !isMedia || !tierName.MatchString(f.Name) {
			continue
		}
		if _, ok := m.tierNamed(f.Name); m != nil && !ok {
			continue // t.close reports the unknown tier
		}
		t.knownKeys[f.Name] = true
		if p, ok := r.price(t.pathOf(f.Name), f.Value); ok {
			if out.Tiers == nil {
				out.Tiers = map[string]money.Price{}
			}
			out.Tiers[f.Name] = p
		}
	}
	t.close()
	return out
}

// defaultCost reads the prices for all models of a line. A model uses only the prices of its kind.
func (r *reader) defaultCost(path string, n *tree.Value, l *LineSpec, modelsByID map[string]*Model) (out Cost) {
	rest := *n
	units := UnitPrices{}
	onlyUnits := len(l.Models) > 0
	for id := range l.Models {
		m := modelsByID[id]
		if m == nil || m.Kind.Definition() == nil {
			onlyUnits = false
			continue
		}
		for _, measure := range m.Kind.Definition().Measures {
			for _, unit := range measure.Units {
				if value := n.Get(string(unit)); value != nil && value.Kind == tree.PlainKind {
					if price, err := money.ParsePrice(value.Text); err == nil {
						units[unit] = price
					}
				}
			}
		}
	}
	rest.Fields = slices.DeleteFunc(slices.Clone(n.Fields), func(f tree.Field) bool {
		_, used := units[kind.PriceUnit(f.Name)]
		return used && (onlyUnits || !slices.Contains(ratesNames, f.Name))
	})
	if len(rest.Fields) > 0 {
		out = r.cost(path, &rest, nil)
	}
	if len(units) > 0 {
		out.Units = units
	}
	return out
}

// isPriceUnit reports whether any kind has prices for a unit.
func isPriceUnit(name string) bool {
	return slices.ContainsFunc(registry.All(), func(d *kind.Definition) bool {
		return slices.ContainsFunc(d.Measures, func(m kind.Measure) bool { return slices.Contains(m.Units, kind.PriceUnit(name)) })
	})
}

// tierNamed returns the tier with exactly this name. A nil model has no tiers.
func (m *Model) tierNamed(name string) (Tier, bool) {
	if m == nil {
		return Tier{}, false
	}
	i := slices.IndexFunc(m.Tiers, func(t Tier) bool { return t.Name == name })
	if i < 0 {
		return Tier{}, false
	}
	return m.Tiers[i], true
}

// Tree returns the prices by rate, tier and model, or nil if there are no prices.
func (c Costs) Tree() *tree.Value {
	if c.Default.isEmpty() && len(c.Models) == 0 {
		return nil
	}
	n := c.Default.Tree()
	for _, id := range slices.Sorted(maps.Keys(c.Models)) {
		n.Set(id, c.Models[id].Tree())
	}
	return n
}

// Tree returns one price, or the prices by rate and tier.
func (c Cost) Tree() *tree.Value {
	if c.PerUnit != nil {
		return tree.Plain(c.PerUnit.String())
	}
	n := tree.Table()
	if c.Rates != nil {
		c.Rates.writeTo(n, nil)
	}
	for _, name := range slices.Sorted(maps.Keys(c.Tiers)) {
		n.Set(name, tree.Plain(c.Tiers[name].String()))
	}
	for _, f := range c.Units.Tree().Fields {
		if n.Get(f.Name) == nil { // a default may be both a rate of chat models and a price of others
			n.Set(f.Name, f.Value)
		}
	}
	return n
}

// costOf returns the provider's price for a model, or an empty Cost.
func (c *Costs) costOf(model string) Cost {
	if cost, ok := c.Models[model]; ok {
		return cost
	}
	return c.Default
}

// KnowsCost reports whether the catalog has the provider's price for a model.
func (l *Line) KnowsCost(model string) bool {
	c := l.Costs.costOf(model)
	return !c.isEmpty()
}

// Cost returns the provider's price for a usage. If the provider's answer has no price, Cost
// computes the price from the catalog. It returns false if the price is unknown.
func (l *Line) Cost(m *Model, u wire.Usage) (money.Amount, bool) {
	if u.HasCost {
		return money.Amount(u.CostNano), true
	}
	if m.Kind.Definition() != nil {
		return l.UnitCost(m, kind.Quantities{kind.Input: u.Prompt})
	}
	rates := l.Costs.costOf(m.ID).Rates
	if rates == nil || u.Prompt <= 0 && u.Completion <= 0 {
		return 0, false
	}
	var s money.Sum
	rates.charge(&s, partsOf(u), money.One)
	return s.Round(), true
}

// PlanCost returns the provider's price for the delivered part of an image or video job. It returns
// false if the price is unknown.
func (l *Line) PlanCost(m *Model, p Plan, delivered int64) (money.Amount, bool) {
	c := l.Costs.costOf(m.ID)
	each, ok := c.Tiers[p.Tier]
	if !ok && c.PerUnit != nil {
		each, ok = *c.PerUnit, true
	}
	if !ok {
		return 0, false
	}
	var s money.Sum
	s.Each(m.units(p, delivered), each, money.One)
	return s.Round(), true
}

// CostWarnings returns a warning for each model with prices below the prices of an enabled line's
// provider. It omits retired models, and models with a free daily quota, because these are sold
// below cost on purpose.
func (d *Document) CostWarnings() []Warning {
	models := make(map[string]*Model, len(d.Models))
	for i := range d.Models {
		models[d.Models[i].ID] = &d.Models[i]
	}
	var warnings []Warning
	for i := range d.Lines {
		l := &d.Lines[i]
		if !l.Enabled {
			continue
		}
		for _, id := range slices.Sorted(maps.Keys(l.Models)) {
			m := models[id]
			if m == nil || m.FreeDailyRequests > 0 || m.State == StateRetired {
				continue
			}
			if prices := m.pricesBelow(l.Costs.costOf(id)); len(prices) > 0 {
				warnings = append(warnings, Warning{fmt.Sprintf("lines[%d].cost", i),
					fmt.Sprintf("model %s is sold below the cost of line %s: %s", id, l.ID, strings.Join(prices, ", "))})
			}
		}
	}
	return warnings
}

// pricesBelow describes each price of a model that is below the cost.
func (m *Model) pricesBelow(c Cost) (texts []string) {
	addIfBelow := func(name string, price, cost money.Price) {
		if price < cost {
			texts = append(texts, fmt.Sprintf("%s %s < %s USD", name, price, cost))
		}
	}
	if d := m.Kind.Definition(); d != nil {
		for _, unit := range m.Measure().Units {
			if cost, ok := c.Units[unit]; ok {
				addIfBelow(string(unit), m.UnitPrice(unit), cost)
			}
		}
		return texts
	}
	if m.Kind == KindChat {
		if c.Rates != nil {
			addIfBelow("input", m.Price.Input, c.Rates.Input)
			addIfBelow("output", m.Price.Output, c.Rates.Output)
			addIfBelow("cached_input", m.Price.CachedInput, c.Rates.CachedInput)
			if m.Price.Input >= c.Rates.Input { // the defaults derive from input and would repeat its warning
				addIfBelow("cache_write", m.Price.CacheWrite, c.Rates.CacheWrite)
				addIfBelow("cache_write_1h", m.Price.CacheWrite1h, c.Rates.CacheWrite1h)
			}
		}
		return texts
	}
	for _, tier := range m.Tiers {
		if cost, ok := c.Tiers[tier.Name]; ok {
			addIfBelow(tier.Name, tier.Price, cost)
		} else if c.PerUnit != nil {
			addIfBelow(tier.Name, tier.Price, *c.PerUnit)
		}
	}
	return texts
}
