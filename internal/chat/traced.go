package chat

import (
	"bytes"
	"errors"
	"strings"

	"tollgate/internal/fault"
	"tollgate/internal/line"
	"tollgate/internal/trace"
	"tollgate/internal/upstream"
	"tollgate/internal/wire/rawjson"
)

// traceAttempt begins the span of an attempt.
func (x *exchange) traceAttempt(on *line.Attempt) *trace.Span {
	x.traced = x.Span.Attempt(trace.AttemptStart{
		Operation: trace.Chat, Line: on.Line.ID, Provider: on.Line.Provider, BaseURL: on.Line.BaseURL, Model: on.ProviderModel,
		Stream: x.asked.Stream,
	})
	x.named = false
	return x.traced
}

// maxTracedName bounds what is told of an answer's model and id, in bytes: they are a
// provider's words.
const maxTracedName = 256

// traceNames notes which model an answer is of and its id, by a whole answer or an event
// of a stream's beginning. It costs nothing where there is no span.
func (x *exchange) traceNames(data []byte) {
	if x.traced == nil || x.named {
		return
	}
	model, id := namesOf(data)
	x.named = model != ""
	x.traced.Named(model, id)
}

// namesOf returns the model and the id that an answer, or an event of a stream, shows in
// any form.
func namesOf(data []byte) (model, id string) {
	data = bytes.TrimSpace(data)
	if len(data) == 0 || data[0] != '{' {
		return "", ""
	}
	for name, value := range rawjson.Members(data) {
		switch string(name) {
		case "model", "modelVersion":
			model = tracedName(value)
		case "id", "responseId":
			id = tracedName(value)
		case "message", "response": // of the first event of messages and of responses
			if m, i := namesOf(value); m != "" {
				return m, i
			}
		}
	}
	return model, id
}

// tracedName is a JSON string, or empty for what is none or is too long.
func tracedName(value []byte) string {
	if !rawjson.IsText(value) || len(value) > maxTracedName+len(`""`) {
		return ""
	}
	return strings.ToValidUTF8(rawjson.Unquote(value), "")
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
