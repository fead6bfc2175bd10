package wire

import (
	"bytes"
	"fmt"
	"strings"
)

// messageID is the id of a translated message.
func messageID(id Identity) string { return "msg_" + strings.TrimPrefix(id.Request, "req_") }

// MessagesFromChat returns a whole answer of the chat form as a message, with
// u as its usage: the first choice's reasoning, text and calls, as blocks in
// this order. ErrMalformed when body is no JSON object.
func MessagesFromChat(body []byte, id Identity, u Usage) ([]byte, error) {
	body = bytes.TrimSpace(body)
	if len(body) == 0 || body[0] != '{' || !isValid(body) {
		return nil, ErrMalformed
	}
	var choice []byte
	for _, first := range elements(field(body, "choices")) {
		choice = first
		break
	}
	message := field(choice, "message")
	if message == nil {
		message = field(choice, "delta")
	}
	said := readSaid(message)
	var text, thought, calls []byte
	eachThought(said.thought, 0, func(raw []byte) { thought = appendInside(thought, raw) })
	eachContent(said.content, func(kind blockKind, raw []byte) {
		switch {
		case !isText(raw):
		case kind == thoughtKind:
			thought = appendInside(thought, raw)
		default:
			text = appendInside(text, raw)
		}
	})
	refused := len(text) == 0 && len(inside(said.refusal)) > 0
	if refused {
		text = appendInside(text, said.refusal)
	}
	count := 0
	for _, call := range elements(said.calls) {
		calls = appendToolUse(calls, field(call, "id"), field(call, "function"), id, count)
		count++
	}
	if count == 0 && said.function != nil {
		calls = appendToolUse(calls, nil, said.function, id, 0)
		count++
	}
	out := make([]byte, 0, len(body)+512)
	out = fmt.Appendf(out, `{"id":%s,"type":"message","role":"assistant","model":%s,"content":[`, quote(messageID(id)), quote(id.Model))
	if len(thought) > 0 {
		out = append(append(append(out, `{"type":"thinking","thinking":"`...), thought...), `","signature":""},`...)
	}
	if len(text) > 0 {
		out = append(append(append(out, `{"type":"text","text":"`...), text...), `"},`...)
	}
	out = bytes.TrimSuffix(append(out, calls...), []byte(","))
	reason := unquote(field(choice, "finish_reason"))
	out = fmt.Appendf(out, `],"stop_reason":%s,"stop_sequence":null,"usage":`, quote(stopReason(reason, count > 0, refused)))
	return append(appendSplitUsage(out, u), '}'), nil
}

// appendToolUse appends a call as a tool_use block, with a comma behind it.
func appendToolUse(dst, rawID, function []byte, id Identity, k int) []byte {
	dst = append(append(dst, `{"type":"tool_use","id":`...), toolUseID(rawID, id, k)...)
	dst = append(append(append(dst, `,"name":"`...), appendInside(nil, field(function, "name"))...), `","input":`...)
	return append(appendObject(dst, field(function, "arguments")), "},"...)
}

// toolUseID returns the id of the k-th call, as a JSON string that the form
// allows: the client sends it back, perhaps to a line that is strict.
func toolUseID(raw []byte, id Identity, k int) []byte {
	if text := unquote(raw); text != "" {
		return quote(toolID(text))
	}
	return quote(madeCallID(id, k))
}

// stopReason returns the stop_reason for a finish_reason. Some vendors say stop
// where there are calls. Which stop sequence was met no chat line tells.
func stopReason(reason string, calls, refused bool) string {
	switch kindOfFinish(reason) {
	case finishLimit:
		return "max_tokens"
	case finishFiltered:
		return "refusal"
	}
	switch {
	case calls:
		return "tool_use"
	case refused:
		return "refusal"
	}
	return "end_turn"
}

// appendSplitUsage writes a usage object of the messages form, where what was
// read from a cache or written to it is not part of the input.
func appendSplitUsage(dst []byte, u Usage) []byte {
	written := u.CacheWrite + u.CacheWrite1h
	dst = fmt.Appendf(dst, `{"input_tokens":%d,"cache_creation_input_tokens":%d,"cache_read_input_tokens":%d,"output_tokens":%d`,
		max(u.Prompt-u.Cached-written, 0), written, u.Cached, u.Completion)
	if u.Reasoning > 0 {
		dst = fmt.Appendf(dst, `,"output_tokens_details":{"thinking_tokens":%d}`, u.Reasoning)
	}
	return append(dst, '}')
}
