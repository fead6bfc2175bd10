package chat

import (
	"tollgate/internal/ledger"
	"tollgate/internal/wire"
)

// imageTokens is our own count of an image in a prompt, where the provider
// gave none: what a large vendor counts for one of ordinary size.
const imageTokens = 765

// usage completes what a provider reported. Without a report, or before its
// last word, what is missing is counted by ourselves; the prompt never above
// what it can have.
func (x *exchange) usage(reported wire.Usage, known bool, completion func(*wire.Counter) int64) wire.Usage {
	if known {
		return reported
	}
	if reported.Prompt == 0 {
		reported.Prompt = min(x.Body.Prompt(x.opts.Counter, min(x.Model.MaxImageTokens, imageTokens)), x.Model.PromptTokens(x.asked.Bound))
	}
	reported.Completion = completion(x.opts.Counter)
	return reported
}

// tokens are a usage's counts on the receipt.
func tokens(u wire.Usage) ledger.Tokens {
	return ledger.Tokens{Prompt: u.Prompt, Cached: u.Cached, Completion: u.Completion}
}
