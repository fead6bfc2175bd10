package responses

import (
	"bytes"

	"tollgate/internal/fault"
	"tollgate/internal/wire"
	"tollgate/internal/wire/rawjson"
	"tollgate/internal/wire/sse"
)

// editor writes the events of a responses stream to a client of the
// same form: as they came, but for the model, and for `store`, in the response
// objects. It remembers what a last event of its own needs. Not for concurrent
// use.
type editor struct {
	identity wire.Identity
	request  *Request
	model    []byte // as a JSON string

	next        int64  // the sequence number after the last one seen
	id, created []byte // of the provider's response, as JSON; nil before the first
}

// newEditor makes the editor of the stream that answers r.
func newEditor(id wire.Identity, r *Request) *editor {
	return &editor{identity: id, request: r, model: rawjson.Quote(id.Model)}
}

// Append appends the event to dst. The terminal event too has to pass here. A
// closing `[DONE]`, which the form does not have, is left out.
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
	if f.Finished { // if it waits for the settlement in vain, its number is free
		w.next = before
	}
	if !ok {
		return append(dst, e.Raw...)
	}
	from := start + response.From
	object := e.Data[from : start+response.To]
	w.remember(object)
	edits := editResponse(object, w.model)
	if len(edits) == 0 {
		return append(dst, e.Raw...)
	}
	if e.Offset < 0 {
		return sse.AppendLines(dst, e.Name, rawjson.Replace(e.Data, moved(edits, from)))
	}
	at := 0
	for _, edit := range moved(edits, e.Offset+from) {
		dst = append(dst, e.Raw[at:edit.From]...)
		dst = append(dst, edit.Text...)
		at = edit.To
	}
	return append(dst, e.Raw[at:]...)
}

// read notes the event's number and returns the place of the response object
// in it; false for the events that have none, which are nearly all.
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

// hasResponse tells whether the events of a type, a JSON string, carry a
// response object.
func hasResponse(kind []byte) bool {
	switch string(kind) {
	case `"response.created"`, `"response.queued"`, `"response.in_progress"`,
		`"response.completed"`, `"response.incomplete"`, `"response.failed"`, `"response.cancelled"`:
		return true
	}
	return false
}

// remember keeps what tells the provider's response from others.
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

// End appends nothing: the terminal event has passed as it came.
func (w *editor) End(dst []byte, _ wire.Usage) []byte { return dst }

// Fail appends the event that ends a stream which broke off: a response like
// the provider's own in identity, with the next number, that has failed. What
// was written since the terminal event did not go out.
func (w *editor) Fail(dst []byte, err *fault.Error) []byte {
	object := NewObject(w.identity, w.request)
	if w.id != nil {
		object.id = w.id
	}
	if w.created != nil {
		object.created = w.created
	}
	return object.AppendFailed(dst, w.next, err)
}

// moved moves edits to where the bytes that they are for stand.
func moved(edits []rawjson.Splice, by int) []rawjson.Splice {
	for i := range edits {
		edits[i].From += by
		edits[i].To += by
	}
	return edits
}
