package responses

import (
	"tollgate/internal/wire"
	"tollgate/internal/wire/internal/form"
	"tollgate/internal/wire/rawjson"
)

// direct passes requests and answers of the form through.
type direct struct {
	*Request
	id wire.Identity
}

func (r direct) Events() (wire.Meter, wire.Writer) {
	return NewMeter(), newEditor(r.id, r.Request)
}

func (r direct) Read(raw []byte) (wire.Answer, error) { return ReadAnswer(raw) }

func (r direct) Render(_ wire.Answer, raw []byte, _ wire.Usage) ([3][]byte, error) {
	return pieces(raw, r.Request, r.id), nil
}

func (r direct) Body(t wire.Translation) (rawjson.Pieces, error) {
	if _, err := t.Effort(rawjson.Field(r.Doc.Raw("reasoning"), "effort"), "reasoning.effort"); err != nil {
		return nil, err
	}
	return form.CorrectMedia(r.Request.bodyFor(t), r.Doc), nil
}

// Direct returns the pair for a line of the same form.
func (r *Request) Direct(id wire.Identity) wire.Pair { return direct{r, id} }
