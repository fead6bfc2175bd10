package completions

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
	m := newMeter(r.N)
	return m, newEditor(r.id, r.IncludeUsage, m)
}

func (r direct) Read(raw []byte) (wire.Answer, error) { return ReadAnswer(raw) }

func (r direct) Render(_ wire.Answer, raw []byte, _ wire.Usage) ([3][]byte, error) {
	return form.ReplaceMember(raw, "model", rawjson.Quote(r.id.Model)), nil
}

func (r direct) Body(t wire.Translation) (rawjson.Pieces, error) {
	if _, err := t.Effort(r.Doc.Raw("reasoning_effort"), "reasoning_effort"); err != nil {
		return nil, err
	}
	return form.CorrectMedia(r.Request.Body(t.Edits), r.Doc), nil
}

// Direct returns the pair for a line of the same form.
func (r *Request) Direct(id wire.Identity) wire.Pair { return direct{r, id} }
