// Package vector owns the translation of embeddings for vendors with an API of their own: the client's request, and
// the answer in OpenAI's shape.
//
// Invariant: the vectors are in the order of the texts.
package vector

import (
	"bytes"
	"io"
	"strconv"

	"tollgate/internal/upstream"
	"tollgate/internal/upstream/chatcall"
	"tollgate/internal/wire/rawjson"
)

// Kind is the kind of models.
const Kind = "embedding"

// EmbeddingRequest is a client's request for embeddings. Its values are JSON.
type EmbeddingRequest struct {
	Texts      [][]byte
	Dimensions []byte // nil if the client sent none
}

// Read reads the body of a call that has passed the checks of package wire/kind. If the input is tokens and
// not texts, it returns a failure, because only OpenAI's models know these tokens.
func Read(body []byte) (EmbeddingRequest, error) {
	r := EmbeddingRequest{Dimensions: rawjson.NonNull(rawjson.Field(body, "dimensions"))}
	input := rawjson.Field(body, "input")
	if rawjson.IsText(input) {
		r.Texts = [][]byte{input}
		return r, nil
	}
	for _, element := range rawjson.Elements(input) {
		if !rawjson.IsText(element) {
			return r, upstream.Unsupported("input", "`{param}` must have texts for this model, not tokens.")
		}
		r.Texts = append(r.Texts, element)
	}
	return r, nil
}

// Answer returns the client's answer with vectors as JSON. tokens is the vendor's count, or 0 without one.
func Answer(vectors [][]byte, tokens int64) *chatcall.Response {
	out := []byte(`{"object":"list","data":[`)
	for i, values := range vectors {
		if i > 0 {
			out = append(out, ',')
		}
		out = strconv.AppendInt(append(out, `{"object":"embedding","index":`...), int64(i), 10)
		if values == nil {
			values = []byte("null")
		}
		out = rawjson.Put(out, `,"embedding":`, values, "}")
	}
	out = append(out, ']')
	if tokens > 0 {
		n := strconv.FormatInt(tokens, 10)
		out = append(out, `,"usage":{"prompt_tokens":`+n+`,"total_tokens":`+n+`}`...)
	}
	out = append(out, '}')
	return &chatcall.Response{Body: io.NopCloser(bytes.NewReader(out)), ContentType: "application/json", Length: int64(len(out))}
}
