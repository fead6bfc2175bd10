package moderation

import (
	"slices"
	"strconv"
	"strings"

	"tollgate/internal/wire"
	"tollgate/internal/wire/kind"
	"tollgate/internal/wire/rawjson"
)

// flaggedWord is flagged by the sandbox. It is also the category of the flag.
const flaggedWord = "violence"

// categories are OpenAI's categories of harm.
const categories = "harassment harassment/threatening hate hate/threatening illicit illicit/violent self-harm self-harm/intent " +
	"self-harm/instructions sexual sexual/minors violence violence/graphic"

// sandbox flags texts with the word `violence`. A list of parts has one result.
func sandbox(body []byte, _ *kind.Upload) (kind.Made, error) {
	out, err := judge(body)
	return kind.MadeJSON(out), err
}

// judge returns the answer of the sandbox.
func judge(body []byte) ([]byte, error) {
	opened, err := open(body)
	if err != nil {
		return nil, err
	}
	r := opened.(*request)
	if err := r.Check(kind.DefaultLimits{Kind: Definition()}); err != nil {
		return nil, err
	}
	model, err := r.JSONRequest.Model()
	if err != nil {
		return nil, err
	}
	var results []string
	anyFlag, tokens := false, r.images*imageTokens
	for _, raw := range r.texts {
		text := rawjson.Unquote(raw)
		flagged := isFlagged(text)
		anyFlag = anyFlag || flagged
		tokens += int64(len(text)+3) / 4
		results = append(results, result(flagged, `["text"]`))
	}
	switch {
	case r.parts && r.images > 0:
		results = []string{result(anyFlag, `["text","image"]`)}
	case r.parts:
		results = []string{result(anyFlag, `["text"]`)}
	}
	n := strconv.FormatInt(tokens, 10)
	id := strconv.FormatUint(wire.Hash(string(body)), 16)
	return rawjson.Put([]byte(`{"id":"modr-`+id+`","model":`), "", rawjson.Quote(model),
		`,"results":[`+strings.Join(results, ",")+`],"usage":{"prompt_tokens":`+n+`,"total_tokens":`+n+`}}`), nil
}

// isFlagged reports whether a text has the flagged word.
func isFlagged(text string) bool {
	return slices.Contains(kind.Words(text), flaggedWord)
}

// result returns a result as JSON. applied are the types of input for each category.
func result(flagged bool, applied string) string {
	var flags, scores, types []string
	for category := range strings.FieldsSeq(categories) {
		inCategory, score := flagged && category == flaggedWord, "0.0001"
		if inCategory {
			score = "0.98"
		}
		flags = append(flags, `"`+category+`":`+strconv.FormatBool(inCategory))
		scores = append(scores, `"`+category+`":`+score)
		types = append(types, `"`+category+`":`+applied)
	}
	return `{"flagged":` + strconv.FormatBool(flagged) + `,"categories":{` + strings.Join(flags, ",") + `},"category_scores":{` +
		strings.Join(scores, ",") + `},"category_applied_input_types":{` + strings.Join(types, ",") + `}}`
}
