package catalog

import (
	"cmp"
	"math"
	"slices"

	"tollgate/internal/fault"
	"tollgate/internal/money"
	"tollgate/internal/wire"
)

// Pricing holds what affects the price of a request: the values chosen by the client and the
// account's factor.
type Pricing struct {
	Options []wire.PricedField // option values with a price, for example the service tier
	Tools   []wire.PricedField // hosted tools
	Calls   []CalledModel      // calls of other models by the provider
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
	// maxUnits bounds any count in a bill, because package money requires a bound.
	maxUnits = 1 << 40

	serviceTier = "service_tier"
)

// OutputLimit returns the number of output tokens to hold for one answer, and the default limit to
// send to the provider. limit is the client's limit, or 0. defaultLimit is 0 if the client has a
// limit or the model has no default.
func (m *Model) OutputLimit(limit int64) (holdLimit, defaultLimit int64) {
	switch {
	case limit > 0:
		return min(limit, m.MaxOutputTokens), 0
	case m.DefaultOutputTokens > 0:
		return m.DefaultOutputTokens, m.DefaultOutputTokens
	}
	return m.MaxOutputTokens, 0
}

// PromptTokens returns the maximum number of tokens in a prompt: its bytes plus a thousand, plus
// max_image_tokens for each image, but at most the context window. If part of the prompt is not in
// the body, PromptTokens returns the context window.
func (m *Model) PromptTokens(b wire.PromptBound) int64 {
	if b.Unbounded {
		return m.ContextWindow
	}
	text, images := clamp(b.TextBytes, maxUnits), clamp(b.Images, 1<<30)
	return min(text+promptSlack+images*m.MaxImageTokens, m.ContextWindow)
}

// HighestCost returns the highest possible cost of a request, which is held before the request
// runs. limit is the client's output limit, or 0. n is the number of answers, each with up to limit
// tokens. The prompt is billed once. If rates depend on the prompt's length, HighestCost computes
// the bill in every reachable band and returns the highest. For each option it uses the highest
// factor allowed by the request, and at least 1, because a provider may serve a request at its
// ordinary tier.
//
// The cost of an answer with usage within these bounds is never higher.
func (m *Model) HighestCost(b wire.PromptBound, limit, n int64, c Pricing) money.Amount {
	prompt := m.PromptTokens(b)
	output, _ := m.OutputLimit(limit)
	output += clamp(c.BeyondLimit, m.ContextWindow)
	output = clamp(output*clamp(max(n, 1), maxUnits/maxTokens), maxUnits)
	factor := m.highestFactor(c)

	highest := money.Amount(0)
	for i := -1; i < len(m.Price.Bands); i++ {
		rates, maxPrompt := m.band(i)
		if i >= 0 && prompt <= m.Price.Bands[i].PromptTokens {
			break // thresholds ascend, so the later bands are not reachable either
		}
		var s money.Sum
		s.Tokens(min(prompt, maxPrompt), m.highestPromptRate(rates, b), factor)
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

// Cost returns the cost of an answer with the provider's usage:
//   - the tokens at the rates for the prompt's length, with separate rates for cached tokens,
//     images and audio,
//   - times the factor of the service tier in the answer, or of the requested tier if the answer
//     has no tier with a price,
//   - plus the hosted tool calls in the answer,
//   - times the account's factor, rounded once.
//
// Contradictory usage (parts larger than their whole, negative counts) is limited to possible
// values, and the cost is never negative.
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
	s.Tokens(p.promptImage, m.promptRate(modalityImage, rates), factor)
	s.Tokens(p.promptAudio, m.promptRate(modalityAudio, rates), factor)
	s.Tokens(p.outputImage, m.answerRate(modalityImage, rates, c), factor)
	s.Tokens(p.outputAudio, m.answerRate(modalityAudio, rates, c), factor)
	p.promptImage, p.promptAudio, p.outputImage, p.outputAudio = 0, 0, 0, 0
	rates.charge(s, p, factor)
}

// addToolCalls adds the calls of hosted tools to a bill.
func (m *Model) addToolCalls(s *money.Sum, u wire.Usage, c Pricing) {
	for name, calls := range u.ToolCalls {
		s.Each(clamp(calls, maxUnits), m.Price.Tools[name], m.maxToolFactor(c, name))
	}
}

// parts splits the tokens of a usage into classes with one price each. No token is in two classes.
type parts struct {
	cacheWrite1h, cacheWrite, cacheRead, promptImage, promptAudio, promptText int64
	outputImage, outputAudio, outputText                                      int64
}

// partsOf splits usage into parts and limits contradictory usage to possible values.
func partsOf(u wire.Usage) (p parts) {
	part := func(total *int64, tokens int64) int64 {
		tokens = clamp(tokens, *total)
		*total -= tokens
		return tokens
	}
	p.promptText, p.outputText = clamp(u.Prompt, maxUnits), clamp(u.Completion, maxUnits)
	p.cacheWrite1h, p.cacheWrite = part(&p.promptText, u.CacheWrite1h), part(&p.promptText, u.CacheWrite)
	p.cacheRead = part(&p.promptText, u.Cached)
	p.promptImage, p.promptAudio = part(&p.promptText, u.PromptImage), part(&p.promptText, u.PromptAudio)
	p.outputImage, p.outputAudio = part(&p.outputText, u.CompletionImage), part(&p.outputText, u.CompletionAudio)
	return p
}

// charge adds all tokens to a bill at the rates of text.
func (r *Rates) charge(s *money.Sum, p parts, factor money.Factor) {
	s.Tokens(p.promptText+p.promptImage+p.promptAudio, r.Input, factor)
	s.Tokens(p.cacheRead, r.CachedInput, factor)
	s.Tokens(p.cacheWrite, r.CacheWrite, factor)
	s.Tokens(p.cacheWrite1h, r.CacheWrite1h, factor)
	s.Tokens(p.outputText+p.outputImage+p.outputAudio, r.Output, factor)
}

// CheckPriced returns an error if an option or a hosted tool has no price, because nothing runs
// without a price. The error is a 400 invalid_request with the field as param.
func (m *Model) CheckPriced(c Pricing) error {
	for _, o := range c.Options {
		if _, ok := m.Price.Options[o.PriceKey()][o.Name]; !ok && !m.isDefaultOption(o.PriceKey(), o.Name) {
			return fault.At(fault.InvalidRequest, o.Param,
				"Model %s is not offered with %s %s, because this value has no price. Leave %s out, or use another model.",
				m.ID, o.Param, quote(o.Name), o.Param)
		}
	}
	for _, t := range c.Tools {
		if _, ok := m.Price.Tools[t.Name]; !ok {
			return fault.At(fault.InvalidRequest, t.Param,
				"Model %s is not offered with the hosted tool %s, because this tool has no price. Leave the tool out, "+
					"or give the model a function tool of your own.",
				m.ID, quote(t.Name))
		}
		for _, o := range t.Options {
			if _, ok := m.Price.Options[toolOption(t, o)][o.Name]; !ok {
				return fault.At(fault.InvalidRequest, o.Param,
					"Model %s is not offered with %s %s of the tool %s, because this value has no price. Leave %s out, or use another model.",
					m.ID, o.Option, quote(o.Name), quote(t.Name), o.Option)
			}
		}
	}
	return nil
}

// toolOption returns the catalog's name for the price of an option inside a hosted tool:
// `image_generation.quality`.
func toolOption(tool, option wire.PricedField) string { return tool.Name + "." + option.Option }

// toolFactor returns the factor on the price of a hosted tool's call. It is the product of the
// factors of the tool's options.
func (m *Model) toolFactor(tool wire.PricedField) money.Factor {
	factor := money.One
	for _, o := range tool.Options {
		factor = multiply(factor, m.Price.Options[toolOption(tool, o)][o.Name])
	}
	return factor
}

// maxToolFactor returns the highest factor of the request's tools called name. The answer names the
// tool, but not which of several entries with different options was used.
func (m *Model) maxToolFactor(c Pricing, name string) money.Factor {
	factor := money.Factor(0)
	for _, tool := range c.Tools {
		if tool.Name == name {
			factor = max(factor, m.toolFactor(tool))
		}
	}
	return cmp.Or(factor, money.One)
}

// PricingOf returns the pricing of a request with an account's factor, and the names of the
// request's routing fields without a price. Such a field is sent only to lines with the field in
// `pass`.
func (m *Model) PricingOf(params *wire.Parameters, factor money.Factor) (c Pricing, routing []string) {
	c = Pricing{Options: params.Options, Tools: params.Tools, BeyondLimit: params.BeyondLimit, Factor: factor}
	hasPrice := func(o wire.PricedField) bool {
		_, ok := m.Price.Options[o.PriceKey()][o.Name]
		return ok
	}
	if !slices.ContainsFunc(params.Optional, hasPrice) {
		return c, params.Routing
	}
	c.Options, routing = slices.Clone(c.Options), slices.Clone(params.Routing)
	for _, o := range params.Optional {
		if hasPrice(o) {
			c.Options = append(c.Options, o)
			routing = slices.DeleteFunc(routing, func(name string) bool { return name == o.Param })
		}
	}
	return c, routing
}

// isDefaultOption reports whether an option's value has the factor 1 without a price: the ordinary
// service tier, a modality with its own output price, or sound with its own input price.
func (m *Model) isDefaultOption(option, value string) bool {
	switch option {
	case serviceTier:
		return value == "default" || value == "standard"
	case modalities:
		return m.Price.Modalities[value].Output != nil
	case inputAudio:
		return m.Price.Modalities[value].Input != nil
	}
	return false
}

// band returns the rates of price band i and the longest prompt of the band in tokens. Band -1 has
// the base rates.
func (m *Model) band(i int) (rates *Rates, maxPrompt int64) {
	rates, maxPrompt = &m.Price.Rates, math.MaxInt64
	if i >= 0 {
		rates = &m.Price.Bands[i].Rates
	}
	if i+1 < len(m.Price.Bands) {
		maxPrompt = m.Price.Bands[i+1].PromptTokens
	}
	return rates, maxPrompt
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

// highestInput returns the highest rate of a text token in a prompt.
func (r *Rates) highestInput() money.Price {
	return max(r.Input, r.CachedInput, r.CacheWrite, r.CacheWrite1h)
}

// optionFactor returns the factor of an option's value. It returns false if the value has no price
// and is not the default.
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
		if o.PriceKey() == serviceTier {
			tier = max(f, money.One)
			continue
		}
		factor = multiply(factor, max(f, money.One))
	}
	return multiply(factor, tier)
}

// answerFactor returns the factor on an answer's rates. A tier chosen by the provider never costs
// more than the request allows.
func (m *Model) answerFactor(c Pricing, answerTier string) money.Factor {
	factor, tier := money.One, money.One
	for _, o := range c.Options {
		f, _ := m.optionFactor(o.PriceKey(), o.Name)
		if o.PriceKey() == serviceTier {
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

// multiply returns the product of two factors, rounded up to a millionth and at most MaxFactor.
func multiply(a, b money.Factor) money.Factor {
	product := (int64(a)*int64(b) + int64(money.One) - 1) / int64(money.One)
	return money.Factor(min(product, int64(money.MaxFactor)))
}

// clamp returns the value between 0 and limit that is nearest to v.
func clamp(v, limit int64) int64 { return max(0, min(v, limit)) }
