package chat

import (
	"errors"

	"tollgate/internal/fault"
	"tollgate/internal/line"
	"tollgate/internal/trace"
	"tollgate/internal/upstream"
)

// traceAttempt begins the span of an attempt.
func (x *exchange) traceAttempt(on *line.Attempt) *trace.Span {
	x.traced = x.Span.Attempt(trace.AttemptStart{
		Operation: trace.Chat, Line: on.Line.ID, Provider: on.Line.Provider, BaseURL: on.Line.BaseURL, Model: on.ProviderModel,
		Stream: x.asked.Stream,
	})
	return x.traced
}

// traceBeginning notes how an attempt began. The span of one that failed has ended; that
// of an answer goes on until the request has ended.
func (x *exchange) traceBeginning(r *run, err error) {
	if r.span == nil {
		return
	}
	if err == nil {
		r.span.Status(200)
		if x.asked.Stream {
			r.span.Began(x.opts.Now().Sub(r.began))
		}
		return
	}
	code := fault.UpstreamError
	var f *upstream.Failure
	if errors.As(err, &f) {
		code = f.Code
		r.span.Status(f.Status)
		r.span.Usage(f.Used.Prompt, f.Used.Cached, f.Used.Completion)
	}
	r.span.Fail(string(code))
	r.span.End()
}
