package chatmessages

import (
	"bytes"
	"fmt"
	"strconv"
	"strings"

	"tollgate/internal/wire"
	"tollgate/internal/wire/internal/form"
	"tollgate/internal/wire/rawjson"
)

// chatID is the id of a translated chat completion.
func chatID(id wire.Identity) string { return "chatcmpl-" + strings.TrimPrefix(id.Request, "req_") }

// madeCallID is the id of a tool call that came without one.
func madeCallID(id wire.Identity, n int) string {
	return "call_" + toolID(strings.TrimPrefix(id.Request, "req_")) + "_" + strconv.Itoa(n)
}

// chatAnswer returns a whole answer of the messages form as a chat
// completion, with u as its usage; ErrMalformed when body is no JSON object.
func chatAnswer(body []byte, id wire.Identity, u wire.Usage) ([]byte, error) {
	body = bytes.TrimSpace(body)
	if len(body) == 0 || body[0] != '{' || !rawjson.IsValid(body) {
		return nil, wire.ErrMalformed
	}
	var text, thought, calls []byte
	count, said := 0, false
	for _, b := range rawjson.Elements(rawjson.Field(body, "content")) {
		switch rawjson.Unquote(rawjson.Field(b, "type")) {
		case "text":
			text, said = appendInside(text, rawjson.Field(b, "text")), true
		case "thinking":
			thought = appendInside(thought, rawjson.Field(b, "thinking"))
		case "tool_use":
			calls = appendCall(append(calls, ','), b, id, count)
			count++
		}
	}
	reason := chatFinish(rawjson.Unquote(rawjson.Field(body, "stop_reason")), count > 0)
	out := make([]byte, 0, len(body)+512)
	out = fmt.Appendf(out,
		`{"id":%s,"object":"chat.completion","created":%d,"model":%s,"choices":[{"index":0,"message":{"role":"assistant","content":`,
		rawjson.Quote(chatID(id)), id.Created, rawjson.Quote(id.Model))
	if said || count == 0 {
		out = rawjson.Put(out, `"`, text, `"`)
	} else {
		out = append(out, "null"...)
	}
	out = append(out, `,"refusal":null`...)
	if len(thought) > 0 {
		out = rawjson.Put(out, `,"reasoning_content":"`, thought, `"`)
	}
	if count > 0 {
		calls[0] = '['
		out = append(rawjson.AppendMember(out, "tool_calls", calls), ']')
	}
	out = fmt.Appendf(out, `},"logprobs":null,"finish_reason":%s}],"usage":`, rawjson.Quote(reason))
	return append(appendChatUsage(out, u), '}'), nil
}

// appendCall appends a tool_use block as the k-th call of a chat message.
func appendCall(dst, b []byte, id wire.Identity, k int) []byte {
	dst = rawjson.Put(dst, `{"id":`, callID(rawjson.Field(b, "id"), id, k), "")
	dst = rawjson.Put(dst, `,"type":"function","function":{"name":"`, appendInside(nil, rawjson.Field(b, "name")), "")
	dst = append(dst, `","arguments":`...)
	if input := rawjson.Field(b, "input"); input != nil {
		dst = appendAsText(dst, input)
	} else {
		dst = append(dst, `"{}"`...)
	}
	return append(dst, "}}"...)
}

// callID returns the id of the k-th call, as a JSON string.
func callID(raw []byte, id wire.Identity, k int) []byte {
	if rawjson.IsSound(raw) && len(raw) > 2 {
		return raw
	}
	return rawjson.Quote(madeCallID(id, k))
}

// chatFinish returns the finish_reason for a stop_reason.
func chatFinish(reason string, calls bool) string {
	switch form.KindOfFinish(reason) {
	case form.FinishLimit:
		return "length"
	case form.FinishFiltered:
		return "content_filter"
	}
	if calls {
		return "tool_calls"
	}
	return "stop"
}

// appendChatUsage writes a usage object of the chat form that shows what was
// written to the provider's cache, which costs more than what was not.
func appendChatUsage(dst []byte, u wire.Usage) []byte {
	return fmt.Appendf(dst, `{"prompt_tokens":%d,"completion_tokens":%d,"total_tokens":%d,`+
		`"prompt_tokens_details":{"cached_tokens":%d,"cache_write_tokens":%d},"completion_tokens_details":{"reasoning_tokens":%d}}`,
		u.Prompt, u.Completion, u.Prompt+u.Completion, u.Cached, u.CacheWrite+u.CacheWrite1h, u.Reasoning)
}
