package provider

import (
	"cmp"
	"maps"
	"slices"

	"tollgate/internal/catalog"
	"tollgate/internal/money"
	"tollgate/internal/wire"
)

// LineOffer is a line with its models, as entered in the form.
type LineOffer struct {
	Line    string // ID
	Vendor  ChatVendor
	BaseURL string       // of a new line
	APIKey  string       // reference of a new line; may be empty for a server without keys
	Margin  money.Factor // share of the cost that is added: 0.3 for 30 %
	Models  []SoldModel
}

// SoldModel is a model of a LineOffer. The costs are the vendor's prices per million tokens.
type SoldModel struct {
	ID            string // of the vendor; also the catalog's ID of a new model
	Input, Output money.Price
	Context       int64 // tokens
	MaxOutput     int64 // tokens
}

// defaultOutput is the DefaultOutputTokens of new models: the limit of requests that have none. The
// hold of the longest answer would be large.
const defaultOutput = 16000

// Sale returns the price of a cost with the margin.
func (o LineOffer) Sale(cost money.Price) money.Price {
	return cost.Proportion(money.Price(money.One+o.Margin), money.Price(money.One))
}

// Document returns current with the line and its models. An existing line or model keeps the fields
// that the form does not show. The result is not validated: pass its text to catalog.Parse.
func (o LineOffer) Document(current *catalog.Document) *catalog.Document {
	doc := &catalog.Document{Models: slices.Clone(current.Models), Lines: slices.Clone(current.Lines)}
	i := slices.IndexFunc(doc.Lines, func(l catalog.LineSpec) bool { return l.ID == o.Line })
	if i < 0 {
		i = len(doc.Lines)
		l := catalog.LineSpec{ID: o.Line, Provider: o.Vendor.Provider, BaseURL: o.BaseURL, APIKey: o.APIKey, Forms: o.Vendor.forms(),
			Priority: 1, Weight: 100, Enabled: true}
		doc.Lines = append(doc.Lines, l)
	}
	line := &doc.Lines[i]
	line.Models, line.Costs.Models = cloned(line.Models), cloned(line.Costs.Models)
	line.Margin = &o.Margin
	for _, m := range o.Models {
		id := CatalogID(line, m.ID)
		listed := o.costOf(line, id, m)
		line.Models[id] = m.ID
		rates := listed.Cost.Rates
		line.Costs.Models[id] = catalog.Cost{Rates: &rates}
		j := slices.IndexFunc(doc.Models, func(existing catalog.Model) bool { return existing.ID == id })
		if j < 0 {
			j = len(doc.Models)
			doc.Models = append(doc.Models, catalog.Model{ID: id, Kind: catalog.KindChat, OwnedBy: o.Vendor.ID, State: catalog.StateOpen,
				Forms: []wire.Form{wire.FormChat, wire.FormResponses, wire.FormMessages}, Reasoning: listed.Reasoning,
				MaxImageTokens: catalog.DefaultMaxImageTokens, DefaultOutputTokens: defaultOutput, Price: catalog.ChatPrice{Bands: listed.Cost.Bands}})
			for k := range doc.Models[j].Price.Bands {
				band := &doc.Models[j].Price.Bands[k]
				band.Rates = o.sales(band.Rates)
			}
		}
		model := &doc.Models[j]
		model.ContextWindow, model.MaxOutputTokens = m.Context, m.MaxOutput
		if model.DefaultOutputTokens >= m.MaxOutput {
			model.DefaultOutputTokens = 0 // the longest answer is the default
		}
		model.Price = repriced(model.Price, o.sales(rates))
	}
	return doc
}

func cloned[V any](m map[string]V) map[string]V {
	if m == nil {
		return map[string]V{}
	}
	return maps.Clone(m)
}

// CatalogID returns the catalog's ID of a vendor's model on a line: the ID under which the line has
// the model already, or the vendor's ID.
func CatalogID(line *catalog.LineSpec, vendorID string) string {
	for _, id := range slices.Sorted(maps.Keys(line.Models)) {
		if line.Models[id] == vendorID {
			return id
		}
	}
	return vendorID
}

// costOf returns the costs of a model. The prices other than input and output keep their ratio to
// input, from the line's earlier cost or else the list price. Without either, they equal input.
func (o LineOffer) costOf(line *catalog.LineSpec, id string, m SoldModel) Listed {
	listed, known := o.Vendor.ListedModel(m.ID)
	base := listed.Cost.Rates
	if earlier := line.Costs.Models[id].Rates; earlier != nil {
		base, known = *earlier, true
	}
	scaled := func(p money.Price) money.Price {
		if !known || base.Input == 0 {
			return m.Input
		}
		return p.Proportion(m.Input, base.Input)
	}
	bands := slices.Clone(listed.Cost.Bands)
	for i, b := range bands {
		bands[i].Rates = catalog.Rates{Input: scaled(b.Input), CachedInput: scaled(b.CachedInput), CacheWrite: scaled(b.CacheWrite),
			CacheWrite1h: scaled(b.CacheWrite1h), Output: b.Output.Proportion(m.Output, cmp.Or(listed.Cost.Output, m.Output))}
	}
	listed.Cost.Bands = bands
	listed.Cost.Rates = catalog.Rates{Input: m.Input, Output: m.Output, CachedInput: scaled(base.CachedInput),
		CacheWrite: scaled(base.CacheWrite), CacheWrite1h: scaled(base.CacheWrite1h)}
	return listed
}

// sales returns the prices of costs with the margin.
func (o LineOffer) sales(cost catalog.Rates) catalog.Rates {
	return catalog.Rates{Input: o.Sale(cost.Input), Output: o.Sale(cost.Output), CachedInput: o.Sale(cost.CachedInput),
		CacheWrite: o.Sale(cost.CacheWrite), CacheWrite1h: o.Sale(cost.CacheWrite1h)}
}

// repriced returns a price list with new base rates. Bands keep their ratio to the base rates.
func repriced(p catalog.ChatPrice, rates catalog.Rates) catalog.ChatPrice {
	old := p.Rates
	p.Rates = rates
	if old == (catalog.Rates{}) { // a new model, whose bands have their prices
		return p
	}
	p.Bands = slices.Clone(p.Bands)
	for i, b := range p.Bands {
		p.Bands[i].Rates = catalog.Rates{Input: b.Input.Proportion(rates.Input, old.Input), Output: b.Output.Proportion(rates.Output, old.Output),
			CachedInput: b.CachedInput.Proportion(rates.Input, old.Input), CacheWrite: b.CacheWrite.Proportion(rates.Input, old.Input),
			CacheWrite1h: b.CacheWrite1h.Proportion(rates.Input, old.Input)}
	}
	return p
}
