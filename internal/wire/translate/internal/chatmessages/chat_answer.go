package chatmessages

import (
	"bytes"

	"tollgate/internal/wire"
	"tollgate/internal/wire/internal/form"
	"tollgate/internal/wire/rawjson"
	"tollgate/internal/wire/translate/internal/item"
	"tollgate/internal/wire/translate/internal/piece"
)

// messagesAnswer returns an answer of the chat form as a message with the usage u: the first
// choice's reasoning, text and calls, as blocks in this order, each call after its signature. It
// returns ErrMalformed if body is not a JSON object.
func messagesAnswer(body []byte, id wire.Identity, u wire.Usage) ([]byte, error) {
	body = bytes.TrimSpace(body)
	if len(body) == 0 || body[0] != '{' || !rawjson.IsValid(body) {
		return nil, wire.ErrMalformed
	}
	var choice []byte
	for _, first := range rawjson.Elements(rawjson.Field(body, "choices")) {
		choice = first
		break
	}
	message := rawjson.Field(choice, "message")
	if message == nil {
		message = rawjson.Field(choice, "delta")
	}
	m := readChatMessage(message)
	var text, thinking, calls []byte
	eachReasoning(m.reasoning, 0, func(raw []byte) { thinking = piece.AppendContents(thinking, raw) })
	eachContent(m.content, func(kind piece.BlockKind, raw []byte) {
		switch {
		case !rawjson.IsText(raw):
		case kind == piece.ThinkingBlock:
			thinking = piece.AppendContents(thinking, raw)
		default:
			text = piece.AppendContents(text, raw)
		}
	})
	refused := len(text) == 0 && len(rawjson.Contents(m.refusal)) > 0
	if refused {
		text = piece.AppendContents(text, m.refusal)
	}
	count := 0
	for _, call := range rawjson.Elements(m.calls) {
		if signature := item.SealSignature(id, call); signature != nil {
			calls = rawjson.Put(calls, `{"type":"redacted_thinking","data":"`, signature, `"},`)
		}
		calls = appendToolUse(calls, rawjson.Field(call, "id"), rawjson.Field(call, "function"), id, count)
		count++
	}
	if count == 0 && m.function != nil {
		calls = appendToolUse(calls, nil, m.function, id, 0)
		count++
	}
	out := make([]byte, 0, len(body)+512)
	out = piece.AppendMessageHead(out, id)
	if len(thinking) > 0 {
		out = rawjson.Put(out, `{"type":"thinking","thinking":"`, thinking, `","signature":""},`)
	}
	if len(text) > 0 {
		out = rawjson.Put(out, `{"type":"text","text":"`, text, `"},`)
	}
	out = bytes.TrimSuffix(append(out, calls...), []byte(","))
	reason := rawjson.Unquote(rawjson.Field(choice, "finish_reason"))
	out = rawjson.Put(out, `],"stop_reason":"`, piece.StopReason(form.FinishOf(reason), count > 0, refused), `","stop_sequence":null,"usage":`)
	return append(piece.AppendMessagesUsage(out, u), '}'), nil
}

// appendToolUse appends a call as a tool_use block and a comma.
func appendToolUse(dst, rawID, function []byte, id wire.Identity, k int) []byte {
	dst = rawjson.Put(dst, `{"type":"tool_use","id":`, toolUseID(rawID, id, k), "")
	dst = rawjson.Put(dst, `,"name":"`, piece.AppendContents(nil, rawjson.Field(function, "name")), `","input":`)
	return append(piece.AppendObject(dst, rawjson.Field(function, "arguments")), "},"...)
}

// toolUseID returns the id of the k-th call, as a JSON string in the form's alphabet: the client
// may return it to a strict line.
func toolUseID(raw []byte, id wire.Identity, k int) []byte {
	if text := rawjson.Unquote(raw); text != "" {
		return rawjson.Quote(piece.ToolID(text))
	}
	return rawjson.Quote(piece.NewCallID(id, k))
}
