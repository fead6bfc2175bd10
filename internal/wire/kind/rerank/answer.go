package rerank

import (
	"bytes"
	"cmp"
	"slices"
	"strconv"

	"tollgate/internal/wire/kind"
	"tollgate/internal/wire/rawjson"
)

// answer is a line's answer.
type answer struct {
	object  []byte // JSON
	results []result
}

// result is the score of a document.
type result struct {
	index int64
	score []byte // JSON
	value float64
}

// Read implements kind.Part. It returns an error unless the answer has scores of the request's documents.
// Some vendors name the results `data`, or the score `score`.
func (p *part) Read(raw []byte) (kind.Quantities, error) {
	object, err := kind.ReadObject(raw)
	if err != nil {
		return nil, err
	}
	p.answer = answer{object: object}
	list := rawjson.NonNull(rawjson.Field(object, "results"))
	if list == nil {
		list = rawjson.Field(object, "data")
	}
	seen := make([]bool, len(p.request.documents))
	for _, element := range rawjson.Elements(list) {
		if err := p.readResult(element, seen); err != nil {
			return nil, err
		}
	}
	if len(p.results) == 0 {
		return nil, kind.Incomplete("it has no results")
	}
	slices.SortStableFunc(p.results, func(a, b result) int { return cmp.Compare(b.value, a.value) })
	p.results = p.results[:min(int64(len(p.results)), p.request.topN)]
	reported := kind.Quantities{}
	billed := p.billedUnits()
	reported.AddCount(Searches, billed, "search_units")
	reported.AddCount(kind.Input, billed, "input_tokens")
	if _, ok := reported[kind.Input]; !ok {
		reported.AddCount(kind.Input, rawjson.Field(object, "usage"), "total_tokens", "prompt_tokens")
	}
	return reported, nil
}

// readResult reads a result. seen are the documents with a result so far.
func (p *part) readResult(element []byte, seen []bool) error {
	if len(element) == 0 || element[0] != '{' {
		return kind.Incomplete("the results are no objects")
	}
	index, ok := rawjson.Integer(rawjson.NonNull(rawjson.Field(element, "index")))
	if !ok || index < 0 || index >= int64(len(seen)) || seen[index] {
		return kind.Incomplete("a result belongs to no document")
	}
	seen[index] = true
	score := rawjson.NonNull(rawjson.Field(element, "relevance_score"))
	if score == nil {
		score = rawjson.Field(element, "score")
	}
	value, err := strconv.ParseFloat(string(score), 64)
	if err != nil {
		return kind.Incomplete("document %d has no score", index)
	}
	p.results = append(p.results, result{index, score, value})
	return nil
}

// billedUnits returns the provider's `billed_units`.
func (a *answer) billedUnits() []byte {
	return rawjson.Field(rawjson.Field(a.object, "meta"), "billed_units")
}

// Answer implements kind.Request. All members that the gateway does not set come from the line's answer.
func (r *request) Answer(parts []kind.Part, c kind.Charged) [][]byte {
	p := parts[0].(*part)
	id := rawjson.Field(p.object, "id")
	if !rawjson.IsText(id) || len(id) == 2 {
		id = rawjson.Quote(c.Request)
	}
	set := []kind.Member{
		{Name: "id", Value: [][]byte{id}},
		{Name: "model", Value: [][]byte{rawjson.Quote(c.Model)}},
		{Name: "results", Value: [][]byte{p.resultList()}},
		{Name: "meta", Value: [][]byte{p.meta(c.Used)}},
		{Name: "usage"}, {Name: "object"}, {Name: "data"},
	}
	if usage := p.usage(c.Used); usage != nil {
		set[4].Value = [][]byte{usage}
	}
	return kind.Members(p.object, set)
}

// resultList returns the results as JSON.
func (p *part) resultList() []byte {
	list := []byte{'['}
	for i, result := range p.results {
		if i > 0 {
			list = append(list, ',')
		}
		list = strconv.AppendInt(append(list, `{"index":`...), result.index, 10)
		list = rawjson.Put(list, `,"relevance_score":`, result.score, "")
		if p.request.echo {
			list = p.request.documents[result.index].appendTo(append(list, `,"document":`...))
		}
		list = append(list, '}')
	}
	return append(list, ']')
}

// appendTo appends the object of a document: the client's, or one with the client's text.
func (d *document) appendTo(list []byte) []byte {
	if d.raw[0] == '{' {
		return append(list, d.raw...)
	}
	return rawjson.Put(list, `{"text":`, d.raw, "}")
}

// meta returns the provider's `meta` with the charged counts as `billed_units`.
func (p *part) meta(used kind.Quantities) []byte {
	name, n := "input_tokens", used[kind.Input]
	if searches, ok := used[Searches]; ok {
		name, n = "search_units", searches
	}
	return withMember(rawjson.Field(p.object, "meta"), "billed_units", []byte(`{"`+name+`":`+strconv.FormatInt(n, 10)+`}`))
}

// usage returns the provider's `usage` with `total_tokens`. It returns nil without any count of tokens.
func (p *part) usage(used kind.Quantities) []byte {
	usage := rawjson.Field(p.object, "usage")
	if _, ok := rawjson.Count(rawjson.Field(usage, "total_tokens")); ok {
		return usage
	}
	n, ok := rawjson.Count(rawjson.Field(usage, "prompt_tokens"))
	if !ok {
		n, ok = rawjson.Count(rawjson.Field(p.billedUnits(), "input_tokens"))
	}
	if !ok {
		n, ok = used[kind.Input]
	}
	if !ok {
		return nil
	}
	return withMember(usage, "total_tokens", strconv.AppendInt(nil, n, 10))
}

// withMember returns an object with a member. A value other than an object is treated as an empty object.
func withMember(object []byte, name string, value []byte) []byte {
	if len(object) == 0 || object[0] != '{' {
		object = []byte("{}")
	}
	return bytes.TrimSpace(bytes.Join(kind.Members(object, []kind.Member{{Name: name, Value: [][]byte{value}}}), nil))
}
