package line

import (
	"context"
	"errors"

	"tollgate/internal/upstream"
	"tollgate/internal/upstream/chatcall"
)

// Count asks the first line in service with a token counter for a prompt's number of tokens. call
// builds the request for a line; if call fails, Count skips the line. known is false if no line
// counted. Count returns a *fault.Error if the provider rejected the client's request, but not for
// a translated request. Counting takes no slot and does not affect the line's health, except that a
// refused key is recorded.
func (l *Lines) Count(
	ctx context.Context, r RoutingRequest, call func(*Candidate) (chatcall.Call, error),
) (n int64, known bool, err error) {
	var buf [4]rankedLine
	for _, c := range order(buf[:0], l.eligible(r), r.Conversation) {
		ln, s := c.entry.line, c.entry.stats
		selector := l.selectKey(c.entry, "")
		selector.forRequest = r.Account != ""
		_, ok := selector.key.adapter.(chatcall.TokenCounter)
		form := formFor(c.entry, &r, "")
		if !ok || ln.UnusableReason != "" || form == "" || s.drained.Load() {
			continue
		}
		if reason, _, isHalfOpen := s.Admit(l.now, r.origin(form), false); reason != "" {
			continue
		} else if isHalfOpen {
			s.EndHalfOpen()
		}
		request, err := call(&Candidate{Line: ln, Form: form, ProviderModel: ln.Models[r.Model.ID]})
		if err != nil {
			continue
		}
		n, f := selector.count(ctx, request)
		if f == nil {
			return n, true, nil
		}
		if f.Rejection != nil && !f.LineSpecific && form == r.Form {
			c.entry.redact(f)
			return 0, false, f.Fault()
		}
	}
	return 0, false, nil
}

// count makes the call with one key after the other until the provider accepts a key.
func (s *keySelector) count(ctx context.Context, request chatcall.Call) (int64, *upstream.Failure) {
	for {
		counter, ok := s.key.adapter.(chatcall.TokenCounter)
		if !ok {
			return 0, &upstream.Failure{}
		}
		n, err := counter.CountTokens(ctx, request)
		if err == nil {
			s.recordAnswer()
			return n, nil
		}
		f := &upstream.Failure{}
		isFailure := errors.As(err, &f)
		f.Conceal(request.Body)
		if !isFailure || !s.recordFailure(f) {
			return 0, f
		}
	}
}
