package catalog

import (
	"math"
	"slices"

	"tollgate/internal/fault"
	"tollgate/internal/money"
	"tollgate/internal/wire"
)

// Choice is what changes the price of a request: what it chose, and whose it is.
type Choice struct {
	Options []wire.Priced // values of fields, the service tier among them
	Tools   []wire.Priced // hosted tools
	Calls   []CalledModel // calls of models beside the answer
	// Factor is what its account pays in place of each price here: so many times
	// it; 0: the price itself.
	Factor money.Factor
}

const (
	// promptSlack is added to the bytes of a body for what a provider puts
	// around the messages (readings: Holds).
	promptSlack = 1000
	// assumedCalls is how often a priced tool is held for when the request
	// sets no limit.
	assumedCalls = 10
	// maxUnits bounds any count in a bill, as package money asks for.
	maxUnits = 1 << 40

	serviceTier = "service_tier"
)

// OutputLimit returns how many tokens one answer of a request can have, for
// its hold, and the limit that the gateway adds for the line: 0 unless the
// request names none (limit 0) and the model sets a default.
func (m *Model) OutputLimit(limit int64) (held, sent int64) {
	switch {
	case limit > 0:
		return min(limit, m.MaxOutputTokens), 0
	case m.DefaultOutputTokens > 0:
		return m.DefaultOutputTokens, m.DefaultOutputTokens
	}
	return m.MaxOutputTokens, 0
}

// PromptTokens is the largest number of tokens that a prompt can count as: its
// bytes and a thousand, an image max_image_tokens, all of the context window
// where the body does not show the whole prompt, and never more than that.
func (m *Model) PromptTokens(b wire.PromptBound) int64 {
	if b.Unbounded {
		return m.ContextWindow
	}
	text, images := clamp(b.TextBytes, maxUnits), clamp(b.Images, 1<<30)
	return min(text+promptSlack+images*m.MaxImageTokens, m.ContextWindow)
}

// HighestCost is the highest possible cost of a request: what is held before
// it runs. limit is the request's own output limit (0: none), n the number of
// answers it asks for, each of which can be as long as the limit; the prompt
// is paid once. Of prices that depend on the prompt's length it takes the
// dearest whole bill that the bound allows; of options the dearest value that
// the request allows, which is never cheaper than no option at all, since a
// provider may serve a request at its ordinary tier.
//
// The bill of an answer whose usage stays within these bounds is never higher.
func (m *Model) HighestCost(b wire.PromptBound, limit, n int64, c Choice) money.Amount {
	prompt := m.PromptTokens(b)
	output, _ := m.OutputLimit(limit)
	output = clamp(output*clamp(max(n, 1), maxUnits/maxTokens), maxUnits)
	factor := m.highestFactor(c)

	highest := money.Amount(0)
	for i := -1; i < len(m.Price.Above); i++ {
		rates, longest := m.band(i)
		if i >= 0 && prompt <= m.Price.Above[i].PromptTokens {
			break // thresholds ascend: no longer band is in reach either
		}
		var s money.Sum
		s.Tokens(min(prompt, longest), m.dearestPrompt(rates, b), factor)
		s.Tokens(output, m.dearestAnswer(rates, c), factor)
		for _, tool := range c.Tools {
			calls := tool.MaxCalls
			if calls <= 0 {
				calls = assumedCalls
			}
			s.Each(min(calls, maxUnits), m.Price.Tools[tool.Name], m.toolFactor(tool))
		}
		m.holdCalls(&s, b, prompt, output, c)
		highest = max(highest, s.Held(c.Factor))
	}
	return highest
}

// Cost is what an answer costs by the usage that its provider reports: the
// rates of the answer's own prompt length, cached and cache-written parts and
// images and sound at their rates, the factor of the tier that the provider answered with if it
// says so and that tier is priced, else of the one requested, and the hosted
// tool calls that the answer shows; all of it times the account's factor. It is
// rounded once. Usage that contradicts itself (parts larger than their whole, negative counts) is read as what is
// possible; the cost is never negative.
func (m *Model) Cost(u wire.Usage, c Choice) money.Amount {
	var s money.Sum
	m.addTokens(&s, u, c)
	m.addToolCalls(&s, u, c)
	return s.Charged(c.Factor)
}

// addTokens adds the tokens of a usage to a bill.
func (m *Model) addTokens(s *money.Sum, u wire.Usage, c Choice) {
	factor, rates := m.factor(c, u.ServiceTier), m.RatesFor(clamp(u.Prompt, maxUnits))
	p := partsOf(u)
	s.Tokens(p.images, m.promptRate(modalityImage, rates), factor)
	s.Tokens(p.sound, m.promptRate(modalityAudio, rates), factor)
	s.Tokens(p.drawn, m.answerRate(modalityImage, rates, c), factor)
	s.Tokens(p.sung, m.answerRate(modalityAudio, rates, c), factor)
	p.images, p.sound, p.drawn, p.sung = 0, 0, 0, 0
	rates.charge(s, p, factor)
}

// addToolCalls adds the calls of hosted tools to a bill.
func (m *Model) addToolCalls(s *money.Sum, u wire.Usage, c Choice) {
	for name, calls := range u.ToolCalls {
		s.Each(clamp(calls, maxUnits), m.Price.Tools[name], m.toolsFactor(c, name))
	}
}

// parts are the tokens of a usage, each in one part of its prompt or its answer.
type parts struct {
	write1h, write, cached, images, sound, prompt int64
	drawn, sung, answer                           int64
}

// partsOf reads usage that contradicts itself as what is possible.
func partsOf(u wire.Usage) (p parts) {
	part := func(of *int64, tokens int64) int64 {
		tokens = clamp(tokens, *of)
		*of -= tokens
		return tokens
	}
	p.prompt, p.answer = clamp(u.Prompt, maxUnits), clamp(u.Completion, maxUnits)
	p.write1h, p.write, p.cached = part(&p.prompt, u.CacheWrite1h), part(&p.prompt, u.CacheWrite), part(&p.prompt, u.Cached)
	p.images, p.sound = part(&p.prompt, u.PromptImage), part(&p.prompt, u.PromptAudio)
	p.drawn, p.sung = part(&p.answer, u.CompletionImage), part(&p.answer, u.CompletionAudio)
	return p
}

// charge adds tokens to a bill, images and sound at the price of text.
func (v *Rates) charge(s *money.Sum, p parts, factor money.Factor) {
	s.Tokens(p.prompt+p.images+p.sound, v.Input, factor)
	s.Tokens(p.cached, v.CachedInput, factor)
	s.Tokens(p.write, v.CacheWrite, factor)
	s.Tokens(p.write1h, v.CacheWrite1h, factor)
	s.Tokens(p.answer+p.drawn+p.sung, v.Output, factor)
}

// CheckPriced refuses a request that chose an option or a hosted tool without
// a price: nothing runs that cannot be billed. The error is a 400
// invalid_request with the field at fault.
func (m *Model) CheckPriced(c Choice) error {
	for _, o := range c.Options {
		if _, ok := m.Price.Options[o.PriceKey()][o.Name]; !ok && !m.base(o.Param, o.Name) {
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

// toolOption returns the name under which the catalog prices an option inside a
// hosted tool: `image_generation.quality`.
func toolOption(tool, option wire.Priced) string { return tool.Name + "." + option.Option }

// toolFactor returns the factor on the price of a hosted tool's call: the
// product of the factors of its options.
func (m *Model) toolFactor(tool wire.Priced) money.Factor {
	factor := money.One
	for _, o := range tool.Options {
		factor = multiply(factor, m.Price.Options[toolOption(tool, o)][o.Name])
	}
	return factor
}

// toolsFactor returns the highest factor of the tools of a name in a request:
// an answer does not say which of them was called.
func (m *Model) toolsFactor(c Choice, name string) money.Factor {
	factor := money.Factor(0)
	for _, tool := range c.Tools {
		if tool.Name == name {
			factor = max(factor, m.toolFactor(tool))
		}
	}
	if factor == 0 {
		return money.One
	}
	return factor
}

// ChoiceOf returns what a request chose, and those of its routing fields whose
// value has no price here, so that only lines may get them which pass them.
func (m *Model) ChoiceOf(a *wire.Asked, factor money.Factor) (c Choice, routing []string) {
	c = Choice{Options: a.Options, Tools: a.Tools, Factor: factor}
	priced := func(o wire.Priced) bool {
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

// base reports whether a value of an option changes no rate: another name for
// leaving it out, as providers answer and some clients send, or a modality with a
// price of its own.
func (m *Model) base(option, value string) bool {
	return option == serviceTier && (value == "default" || value == "standard") ||
		option == modalities && m.Price.Modalities[value].Output != nil
}

// band returns the rates of price band i, -1 being the first, and the longest
// prompt that they apply to.
func (m *Model) band(i int) (rates *Rates, longest int64) {
	rates, longest = &m.Price.Rates, math.MaxInt64
	if i >= 0 {
		rates = &m.Price.Above[i].Rates
	}
	if i+1 < len(m.Price.Above) {
		longest = m.Price.Above[i+1].PromptTokens
	}
	return rates, longest
}

// RatesFor returns the rates of a prompt of so many tokens.
func (m *Model) RatesFor(prompt int64) *Rates {
	rates := &m.Price.Rates
	for i := range m.Price.Above {
		if prompt > m.Price.Above[i].PromptTokens {
			rates = &m.Price.Above[i].Rates
		}
	}
	return rates
}

func (v *Rates) dearestInput() money.Price {
	return max(v.Input, v.CachedInput, v.CacheWrite, v.CacheWrite1h)
}

// optionFactor returns the factor of an option's value; false when it has no
// price.
func (m *Model) optionFactor(option, value string) (money.Factor, bool) {
	if f, ok := m.Price.Options[option][value]; ok {
		return f, true
	}
	return money.One, m.base(option, value)
}

// highestFactor is the product of the dearest values that a request allows.
func (m *Model) highestFactor(c Choice) money.Factor {
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

// factor is what an answer's rates are multiplied by. A tier that the provider
// chose by itself never costs more than the request allowed.
func (m *Model) factor(c Choice, answered string) money.Factor {
	factor, tier := money.One, money.One
	for _, o := range c.Options {
		f, _ := m.optionFactor(o.PriceKey(), o.Name)
		if o.Param == serviceTier {
			tier = f
			continue
		}
		factor = multiply(factor, f)
	}
	if f, ok := m.optionFactor(serviceTier, answered); ok && answered != "" {
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
