package rerank

import (
	"tollgate/internal/wire"
	"tollgate/internal/wire/kind"
	"tollgate/internal/wire/rawjson"
)

// request is a body of POST /v1/rerank or POST /v2/rerank.
type request struct {
	kind.JSONRequest

	query     []byte // text
	documents []document
	objects   bool // a document is an object
	topN      int64
	echo      bool // the client wants the documents back
	searches  bool // the model is priced by searches
}

// document is a document of a request.
type document struct {
	raw  []byte // as the client sent it
	text []byte // JSON string
	size int64  // bytes of the text
}

func open(body []byte) (kind.Request, error) {
	doc, err := kind.OpenJSON(body)
	if err != nil {
		return nil, err
	}
	return &request{JSONRequest: doc}, nil
}

// Check implements kind.Request.
func (r *request) Check(l kind.ModelLimits) error {
	r.searches = l.Priced(Searches)
	if err := r.CheckFields(fields); err != nil {
		return err
	}
	if r.query = rawjson.UnquoteBytes(r.JSON.Raw("query")); len(r.query) == 0 {
		return kind.Invalid("query", "`{param}` is required: a text that is not empty.")
	}
	if err := r.readDocuments(l.Number(maxDocuments)); err != nil {
		return err
	}
	if r.topN = int64(len(r.documents)); r.JSON.Raw("top_n") != nil {
		n, ok := rawjson.Integer(r.JSON.Raw("top_n"))
		if !ok || n < 1 {
			return kind.Invalid("top_n", "`{param}` must be an integer from 1.")
		}
		r.topN = min(n, r.topN)
	}
	var ok bool
	if r.echo, ok = rawjson.Boolean(r.JSON.Raw("return_documents")); !ok {
		return kind.Invalid("return_documents", "`{param}` must be true or false.")
	}
	return nil
}

// readDocuments reads `documents`: a list of at most limit texts, or objects with a text.
func (r *request) readDocuments(limit int64) error {
	r.documents, r.objects = nil, false
	raw := r.JSON.Raw("documents")
	if raw == nil || raw[0] != '[' {
		return kind.Invalid("documents", "`{param}` is required: an array of texts, or of objects with a `text`.")
	}
	for i, element := range rawjson.Elements(raw) {
		param := kind.ElementOf("documents", i)
		if int64(i) >= limit {
			return kind.Invalid("documents", "`{param}` must have at most %d elements for this model. Split it into several requests.", limit)
		}
		text := element
		switch element[0] {
		case '"':
		case '{':
			r.objects = true
			if text = rawjson.Field(element, "text"); !rawjson.IsText(text) {
				return kind.Invalid(param+".text", "`{param}` must be a text.")
			}
		default:
			return kind.Invalid(param, "`{param}` must be a text, or an object with a `text`.")
		}
		r.documents = append(r.documents, document{element, text, int64(len(rawjson.UnquoteBytes(text)))})
	}
	if len(r.documents) == 0 {
		return kind.Invalid("documents", "`{param}` must not be empty.")
	}
	return nil
}

// Parts implements kind.Request. A request is one call, because scores of several calls do not compare.
func (r *request) Parts(int64) []kind.Part { return []kind.Part{&part{request: r}} }

// part is the call of a request, and its answer.
type part struct {
	request *request
	answer
}

// Body implements kind.Part.
func (p *part) Body(model string, omit []string) rawjson.Pieces {
	r := p.request
	omit = append(omit[:len(omit):len(omit)], "return_documents")
	if !r.objects {
		return r.Edited(model, omit, nil)
	}
	list := []byte{'['}
	for i := range r.documents {
		if i > 0 {
			list = append(list, ',')
		}
		list = append(list, r.documents[i].text...)
	}
	return r.Edited(model, omit, func(m *rawjson.Edits) { m.Set("documents", append(list, ']')) })
}

// Bound implements kind.Part.
func (p *part) Bound() kind.Quantities {
	var tokens, chunks int64
	for i := range p.request.documents {
		size := int64(len(p.request.query)) + p.request.documents[i].size
		tokens = min(tokens+size+slack, rawjson.MaxCount)
		chunks += roundUp(size, chunkBytes)
	}
	return p.request.counts(tokens, chunks)
}

// Count implements kind.Part.
func (p *part) Count(c *wire.Counter) kind.Quantities {
	r := p.request
	n := int64(len(r.documents))
	if r.searches {
		return r.counts(0, n)
	}
	tokens := n * c.Count(r.query, int64(len(r.query)))
	for i := range r.documents {
		tokens = min(tokens+c.Count(rawjson.UnquoteBytes(r.documents[i].text), r.documents[i].size), rawjson.MaxCount)
	}
	return r.counts(tokens, n)
}

// counts returns the count in the unit of the model's price.
func (r *request) counts(tokens, documents int64) kind.Quantities {
	if r.searches {
		return kind.Quantities{Searches: roundUp(documents, searchDocuments)}
	}
	return kind.Quantities{kind.Input: tokens}
}

// roundUp returns n / by, rounded up.
func roundUp(n, by int64) int64 { return (n + by - 1) / by }
