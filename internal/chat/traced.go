package chat

import (
	"bytes"
	"errors"
	"iter"
	"strings"

	"tollgate/internal/call"
	"tollgate/internal/upstream"
	"tollgate/internal/wire"
	"tollgate/internal/wire/rawjson"
)

// maxTracedName bounds the traced model and id of an answer, in bytes, because providers choose
// them.
const maxTracedName = 256

// traceNames records the model and id of an answer in its span, from a whole answer or an event at
// a stream's beginning. It is a no-op without a span.
func (a *attempt) traceNames(data []byte) {
	if a.call.Span == nil || a.modelTraced {
		return
	}
	model, id := namesOf(data)
	a.modelTraced = model != ""
	a.call.Span.Answer(model, id)
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
func (a *attempt) traceFinishes(data []byte) {
	if a.call.Span == nil {
		return
	}
	for index, reason := range finishesOf(a.on.Form, data) {
		if reason == "" || index < 0 || index >= maxTracedChoices {
			continue
		}
		for len(a.finishes) <= index {
			a.finishes = append(a.finishes, "")
		}
		a.finishes[index] = reason
	}
	a.call.Span.FinishReasons(a.finishes)
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
		if reason := rawjson.NonNull(rawjson.Field(rawjson.Field(data, "incomplete_details"), "reason")); reason != nil {
			return onlyFinish(reason)
		}
		return onlyFinish(rawjson.Field(data, "status"))
	case wire.FormInteractions:
		if event := rawjson.Field(data, "interaction"); event != nil {
			data = event
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
func (a *attempt) traceBeginning(err error) {
	if a.call.Span == nil {
		return
	}
	if err == nil {
		a.call.Span.Status(200)
		if a.params.Stream {
			a.call.Span.FirstChunk(a.Now().Sub(a.call.Start))
		}
		return
	}
	var f *upstream.Failure
	if errors.As(err, &f) {
		a.call.Span.Usage(f.Tokens.Prompt, f.Tokens.Cached, f.Tokens.Completion)
	}
	call.TraceFailure(a.call.Span, err)
}
