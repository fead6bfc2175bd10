package catalog

import (
	"fmt"
	"maps"
	"math"
	"slices"
	"strconv"
	"time"

	"tollgate/internal/money"
)

// YAML prints the document as an operator would write it: the order of
// operator.md, Catalog, defaults left out, credentials as references. Parse
// reads it back to the same document.
func (d *Document) YAML() []byte { return printYAML(d.tree()) }

// JSON prints the document as indented JSON in the same order. Parse reads it
// back to the same document.
func (d *Document) JSON() []byte { return printJSON(d.tree(), "  ") }

// canonical is the form in which revisions are stored and compared.
func (d *Document) canonical() []byte { return printJSON(d.tree(), "") }

// tree is the document as text would hold it.
func (d *Document) tree() *node {
	root := &node{kind: tableNode}
	models, lines := list(), list()
	for i := range d.Models {
		models.items = append(models.items, d.Models[i].tree())
	}
	for i := range d.Lines {
		lines.items = append(lines.items, d.Lines[i].tree())
	}
	root.set("models", models)
	root.set("lines", lines)
	return root
}

func (m *Model) tree() *node {
	n := &node{kind: tableNode}
	n.set("id", quoted(m.ID))
	n.set("kind", quoted(string(m.Kind)))
	if m.OwnedBy != "" {
		n.set("owned_by", quoted(m.OwnedBy))
	}
	n.set("state", quoted(string(m.State)))
	switch m.Kind {
	case KindChat:
		n.set("forms", words(m.Forms))
		if m.Reasoning {
			n.set("reasoning", plain("true"))
		}
		n.set("context_window", number(m.ContextWindow))
		n.set("max_output_tokens", number(m.MaxOutputTokens))
		n.setCount("default_output_tokens", m.DefaultOutputTokens, 0)
		n.set("price", m.Price.tree())
		n.setCount("max_image_tokens", m.MaxImageTokens, DefaultMaxImageTokens)
	case KindImage, KindVideo:
		tiers := &node{kind: tableNode}
		for _, tier := range m.Tiers {
			tiers.set(tier.Name, plain(tier.Price.String()))
		}
		key := "price"
		if m.PerClip {
			key = "per_clip"
		}
		n.set(key, tiers.inline())
		if len(m.Durations.List) > 0 {
			durations := list()
			for _, d := range m.Durations.List {
				durations.items = append(durations.items, number(d))
			}
			n.set("durations", durations.inline())
		} else if m.Durations.Max > 0 {
			span := &node{kind: tableNode}
			span.set("min", number(m.Durations.Min))
			span.set("max", number(m.Durations.Max))
			n.set("durations", span.inline())
		}
		if len(m.Ratios) > 0 {
			n.set("ratios", words(m.Ratios))
		}
		if m.Kind == KindImage {
			n.setCount("max_images", m.MaxImages, defaultMaxImages)
		}
		n.setCount("max_references", m.MaxReferences, 0)
		if len(m.Params) > 0 {
			n.set("params", words(m.Params))
		}
	}
	n.setCount("free_daily_requests", m.FreeDailyRequests, 0)
	return n
}

func (p *Price) tree() *node {
	n := &node{kind: tableNode}
	p.Rates.put(n)
	if len(p.Above) > 0 {
		above := list()
		for _, a := range p.Above {
			at := &node{kind: tableNode}
			at.set("prompt_tokens", number(a.PromptTokens))
			a.Rates.put(at)
			above.items = append(above.items, at.inline())
		}
		n.set("above", above)
	}
	if len(p.Options) > 0 {
		options := &node{kind: tableNode}
		for _, name := range slices.Sorted(maps.Keys(p.Options)) {
			values := &node{kind: tableNode}
			for _, value := range slices.Sorted(maps.Keys(p.Options[name])) {
				values.set(value, plain(p.Options[name][value].String()))
			}
			options.set(name, values.inline())
		}
		n.set("options", options)
	}
	if len(p.Tools) > 0 {
		tools := &node{kind: tableNode}
		for _, name := range slices.Sorted(maps.Keys(p.Tools)) {
			tools.set(name, plain(p.Tools[name].String()))
		}
		n.set("tools", tools.inline())
	}
	return n
}

// put writes the rates that are not what their defaults would make them.
func (v *Rates) put(n *node) {
	set := func(key string, price, fallback money.Price) {
		if price != fallback {
			n.set(key, plain(price.String()))
		}
	}
	n.set("input", plain(v.Input.String()))
	n.set("output", plain(v.Output.String()))
	set("cached_input", v.CachedInput, v.Input)
	set("cache_write", v.CacheWrite, v.Input)
	set("cache_write_1h", v.CacheWrite1h, v.CacheWrite)
}

func (l *LineSpec) tree() *node {
	n := &node{kind: tableNode}
	n.set("id", quoted(l.ID))
	n.set("provider", quoted(l.Provider))
	if l.BaseURL != "" {
		n.set("base_url", quoted(l.BaseURL))
	}
	if l.APIKey != "" {
		n.set("api_key", quoted(l.APIKey))
	}
	models := &node{kind: tableNode}
	for _, id := range slices.Sorted(maps.Keys(l.Models)) {
		models.set(id, quoted(l.Models[id]))
	}
	n.set("models", models)
	if len(l.Forms) > 0 {
		n.set("forms", words(l.Forms))
	}
	n.setCount("priority", int64(l.Priority), defaultPriority)
	n.setCount("weight", int64(l.Weight), defaultWeight)
	n.setCount("max_concurrent", int64(l.MaxConcurrent), 0)
	if l.Timeouts != (Timeouts{}) {
		times := &node{kind: tableNode}
		for _, t := range []struct {
			key string
			d   time.Duration
		}{{"first_token", l.Timeouts.FirstToken}, {"idle", l.Timeouts.Idle}, {"total", l.Timeouts.Total}} {
			if t.d > 0 {
				times.set(t.key, quoted(spell(t.d)))
			}
		}
		n.set("timeouts", times.inline())
	}
	if l.LimitField != "" {
		n.set("limit_field", quoted(string(l.LimitField)))
	}
	if l.IgnoresLimit {
		n.set("ignores_limit", plain("true"))
	}
	if len(l.Pass) > 0 {
		n.set("pass", words(l.Pass))
	}
	if len(l.Options) > 0 {
		n.set("options", free(l.Options))
	}
	if len(l.ErrorSentences) > 0 {
		sentences := list()
		for _, s := range l.ErrorSentences {
			sentences.items = append(sentences.items, quoted(s))
		}
		n.set("error_sentences", sentences)
	}
	if !l.Enabled {
		n.set("enabled", plain("false"))
	}
	return n
}

// setCount writes a number that is not its default.
func (n *node) setCount(key string, v, fallback int64) {
	if v != fallback {
		n.set(key, number(v))
	}
}

// words is a list of texts on one line.
func words[T ~string](in []T) *node {
	out := list()
	for _, w := range in {
		out.items = append(out.items, quoted(string(w)))
	}
	return out.inline()
}

// free writes a value that reader.free has read.
func free(v any) *node {
	switch v := v.(type) {
	case string:
		return quoted(v)
	case bool:
		return plain(strconv.FormatBool(v))
	case int64:
		return number(v)
	case float64:
		format := byte('f')
		if a := math.Abs(v); a < 1e-6 {
			format = 'e'
		}
		return plain(strconv.FormatFloat(v, format, -1, 64))
	case []any:
		out := list()
		for _, item := range v {
			out.items = append(out.items, free(item))
		}
		return out.inline()
	case map[string]any:
		out := &node{kind: tableNode}
		for _, key := range slices.Sorted(maps.Keys(v)) {
			out.set(key, free(v[key]))
		}
		return out.inline()
	}
	return quoted(fmt.Sprint(v)) // reader.free makes nothing else
}

// spell writes a duration without the zero parts that time.Duration shows:
// 2m, not 2m0s.
func spell(d time.Duration) string {
	s := d.String()
	if len(s) > 3 && s[len(s)-3:] == "m0s" {
		s = s[:len(s)-2]
	}
	if len(s) > 3 && s[len(s)-3:] == "h0m" {
		s = s[:len(s)-2]
	}
	return s
}
