// Package interactions owns the form of Google's Interactions API, for lines only: no client speaks it. It
// has the encoder of requests, the reader and the meter of answers. The reference is
// https://ai.google.dev/api/interactions-api with its steps, its error codes and its guide for stateless use.
//
// Invariants: no request is stored at the provider or continues an interaction stored there; thoughts with a
// signature are sent back at their place; an ambiguous answer is an error.
package interactions

import (
	"strings"

	"tollgate/internal/wire"
	"tollgate/internal/wire/internal/form"
	"tollgate/internal/wire/rawjson"
)

// ending is the end of an interaction, by its status and its errors.
type ending struct {
	kind   form.FinishKind // FinishNone before the end
	reason string          // of a failure: the status
	err    []byte          // of a failure: an error object, or nil
}

// endOf returns the end of an interaction, an object of an answer or an event. An unknown status is a
// failure.
func endOf(interaction []byte) ending {
	e := ending{reason: rawjson.Unquote(rawjson.Field(interaction, "status"))}
	switch e.reason {
	case "completed", "requires_action":
		e.kind = form.FinishStop
	case "incomplete", "budget_exceeded":
		e.kind = form.FinishLimit
	default:
		e.kind = form.FinishFailed
	}
	for _, err := range rawjson.Elements(rawjson.Field(interaction, "errors")) {
		e.fail(err)
	}
	for _, step := range rawjson.Elements(rawjson.Field(interaction, "steps")) {
		if err := rawjson.NonNull(rawjson.Field(step, "error")); err != nil {
			e.fail(err)
		}
	}
	return e
}

// fail records an error of an interaction. If Google withheld the output, the answer is filtered, and
// not failed.
func (e *ending) fail(err []byte) {
	switch code := rawjson.Unquote(rawjson.Field(err, "code")); {
	case e.kind == form.FinishFiltered:
	case isBlock(code):
		e.kind, e.err = form.FinishFiltered, nil
	default:
		e.kind, e.reason, e.err = form.FinishFailed, code, err
	}
}

// isBlock reports whether an error code says that Google withheld the output. The codes are the finish
// reasons of generateContent in small letters, and content_blocked.
func isBlock(code string) bool { return form.FinishOf(code) == form.FinishFiltered }

// readUsage reads a usage. Cached tokens are part of the input; thoughts are not part of the output.
func readUsage(raw []byte) (u form.UsageReport) {
	var output, thoughts, tools, total int64
	for name, value := range rawjson.Members(raw) {
		switch string(name) {
		case "total_input_tokens":
			u.Prompt, u.CountedPrompt = rawjson.Count(value)
		case "total_tool_use_tokens":
			tools, _ = rawjson.Count(value)
		case "total_cached_tokens":
			u.Cached, _ = rawjson.Count(value)
		case "total_output_tokens":
			output, u.CountedCompletion = rawjson.Count(value)
		case "total_thought_tokens":
			thoughts, _ = rawjson.Count(value)
		case "total_tokens":
			total, _ = rawjson.Count(value)
		case "input_tokens_by_modality", "tool_use_tokens_by_modality":
			image, audio := modalities(value)
			u.PromptImage, u.PromptAudio = u.PromptImage+image, u.PromptAudio+audio
		case "cached_tokens_by_modality": // these tokens have the price of cached tokens
			image, audio := modalities(value)
			u.PromptImage, u.PromptAudio = u.PromptImage-image, u.PromptAudio-audio
		case "output_tokens_by_modality":
			u.CompletionImage, u.CompletionAudio = modalities(value)
		case "grounding_tool_count":
		default:
			u.Unknown = form.AppendUnknown(u.Unknown, name, value)
		}
	}
	u.PromptImage, u.PromptAudio = max(u.PromptImage, 0), max(u.PromptAudio, 0)
	if !u.CountedPrompt {
		tools = 0
	}
	u.Prompt = min(u.Prompt+tools, rawjson.MaxCount)
	if rest := total - u.Prompt - thoughts; !u.CountedCompletion && u.CountedPrompt && rest > 0 {
		output, u.CountedCompletion = rest, true
	}
	u.Completion = min(output+thoughts, rawjson.MaxCount)
	u.Reasoning = min(thoughts, u.Completion)
	u.Cached = min(u.Cached, u.Prompt)
	return u
}

// modalities returns the tokens of images and audio in a list of counts by modality.
func modalities(list []byte) (image, audio int64) {
	for _, entry := range rawjson.Elements(list) {
		n, _ := rawjson.Count(rawjson.Field(entry, "tokens"))
		switch rawjson.Unquote(rawjson.Field(entry, "modality")) {
		case "image":
			image = min(image+n, rawjson.MaxCount)
		case "audio":
			audio = min(audio+n, rawjson.MaxCount)
		}
	}
	return image, audio
}

// ReportedUsage returns the usage of an answer, or of the interaction in an event.
func ReportedUsage(object []byte) wire.Usage {
	if interaction := rawjson.Field(object, "interaction"); interaction != nil {
		object = interaction
	}
	var r form.Reports
	r.Add(readUsage(rawjson.Field(object, "usage")), true)
	return r.Usage
}

// event holds the members of an event that the gateway reads. Absent members are nil.
type event struct {
	kind                string
	index               int64 // of the step, or -1
	step, delta         []byte
	interaction, status []byte
	usage               []byte // so far
}

func readEvent(name string, data []byte) event {
	e := event{index: -1}
	for member, value := range rawjson.Members(data) {
		if rawjson.NonNull(value) == nil {
			continue
		}
		switch string(member) {
		case "event_type":
			e.kind = wordOf(value)
		case "index":
			if n, ok := rawjson.Count(value); ok {
				e.index = n
			}
		case "step":
			e.step = value
		case "delta":
			e.delta = value
		case "interaction":
			e.interaction = value
		case "status":
			e.status = value
		case "usage":
			e.usage = value
		case "metadata":
			e.usage = rawjson.Field(value, "total_usage")
		}
	}
	if e.kind == "" {
		e.kind = name
	}
	return e
}

// hasFailed reports whether an event other than the last one says that the interaction failed.
func (e *event) hasFailed() bool {
	if !strings.HasPrefix(e.kind, "interaction.") {
		return false
	}
	for _, status := range []string{rawjson.Unquote(e.status), strings.TrimPrefix(e.kind, "interaction.")} {
		if status == "failed" || status == "cancelled" {
			return true
		}
	}
	return false
}

// wordOf returns the text of a JSON string, without an allocation for the words of most events.
func wordOf(raw []byte) string {
	if !rawjson.IsText(raw) {
		return ""
	}
	switch string(raw[1 : len(raw)-1]) {
	case "step.delta":
		return "step.delta"
	case "text":
		return "text"
	case "thought_summary":
		return "thought_summary"
	case "arguments_delta":
		return "arguments_delta"
	}
	return rawjson.Unquote(raw)
}

// typeOf returns the type of a step, a delta or a content.
func typeOf(object []byte) string { return wordOf(rawjson.Field(object, "type")) }

// textOf returns the text of a content of type text, a JSON string, or nil.
func textOf(content []byte) []byte {
	if typeOf(content) != "text" {
		return nil
	}
	text := rawjson.Field(content, "text")
	if !rawjson.IsText(text) || len(text) == 2 {
		return nil
	}
	return text
}
