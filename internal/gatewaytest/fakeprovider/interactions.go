package fakeprovider

import (
	"fmt"
	"strings"
)

// Interaction returns an answer in Google's Interactions dialect with a status, a usage and steps, all of
// them JSON but the status.
func Interaction(status, usage string, steps ...string) string {
	return fmt.Sprintf(`{"id":"v1_fake","object":"interaction","model":"vendor-model","status":%s,"steps":[%s],"usage":%s}`,
		quote(status), strings.Join(steps, ","), usage)
}

// InteractionUsage returns the usage of an interaction.
func InteractionUsage(inputTokens, outputTokens int) string {
	return fmt.Sprintf(`{"total_input_tokens":%d,"total_output_tokens":%d,"total_thought_tokens":0,"total_tokens":%d}`,
		inputTokens, outputTokens, inputTokens+outputTokens)
}

// InteractionText returns a step of the model with a text.
func InteractionText(text string) string {
	return `{"type":"model_output","content":[{"type":"text","text":` + quote(text) + `}]}`
}

// InteractionEvents returns a stream of the dialect: the beginning, events, and the end with a status and a
// usage, unless the status is empty.
func InteractionEvents(status, usage string, events ...string) Reply {
	all := append([]string{`{"interaction":{"id":"v1_fake","status":"in_progress"},"event_type":"interaction.created"}`}, events...)
	if status != "" {
		all = append(all, fmt.Sprintf(`{"interaction":{"id":"v1_fake","status":%s,"usage":%s},"event_type":"interaction.completed"}`,
			quote(status), usage), "[DONE]")
	}
	return Reply{Events: all}
}

// InteractionStep returns the events of a step: its start, its deltas and its end. step and deltas are JSON.
func InteractionStep(index int, step string, deltas ...string) []string {
	event := func(kind, more string) string {
		return fmt.Sprintf(`{"index":%d,%s"event_type":%q}`, index, more, kind)
	}
	events := []string{event("step.start", `"step":`+step+`,`)}
	for _, delta := range deltas {
		events = append(events, event("step.delta", `"delta":`+delta+`,`))
	}
	return append(events, event("step.stop", ""))
}

// InteractionDelta returns a delta with a text.
func InteractionDelta(text string) string { return `{"type":"text","text":` + quote(text) + `}` }

// InteractionError returns an error of the dialect. code is its name, such as invalid_request.
func InteractionError(status int, code, message string) Reply {
	return Reply{Status: status, Body: fmt.Sprintf(`{"error":{"code":%s,"message":%s}}`, quote(code), quote(message))}
}
