package messagesresponses

import (
	"bytes"
	"fmt"

	"tollgate/internal/wire"
	"tollgate/internal/wire/internal/form"
	"tollgate/internal/wire/rawjson"
	"tollgate/internal/wire/translate/internal/item"
	"tollgate/internal/wire/translate/internal/piece"
)

// wholeAnswer returns a whole answer as a message, with u as its usage: what the
// model thought, said and called, as blocks in the order of the answer.
// ErrMalformed when body is no JSON object.
func (r messagesOnResponses) wholeAnswer(body []byte, u wire.Usage) ([]byte, error) {
	object := rawjson.Object(body)
	if object == nil {
		return nil, wire.ErrMalformed
	}
	o := newSaid(r.id, r.names())
	var blocks []*block
	o.reader.Whole(object, func(s item.AnswerStep) {
		b, begins := o.take(s)
		if begins {
			blocks = append(blocks, b)
		}
		if b != nil && s.Kind != item.Thinking {
			b.held = append(b.held, s.Text...)
		}
	})
	out := make([]byte, 0, len(body)+512)
	out = fmt.Appendf(out, `{"id":%s,"type":"message","role":"assistant","model":%s,"content":[`,
		rawjson.Quote(piece.MessageID(r.id)), rawjson.Quote(r.id.Model))
	for _, b := range blocks {
		out = o.appendBlock(out, b)
	}
	out = bytes.TrimSuffix(out, []byte(","))
	out = rawjson.Put(out, `],"stop_reason":"`, o.stopReason(), `","stop_sequence":null,"usage":`)
	return append(piece.AppendMessagesUsage(out, u), '}'), nil
}

// appendBlock appends a whole block, with a comma behind it. Of an answer that
// was cut a call is left out whose arguments are.
func (o *said) appendBlock(dst []byte, b *block) []byte {
	switch b.kind {
	case thoughtBlock:
		dst = rawjson.Put(dst, `{"type":"thinking","thinking":"`, b.held, `","signature":"`)
		return rawjson.Put(dst, "", b.seal, `"},`)
	case sealedBlock:
		return rawjson.Put(dst, `{"type":"redacted_thinking","data":"`, b.seal, `"},`)
	case callBlock:
		text := rawjson.AppendUnquoted(nil, b.held)
		if o.reader.Finish() == form.FinishLimit && len(text) > 0 && !rawjson.IsValid(text) {
			return dst
		}
		dst = append(o.appendCall(dst, b.call), `,"input":`...)
		return append(piece.AppendObject(dst, rawjson.Put(nil, `"`, b.held, `"`)), "},"...)
	}
	return rawjson.Put(dst, `{"type":"text","text":"`, b.held, `"},`)
}
