package fakeprovider

import "fmt"

// The helpers below speak the native messages form.

// NativeAnswer is a good answer of the messages form with a text and its
// usage.
func NativeAnswer(text string, inputTokens, outputTokens int) Reply {
	return Reply{Body: fmt.Sprintf(
		`{"id":"msg_fake","type":"message","role":"assistant","model":"vendor-model","content":[{"type":"text","text":%s}],`+
			`"stop_reason":"end_turn","stop_sequence":null,"usage":%s}`, quote(text), nativeUsage(inputTokens, outputTokens))}
}

// NativeStream is a good stream of the messages form: one block of text, an
// event a piece.
func NativeStream(inputTokens, outputTokens int, pieces ...string) Reply {
	raw := []string{NativeStart(inputTokens), NativeEvent("content_block_start", `"index":0,"content_block":{"type":"text","text":""}`)}
	for _, p := range pieces {
		raw = append(raw, NativeText(p))
	}
	raw = append(raw, NativeEvent("content_block_stop", `"index":0`), NativeEnd("end_turn", outputTokens), NativeStop())
	return NativeEvents(raw...)
}

// NativeEvents is a stream of events that are sent just as they are.
func NativeEvents(raw ...string) Reply {
	return Reply{ContentType: "text/event-stream; charset=utf-8", Raw: raw}
}

// NativeEvent is an event with the given members beside its type.
func NativeEvent(name, members string) string {
	if members != "" {
		members = "," + members
	}
	return "event: " + name + "\n" + event(`{"type":`+quote(name)+members+`}`)
}

// NativeStart is the first event: the prompt is counted, and one token of the
// answer.
func NativeStart(inputTokens int) string {
	return NativeEvent("message_start", fmt.Sprintf(`"message":{"id":"msg_fake","type":"message","role":"assistant","model":"vendor-model",`+
		`"content":[],"stop_reason":null,"stop_sequence":null,"usage":%s}`, nativeUsage(inputTokens, 1)))
}

// NativeText is a piece of the text in block 0.
func NativeText(piece string) string {
	return NativeEvent("content_block_delta", `"index":0,"delta":{"type":"text_delta","text":`+quote(piece)+`}`)
}

// NativeEnd is the event that says why the answer stopped.
func NativeEnd(reason string, outputTokens int) string {
	return NativeEvent("message_delta", fmt.Sprintf(`"delta":{"stop_reason":%s,"stop_sequence":null},"usage":{"output_tokens":%d}`,
		quote(reason), outputTokens))
}

// NativeStop is the last event.
func NativeStop() string { return NativeEvent("message_stop", "") }

// NativePing is an event that means nothing.
func NativePing() string { return NativeEvent("ping", "") }

// NativeFailure is the event with which a stream fails.
func NativeFailure(kind, message string) string {
	return NativeEvent("error", `"error":{"type":`+quote(kind)+`,"message":`+quote(message)+`}`)
}

// NativeError is an error answer of the messages form.
func NativeError(status int, kind, message string) Reply {
	return Reply{Status: status,
		Body: `{"type":"error","error":{"type":` + quote(kind) + `,"message":` + quote(message) + `},"request_id":"req_fake"}`}
}

// NativeCount answers a request that counts tokens.
func NativeCount(inputTokens int) Reply {
	return Reply{Body: fmt.Sprintf(`{"input_tokens":%d}`, inputTokens)}
}

func nativeUsage(input, output int) string {
	return fmt.Sprintf(`{"input_tokens":%d,"cache_creation_input_tokens":0,"cache_read_input_tokens":0,"output_tokens":%d,`+
		`"service_tier":"standard"}`,
		input, output)
}
