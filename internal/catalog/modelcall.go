package catalog

import (
	"regexp"
	"slices"
	"strings"

	"tollgate/internal/fault"
	"tollgate/internal/money"
	"tollgate/internal/wire"
)

// CalledModel is a call of another model, made by the provider while it serves a request. Model has
// the prices of the call.
type CalledModel struct {
	wire.ModelCall
	Model *Model
}

// CalledModels returns the models that a provider may call for a request to m. A call names a model
// by the gateway's ID or by a provider's ID. If the catalog has no open model with the name, the
// error is a 400 invalid_request, because nothing runs without a price.
func (s *Snapshot) CalledModels(m *Model, calls []wire.ModelCall) (models []CalledModel, err error) {
	for _, call := range calls {
		model := m
		if call.Model != "" {
			model = s.modelNamed(m, s.linesByModel[m.ID], call.Model)
		}
		if model == nil || model.State != StateOpen {
			return nil, fault.At(fault.InvalidRequest, call.Param,
				"Model %s is not offered with the model %s in `%s`, because that model has no price. Name another model there, or leave the tool out.",
				m.ID, quote(call.Model), call.Param)
		}
		models = append(models, CalledModel{call, model})
	}
	return models, nil
}

// modelNamed returns the chat model called name, or nil. name may be a provider's ID on the given
// lines, a provider's ID on another line, or the gateway's ID, in this order. IDs that differ only
// in vendor, region or date come last.
func (s *Snapshot) modelNamed(m *Model, lines []*Line, name string) *Model {
	for _, matches := range []func(id string) bool{
		func(id string) bool { return id == name },
		func(id string) bool { return bareID(id) == bareID(name) },
	} {
		for _, l := range lines {
			if matches(l.Models[m.ID]) {
				return m
			}
		}
		for _, l := range slices.Concat(lines, s.lines) {
			for _, other := range s.models {
				if id, ok := l.Models[other.ID]; ok && matches(id) && other.Kind == KindChat {
					return other
				}
			}
		}
		if i := slices.IndexFunc(s.models, func(o *Model) bool { return o.Kind == KindChat && matches(o.ID) }); i >= 0 {
			return s.models[i]
		}
	}
	return nil
}

// idSuffix matches the date or the Amazon version at the end of a provider's ID.
var idSuffix = regexp.MustCompile(`([-@]\d{8})?(-v\d+(:\d+)?)?$`)

// bareID returns a provider's ID of a model without the vendor or region before the name and
// without the date after it (`us.anthropic.NAME-20260101-v1:0`, `anthropic/NAME`, `NAME@20260101`).
func bareID(id string) string {
	id = id[strings.LastIndexByte(id, '/')+1:]
	if _, name, found := strings.Cut(id, "anthropic."); found {
		id = name
	}
	return idSuffix.ReplaceAllString(id, "")
}

// pricedModel returns the model whose prices apply to an iteration of an answer. If the provider
// called a model with an unknown name, pricedModel returns the most expensive of the models named
// in the request.
func (s *Snapshot) pricedModel(l *Line, m *Model, i wire.Iteration, c Pricing) *Model {
	if !i.Called && (i.Model == "" || bareID(i.Model) == bareID(l.Models[m.ID])) {
		return m
	}
	if i.Model != "" {
		if other := s.modelNamed(m, []*Line{l}, i.Model); other != nil {
			return other
		}
	}
	highest := m
	for _, call := range c.Calls {
		if i.Called && (highest == m || call.Model.Price.Output > highest.Price.Output) {
			highest = call.Model
		}
	}
	return highest
}

// Cost returns the cost of an answer from a line. Each iteration is billed at the prices of its
// model, by the length of its prompt. Without iterations, Cost is Model.Cost.
func (s *Snapshot) Cost(l *Line, m *Model, u wire.Usage, c Pricing) money.Amount {
	if len(u.Iterations) == 0 {
		return m.Cost(u, c)
	}
	var sum money.Sum
	for _, i := range u.Iterations {
		part := i.Usage()
		part.ServiceTier = u.ServiceTier
		s.pricedModel(l, m, i, c).addTokens(&sum, part, c)
	}
	m.addToolCalls(&sum, u, c)
	return sum.Charge(c.Factor)
}

// LineCost is like Line.Cost, but uses the provider's prices for the model of each iteration.
func (s *Snapshot) LineCost(l *Line, m *Model, u wire.Usage, c Pricing) (money.Amount, bool) {
	if len(u.Iterations) == 0 || u.HasCost {
		return l.Cost(m, u)
	}
	var sum money.Sum
	for _, i := range u.Iterations {
		rates := l.Costs.costOf(s.pricedModel(l, m, i, c).ID).Rates
		if rates == nil {
			return 0, false
		}
		rates.charge(&sum, partsOf(i.Usage()), money.One)
	}
	return sum.Round(), true
}

// holdCalls adds the highest possible cost of the calls of other models. prompt and output bound
// the tokens of the answer itself. A called model reads the prompt, the output so far and the
// output of earlier calls.
func (m *Model) holdCalls(s *money.Sum, b wire.PromptBound, prompt, output int64, c Pricing) {
	for _, call := range c.Calls {
		calls := clamp(call.Calls, maxUnits/maxTokens)
		if call.Calls <= 0 {
			calls = assumedCalls
		}
		callOutput := call.Model.MaxOutputTokens
		if call.MaxOutput > 0 {
			callOutput = min(call.MaxOutput, callOutput)
		}
		callPrompt := clamp(prompt, maxUnits/4)
		if call.Model != m || call.Rereads {
			callPrompt += clamp(output, maxUnits/4) + calls*callOutput
		}
		call.Model.holdTokens(s, b, calls*min(callPrompt, call.Model.ContextWindow), calls*callOutput, callPrompt, c)
		if call.Rereads {
			m.holdTokens(s, b, calls*min(callPrompt, m.ContextWindow), 0, callPrompt, c)
		}
	}
}

// holdTokens adds tokens at the highest rates for a prompt of at most maxPrompt tokens.
func (m *Model) holdTokens(s *money.Sum, b wire.PromptBound, prompt, output, maxPrompt int64, c Pricing) {
	promptRate, answerRate := m.highestPromptRate(&m.Price.Rates, b), m.highestAnswerRate(&m.Price.Rates, c)
	for i := range m.Price.Bands {
		if maxPrompt > m.Price.Bands[i].PromptTokens {
			rates := &m.Price.Bands[i].Rates
			promptRate, answerRate = max(promptRate, m.highestPromptRate(rates, b)), max(answerRate, m.highestAnswerRate(rates, c))
		}
	}
	factor := m.highestFactor(c)
	s.Tokens(clamp(prompt, maxUnits), promptRate, factor)
	s.Tokens(clamp(output, maxUnits), answerRate, factor)
}
