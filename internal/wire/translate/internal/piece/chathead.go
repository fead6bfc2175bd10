package piece

import (
	"strconv"

	"tollgate/internal/wire"
	"tollgate/internal/wire/internal/form"
	"tollgate/internal/wire/rawjson"
)

// AppendChatHead appends the start of a chat completion object, up to its choices.
func AppendChatHead(dst []byte, id wire.Identity, object string) []byte {
	dst = rawjson.Put(dst, `{"id":`, rawjson.Quote(ChatID(id)), "")
	dst = rawjson.Put(dst, `,"object":"`, object, `","created":`)
	dst = strconv.AppendInt(dst, id.Created, 10)
	return rawjson.Put(dst, `,"model":`, rawjson.Quote(id.Model), `,"choices":`)
}

// AppendUsageChunk appends the usage chunk of a chat stream.
func AppendUsageChunk(dst []byte, id wire.Identity, u wire.Usage) []byte {
	dst = append(AppendChatHead(append(dst, "data: "...), id, "chat.completion.chunk"), `[],"usage":`...)
	return append(AppendChatUsage(dst, u), "}\n\n"...)
}

// FinishReason returns the finish_reason of a chat answer with or without tool calls. The reason
// is `stop` if the provider failed after some content.
func FinishReason(kind form.FinishKind, calls bool) string {
	switch {
	case kind == form.FinishLimit:
		return "length"
	case kind == form.FinishFiltered:
		return "content_filter"
	case calls:
		return "tool_calls"
	}
	return "stop"
}

// StopReason returns the stop_reason of a message with or without tool calls. refused is set if the
// text is a refusal.
func StopReason(kind form.FinishKind, calls, refused bool) string {
	switch {
	case kind == form.FinishLimit:
		return "max_tokens"
	case kind == form.FinishFiltered:
		return "refusal"
	case calls:
		return "tool_use"
	case refused:
		return "refusal"
	}
	return "end_turn"
}
