package responses

import (
	"cmp"

	"tollgate/internal/wire"
	"tollgate/internal/wire/rawjson"
)

// Body returns the bytes for a line of the responses form: the client's own,
// in its own order and spacing, but for the owned fields. `store` is always
// sent as false, also where the client left it out: providers keep answers
// otherwise. Call Check first. The result is the client's body itself when
// nothing changes; nobody may write to it.
func (r *Request) Body(e wire.Edits) []byte {
	edits := rawjson.Edits{Doc: r.Doc}
	edits.SetText("model", e.Model)
	r.SetLimit(&edits, outputLimit, cmp.Or(r.Limit, e.Limit))
	if string(r.Doc.Raw("store")) != "false" {
		edits.Set("store", []byte("false"))
	}
	return edits.Body()
}
