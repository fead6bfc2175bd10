package messages

import (
	"bytes"

	"tollgate/internal/fault"
	"tollgate/internal/wire"
	"tollgate/internal/wire/rawjson"
	"tollgate/internal/wire/sse"
)

// editor writes the events of a messages stream for a client of the same form, with the client's
// model in the first event. It is not safe for concurrent use.
type editor struct {
	model   []byte // as a JSON string
	started bool   // after message_start or the first token
	ended   bool   // after a stop_reason
	stopped bool   // after message_stop
}

func newEditor(id wire.Identity) *editor {
	return &editor{model: rawjson.Quote(id.Model)}
}

// Append appends an event read by the line's meter as f. A closing `[DONE]`, unknown to the form,
// is left out.
func (w *editor) Append(dst []byte, e sse.Event, f wire.Frame) []byte {
	w.started, w.ended = w.started || f.Token, w.ended || f.Finish
	if f.Done {
		if string(bytes.TrimSpace(e.Data)) == "[DONE]" {
			return dst
		}
		w.stopped = true
	}
	if !w.started && len(e.Data) > 0 {
		return w.appendStart(dst, e)
	}
	return append(dst, e.Raw...)
}

// appendStart appends one of the first events, with the client's model if it has one.
func (w *editor) appendStart(dst []byte, e sse.Event) []byte {
	model, ok := findModel(e.Data)
	if !ok {
		return append(dst, e.Raw...)
	}
	w.started = true
	if e.Offset >= 0 {
		dst = append(dst, e.Raw[:e.Offset+model.From]...)
		dst = append(dst, w.model...)
		return append(dst, e.Raw[e.Offset+model.To:]...)
	}
	return sse.AppendLines(dst, e.Name, rawjson.Replace(e.Data, []rawjson.Splice{{From: model.From, To: model.To, Text: w.model}}))
}

// findModel finds the model in a message_start.
func findModel(data []byte) (model rawjson.Member, ok bool) {
	at := rawjson.SkipSpace(data, 0)
	for message := range rawjson.Spans(data[at:]) {
		if string(message.Name) != "message" {
			continue
		}
		from := at + message.From
		for model = range rawjson.Spans(data[from : at+message.To]) {
			if string(model.Name) == "model" {
				return rawjson.Member{Name: model.Name, From: from + model.From, To: from + model.To}, true
			}
		}
		break
	}
	return rawjson.Member{}, false
}

// End appends message_stop if the answer ended without it.
func (w *editor) End(dst []byte, _ wire.Usage) []byte {
	if w.stopped || !w.ended {
		return dst
	}
	w.stopped = true
	return append(dst, sse.MessageStop...)
}

// Fail appends the event for an error. Nothing may follow it.
func (w *editor) Fail(dst []byte, err *fault.Error) []byte {
	dst = append(dst, "event: error\ndata: "...)
	return rawjson.Put(dst, "", err.NativeBody(), "\n\n")
}

// Err implements wire.Writer. Every stream of the form can be written.
func (*editor) Err() error { return nil }
