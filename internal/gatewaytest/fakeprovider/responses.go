package fakeprovider

import (
	"fmt"
	"strings"
)

// The functions below are for the responses form.

// ResponsesAnswer returns an answer of the responses form.
func ResponsesAnswer(text string, inputTokens, outputTokens int) Reply {
	return Reply{Body: ResponsesObject("completed", ResponsesUsage(inputTokens, outputTokens), ResponsesMessage(text))}
}

// ResponsesStream returns a stream of the responses form with one message and an event for each
// piece.
func ResponsesStream(inputTokens, outputTokens int, pieces ...string) Reply {
	events := ResponsesBegin()
	for _, p := range pieces {
		events = append(events, ResponsesText(p))
	}
	text := strings.Join(pieces, "")
	events = append(events,
		ResponsesEvent("response.output_text.done", `"item_id":"msg_fake","output_index":0,"content_index":0,"text":`+quote(text)+
			`,"logprobs":[]`),
		ResponsesEvent("response.content_part.done", `"item_id":"msg_fake","output_index":0,"content_index":0,"part":`+responsesPart(text)),
		ResponsesEvent("response.output_item.done", `"output_index":0,"item":`+ResponsesMessage(text)),
		ResponsesEnd("completed", ResponsesUsage(inputTokens, outputTokens), ResponsesMessage(text)))
	return ResponsesEvents(events...)
}

// ResponsesEvents returns a stream of events from ResponsesEvent and numbers them.
func ResponsesEvents(events ...string) Reply {
	raw := make([]string, len(events))
	for i, e := range events {
		raw[i] = strings.Replace(e, unnumbered, fmt.Sprintf(`"sequence_number":%d`, i), 1)
	}
	return Reply{ContentType: "text/event-stream; charset=utf-8", Raw: raw}
}

// unnumbered is a placeholder that ResponsesEvents replaces.
const unnumbered = `"sequence_number":-1`

// ResponsesEvent returns an event with its type, its number and the given members, for
// ResponsesEvents.
func ResponsesEvent(kind, members string) string {
	return "event: " + kind + "\n" + event(`{"type":`+quote(kind)+`,`+unnumbered+`,`+members+`}`)
}

// ResponsesBegin returns the events before the first text of a message.
func ResponsesBegin() []string {
	running := `"response":` + ResponsesObject("in_progress", "null")
	return []string{
		ResponsesEvent("response.created", running),
		ResponsesEvent("response.in_progress", running),
		ResponsesEvent("response.output_item.added",
			`"output_index":0,"item":{"id":"msg_fake","type":"message","role":"assistant","status":"in_progress","content":[]}`),
		ResponsesEvent("response.content_part.added", `"item_id":"msg_fake","output_index":0,"content_index":0,"part":`+responsesPart("")),
	}
}

// ResponsesText returns an event with text for the message of ResponsesBegin.
func ResponsesText(piece string) string {
	return ResponsesEvent("response.output_text.delta", `"item_id":"msg_fake","output_index":0,"content_index":0,"delta":`+quote(piece)+
		`,"logprobs":[]`)
}

// ResponsesEnd returns the last event, with a response in the given status. usage and output are
// JSON.
func ResponsesEnd(status, usage string, output ...string) string {
	return ResponsesEvent("response."+status, `"response":`+ResponsesObject(status, usage, output...))
}

// ResponsesFailure returns the error event.
func ResponsesFailure(code, message string) string {
	return ResponsesEvent("error", `"code":`+quote(code)+`,"message":`+quote(message)+`,"param":null`)
}

// ResponsesObject returns a response. usage and output are JSON.
func ResponsesObject(status, usage string, output ...string) string {
	details, failure := "null", "null"
	switch status {
	case "incomplete":
		details = `{"reason":"max_output_tokens"}`
	case "failed":
		failure = `{"code":"server_error","message":"The model failed."}`
	}
	return fmt.Sprintf(`{"id":"resp_fake","object":"response","created_at":1700000000,"status":%s,"error":%s,"incomplete_details":%s,`+
		`"model":"vendor-model","output":[%s],"parallel_tool_calls":true,"store":false,"tool_choice":"auto","tools":[],"usage":%s}`,
		quote(status), failure, details, strings.Join(output, ","), usage)
}

// ResponsesMessage returns a message with text.
func ResponsesMessage(text string) string {
	return `{"id":"msg_fake","type":"message","role":"assistant","status":"completed","content":[` + responsesPart(text) + `]}`
}

func responsesPart(text string) string {
	return `{"type":"output_text","text":` + quote(text) + `,"annotations":[],"logprobs":[]}`
}

// ResponsesUsage returns a usage object without cached tokens and reasoning.
func ResponsesUsage(inputTokens, outputTokens int) string {
	return fmt.Sprintf(`{"input_tokens":%d,"input_tokens_details":{"cached_tokens":0},"output_tokens":%d,`+
		`"output_tokens_details":{"reasoning_tokens":0},"total_tokens":%d}`, inputTokens, outputTokens, inputTokens+outputTokens)
}
