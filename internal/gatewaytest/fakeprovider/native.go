package fakeprovider

import "fmt"

// The functions below are for the native messages form.

// NativeAnswer returns an answer of the messages form.
func NativeAnswer(text string, inputTokens, outputTokens int) Reply {
	return Reply{Body: fmt.Sprintf(
		`{"id":"msg_fake","type":"message","role":"assistant","model":"vendor-model","content":[{"type":"text","text":%s}],`+
			`"stop_reason":"end_turn","stop_sequence":null,"usage":%s}`, quote(text), nativeUsage(inputTokens, outputTokens))}
}

// NativeStream returns a stream of the messages form with one block of text and an event for each
// piece.
func NativeStream(inputTokens, outputTokens int, pieces ...string) Reply {
	raw := []string{NativeStart(inputTokens), NativeEvent("content_block_start", `"index":0,"content_block":{"type":"text","text":""}`)}
	for _, p := range pieces {
		raw = append(raw, NativeText(p))
	}
	raw = append(raw, NativeEvent("content_block_stop", `"index":0`), NativeEnd("end_turn", outputTokens), NativeStop())
	return NativeEvents(raw...)
}

// NativeEvents returns a stream of unchanged events.
func NativeEvents(raw ...string) Reply {
	return Reply{ContentType: "text/event-stream; charset=utf-8", Raw: raw}
}

// NativeEvent returns an event with its type and the given members.
func NativeEvent(name, members string) string {
	if members != "" {
		members = "," + members
	}
	return "event: " + name + "\n" + event(`{"type":`+quote(name)+members+`}`)
}

// NativeStart returns the first event, with the prompt tokens and one token of the answer.
func NativeStart(inputTokens int) string {
	return NativeEvent("message_start", fmt.Sprintf(`"message":{"id":"msg_fake","type":"message","role":"assistant","model":"vendor-model",`+
		`"content":[],"stop_reason":null,"stop_sequence":null,"usage":%s}`, nativeUsage(inputTokens, 1)))
}

// NativeText returns an event with text for block 0.
func NativeText(piece string) string {
	return NativeEvent("content_block_delta", `"index":0,"delta":{"type":"text_delta","text":`+quote(piece)+`}`)
}

// NativeEnd returns the event with the stop reason.
func NativeEnd(reason string, outputTokens int) string {
	return NativeEvent("message_delta", fmt.Sprintf(`"delta":{"stop_reason":%s,"stop_sequence":null},"usage":{"output_tokens":%d}`,
		quote(reason), outputTokens))
}

// NativeStop returns the last event.
func NativeStop() string { return NativeEvent("message_stop", "") }

// NativePing returns a ping.
func NativePing() string { return NativeEvent("ping", "") }

// NativeFailure returns the error event of a stream.
func NativeFailure(kind, message string) string {
	return NativeEvent("error", `"error":{"type":`+quote(kind)+`,"message":`+quote(message)+`}`)
}

// NativeError returns an error of the messages form.
func NativeError(status int, kind, message string) Reply {
	return Reply{Status: status,
		Body: `{"type":"error","error":{"type":` + quote(kind) + `,"message":` + quote(message) + `},"request_id":"req_fake"}`}
}

// NativeCount returns the answer to a token count.
func NativeCount(inputTokens int) Reply {
	return Reply{Body: fmt.Sprintf(`{"input_tokens":%d}`, inputTokens)}
}

func nativeUsage(input, output int) string {
	return fmt.Sprintf(`{"input_tokens":%d,"cache_creation_input_tokens":0,"cache_read_input_tokens":0,"output_tokens":%d,`+
		`"service_tier":"standard"}`,
		input, output)
}
