package rerank

import (
	"cmp"
	"math"
	"slices"
	"strconv"

	"tollgate/internal/wire"
	"tollgate/internal/wire/kind"
	"tollgate/internal/wire/rawjson"
)

// sandbox scores documents by the words that they have in common with the query. The same text has the
// score 1.
func sandbox(body []byte, _ *kind.Upload) (kind.Made, error) {
	out, err := scores(body)
	return kind.MadeJSON(out), err
}

// scores returns the answer of the sandbox.
func scores(body []byte) ([]byte, error) {
	opened, err := open(body)
	if err != nil {
		return nil, err
	}
	r := opened.(*request)
	if err := r.Check(kind.DefaultLimits{Kind: Definition()}); err != nil {
		return nil, err
	}
	model, err := r.Model()
	if err != nil {
		return nil, err
	}
	query := wordsOf(string(r.query))
	results := make([]result, len(r.documents))
	tokens := int64(0)
	for i := range r.documents {
		text := rawjson.Unquote(r.documents[i].text)
		results[i] = result{index: int64(i), value: similarity(query, wordsOf(text))}
		tokens += int64(len(r.query)+len(text)+3) / 4
	}
	slices.SortStableFunc(results, func(a, b result) int { return cmp.Compare(b.value, a.value) })
	id := strconv.FormatUint(wire.Hash(string(body)), 16)
	out := rawjson.Put([]byte(`{"id":"`+id+`","model":`), "", rawjson.Quote(model), `,"results":[`)
	for i, result := range results[:r.topN] {
		if i > 0 {
			out = append(out, ',')
		}
		out = strconv.AppendInt(append(out, `{"index":`...), result.index, 10)
		out = append(strconv.AppendFloat(append(out, `,"relevance_score":`...), result.value, 'f', 4, 64), '}')
	}
	searches := roundUp(int64(len(results)), searchDocuments)
	return append(out, `],"meta":{"billed_units":{"search_units":`+strconv.FormatInt(searches, 10)+`}},"usage":{"total_tokens":`+
		strconv.FormatInt(tokens, 10)+`}}`...), nil
}

// wordsOf returns the different words of a text.
func wordsOf(text string) map[string]bool {
	words := map[string]bool{}
	for _, word := range kind.Words(text) {
		words[word] = true
	}
	return words
}

// similarity returns the cosine of two sets of words, from 0 to 1.
func similarity(a, b map[string]bool) float64 {
	common := 0
	for word := range a {
		if b[word] {
			common++
		}
	}
	if common == 0 {
		return 0
	}
	return float64(common) / math.Sqrt(float64(len(a)*len(b)))
}
