// Package offer owns the description of a model for users and operators: its properties, its
// endpoints and its price, now and in former catalogs.
//
// Invariants: no description mentions lines; a price is the price billed by a revision.
package offer

import (
	"cmp"
	"encoding/json"
	"slices"

	"tollgate/internal/catalog"
	"tollgate/internal/catalog/tree"
	"tollgate/internal/money"
	"tollgate/internal/wire"
)

// Listing returns the model in the format for users (interface.md, Model list): the catalog's
// properties, the endpoints, and the unit of the price. factor multiplies the prices for an
// account; 0 means 1. created is in Unix seconds.
func Listing(m *catalog.Model, created int64, factor money.Factor) json.RawMessage {
	n := tree.Table()
	n.Set("id", tree.Text(m.ID))
	n.Set("object", tree.Text("model"))
	n.Set("created", tree.Number(created))
	n.Set("owned_by", tree.Text(m.Owner()))
	for _, f := range m.Tree().Fields {
		switch f.Name {
		case "id", "owned_by":
		case "price", "per_clip": // users see both as price
			n.Set("price", multiply(f.Value, factor))
		default:
			n.Set(f.Name, f.Value)
		}
	}
	n.Set("price_unit", tree.Text(PriceUnit(m)))
	paths := tree.List()
	for _, path := range Endpoints(m) {
		paths.Items = append(paths.Items, tree.Text(path))
	}
	n.Set("endpoints", paths)
	return tree.JSON(n, "")
}

// AccountPrice returns a price times an account's factor, in US dollars and exact. A factor of 0
// means 1.
func AccountPrice(price money.Price, factor money.Factor) string {
	if factor == 0 {
		return price.String()
	}
	return price.Times(factor)
}

// multiply returns a price list with each price multiplied by a factor. Thresholds and the factors
// of options do not change.
func multiply(n *tree.Value, factor money.Factor) *tree.Value {
	if factor == 0 {
		return n
	}
	product := *n
	if price, err := money.ParsePrice(n.Text); err == nil && n.Kind == tree.PlainKind {
		product.Text = price.Times(factor)
	}
	product.Items, product.Fields = slices.Clone(n.Items), slices.Clone(n.Fields)
	for i, item := range product.Items {
		product.Items[i] = multiply(item, factor)
	}
	for i, f := range product.Fields {
		if f.Name != "options" && f.Name != "prompt_tokens" {
			product.Fields[i].Value = multiply(f.Value, factor)
		}
	}
	return &product
}

// Price returns the price list of the model in the catalog's format.
func Price(m *catalog.Model) json.RawMessage {
	entry := m.Tree()
	return tree.JSON(cmp.Or(entry.Get("price"), entry.Get("per_clip")), "")
}

// PriceUnit returns the unit of the model's prices in US dollars.
func PriceUnit(m *catalog.Model) string {
	switch {
	case m.Kind == catalog.KindImage:
		return "image"
	case m.Kind == catalog.KindVideo && m.PerClip:
		return "clip"
	case m.Kind == catalog.KindVideo:
		return "second"
	case m.Kind.Definition() != nil:
		return m.Measure().Name
	}
	return "million_tokens"
}

// Endpoints returns the paths of the API for calls of the model.
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
	if d := m.Kind.Definition(); d != nil {
		for _, endpoint := range d.Endpoints {
			if endpoint.Offers(m) {
				paths = append(paths, endpoint.Path)
			}
		}
		return paths
	}
	for _, endpoint := range []struct {
		form wire.Form
		path string
	}{{wire.FormChat, "/v1/chat/completions"}, {wire.FormResponses, "/v1/responses"}, {wire.FormMessages, "/native/v1/messages"},
		{wire.FormGemini, "/v1beta/models/{id}:generateContent"}, {wire.FormGemini, "/v1beta/models/{id}:streamGenerateContent"}} {
		if m.Supports(endpoint.form) {
			paths = append(paths, endpoint.path)
		}
	}
	return paths
}
