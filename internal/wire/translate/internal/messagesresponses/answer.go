package messagesresponses

import (
	"bytes"

	"tollgate/internal/wire"
	"tollgate/internal/wire/internal/form"
	"tollgate/internal/wire/rawjson"
	"tollgate/internal/wire/translate/internal/item"
	"tollgate/internal/wire/translate/internal/piece"
)

// wholeAnswer returns an answer as a message with the usage u: reasoning, texts and calls as blocks
// in the order of the answer. It returns ErrMalformed if body is not a JSON object.
func (r messagesOnResponses) wholeAnswer(body []byte, u wire.Usage) ([]byte, error) {
	object := rawjson.Object(body)
	if object == nil {
		return nil, wire.ErrMalformed
	}
	o := newOutput(r.id, r.names())
	var blocks []*block
	o.reader.Whole(object, func(s item.AnswerStep) {
		b, begins := o.blockOf(s)
		if begins {
			blocks = append(blocks, b)
		}
		if b != nil && s.Kind != item.ReasoningEnd {
			b.Pending = append(b.Pending, s.Text...)
		}
	})
	out := make([]byte, 0, len(body)+512)
	out = piece.AppendMessageHead(out, r.id)
	for _, b := range blocks {
		out = o.appendBlock(out, b)
	}
	out = bytes.TrimSuffix(out, []byte(","))
	out = rawjson.Put(out, `],"stop_reason":"`, o.stopReason(), `","stop_sequence":null,"usage":`)
	return append(piece.AppendMessagesUsage(out, u), '}'), nil
}

// appendBlock appends a whole block and a comma. In a truncated answer, a call with truncated
// arguments is left out.
func (o *output) appendBlock(dst []byte, b *block) []byte {
	switch b.Kind {
	case piece.ThinkingBlock:
		dst = rawjson.Put(dst, `{"type":"thinking","thinking":"`, b.Pending, `","signature":"`)
		return rawjson.Put(dst, "", b.Seal, `"},`)
	case piece.RedactedBlock:
		return rawjson.Put(dst, `{"type":"redacted_thinking","data":"`, b.Seal, `"},`)
	case piece.CallBlock:
		text := rawjson.AppendUnquoted(nil, b.Pending)
		if o.reader.Finish() == form.FinishLimit && len(text) > 0 && !rawjson.IsValid(text) {
			return dst
		}
		dst = rawjson.Put(dst, `{"type":"tool_use","id":`, o.callID(b.call), `,"name":"`)
		dst = rawjson.Put(dst, "", b.call.Name, `","input":`)
		return append(piece.AppendObject(dst, rawjson.Put(nil, `"`, b.Pending, `"`)), "},"...)
	}
	return rawjson.Put(dst, `{"type":"text","text":"`, b.Pending, `"},`)
}
