package moderation

import (
	"tollgate/internal/wire"
	"tollgate/internal/wire/kind"
	"tollgate/internal/wire/rawjson"
)

// request is a body of POST /v1/moderations.
type request struct {
	kind.JSONRequest

	texts          [][]byte // JSON strings
	images         int64
	parts          bool  // the input is one list of parts
	tokens         bool  // the model is priced by tokens
	maxImageTokens int64 // of an image
}

func open(body []byte) (kind.Request, error) {
	doc, err := kind.OpenJSON(body)
	if err != nil {
		return nil, err
	}
	return &request{JSONRequest: doc}, nil
}

// Model implements kind.Request. The model is optional.
func (r *request) Model() (string, error) {
	if r.JSON.Raw("model") == nil {
		return "", nil
	}
	return r.JSONRequest.Model()
}

// Check implements kind.Request.
func (r *request) Check(l kind.ModelLimits) error {
	r.tokens, r.maxImageTokens = l.Priced(kind.Input), l.Number(maxImageTokens)
	if err := r.CheckFields(fields); err != nil {
		return err
	}
	return r.readInput(l.Number(maxInputs))
}

// readInput reads `input`: a text, a list of at most limit texts, or a list of at most limit parts.
func (r *request) readInput(limit int64) error {
	r.texts, r.images, r.parts = nil, 0, false
	raw := r.JSON.Raw("input")
	switch {
	case raw == nil:
		return kind.Invalid("input", "`{param}` is required: a text, an array of texts, or an array of parts with texts and images.")
	case raw[0] == '"' && len(raw) == 2:
		return kind.Invalid("input", "`{param}` must not be an empty text.")
	case raw[0] == '"':
		r.texts = append(r.texts, raw)
		return nil
	case raw[0] != '[':
		return kind.Invalid("input", "`{param}` must be a text, an array of texts, or an array of parts with texts and images.")
	}
	n := 0
	for i, element := range rawjson.Elements(raw) {
		n++
		param := kind.ElementOf("input", i)
		switch {
		case int64(i) >= limit:
			return kind.Invalid("input", "`{param}` must have at most %d elements for this model. Split it into several requests.", limit)
		case element[0] != '"' && element[0] != '{':
			return kind.Invalid(param, "`{param}` must be a text, or a part of type text or image_url.")
		case i == 0:
			r.parts = element[0] == '{'
		case r.parts != (element[0] == '{'):
			return kind.Invalid(param, "`{param}` must be like the first element: `input` has either texts or parts.")
		}
		if !r.parts {
			r.texts = append(r.texts, element)
			continue
		}
		if err := r.addPart(element, param); err != nil {
			return err
		}
	}
	if n == 0 {
		return kind.Invalid("input", "`{param}` must not be empty.")
	}
	return nil
}

// addPart adds a part with a text or an image.
func (r *request) addPart(part []byte, param string) error {
	switch rawjson.Unquote(rawjson.Field(part, "type")) {
	case "text":
		text := rawjson.Field(part, "text")
		if !rawjson.IsText(text) {
			return kind.Invalid(param+".text", "`{param}` must be a text.")
		}
		r.texts = append(r.texts, text)
	case "image_url":
		image := rawjson.Field(part, "image_url")
		if len(image) == 0 || image[0] != '{' {
			return kind.Invalid(param+".image_url", "`{param}` must be an object with the address of the image in `url`.")
		}
		if address := rawjson.Field(image, "url"); !rawjson.IsText(address) || len(address) == 2 {
			return kind.Invalid(param+".image_url.url", "`{param}` must be the address of an image, or a data: address with the image.")
		}
		r.images++
	default:
		return kind.Invalid(param+".type", "`{param}` must be text or image_url.")
	}
	return nil
}

// Parts implements kind.Request. A request is one call.
func (r *request) Parts(int64) []kind.Part { return []kind.Part{&part{request: r}} }

// part is the call of a request, and its answer.
type part struct {
	request *request
	object  []byte // JSON
}

// Body implements kind.Part.
func (p *part) Body(model string, omit []string) rawjson.Pieces {
	return p.request.Edited(model, omit, nil)
}

// Bound implements kind.Part.
func (p *part) Bound() kind.Quantities {
	if !p.request.tokens {
		return kind.Quantities{kind.Requests: 1}
	}
	return p.request.inputTokens(p.request.maxImageTokens, func(text []byte) int64 { return int64(len(text)) + slack })
}

// Count implements kind.Part.
func (p *part) Count(c *wire.Counter) kind.Quantities {
	if !p.request.tokens {
		return kind.Quantities{kind.Requests: 1}
	}
	return p.request.inputTokens(min(p.request.maxImageTokens, imageTokens), func(text []byte) int64 {
		return c.Count(text, int64(len(text)))
	})
}

// inputTokens returns the sum of the tokens of all texts and images.
func (r *request) inputTokens(perImage int64, ofText func(text []byte) int64) kind.Quantities {
	n := min(r.images*perImage, rawjson.MaxCount)
	for _, text := range r.texts {
		n = min(n+ofText(rawjson.UnquoteBytes(text)), rawjson.MaxCount)
	}
	return kind.Quantities{kind.Input: n}
}

// Read implements kind.Part. It returns an error unless the answer has a list of results.
func (p *part) Read(raw []byte) (kind.Quantities, error) {
	object, err := kind.ReadObject(raw)
	if err != nil {
		return nil, err
	}
	n := 0
	for _, result := range rawjson.Elements(rawjson.Field(object, "results")) {
		if n++; len(result) == 0 || result[0] != '{' {
			return nil, kind.Incomplete("`results` has something other than objects")
		}
	}
	if n == 0 {
		return nil, kind.Incomplete("it has no results")
	}
	p.object = object
	reported := kind.Quantities{}
	reported.AddCount(kind.Input, rawjson.Field(object, "usage"), "prompt_tokens", "total_tokens")
	return reported, nil
}

// Answer implements kind.Request.
func (r *request) Answer(parts []kind.Part, c kind.Charged) [][]byte {
	return kind.Members(parts[0].(*part).object, []kind.Member{{Name: "model", Value: [][]byte{rawjson.Quote(c.Model)}}})
}
