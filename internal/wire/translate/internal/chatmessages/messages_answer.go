package chatmessages

import (
	"bytes"
	"fmt"

	"tollgate/internal/wire"
	"tollgate/internal/wire/internal/form"
	"tollgate/internal/wire/rawjson"
	"tollgate/internal/wire/translate/internal/piece"
)

// chatAnswer returns an answer of the messages form as a chat completion with the usage u. It
// returns ErrMalformed if body is not a JSON object.
func chatAnswer(body []byte, id wire.Identity, u wire.Usage) ([]byte, error) {
	body = bytes.TrimSpace(body)
	if len(body) == 0 || body[0] != '{' || !rawjson.IsValid(body) {
		return nil, wire.ErrMalformed
	}
	var text, thinking, calls []byte
	count, hasText := 0, false
	for _, b := range rawjson.Elements(rawjson.Field(body, "content")) {
		switch rawjson.Unquote(rawjson.Field(b, "type")) {
		case "text":
			text, hasText = piece.AppendContents(text, rawjson.Field(b, "text")), true
		case "thinking":
			thinking = piece.AppendContents(thinking, rawjson.Field(b, "thinking"))
		case "tool_use":
			calls = appendCall(append(calls, ','), b, id, count)
			count++
		}
	}
	reason := piece.FinishReason(form.FinishOf(rawjson.Unquote(rawjson.Field(body, "stop_reason"))), count > 0)
	out := make([]byte, 0, len(body)+512)
	out = append(piece.AppendChatHead(out, id, "chat.completion"), `[{"index":0,"message":{"role":"assistant","content":`...)
	if hasText || count == 0 {
		out = rawjson.Put(out, `"`, text, `"`)
	} else {
		out = append(out, "null"...)
	}
	out = append(out, `,"refusal":null`...)
	if len(thinking) > 0 {
		out = rawjson.Put(out, `,"reasoning_content":"`, thinking, `"`)
	}
	if count > 0 {
		calls[0] = '['
		out = append(rawjson.AppendMember(out, "tool_calls", calls), ']')
	}
	out = fmt.Appendf(out, `},"logprobs":null,"finish_reason":%s}],"usage":`, rawjson.Quote(reason))
	return append(piece.AppendChatUsage(out, u), '}'), nil
}

// appendCall appends a tool_use block as the k-th call of a chat message.
func appendCall(dst, b []byte, id wire.Identity, k int) []byte {
	dst = rawjson.Put(dst, `{"id":`, callID(rawjson.Field(b, "id"), id, k), "")
	dst = rawjson.Put(dst, `,"type":"function","function":{"name":"`, piece.AppendContents(nil, rawjson.Field(b, "name")), "")
	dst = append(dst, `","arguments":`...)
	if input := rawjson.Field(b, "input"); input != nil {
		dst = piece.AppendQuoted(dst, input)
	} else {
		dst = append(dst, `"{}"`...)
	}
	return append(dst, "}}"...)
}

// callID returns the id of the k-th call, a JSON string.
func callID(raw []byte, id wire.Identity, k int) []byte {
	if rawjson.IsString(raw) && len(raw) > 2 {
		return raw
	}
	return rawjson.Quote(piece.NewCallID(id, k))
}
