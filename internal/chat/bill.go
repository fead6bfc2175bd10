package chat

import (
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
	if known {
		return reported
	}
	ours := 0
	if reported.Prompt == 0 {
		ours++
		reported.Prompt = min(x.Body.Prompt(x.opts.Counter, min(x.Model.MaxImageTokens, imageTokens)), x.Model.PromptTokens(x.asked.Bound))
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
	return reported
}

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
	if known {
		return u
	}
	if u.Prompt == 0 {
		u.Prompt = x.Body.Estimate()
	}
	u.Completion = max(u.Completion, x.stream.meter.Estimate())
	return u
}

// spent is what a stream has used at its provider: what that has reported, and
// of a stream that has brought tokens what we have counted.
func (x *exchange) spent(s *stream) upstream.TokenCounts {
	u, known := s.reported()
	return upstream.TokensOf(x.usage(u, known || !s.token, s.meter.Completion))
}

// structuralTokens is the largest completion that a vendor counts for an answer
// without content: streams of the messages form begin with a count of a few.
const structuralTokens = 16

// billable returns the usage to charge. A refusal before any output is free:
// vendors do not bill one (Anthropic) or count its prompt alone, and the client
// got nothing. Tokens that were counted beside the refused answer stay charged.
func billable(u wire.Usage, filtered, output bool) wire.Usage {
	if !filtered || output || u.Completion > structuralTokens || len(u.ToolCalls) > 0 {
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
