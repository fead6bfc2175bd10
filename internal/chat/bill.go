package chat

import (
	"slices"
	"tollgate/internal/call"
	"tollgate/internal/fault"

	"tollgate/internal/catalog"
	"tollgate/internal/ledger"
	"tollgate/internal/upstream"
	"tollgate/internal/wire"
)

// imageTokens is our own count of an image in a prompt without a provider's count: the count of a
// large vendor for an image of ordinary size.
const imageTokens = 765

// counts are the counts of an answer for its charge.
type counts struct {
	wire.Usage
	source ledger.UsageSource
}

// outputCounts are the gateway's counts of an answer.
type outputCounts interface {
	Completion(c *wire.Counter) int64
	SoundTokens() int64
}

// count completes a provider's report. Without a final report, the gateway counts: it counts the
// prompt if the provider has not, up to the prompt's bound, and takes the larger of both counts of
// the completion.
func (x *chatRequest) count(reported wire.Usage, known bool, output outputCounts) counts {
	source := ledger.SourceProvider
	if x.params.LongCache {
		reported = reported.LongWrites()
	}
	if known {
		return counts{reported, source}
	}
	gatewayCounts := 0
	// A provider summarizes before it answers, so its count may be the count of the summarized
	// prompt.
	if reported.Prompt == 0 || slices.ContainsFunc(x.choice.Calls, func(c catalog.CalledModel) bool { return !c.Rereads }) {
		count := min(x.Body.Prompt(&x.Counter, min(x.Model.MaxImageTokens, imageTokens)), x.Model.PromptTokens(x.params.Bound))
		count = min(count+x.params.Bound.Sound, x.Model.ContextWindow)
		if count > reported.Prompt {
			gatewayCounts++
			reported.Prompt, reported.PromptAudio = count, x.params.Bound.Sound
		}
	}
	if count := output.Completion(&x.Counter) + output.SoundTokens(); count >= reported.Completion {
		gatewayCounts++
		reported.Completion, reported.CompletionAudio = count, output.SoundTokens()
	}
	switch gatewayCounts {
	case 1:
		source = ledger.SourceBoth
	case 2:
		source = ledger.SourceGateway
	}
	return counts{x.withUnreported(reported), source}
}

// withUnreported adds the calls of other models seen in a broken stream. The provider reports their
// tokens only at the end, so each call counts as one reading of the prompt.
func (x *chatRequest) withUnreported(u wire.Usage) wire.Usage {
	u.Iterations = nil
	calls := min(u.ToolCalls[advisor], maxUnreported)
	i := slices.IndexFunc(x.choice.Calls, func(c catalog.CalledModel) bool { return c.Rereads })
	if calls == 0 || i < 0 {
		return u
	}
	own := wire.Iteration{Prompt: u.Prompt, Cached: u.Cached,
		CacheWrite: u.CacheWrite, CacheWrite1h: u.CacheWrite1h, CacheSplit: u.CacheSplit, Completion: u.Completion}
	advice := wire.Iteration{Model: x.choice.Calls[i].ModelCall.Model, Called: true, Prompt: u.Prompt}
	u.Iterations = append([]wire.Iteration{own}, slices.Repeat([]wire.Iteration{advice}, int(calls))...)
	u.Prompt += calls * advice.Prompt
	return u
}

// advisor is the hosted tool for calls of another model. maxUnreported bounds its charged calls
// without a report.
const (
	advisor       = "advisor"
	maxUnreported = 10
)

// reported returns the provider's usage of a stream and whether it is final. Before the end, a
// completion of zero is not final, because a later event may have the counts.
func (s *stream) reported() (wire.Usage, bool) {
	u, known := s.meter.Usage()
	return u, known && (s.ended || u.Completion > 0)
}

// currentCounts returns the counts of the stream so far.
func (s *stream) currentCounts() counts {
	reported, known := s.reported()
	return s.count(reported, known, s.meter)
}

// estimatedUsage is currentCounts with estimates in place of counts, because counting during the
// stream would cost too much.
func (s *stream) estimatedUsage() wire.Usage {
	u, known := s.reported()
	if s.params.LongCache {
		u = u.LongWrites()
	}
	if known {
		return u
	}
	if u.Prompt == 0 {
		u.Prompt = s.Body.Estimate()
	}
	if count := s.meter.Estimate() + s.meter.SoundTokens(); count > u.Completion {
		u.Completion, u.CompletionAudio = count, s.meter.SoundTokens()
	}
	return s.withUnreported(u)
}

// usedTokens returns the tokens used by a stream at its provider: the reported tokens and, if the
// stream had tokens, the gateway's counts.
func (s *stream) usedTokens() upstream.TokenCounts {
	u, known := s.reported()
	return upstream.TokensOf(s.count(u, known || !s.hasToken, s.meter).Usage)
}

// billable returns the usage to charge. A refusal before any output and without output tokens is
// free, because the vendor does not bill such an answer (Anthropic). Tool calls and further
// iterations stay charged.
func billable(u wire.Usage, filtered, output bool) wire.Usage {
	if !filtered || output || u.Completion > 0 || len(u.ToolCalls) > 0 || len(u.Iterations) > 1 {
		return u
	}
	return wire.Usage{CostNano: u.CostNano, HasCost: u.HasCost}
}

// bill returns the bill for the counts. code is the error of an incomplete answer, or empty.
func (a *attempt) bill(c counts, code fault.Code) call.Bill {
	if a.opts.UnknownUsage != nil {
		for _, member := range c.Unknown {
			a.opts.UnknownUsage(a.on.Line.ID, member)
		}
	}
	return call.Bill{
		Cost: a.Snapshot.Cost(a.on.Line, a.Model, c.Usage, a.choice), Tokens: tokens(c.Usage), Source: c.source, Code: code,
		LineCost: a.on.CostOf(a.Snapshot, a.Model, c.Usage, a.choice),
	}
}

// tokens returns a usage's counts for the receipt.
func tokens(u wire.Usage) ledger.Tokens {
	return ledger.Tokens{Prompt: u.Prompt, Cached: u.Cached, Completion: u.Completion}
}
