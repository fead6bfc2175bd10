package chat

import (
	"slices"

	"tollgate/internal/catalog"
	"tollgate/internal/ledger"
	"tollgate/internal/upstream"
	"tollgate/internal/wire"
)

// imageTokens is our own count of an image in a prompt, where the provider
// gave none: what a large vendor counts for one of ordinary size.
const imageTokens = 765

// usage completes what a provider reported. Without a report, or before its
// last word, we count ourselves: a prompt that it has not counted, never above
// what it can have, and of the completion the larger of the two counts
// (readings: Charges). It notes whose counts they are.
func (x *exchange) usage(reported wire.Usage, known bool, completion func(*wire.Counter) int64) wire.Usage {
	x.source = ledger.SourceProvider
	if x.asked.LongCache {
		reported = reported.LongWrites()
	}
	if known {
		return reported
	}
	ours := 0
	// A summary is made before the answer, so the provider's count may be that of
	// the summarized prompt.
	if reported.Prompt == 0 || slices.ContainsFunc(x.choice.Calls, func(c catalog.CalledModel) bool { return !c.Rereads }) {
		counted := min(x.Body.Prompt(x.opts.Counter, min(x.Model.MaxImageTokens, imageTokens)), x.Model.PromptTokens(x.asked.Bound))
		if counted > reported.Prompt {
			ours++
			reported.Prompt = counted
		}
	}
	if counted := completion(x.opts.Counter); counted >= reported.Completion {
		ours++
		reported.Completion = counted
	}
	switch ours {
	case 1:
		x.source = ledger.SourceBoth
	case 2:
		x.source = ledger.SourceGateway
	}
	return x.withUnreported(reported)
}

// withUnreported adds the calls of other models that a broken stream has shown.
// The provider reports their tokens only at the end, so each counts as one
// reading of the prompt.
func (x *exchange) withUnreported(u wire.Usage) wire.Usage {
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

// advisor is the hosted tool that asks another model, and maxUnreported bounds
// the calls of it that are charged without a report.
const (
	advisor       = "advisor"
	maxUnreported = 10
)

// reported is what the provider has reported of a stream, and whether that is
// its last word. While the end has not come a zero is none: the rest may hold
// the counts.
func (s *stream) reported() (wire.Usage, bool) {
	u, known := s.meter.Usage()
	return u, known && (s.ended || u.Completion > 0)
}

// produced is the usage of what the stream has brought.
func (x *exchange) produced() wire.Usage {
	reported, known := x.stream.reported()
	return x.usage(reported, known, x.stream.meter.Completion)
}

// estimated is produced without counting, which would cost too much while the
// stream flows.
func (x *exchange) estimated() wire.Usage {
	u, known := x.stream.reported()
	if x.asked.LongCache {
		u = u.LongWrites()
	}
	if known {
		return u
	}
	if u.Prompt == 0 {
		u.Prompt = x.Body.Estimate()
	}
	u.Completion = max(u.Completion, x.stream.meter.Estimate())
	return x.withUnreported(u)
}

// spent is what a stream has used at its provider: what that has reported, and
// of a stream that has brought tokens what we have counted.
func (x *exchange) spent(s *stream) upstream.TokenCounts {
	u, known := s.reported()
	return upstream.TokensOf(x.usage(u, known || !s.token, s.meter.Completion))
}

// billable returns the usage to charge. A refusal before any output, for which
// the vendor counts no output tokens, is free: the vendor does not bill such an
// answer (Anthropic). Tokens that were counted beside it stay charged.
func billable(u wire.Usage, filtered, output bool) wire.Usage {
	if !filtered || output || u.Completion > 0 || len(u.ToolCalls) > 0 || len(u.Iterations) > 1 {
		return u
	}
	return wire.Usage{CostNano: u.CostNano, HasCost: u.HasCost}
}

// waste notes what the answer used that has begun and that nobody got. It is
// not charged, so the request's own tokens do not contain it.
func (x *exchange) waste(t upstream.TokenCounts) {
	if n := len(x.attempts); n > 0 {
		x.attempts[n-1].Waste(x.on, x.Model, t)
	}
}

// tokens are a usage's counts on the receipt.
func tokens(u wire.Usage) ledger.Tokens {
	return ledger.Tokens{Prompt: u.Prompt, Cached: u.Cached, Completion: u.Completion}
}
