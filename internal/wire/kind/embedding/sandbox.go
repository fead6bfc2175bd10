package embedding

import (
	"encoding/binary"
	"math"
	"strconv"

	"tollgate/internal/fault"
	"tollgate/internal/wire"
	"tollgate/internal/wire/kind"
	"tollgate/internal/wire/rawjson"
)

// Lengths of the sandbox's vectors.
const (
	sandboxDimensions = 256
	maxDimensions     = 4096
)

// sandbox returns vectors of words: the same text has the same vector, and texts with words in common
// have similar ones.
func sandbox(body []byte, _ *kind.Upload) (kind.Made, error) {
	out, err := vectors(body)
	return kind.MadeJSON(out), err
}

// vectors returns the answer of the sandbox.
func vectors(body []byte) ([]byte, error) {
	opened, err := open(body)
	if err != nil {
		return nil, err
	}
	r := opened.(*request)
	if err := r.Check(kind.DefaultLimits{Kind: Definition(), Numbers: map[string]int64{dimensions: maxDimensions}}); err != nil {
		return nil, err
	}
	length, ok := rawjson.Integer(r.JSON.Raw(dimensions))
	if !ok {
		length = sandboxDimensions
	}
	model, err := r.Model()
	if err != nil {
		return nil, err
	}
	out := []byte(`{"object":"list","data":[`)
	tokens := int64(0)
	for i := range r.inputs {
		if i > 0 {
			out = append(out, ',')
		}
		vector := appendFloats(nil, vectorOf(&r.inputs[i], int(length)))
		if r.format == formatBase64 {
			if vector, err = r.inFormat(vector); err != nil {
				return nil, fault.Unavailable(err)
			}
		}
		out = rawjson.Put(strconv.AppendInt(append(out, `{"object":"embedding","index":`...), int64(i), 10), `,"embedding":`, vector, "}")
		tokens += sandboxTokens(&r.inputs[i])
	}
	n := strconv.FormatInt(tokens, 10)
	out = rawjson.Put(append(out, `],"model":`...), "", rawjson.Quote(model), `,"usage":{"prompt_tokens":`+n+`,"total_tokens":`+n+`}}`)
	return out, nil
}

// sandboxTokens returns the number of tokens of an input: a token for every four bytes of a text.
func sandboxTokens(in *input) int64 {
	if in.isText() {
		return (in.size + 3) / 4
	}
	return in.size
}

// vectorOf returns a vector of the given length and of norm 1 as little-endian floats. Each word
// points in a direction of its own.
func vectorOf(in *input, length int) []byte {
	sums := make([]float64, length)
	add := func(word string) {
		for n := range uint64(8) {
			hash := wire.Fold(wire.Hash(word)^n*0x9e3779b97f4a7c15, word)
			sign := float64(int64(hash>>63)*2 - 1)
			sums[hash%uint64(length)] += sign
		}
	}
	for _, word := range wordsOf(in) {
		add(word)
	}
	norm := 0.0
	for _, v := range sums {
		norm += v * v
	}
	if norm == 0 { // the words cancel each other out
		sums[0], norm = 1, 1
	}
	var bytes []byte
	for _, v := range sums {
		bytes = binary.LittleEndian.AppendUint32(bytes, math.Float32bits(float32(v/math.Sqrt(norm))))
	}
	return bytes
}

// wordsOf returns the words of a text, or the tokens. A text without words is one word.
func wordsOf(in *input) (words []string) {
	if !in.isText() {
		for _, token := range rawjson.Elements(in.raw) {
			words = append(words, string(token))
		}
		return words
	}
	text := rawjson.Unquote(in.raw)
	if words = kind.Words(text); len(words) == 0 {
		return []string{text}
	}
	return words
}
