package form

import (
	"tollgate/internal/wire"
	"tollgate/internal/wire/rawjson"
)

// SetEffort adds an edit to out that replaces the member `effort` of an object by an effort
// supported by the model. An unknown effort stays unchanged.
func (r *Request) SetEffort(out *rawjson.Edits, object string, e wire.Edits) {
	outer := r.Doc.Find(object)
	if outer == nil || len(e.Efforts) == 0 {
		return
	}
	for m := range rawjson.Spans(r.Doc.Body[outer.From:outer.To]) {
		at := rawjson.Splice{From: outer.From + m.From, To: outer.From + m.To}
		value := r.Doc.Body[at.From:at.To]
		if string(m.Name) != "effort" || !rawjson.IsText(value) {
			continue
		}
		if supported, err := e.Effort(value, ""); err == nil && string(supported) != string(value) {
			at.Text = supported
			out.Splices = append(out.Splices, at)
		}
	}
}
