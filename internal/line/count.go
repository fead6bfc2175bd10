package line

import (
	"context"
	"errors"
	"iter"

	"tollgate/internal/upstream"
	"tollgate/internal/upstream/chatcall"
	"tollgate/internal/wire"
)

// CountingLine is a line that can count the tokens of a prompt. Counting takes no slot and does not
// affect the line's health, except that a refused key is recorded.
type CountingLine struct {
	Candidate
	selector   keySelector
	clientForm wire.Form
}

// CountingLines yields the lines in service with a token counter, in the order of attempts.
func (l *Lines) CountingLines(r RoutingRequest) iter.Seq[*CountingLine] {
	return func(yield func(*CountingLine) bool) {
		for _, c := range order(nil, l.eligible(r), r.Conversation) {
			if counter := l.countingLine(c.entry, &r); counter != nil && !yield(counter) {
				return
			}
		}
	}
}

// countingLine returns a line with a token counter, or nil if the line has none or is not in service.
func (l *Lines) countingLine(entry *routingEntry, r *RoutingRequest) *CountingLine {
	ln, s := entry.line, entry.stats
	selector := l.selectKey(entry, "")
	selector.forRequest = r.Account != ""
	_, ok := selector.key.adapter.(chatcall.TokenCounter)
	form := formFor(entry, r, "")
	if !ok || ln.UnusableReason != "" || form == "" || s.drained.Load() {
		return nil
	}
	if reason, _, isHalfOpen := s.Admit(l.now, r.origin(form), false); reason != "" {
		return nil
	} else if isHalfOpen {
		s.EndHalfOpen()
	}
	return &CountingLine{selector: selector, clientForm: r.Form,
		Candidate: Candidate{Line: ln, Form: form, ProviderModel: ln.Models[r.Model.ID]}}
}

// Count returns the number of tokens of a prompt. known is false if the line did not count. Count
// returns a *fault.Error if the provider rejected the client's request, but not for a translated
// request.
func (c *CountingLine) Count(ctx context.Context, request chatcall.Call) (n int64, known bool, err error) {
	n, f := c.selector.count(ctx, request)
	switch {
	case f == nil:
		return n, true, nil
	case f.Rejection != nil && !f.LineSpecific && c.Form == c.clientForm:
		c.selector.entry.redact(f)
		return 0, false, f.Fault()
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
