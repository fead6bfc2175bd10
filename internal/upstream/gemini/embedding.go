package gemini

import (
	"context"
	"errors"

	"tollgate/internal/fault"
	"tollgate/internal/upstream"
	"tollgate/internal/upstream/chatcall"
	"tollgate/internal/upstream/exchange"
	"tollgate/internal/upstream/vector"
	"tollgate/internal/wire"
	"tollgate/internal/wire/rawjson"
)

// maxBatch is the maximum number of inputs of an embeddings call.
const maxBatch = 100

var _ chatcall.InputLimiter = (*Adapter)(nil)

// MaxInputs implements chatcall.InputLimiter.
func (a *Adapter) MaxInputs(form wire.Form, _ string) int64 {
	if form == vector.Kind {
		return maxBatch
	}
	return 0
}

// embed makes a call for embeddings.
func (a *Adapter) embed(ctx context.Context, c chatcall.Call) (*chatcall.Response, error) {
	r, err := vector.Read(c.Body.Bytes())
	if err != nil {
		return nil, err
	}
	model := a.resource(c.Model)
	address, f := a.address(model, "batchEmbedContents")
	if f != nil {
		return nil, f
	}
	c.Body = rawjson.Pieces{embeddingBody(&r, model)}
	raw, _, err := a.line.SendWhole(ctx, exchange.Post{URL: address, Header: a.header, Call: c})
	if err != nil {
		return nil, err
	}
	var vectors [][]byte
	for _, element := range rawjson.Elements(rawjson.Field(raw, "embeddings")) {
		vectors = append(vectors, rawjson.Field(element, "values"))
	}
	if len(vectors) != len(r.Texts) {
		return nil, upstream.Fail(fault.UpstreamUnavailable, errors.New("the answer has another number of vectors"))
	}
	tokens, _ := rawjson.Count(rawjson.Field(rawjson.Field(raw, "usageMetadata"), "promptTokenCount"))
	return vector.Answer(vectors, tokens), nil
}

// embeddingBody returns the body of a call: a request for each text, each with the name of the model.
func embeddingBody(r *vector.EmbeddingRequest, model string) []byte {
	body := []byte(`{"requests":[`)
	for i, text := range r.Texts {
		if i > 0 {
			body = append(body, ',')
		}
		body = rawjson.Put(body, `{"model":`, rawjson.Quote(model), `,"content":{"parts":[{"text":`)
		body = rawjson.Put(body, "", text, "}]}")
		if r.Dimensions != nil {
			body = rawjson.Put(body, `,"outputDimensionality":`, r.Dimensions, "")
		}
		body = append(body, '}')
	}
	return append(body, "]}"...)
}
