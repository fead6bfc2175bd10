package gemini

import (
	"bytes"

	"tollgate/internal/fault"
	"tollgate/internal/wire"
	"tollgate/internal/wire/rawjson"
	"tollgate/internal/wire/sse"
)

// streamWriter writes the objects of a stream as events or as one array.
type streamWriter struct {
	model []byte // the client's, as a JSON string
	array bool
	begun bool
}

func newStreamWriter(id wire.Identity, array bool) streamWriter {
	return streamWriter{model: rawjson.Quote(id.Model), array: array}
}

// open appends what precedes an object.
func (w *streamWriter) open(dst []byte) []byte {
	switch {
	case !w.array:
		return append(dst, "data: "...)
	case !w.begun:
		w.begun = true
		return append(dst, '[')
	}
	return append(dst, ",\n"...)
}

// close appends what follows an object.
func (w *streamWriter) close(dst []byte) []byte {
	if w.array {
		return dst
	}
	return append(dst, "\n\n"...)
}

// idle appends a keep-alive. It is an empty line, because Google's client for Python treats a comment as an
// error.
func (w *streamWriter) idle(dst []byte) []byte { return append(dst, '\n') }

// end appends the end of the stream.
func (w *streamWriter) end(dst []byte) []byte {
	switch {
	case !w.array:
		return dst
	case !w.begun:
		return append(dst, "[]\n"...)
	}
	return append(dst, "]\n"...)
}

// fail appends an error and the end of the stream.
func (w *streamWriter) fail(dst []byte, err *fault.Error) []byte {
	return w.end(w.close(append(w.open(dst), err.GoogleBody()...)))
}

// editor writes a stream for a client of the same form: the provider's objects with the client's model.
// It is not safe for concurrent use.
type editor struct{ stream streamWriter }

// Append appends an event read by the line's meter.
func (w *editor) Append(dst []byte, e sse.Event, _ wire.Frame) []byte {
	data := bytes.TrimSpace(e.Data)
	if len(data) == 0 {
		return w.stream.idle(dst)
	}
	object := Object(data)
	dst = w.stream.open(dst)
	for m := range rawjson.Spans(object) {
		if string(m.Name) == "modelVersion" {
			dst = appendLine(dst, object[:m.From])
			dst, object = append(dst, w.stream.model...), object[m.To:]
			break
		}
	}
	return w.stream.close(appendLine(dst, object))
}

// appendLine appends JSON without line breaks, which end a line of an event.
func appendLine(dst, json []byte) []byte {
	for line := range bytes.FieldsFuncSeq(json, func(r rune) bool { return r == '\n' || r == '\r' }) {
		dst = append(dst, line...)
	}
	return dst
}

// End implements wire.Writer. The provider's last object has the usage.
func (w *editor) End(dst []byte, _ wire.Usage) []byte { return w.stream.end(dst) }

// Fail implements wire.Writer.
func (w *editor) Fail(dst []byte, err *fault.Error) []byte { return w.stream.fail(dst, err) }

// Err implements wire.Writer. Every stream of the form can be written.
func (*editor) Err() error { return nil }
