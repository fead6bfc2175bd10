// Package offer owns what users and operators are told of a model: what it is, where
// it can be called and what it costs, now and in former catalogs.
//
// Invariants: it tells nothing of lines; a price is that by which a revision bills.
package offer

import (
	"encoding/json"
	"slices"

	"tollgate/internal/catalog"
	"tollgate/internal/catalog/tree"
	"tollgate/internal/money"
	"tollgate/internal/wire"
)

// Listing is the model as users see it (interface.md, Model list): what the catalog
// says of it, the endpoints that it answers at, and the unit of its price, which is
// that of an account with a factor; 0: none. created is in Unix seconds.
func Listing(m *catalog.Model, created int64, by money.Factor) json.RawMessage {
	n := tree.Table()
	n.Set("id", tree.Quoted(m.ID))
	n.Set("object", tree.Quoted("model"))
	n.Set("created", tree.Number(created))
	n.Set("owned_by", tree.Quoted(m.Owner()))
	for _, f := range m.Tree().Fields {
		switch f.Name {
		case "id", "owned_by":
		case "price", "per_clip": // what it costs has one name
			n.Set("price", times(f.Value, by))
		default:
			n.Set(f.Name, f.Value)
		}
	}
	n.Set("price_unit", tree.Quoted(PriceUnit(m)))
	paths := tree.List()
	for _, path := range Endpoints(m) {
		paths.Items = append(paths.Items, tree.Quoted(path))
	}
	n.Set("endpoints", paths)
	return tree.JSON(n, "")
}

// Paid is a price as an account with a factor pays it, in US dollars and exact; a
// factor of 0 is none.
func Paid(price money.Price, by money.Factor) string {
	if by == 0 {
		return price.String()
	}
	return price.Times(by)
}

// times is what a model costs with each price times a factor. Thresholds are no
// prices, and neither is what options multiply by.
func times(n *tree.Value, by money.Factor) *tree.Value {
	if by == 0 {
		return n
	}
	scaled := *n
	if price, err := money.ParsePrice(n.Text); err == nil && n.Kind == tree.PlainKind {
		scaled.Text = price.Times(by)
	}
	scaled.Items, scaled.Fields = slices.Clone(n.Items), slices.Clone(n.Fields)
	for i, item := range scaled.Items {
		scaled.Items[i] = times(item, by)
	}
	for i, f := range scaled.Fields {
		if f.Name != "options" && f.Name != "prompt_tokens" {
			scaled.Fields[i].Value = times(f.Value, by)
		}
	}
	return &scaled
}

// Price is what the model costs, in the catalog's words.
func Price(m *catalog.Model) json.RawMessage {
	of := m.Tree()
	price := of.Get("price")
	if price == nil {
		price = of.Get("per_clip")
	}
	return tree.JSON(price, "")
}

// PriceUnit says what the model's prices are US dollars for.
func PriceUnit(m *catalog.Model) string {
	switch {
	case m.Kind == catalog.KindImage:
		return "image"
	case m.Kind == catalog.KindVideo && m.PerClip:
		return "clip"
	case m.Kind == catalog.KindVideo:
		return "second"
	}
	return "million_tokens"
}

// Endpoints are the paths at which the model can be called.
func Endpoints(m *catalog.Model) []string {
	switch m.Kind {
	case catalog.KindImage:
		paths := []string{"/v1/images/generations"}
		if m.MaxReferences > 0 {
			paths = append(paths, "/v1/images/edits")
		}
		return paths
	case catalog.KindVideo:
		return []string{"/v1/videos/generations"}
	}
	var paths []string
	for _, at := range []struct {
		form wire.Form
		path string
	}{{wire.FormChat, "/v1/chat/completions"}, {wire.FormResponses, "/v1/responses"}, {wire.FormMessages, "/native/v1/messages"}} {
		if m.Speaks(at.form) {
			paths = append(paths, at.path)
		}
	}
	return paths
}
