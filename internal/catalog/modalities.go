package catalog

import (
	"reflect"
	"slices"

	"tollgate/internal/catalog/tree"
	"tollgate/internal/money"
	"tollgate/internal/wire"
)

// The modalities that may have their own prices. All other content is billed as text.
const (
	modalityImage = "image"
	modalityAudio = "audio"

	modalities = "modalities"  // the option that requests modalities
	inputAudio = "input_audio" // the option that sends sound
)

// ModalityRates are the prices per million tokens of one modality, in a prompt and in an answer. If
// nil, the price of text applies.
type ModalityRates struct {
	Input  *money.Price `key:"input"`
	Output *money.Price `key:"output"`
}

// Tree returns the rates, or only the price for answers, or nil.
func (r ModalityRates) Tree() *tree.Value {
	switch {
	case r.Input == nil && r.Output == nil:
		return nil
	case r.Input == nil:
		return tree.Plain(r.Output.String())
	}
	n := tree.Table()
	encodeFields(n, reflect.ValueOf(r), "")
	return n
}

// modalityPrices are the rates by modality.
type modalityPrices map[string]ModalityRates

// Tree returns the rates by modality, or nil.
func (prices modalityPrices) Tree() *tree.Value {
	n := tree.Table()
	for _, name := range []string{modalityImage, modalityAudio} {
		if rates := prices[name].Tree(); rates != nil {
			n.Set(name, rates)
		}
	}
	if len(n.Fields) == 0 {
		return nil
	}
	return n
}

// modalities reads the prices by modality.
func (t *table) modalities() modalityPrices {
	entries := t.child(modalities)
	if entries == nil {
		return nil
	}
	out := modalityPrices{}
	for _, name := range []string{modalityImage, modalityAudio} {
		if n := entries.get(name); n != nil {
			out[name] = t.modalityRates(entries.pathOf(name), n)
		}
	}
	entries.close()
	return out
}

// modalityRates reads the prices of a modality. A single number is the price in an answer.
func (r *reader) modalityRates(path string, n *tree.Value) (v ModalityRates) {
	if n.Kind != tree.TableKind {
		if price, ok := r.price(path, n); ok {
			v.Output = &price
		}
		return v
	}
	t := r.table(path, n)
	for key, target := range map[string]**money.Price{"input": &v.Input, "output": &v.Output} {
		if n := t.get(key); n != nil {
			if price, ok := r.price(t.pathOf(key), n); ok {
				*target = &price
			}
		}
	}
	if len(n.Fields) == 0 {
		r.fault(path, n, "must have a price for input, for output, or for both")
	}
	t.close()
	return v
}

// requestsModality reports whether the client requests answers in a modality.
func (p Pricing) requestsModality(modality string) bool {
	return slices.ContainsFunc(p.Options, func(o wire.PricedField) bool { return o.PriceKey() == modalities && o.Name == modality })
}

// promptRate returns the price of a modality's tokens in a prompt, at the rates of the prompt's
// band.
func (m *Model) promptRate(modality string, rates *Rates) money.Price {
	if price := m.Price.Modalities[modality].Input; price != nil {
		return *price
	}
	return rates.Input
}

// answerRate returns the price of a modality's tokens in an answer, at the rates of the prompt's
// band. If the client did not request the modality, its tokens never cost more than text, because
// the hold only covers text.
func (m *Model) answerRate(modality string, rates *Rates, c Pricing) money.Price {
	price := m.Price.Modalities[modality].Output
	switch {
	case price == nil:
		return rates.Output
	case c.requestsModality(modality):
		return *price
	}
	return min(*price, rates.Output)
}

// highestPromptRate returns the highest possible price of a token in a prompt within the bound.
// Audio tokens only come from sound, files and videos, and such prompts are unbounded.
func (m *Model) highestPromptRate(rates *Rates, b wire.PromptBound) money.Price {
	price := rates.highestInput()
	if b.Images > 0 || b.Unbounded {
		price = max(price, m.promptRate(modalityImage, rates))
	}
	if b.Unbounded {
		price = max(price, m.promptRate(modalityAudio, rates))
	}
	return price
}

// highestAnswerRate returns the highest possible price of a token in the answer to a request.
func (m *Model) highestAnswerRate(rates *Rates, c Pricing) money.Price {
	return max(rates.Output, m.answerRate(modalityImage, rates, c), m.answerRate(modalityAudio, rates, c))
}
