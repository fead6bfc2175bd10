package catalog

import (
	"slices"

	"tollgate/internal/catalog/tree"
	"tollgate/internal/money"
	"tollgate/internal/wire"
)

// The modalities with possible prices of their own. All other content is text, at the rates of the
// model.
const (
	modalityImage = "image"
	modalityAudio = "audio"

	modalities = "modalities" // the option to request modalities
)

// ModalityRates are the prices per million tokens of one modality, for tokens in a prompt and in an
// answer. If nil, the price is the price of text.
type ModalityRates struct {
	Input, Output *money.Price
}

// modalities reads the prices by modality. A single number is the price for answers.
func (r *reader) modalities(t *table) map[string]ModalityRates {
	n := t.get(modalities)
	if n == nil {
		return nil
	}
	of := r.table(t.at(modalities), n)
	if of == nil {
		return nil
	}
	out := map[string]ModalityRates{}
	for _, name := range []string{modalityImage, modalityAudio} {
		if n := of.get(name); n != nil {
			out[name] = r.modalityRates(of.at(name), n)
		}
	}
	of.close()
	return out
}

func (r *reader) modalityRates(path string, n *tree.Value) (v ModalityRates) {
	if n.Kind != tree.TableKind {
		if price, ok := r.price(path, n); ok {
			v.Output = &price
		}
		return v
	}
	t := r.table(path, n)
	for _, of := range []struct {
		key string
		to  **money.Price
	}{{"input", &v.Input}, {"output", &v.Output}} {
		if n := t.get(of.key); n != nil {
			if price, ok := r.price(t.at(of.key), n); ok {
				*of.to = &price
			}
		}
	}
	if len(n.Fields) == 0 {
		r.fault(path, n, "must name the price of input, of output or of both")
	}
	t.close()
	return v
}

// putModalities writes the prices by modality.
func putModalities(n *tree.Value, prices map[string]ModalityRates) {
	all := tree.Table()
	for _, name := range []string{modalityImage, modalityAudio} {
		v := prices[name]
		one := tree.Table()
		if v.Input != nil {
			one.Set("input", tree.Plain(v.Input.String()))
		}
		switch {
		case v.Output != nil && v.Input == nil:
			one = tree.Plain(v.Output.String())
		case v.Output != nil:
			one.Set("output", tree.Plain(v.Output.String()))
		case v.Input == nil:
			continue
		}
		all.Set(name, one)
	}
	if len(all.Fields) > 0 {
		n.Set(modalities, all.Inline())
	}
}

// asks reports whether a request asks for answers in a modality.
func (c Choice) asks(modality string) bool {
	return slices.ContainsFunc(c.Options, func(o wire.PricedField) bool { return o.Param == modalities && o.Name == modality })
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
// band. Output not requested by the client never costs more than text, because the hold only covers
// text.
func (m *Model) answerRate(modality string, rates *Rates, c Choice) money.Price {
	price := m.Price.Modalities[modality].Output
	switch {
	case price == nil:
		return rates.Output
	case c.asks(modality):
		return *price
	}
	return min(*price, rates.Output)
}

// dearestPrompt returns the highest possible price of a token in a prompt within the bound. Sound
// only occurs in files and video.
func (m *Model) dearestPrompt(rates *Rates, b wire.PromptBound) money.Price {
	price := rates.dearestInput()
	if b.Images > 0 || b.Unbounded {
		price = max(price, m.promptRate(modalityImage, rates))
	}
	if b.Unbounded {
		price = max(price, m.promptRate(modalityAudio, rates))
	}
	return price
}

// dearestAnswer returns the highest possible price of a token in the answer to a request.
func (m *Model) dearestAnswer(rates *Rates, c Choice) money.Price {
	return max(rates.Output, m.answerRate(modalityImage, rates, c), m.answerRate(modalityAudio, rates, c))
}
