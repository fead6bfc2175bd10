package responses

import (
	"bytes"

	"tollgate/internal/fault"
	"tollgate/internal/wire"
	"tollgate/internal/wire/rawjson"
	"tollgate/internal/wire/sse"
)

// editor writes the events of a responses stream for a client of the same form, with the gateway's members in
// the response objects. It records the data for an error event. It is not safe for concurrent use.
type editor struct {
	identity wire.Identity
	request  *Request
	edits    objectEdits

	next        int64  // the next sequence number
	id, created []byte // of the provider's response, as JSON; nil before the first
}

// newEditor returns the editor of the answer to r.
func newEditor(id wire.Identity, r *Request) *editor {
	return &editor{identity: id, request: r, edits: newObjectEdits(r, id)}
}

// Append appends an event, including the terminal one. A closing `[DONE]`, unknown to the form, is
// left out.
func (w *editor) Append(dst []byte, e sse.Event, f wire.Frame) []byte {
	start := rawjson.SkipSpace(e.Data, 0)
	if start == len(e.Data) || e.Data[start] != '{' {
		if f.Done {
			return dst
		}
		return append(dst, e.Raw...)
	}
	before := w.next
	response, ok := w.read(e.Data[start:])
	if f.Finished { // if the settlement fails, an error event reuses the number
		w.next = before
	}
	if !ok {
		return append(dst, e.Raw...)
	}
	from := start + response.From
	object := e.Data[from : start+response.To]
	w.remember(object)
	edits := w.edits.of(object)
	if len(edits) == 0 {
		return append(dst, e.Raw...)
	}
	if e.Offset < 0 {
		return sse.AppendLines(dst, e.Name, rawjson.Replace(e.Data, shift(edits, from)))
	}
	at := 0
	for _, edit := range shift(edits, e.Offset+from) {
		dst = append(dst, e.Raw[at:edit.From]...)
		dst = append(dst, edit.Text...)
		at = edit.To
	}
	return append(dst, e.Raw[at:]...)
}

// read records the event's number and returns the bounds of its response object. It returns false
// for nearly all events, which have none.
func (w *editor) read(data []byte) (response rawjson.Member, ok bool) {
	var kind []byte
	numbered := false
	for m := range rawjson.Spans(data) {
		value := data[m.From:m.To]
		switch string(m.Name) {
		case "type":
			kind = value
		case "sequence_number":
			if n, isCount := rawjson.Count(value); isCount {
				w.next, numbered = n+1, true
			}
		case "response":
			response, ok = m, value[0] == '{'
		}
		if numbered && kind != nil && (ok || !hasResponse(kind)) {
			return response, ok
		}
	}
	if !numbered {
		w.next++
	}
	return response, ok
}

// hasResponse reports whether events of a type, a JSON string, have a response object.
func hasResponse(kind []byte) bool {
	switch string(kind) {
	case `"response.created"`, `"response.queued"`, `"response.in_progress"`,
		`"response.completed"`, `"response.incomplete"`, `"response.failed"`, `"response.cancelled"`:
		return true
	}
	return false
}

// remember records the identity of the provider's response.
func (w *editor) remember(response []byte) {
	const longest = 256
	for name, value := range rawjson.Members(response) {
		switch {
		case len(value) > longest:
		case string(name) == "id" && w.id == nil && rawjson.IsText(value):
			w.id = bytes.Clone(value)
		case string(name) == "created_at" && w.created == nil && value[0] >= '0' && value[0] <= '9':
			w.created = bytes.Clone(value)
		}
		if w.id != nil && w.created != nil {
			return
		}
	}
}

// End appends nothing: the terminal event was passed on.
func (w *editor) End(dst []byte, _ wire.Usage) []byte { return dst }

// Fail appends the event for a broken stream: a failed response with the next number, and with the id and the
// time of the provider's response. Bytes written since the terminal event were not sent.
func (w *editor) Fail(dst []byte, err *fault.Error) []byte {
	object := NewObject(w.identity, w.request)
	if w.id != nil && !w.request.Stored {
		object.id = w.id
	}
	if w.created != nil {
		object.created = w.created
	}
	return object.AppendFailed(dst, w.next, err)
}

// Err implements wire.Writer. Every stream of the form can be written.
func (*editor) Err() error { return nil }

// shift moves edits by an offset.
func shift(edits []rawjson.Splice, by int) []rawjson.Splice {
	for i := range edits {
		edits[i].From += by
		edits[i].To += by
	}
	return edits
}
