package messages

import (
	"strings"

	"tollgate/internal/wire"
	"tollgate/internal/wire/rawjson"
)

// iteration is one entry of `usage.iterations`. The totals include entries of type `message` and
// `fallback_message`, but not `compaction` and `advisor_message` (@anthropic-ai/sdk 1.11.0,
// BetaIterationsUsage).
type iteration struct {
	wire.Iteration
	extra bool // not included in the totals
}

// maxIterations is the largest number of retained entries. Later entries are added to earlier ones.
const maxIterations = 128

// mergeIterations uses the list if it counts more than the previous one. The lists of a stream only
// grow.
func (m *usageSum) mergeIterations(raw []byte) {
	var list []iteration
	for _, entry := range rawjson.Elements(raw) {
		if len(entry) == 0 || entry[0] != '{' {
			continue
		}
		if one := readIteration(entry); one.Prompt > 0 || one.Completion > 0 {
			list = appendIteration(list, one)
		}
	}
	if total(list) > total(m.iterations) {
		m.iterations = list
	}
}

// readIteration reads an entry. An entry of an unknown type is extra if it names a model, as an
// advisor's does.
func readIteration(entry []byte) (out iteration) {
	var counts usageSum
	counts.merge(entry, true)
	out.Iteration = counts.counts()
	if model := rawjson.Field(entry, "model"); rawjson.IsText(model) {
		out.Model = rawjson.Unquote(model)
	}
	switch kind := rawjson.Unquote(rawjson.Field(entry, "type")); {
	case kind == "message" || kind == "" || strings.HasPrefix(kind, "fallback"):
	case strings.HasPrefix(kind, "compact"):
		out.extra = true
	default:
		out.extra = out.Model != "" || strings.HasPrefix(kind, "advisor")
		out.Called = out.extra
	}
	return out
}

// appendIteration appends an entry. If the list is full, the entry is added to one of the same
// model, or else to the last one.
func appendIteration(list []iteration, one iteration) []iteration {
	if len(list) < maxIterations {
		return append(list, one)
	}
	to := &list[len(list)-1]
	for i := range list {
		if list[i].Model == one.Model && list[i].extra == one.extra {
			to = &list[i]
			break
		}
	}
	to.Iteration = sum(to.Iteration, one.Iteration)
	return list
}

// sum adds up the counts of two iterations.
func sum(a, b wire.Iteration) wire.Iteration {
	add := func(to *int64, n int64) { *to = min(*to+n, rawjson.MaxCount) }
	add(&a.Prompt, b.Prompt)
	add(&a.Cached, b.Cached)
	add(&a.CacheWrite, b.CacheWrite)
	add(&a.CacheWrite1h, b.CacheWrite1h)
	add(&a.Completion, b.Completion)
	return a
}

// total returns all tokens of a list.
func total(list []iteration) (n int64) {
	for i := range list {
		n += list[i].Prompt + list[i].Completion
	}
	return n
}

// withIterations returns the usage of an answer from its totals and its list. The entries included in the
// totals replace the totals unless the entries count less: for an answer with an advisor the totals have only
// the first reading of the prompt.
func withIterations(own wire.Iteration, list []iteration) wire.Usage {
	var inside, extra []wire.Iteration
	var total wire.Iteration
	for _, i := range list {
		if i.extra {
			extra = append(extra, i.Iteration)
			continue
		}
		inside = append(inside, i.Iteration)
		total = sum(total, i.Iteration)
	}
	if total.Prompt+total.Completion < own.Prompt+own.Completion {
		inside = []wire.Iteration{own}
	}
	inside = append(inside, extra...)
	var all wire.Iteration
	for _, i := range inside {
		all = sum(all, i)
	}
	u := all.Usage()
	u.Iterations = inside
	return u
}
