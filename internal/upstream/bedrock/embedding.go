package bedrock

import (
	"context"
	"errors"
	"fmt"
	"strconv"
	"strings"

	"tollgate/internal/fault"
	"tollgate/internal/upstream"
	"tollgate/internal/upstream/chatcall"
	"tollgate/internal/upstream/exchange"
	"tollgate/internal/upstream/vector"
	"tollgate/internal/wire"
	"tollgate/internal/wire/rawjson"
)

var _ chatcall.InputLimiter = (*Adapter)(nil)

// Maximum number of inputs of an embeddings call, by the family of the model.
const (
	maxTitan  = 1
	maxCohere = 96
)

// MaxInputs implements chatcall.InputLimiter.
func (a *Adapter) MaxInputs(form wire.Form, model string) int64 {
	switch {
	case form != vector.Kind:
		return 0
	case isCohere(model):
		return maxCohere
	}
	return maxTitan
}

// isCohere reports whether a model is from Cohere. The name may begin with a region.
func isCohere(model string) bool { return strings.Contains(model, "cohere.") }

// embed makes a call for embeddings by a model of Titan or Cohere. Titan accepts one text per call.
func (a *Adapter) embed(ctx context.Context, c chatcall.Call) (*chatcall.Response, error) {
	r, err := vector.Read(c.Body.Bytes())
	if err != nil {
		return nil, err
	}
	switch {
	case isCohere(c.Model):
		c.Body = rawjson.Pieces{cohereBody(&r)}
	case strings.Contains(c.Model, "titan-embed") && len(r.Texts) == maxTitan:
		c.Body = rawjson.Pieces{titanBody(&r)}
	default:
		f := upstream.Fail(fault.UpstreamUnavailable, fmt.Errorf("%q is no model for embeddings of Titan or Cohere", c.Model))
		f.Health = upstream.HealthModel
		return nil, f
	}
	raw, header, err := a.invoke.SendWhole(ctx, exchange.Post{URL: a.invokeURL(c.Model), Header: a.header, Call: c})
	if err != nil {
		return nil, a.Source.Hide(err)
	}
	vectors := vectorsOf(raw)
	if len(vectors) != len(r.Texts) {
		return nil, upstream.Fail(fault.UpstreamUnavailable, errors.New("the answer has another number of vectors"))
	}
	tokens, _ := rawjson.Count(rawjson.Field(raw, "inputTextTokenCount"))
	if n, err := strconv.ParseInt(header.Get("X-Amzn-Bedrock-Input-Token-Count"), 10, 64); tokens == 0 && err == nil {
		tokens = n
	}
	return vector.Answer(vectors, tokens), nil
}

// titanBody returns the body for a model of Titan.
func titanBody(r *vector.EmbeddingRequest) []byte {
	body := rawjson.Put(nil, `{"inputText":`, r.Texts[0], "")
	if r.Dimensions != nil {
		body = rawjson.Put(body, `,"dimensions":`, r.Dimensions, "")
	}
	return append(body, '}')
}

// cohereBody returns the body for a model of Cohere. Cohere requires a purpose (input_type). The body
// says that the texts are documents for a search.
func cohereBody(r *vector.EmbeddingRequest) []byte {
	body := []byte(`{"texts":[`)
	for i, text := range r.Texts {
		if i > 0 {
			body = append(body, ',')
		}
		body = append(body, text...)
	}
	body = append(body, `],"input_type":"search_document","embedding_types":["float"]`...)
	if r.Dimensions != nil {
		body = rawjson.Put(body, `,"output_dimension":`, r.Dimensions, "")
	}
	return append(body, '}')
}

// vectorsOf returns the vectors of an answer. Titan answers with one vector. Cohere answers with a list,
// or with an object of lists by type.
func vectorsOf(raw []byte) (vectors [][]byte) {
	if one := rawjson.NonNull(rawjson.Field(raw, "embedding")); one != nil {
		return [][]byte{one}
	}
	list := rawjson.Field(raw, "embeddings")
	if len(list) > 0 && list[0] == '{' {
		list = rawjson.Field(list, "float")
	}
	for _, values := range rawjson.Elements(list) {
		vectors = append(vectors, values)
	}
	return vectors
}
