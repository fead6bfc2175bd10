package catalog

import (
	"cmp"
	"math"
	"slices"

	"tollgate/internal/fault"
	"tollgate/internal/money"
	"tollgate/internal/wire"
)

// Pricing holds the parts of a request with an effect on its price, and the account's factor.
type Pricing struct {
	Options []wire.PricedField // values of fields, the service tier among them
	Tools   []wire.PricedField // hosted tools
	Calls   []CalledModel      // calls of models in addition to the answer
	// BeyondLimit is the number of output tokens billed on top of the limit.
	BeyondLimit int64
	// Factor multiplies every price for the account. Zero means 1.
	Factor money.Factor
}

const (
	// promptSlack is added to the bytes of a body, for the provider's text around the messages.
	promptSlack = 1000
	// assumedCalls is the number of calls of a priced tool that a hold covers if the request sets
	// no limit.
	assumedCalls = 10
	// maxUnits bounds any count in a bill, as package money asks for.
	maxUnits = 1 << 40

	serviceTier = "service_tier"
)

// OutputLimit returns the maximum number of tokens in one answer of a request, for its hold, and
// the limit added by the gateway for the line. The added limit is 0 unless the request has no limit
// (limit 0) and the model has a default.
func (m *Model) OutputLimit(limit int64) (holdLimit, defaultLimit int64) {
	switch {
	case limit > 0:
		return min(limit, m.MaxOutputTokens), 0
	case m.DefaultOutputTokens > 0:
		return m.DefaultOutputTokens, m.DefaultOutputTokens
	}
	return m.MaxOutputTokens, 0
}

// PromptTokens returns the maximum number of tokens of a prompt: its bytes plus a thousand, plus
// max_image_tokens per image, and at most the context window. If the body does not show the whole
// prompt, it is the context window.
func (m *Model) PromptTokens(b wire.PromptBound) int64 {
	if b.Unbounded {
		return m.ContextWindow
	}
	text, images := clamp(b.TextBytes, maxUnits), clamp(b.Images, 1<<30)
	return min(text+promptSlack+images*m.MaxImageTokens, m.ContextWindow)
}

// HighestCost returns the highest possible cost of a request, held before the request runs. limit
// is the request's own output limit (0 without one), and n is the number of answers, each up to the
// limit; the prompt is paid once. With prices by prompt length HighestCost uses the most expensive
// whole bill within the bound. With options it uses the most expensive value allowed by the
// request, and at least the price without options, because a provider may serve a request at its
// ordinary tier.
//
// The bill of an answer with usage within these bounds is never higher.
func (m *Model) HighestCost(b wire.PromptBound, limit, n int64, c Pricing) money.Amount {
	prompt := m.PromptTokens(b)
	output, _ := m.OutputLimit(limit)
	output += clamp(c.BeyondLimit, m.ContextWindow)
	output = clamp(output*clamp(max(n, 1), maxUnits/maxTokens), maxUnits)
	factor := m.highestFactor(c)

	highest := money.Amount(0)
	for i := -1; i < len(m.Price.Bands); i++ {
		rates, longest := m.band(i)
		if i >= 0 && prompt <= m.Price.Bands[i].PromptTokens {
			break // thresholds ascend: no longer band is in reach either
		}
		var s money.Sum
		s.Tokens(min(prompt, longest), m.highestPromptRate(rates, b), factor)
		s.Tokens(output, m.highestAnswerRate(rates, c), factor)
		for _, tool := range c.Tools {
			calls := tool.MaxCalls
			if calls <= 0 {
				calls = assumedCalls
			}
			s.Each(min(calls, maxUnits), m.Price.Tools[tool.Name], m.toolFactor(tool))
		}
		m.holdCalls(&s, b, prompt, output, c)
		highest = max(highest, s.Hold(c.Factor))
	}
	return highest
}

// Cost returns the cost of an answer by the usage from its provider: the rates of the answer's own
// prompt length; the rates of cached and cache-written parts, images and sound; the factor of the
// tier in the provider's answer, or of the requested tier if the answer's tier is missing or has no
// price; and the hosted tool calls in the answer; all of this times the account's factor. It is
// rounded once. Contradictory usage (parts larger than their whole, negative counts) is limited to
// possible values, and the cost is never negative.
func (m *Model) Cost(u wire.Usage, c Pricing) money.Amount {
	var s money.Sum
	m.addTokens(&s, u, c)
	m.addToolCalls(&s, u, c)
	return s.Charge(c.Factor)
}

// addTokens adds the tokens of a usage to a bill.
func (m *Model) addTokens(s *money.Sum, u wire.Usage, c Pricing) {
	factor, rates := m.answerFactor(c, u.ServiceTier), m.RatesFor(clamp(u.Prompt, maxUnits))
	p := partsOf(u)
	s.Tokens(p.images, m.promptRate(modalityImage, rates), factor)
	s.Tokens(p.audio, m.promptRate(modalityAudio, rates), factor)
	s.Tokens(p.outputImage, m.answerRate(modalityImage, rates, c), factor)
	s.Tokens(p.outputAudio, m.answerRate(modalityAudio, rates, c), factor)
	p.images, p.audio, p.outputImage, p.outputAudio = 0, 0, 0, 0
	rates.charge(s, p, factor)
}

// addToolCalls adds the calls of hosted tools to a bill.
func (m *Model) addToolCalls(s *money.Sum, u wire.Usage, c Pricing) {
	for name, calls := range u.ToolCalls {
		s.Each(clamp(calls, maxUnits), m.Price.Tools[name], m.maxToolFactor(c, name))
	}
}

// parts are the tokens of a usage, each in one part of its prompt or its answer.
type parts struct {
	write1h, write, cached, images, audio, prompt int64
	outputImage, outputAudio, outputText          int64
}

// partsOf splits usage into parts. Contradictory usage is limited to possible values.
func partsOf(u wire.Usage) (p parts) {
	part := func(total *int64, tokens int64) int64 {
		tokens = clamp(tokens, *total)
		*total -= tokens
		return tokens
	}
	p.prompt, p.outputText = clamp(u.Prompt, maxUnits), clamp(u.Completion, maxUnits)
	p.write1h, p.write, p.cached = part(&p.prompt, u.CacheWrite1h), part(&p.prompt, u.CacheWrite), part(&p.prompt, u.Cached)
	p.images, p.audio = part(&p.prompt, u.PromptImage), part(&p.prompt, u.PromptAudio)
	p.outputImage, p.outputAudio = part(&p.outputText, u.CompletionImage), part(&p.outputText, u.CompletionAudio)
	return p
}

// charge adds tokens to a bill, images and sound at the price of text.
func (v *Rates) charge(s *money.Sum, p parts, factor money.Factor) {
	s.Tokens(p.prompt+p.images+p.audio, v.Input, factor)
	s.Tokens(p.cached, v.CachedInput, factor)
	s.Tokens(p.write, v.CacheWrite, factor)
	s.Tokens(p.write1h, v.CacheWrite1h, factor)
	s.Tokens(p.outputText+p.outputImage+p.outputAudio, v.Output, factor)
}

// CheckPriced returns an error for an option or a hosted tool without a price: nothing runs without
// a price. The error is a 400 invalid_request with the field as param.
func (m *Model) CheckPriced(c Pricing) error {
	for _, o := range c.Options {
		if _, ok := m.Price.Options[o.PriceKey()][o.Name]; !ok && !m.isDefaultOption(o.Param, o.Name) {
			return fault.At(fault.InvalidRequest, o.Param,
				"Model %s is not offered with %s %s, because it has no price here. Leave %s out, or use another model.",
				m.ID, o.Param, quote(o.Name), o.Param)
		}
	}
	for _, t := range c.Tools {
		if _, ok := m.Price.Tools[t.Name]; !ok {
			return fault.At(fault.InvalidRequest, t.Param,
				"Model %s is not offered with the hosted tool %s, because it has no price here. Leave the tool out, "+
					"or give the model a function tool of your own.",
				m.ID, quote(t.Name))
		}
		for _, o := range t.Options {
			if _, ok := m.Price.Options[toolOption(t, o)][o.Name]; !ok {
				return fault.At(fault.InvalidRequest, o.Param,
					"Model %s is not offered with %s %s of the tool %s, because it has no price here. Leave %s out, or use another model.",
					m.ID, o.Option, quote(o.Name), quote(t.Name), o.Option)
			}
		}
	}
	return nil
}

// toolOption returns the catalog's name for the price of an option inside a hosted tool:
// `image_generation.quality`.
func toolOption(tool, option wire.PricedField) string { return tool.Name + "." + option.Option }

// toolFactor returns the factor on the price of a hosted tool's call: the
// product of the factors of its options.
func (m *Model) toolFactor(tool wire.PricedField) money.Factor {
	factor := money.One
	for _, o := range tool.Options {
		factor = multiply(factor, m.Price.Options[toolOption(tool, o)][o.Name])
	}
	return factor
}

// maxToolFactor returns the highest factor of a request's tools called name, because an answer does
// not name the called tool.
func (m *Model) maxToolFactor(c Pricing, name string) money.Factor {
	factor := money.Factor(0)
	for _, tool := range c.Tools {
		if tool.Name == name {
			factor = max(factor, m.toolFactor(tool))
		}
	}
	return cmp.Or(factor, money.One)
}

// PricingOf returns the choice of a request, and its routing fields with a value without a price
// here. Only lines with these fields in `pass` may get the routing fields.
func (m *Model) PricingOf(a *wire.Parameters, factor money.Factor) (c Pricing, routing []string) {
	c = Pricing{Options: a.Options, Tools: a.Tools, BeyondLimit: a.BeyondLimit, Factor: factor}
	priced := func(o wire.PricedField) bool {
		_, ok := m.Price.Options[o.PriceKey()][o.Name]
		return ok
	}
	if !slices.ContainsFunc(a.Optional, priced) {
		return c, a.Routing
	}
	c.Options, routing = slices.Clone(c.Options), slices.Clone(a.Routing)
	for _, o := range a.Optional {
		if priced(o) {
			c.Options = append(c.Options, o)
			routing = slices.DeleteFunc(routing, func(name string) bool { return name == o.Param })
		}
	}
	return c, routing
}

// isDefaultOption reports whether a value of an option changes no rate: another name for
// leaving it out, as providers answer and some clients send, or a modality with a
// price of its own.
func (m *Model) isDefaultOption(option, value string) bool {
	return option == serviceTier && (value == "default" || value == "standard") ||
		option == modalities && m.Price.Modalities[value].Output != nil
}

// band returns the rates of price band i, -1 being the first, and the band's longest prompt in
// tokens.
func (m *Model) band(i int) (rates *Rates, longest int64) {
	rates, longest = &m.Price.Rates, math.MaxInt64
	if i >= 0 {
		rates = &m.Price.Bands[i].Rates
	}
	if i+1 < len(m.Price.Bands) {
		longest = m.Price.Bands[i+1].PromptTokens
	}
	return rates, longest
}

// RatesFor returns the rates for the number of tokens in a prompt.
func (m *Model) RatesFor(prompt int64) *Rates {
	rates := &m.Price.Rates
	for i := range m.Price.Bands {
		if prompt > m.Price.Bands[i].PromptTokens {
			rates = &m.Price.Bands[i].Rates
		}
	}
	return rates
}

func (v *Rates) highestInput() money.Price {
	return max(v.Input, v.CachedInput, v.CacheWrite, v.CacheWrite1h)
}

// optionFactor returns the factor of an option's value; false when it has no
// price.
func (m *Model) optionFactor(option, value string) (money.Factor, bool) {
	if f, ok := m.Price.Options[option][value]; ok {
		return f, true
	}
	return money.One, m.isDefaultOption(option, value)
}

// highestFactor returns the product of the highest factors allowed by a request.
func (m *Model) highestFactor(c Pricing) money.Factor {
	factor, tier := money.One, money.One
	for _, o := range c.Options {
		f, _ := m.optionFactor(o.PriceKey(), o.Name)
		if o.Param == serviceTier {
			tier = max(f, money.One)
			continue
		}
		factor = multiply(factor, max(f, money.One))
	}
	return multiply(factor, tier)
}

// answerFactor returns the factor on an answer's rates. A tier chosen by the provider alone never costs
// more than the request allowed.
func (m *Model) answerFactor(c Pricing, answerTier string) money.Factor {
	factor, tier := money.One, money.One
	for _, o := range c.Options {
		f, _ := m.optionFactor(o.PriceKey(), o.Name)
		if o.Param == serviceTier {
			tier = f
			continue
		}
		factor = multiply(factor, f)
	}
	if f, ok := m.optionFactor(serviceTier, answerTier); ok && answerTier != "" {
		tier = min(f, max(tier, money.One))
	}
	return multiply(factor, tier)
}

// multiply returns the product of two factors, rounded up to a millionth and
// at most the largest factor.
func multiply(a, b money.Factor) money.Factor {
	product := (int64(a)*int64(b) + int64(money.One) - 1) / int64(money.One)
	return money.Factor(min(product, int64(money.MaxFactor)))
}

// clamp returns v within 0 and limit.
func clamp(v, limit int64) int64 { return max(0, min(v, limit)) }
