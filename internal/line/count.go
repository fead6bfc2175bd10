package line

import (
	"context"
	"errors"

	"tollgate/internal/upstream"
	"tollgate/internal/upstream/chatcall"
)

// Count returns the number of tokens of a prompt as counted by the first line in service with a
// token counter. call builds the request for a line; if it fails, Count skips the line. known is
// false if no line counted. The error is a *fault.Error: the provider rejected the request. A
// rejection of a translated request is not returned to the client. Counting takes no slot and
// leaves the line's health unchanged, but a refused key is not used again.
func (l *Lines) Count(
	ctx context.Context, r RoutingRequest, call func(*Candidate) (chatcall.Call, error),
) (n int64, known bool, err error) {
	var few [4]rankedLine
	for _, c := range order(few[:0], l.eligible(r), r.Conversation) {
		ln, t := c.entry.line, c.entry.stats
		selector := l.selectKey(c.entry, "")
		selector.ofRequest = r.Account != ""
		_, ok := selector.key.adapter.(chatcall.TokenCounter)
		form := formFor(c.entry, &r, "")
		if !ok || ln.UnusableReason != "" || form == "" || t.drained.Load() {
			continue
		}
		if why, _, isHalfOpen := t.Refuses(l.now, r.origin(form), false); why != "" {
			continue
		} else if isHalfOpen {
			t.EndHalfOpen()
		}
		ask, err := call(&Candidate{Line: ln, Form: form, ProviderModel: ln.Models[r.Model.ID]})
		if err != nil {
			continue
		}
		n, f := selector.count(ctx, ask)
		if f == nil {
			return n, true, nil
		}
		if f.Rejection != nil && !f.Elsewhere && form == r.Form {
			c.entry.redact(f)
			return 0, false, f.Fault()
		}
	}
	return 0, false, nil
}

// count tries one key after the other until one is accepted.
func (t *keySelector) count(ctx context.Context, ask chatcall.Call) (int64, *upstream.Failure) {
	for {
		counter, ok := t.key.adapter.(chatcall.TokenCounter)
		if !ok {
			return 0, &upstream.Failure{}
		}
		n, err := counter.CountTokens(ctx, ask)
		if err == nil {
			t.recordAnswer()
			return n, nil
		}
		f := &upstream.Failure{}
		known := errors.As(err, &f)
		f.Conceal(ask.Body)
		if !known || !t.recordFailure(f) {
			return 0, f
		}
	}
}
