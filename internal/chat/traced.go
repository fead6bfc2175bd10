package chat

import (
	"bytes"
	"errors"
	"iter"
	"strings"

	"tollgate/internal/call"
	"tollgate/internal/line"
	"tollgate/internal/trace"
	"tollgate/internal/upstream"
	"tollgate/internal/wire"
	"tollgate/internal/wire/rawjson"
)

// traceAttempt begins the span of an attempt.
func (x *chatRequest) traceAttempt(on *line.Attempt) *trace.Span {
	x.AttemptSpan = x.Span.Attempt(trace.AttemptStart{
		Operation: trace.Chat, Line: on.Line.ID, Provider: on.Line.Provider, BaseURL: on.Line.BaseURL, Model: on.ProviderModel,
		Stream: x.params.Stream,
	})
	x.modelTraced, x.finishes = false, nil
	return x.AttemptSpan
}

// maxTracedName bounds the traced model and id of an answer, in bytes, because providers choose
// them.
const maxTracedName = 256

// traceNames records the model and id of an answer in its span, from a whole answer or an event at
// a stream's beginning. It is a no-op without a span.
func (x *chatRequest) traceNames(data []byte) {
	if x.AttemptSpan == nil || x.modelTraced {
		return
	}
	model, id := namesOf(data)
	x.modelTraced = model != ""
	x.AttemptSpan.Answer(model, id)
}

// namesOf returns the model and the id in an answer or event of any form.
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

// tracedName returns the value of a JSON string, or empty if value is not a string or too long.
func tracedName(value []byte) string {
	if !rawjson.IsText(value) || len(value) > maxTracedName+len(`""`) {
		return ""
	}
	return strings.ToValidUTF8(rawjson.Unquote(value), "")
}

// maxTracedChoices bounds the traced finish reasons: the maximum number of choices in a request.
const maxTracedChoices = 128

// traceFinishes records the finish reasons in a whole answer or an event. It is a no-op without a
// span.
func (x *chatRequest) traceFinishes(data []byte) {
	if x.AttemptSpan == nil {
		return
	}
	for index, reason := range finishesOf(x.Target.Form, data) {
		if reason == "" || index < 0 || index >= maxTracedChoices {
			continue
		}
		for len(x.finishes) <= index {
			x.finishes = append(x.finishes, "")
		}
		x.finishes[index] = reason
	}
	x.AttemptSpan.FinishReasons(x.finishes)
}

// finishesOf yields the choices of an answer or event with their finish reasons in the words of
// their form, or empty reasons.
func finishesOf(form wire.Form, data []byte) iter.Seq2[int, string] {
	if data = bytes.TrimSpace(data); len(data) == 0 || data[0] != '{' {
		return onlyFinish(nil)
	}
	choices, reason := "choices", "finish_reason"
	switch form {
	case wire.FormMessages:
		end := rawjson.Field(data, "stop_reason")
		if end == nil {
			end = rawjson.Field(rawjson.Field(data, "delta"), "stop_reason")
		}
		return onlyFinish(end)
	case wire.FormResponses:
		if event := rawjson.Field(data, "response"); event != nil {
			data = event
		}
		if why := rawjson.NonNull(rawjson.Field(rawjson.Field(data, "incomplete_details"), "reason")); why != nil {
			return onlyFinish(why)
		}
		return onlyFinish(rawjson.Field(data, "status"))
	case wire.FormGemini:
		choices, reason = "candidates", "finishReason"
	}
	return func(yield func(int, string) bool) {
		for position, choice := range rawjson.Elements(rawjson.Field(data, choices)) {
			index, ok := rawjson.Count(rawjson.Field(choice, "index"))
			if !ok {
				index = int64(position)
			}
			if !yield(int(index), tracedName(rawjson.Field(choice, reason))) {
				return
			}
		}
	}
}

// onlyFinish yields one choice.
func onlyFinish(reason []byte) iter.Seq2[int, string] {
	return func(yield func(int, string) bool) { yield(0, tracedName(reason)) }
}

// traceBeginning records the beginning of an attempt. It ends the span of a failed attempt; the
// span of an answer continues until the request ends.
func (x *chatRequest) traceBeginning(r *call.UpstreamCall, err error) {
	if r.Span == nil {
		return
	}
	if err == nil {
		r.Span.Status(200)
		if x.params.Stream {
			r.Span.FirstChunk(x.Now().Sub(r.Start))
		}
		return
	}
	var f *upstream.Failure
	if errors.As(err, &f) {
		r.Span.Usage(f.Tokens.Prompt, f.Tokens.Cached, f.Tokens.Completion)
	}
	call.TraceFailure(r.Span, err)
}
