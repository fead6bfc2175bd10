package messages

import (
	"strings"

	"tollgate/internal/wire"
	"tollgate/internal/wire/internal/form"
	"tollgate/internal/wire/rawjson"
)

// usageSum combines the usage objects of an answer. A stream spreads its counts over several of
// them.
type usageSum struct {
	input, creation, read, output int64
	write5m, write1h, thinking    int64
	hasInput, hasCreation         bool
	final                         bool // the output was counted at or after the finish
	tier                          string
	calls                         map[string]int64 // of hosted tools
	cost                          int64            // nano-dollars, if hasCost
	hasCost                       bool
	iterations                    []iteration
	unknown                       []string // unknown members
}

// merge adds the counts of a usage object, ignoring nulls. The counts of a stream only grow, so a
// zero never replaces a count: some hosts send zeros for counts already reported. last is set if
// the answer has finished. merge reports whether the output was counted.
func (m *usageSum) merge(raw []byte, last bool) (output bool) {
	set := func(to *int64, value []byte) bool {
		n, ok := rawjson.Count(value)
		if ok && n > 0 {
			*to = n
		}
		return ok
	}
	if cost, ok := form.ReadCost(raw); ok {
		m.cost, m.hasCost = cost, true
	}
	for name, value := range rawjson.Members(raw) {
		switch string(name) {
		case "input_tokens":
			m.hasInput = set(&m.input, value) || m.hasInput
		case "output_tokens":
			var n int64
			if n, output = rawjson.Count(value); n > 0 || output && m.output == 0 {
				m.output, m.final = n, last
			}
		case "cache_creation_input_tokens":
			m.hasCreation = set(&m.creation, value) || m.hasCreation
		case "cache_read_input_tokens":
			set(&m.read, value)
		case "cache_creation":
			set(&m.write5m, rawjson.Field(value, "ephemeral_5m_input_tokens"))
			set(&m.write1h, rawjson.Field(value, "ephemeral_1h_input_tokens"))
		case "output_tokens_details":
			set(&m.thinking, rawjson.Field(value, "thinking_tokens"))
		case "service_tier":
			if rawjson.IsText(value) {
				m.tier = rawjson.Unquote(value)
			}
		case "server_tool_use":
			m.mergeCalls(value, last)
		case "iterations":
			m.mergeIterations(value)
		default:
			if !form.IsKnownUsage(name) {
				m.unknown = form.AppendUnknown(m.unknown, name, value)
			}
		}
	}
	// If the iterations account for the tokens, a final count of 0 is correct: the initial count of a stream
	// is not output of the answer.
	if n, ok := rawjson.Count(rawjson.Field(raw, "output_tokens")); last && ok && n == 0 && m.iterations != nil {
		m.output, m.final = 0, true
	}
	return output
}

// mergeCalls adds the counts of calls of hosted tools. A zero counts only at the end.
func (m *usageSum) mergeCalls(raw []byte, last bool) {
	for name, value := range rawjson.Members(raw) {
		known := form.HostedTool(strings.TrimSuffix(string(name), "_requests"))
		n, ok := rawjson.Count(value)
		if known == "" || !ok || n == 0 && !last {
			continue
		}
		if m.calls == nil {
			m.calls = make(map[string]int64)
		}
		m.calls[known] = max(n, m.calls[known])
	}
}

// known reports whether the counts are final.
func (m *usageSum) known() bool { return m.final && (m.hasInput || len(m.iterations) > 0) }

// result returns the counts, with parts limited to their wholes. An uncounted prompt has no parts.
// shown are the calls of hosted tools seen in the answer, used for tools with no count or an
// unfinished one.
func (m *usageSum) result(shown map[string]int64) wire.Usage {
	own := m.counts()
	if !m.hasInput {
		own = wire.Iteration{Completion: m.output}
	}
	u := own.Usage()
	if m.iterations != nil {
		u = withIterations(own, m.iterations)
	}
	u.ServiceTier, u.CostNano, u.HasCost, u.Unknown = m.tier, m.cost, m.hasCost, m.unknown
	u.Reasoning = min(m.thinking, u.Completion)
	for name, n := range m.calls {
		if n > 0 {
			u.AddCalls(name, n)
		}
	}
	for name, n := range shown {
		if reported, named := m.calls[name]; !named || !m.final && n > reported {
			u.AddCalls(name, n-reported)
		}
	}
	return u
}

// counts returns the counts, with parts limited to their wholes.
func (m *usageSum) counts() (c wire.Iteration) {
	creation := m.creation
	if !m.hasCreation {
		creation = m.write5m + m.write1h
	}
	c.Prompt, c.Completion = min(m.input+creation+m.read, rawjson.MaxCount), m.output
	c.Cached = min(m.read, c.Prompt)
	c.CacheSplit = creation > 0 && m.write5m+m.write1h >= creation
	c.CacheWrite1h = min(m.write1h, creation, c.Prompt-c.Cached)
	c.CacheWrite = min(creation-c.CacheWrite1h, c.Prompt-c.Cached-c.CacheWrite1h)
	return c
}

// ReportedUsage returns the usage at the top level of an object.
func ReportedUsage(object []byte) wire.Usage {
	var m usageSum
	m.merge(rawjson.Field(object, "usage"), true)
	return m.result(nil)
}
