package catalog

import (
	"fmt"
	"maps"
	"math"
	"slices"
	"strconv"
	"time"

	"tollgate/internal/catalog/tree"
	"tollgate/internal/money"
)

// YAML prints the document as an operator would write it: the order of
// operator.md, Catalog, defaults left out, credentials as references. Parse
// reads it back to the same document.
func (d *Document) YAML() []byte { return tree.YAML(d.tree()) }

// JSON prints the document as indented JSON in the same order. Parse reads it
// back to the same document.
func (d *Document) JSON() []byte { return tree.JSON(d.tree(), "  ") }

// canonical returns the format for storing and comparing revisions.
func (d *Document) canonical() []byte { return tree.JSON(d.tree(), "") }

// tree is the document as text would hold it.
func (d *Document) tree() *tree.Value {
	root := tree.Table()
	models, lines := tree.List(), tree.List()
	for i := range d.Models {
		models.Items = append(models.Items, d.Models[i].tree())
	}
	for i := range d.Lines {
		lines.Items = append(lines.Items, d.Lines[i].tree())
	}
	root.Set("models", models)
	root.Set("lines", lines)
	return root
}

// Tree is the model as a document has it.
func (m *Model) Tree() *tree.Value { return m.tree() }

func (m *Model) tree() *tree.Value {
	n := tree.Table()
	n.Set("id", tree.Quoted(m.ID))
	n.Set("kind", tree.Quoted(string(m.Kind)))
	if m.OwnedBy != "" {
		n.Set("owned_by", tree.Quoted(m.OwnedBy))
	}
	n.Set("state", tree.Quoted(string(m.State)))
	switch m.Kind {
	case KindChat:
		n.Set("forms", words(m.Forms))
		if m.Reasoning {
			n.Set("reasoning", tree.Plain("true"))
		}
		if len(m.Efforts) > 0 {
			n.Set("efforts", words(m.Efforts))
		}
		n.Set("context_window", tree.Number(m.ContextWindow))
		n.Set("max_output_tokens", tree.Number(m.MaxOutputTokens))
		setCount(n, "default_output_tokens", m.DefaultOutputTokens, 0)
		n.Set("price", m.Price.tree())
		setCount(n, "max_image_tokens", m.MaxImageTokens, DefaultMaxImageTokens)
	case KindImage, KindVideo:
		tiers := tree.Table()
		for _, tier := range m.Tiers {
			tiers.Set(tier.Name, tree.Plain(tier.Price.String()))
		}
		key := "price"
		if m.PerClip {
			key = "per_clip"
		}
		n.Set(key, tiers.Inline())
		if len(m.Durations.List) > 0 {
			durations := tree.List()
			for _, d := range m.Durations.List {
				durations.Items = append(durations.Items, tree.Number(d))
			}
			n.Set("durations", durations.Inline())
		} else if m.Durations.Max > 0 {
			span := tree.Table()
			span.Set("min", tree.Number(m.Durations.Min))
			span.Set("max", tree.Number(m.Durations.Max))
			n.Set("durations", span.Inline())
		}
		if len(m.Ratios) > 0 {
			n.Set("ratios", words(m.Ratios))
		}
		if m.Kind == KindImage {
			setCount(n, "max_images", m.MaxImages, defaultMaxImages)
		}
		setCount(n, "max_references", m.MaxReferences, 0)
		if len(m.Roles) > 0 {
			n.Set("roles", words(m.Roles))
		}
		switch m.Audio {
		case SoundOn, SoundOff:
			n.Set("audio", tree.Plain(string(m.Audio)))
		case SoundOptional:
			n.Set("audio", tree.Quoted(string(m.Audio)))
		}
		if len(m.Params) > 0 {
			n.Set("params", words(m.Params))
		}
	}
	setCount(n, "free_daily_requests", m.FreeDailyRequests, 0)
	return n
}

func (p *ChatPrice) tree() *tree.Value {
	n := tree.Table()
	p.Rates.put(n, nil)
	if len(p.Above) > 0 {
		above := tree.List()
		for _, a := range p.Above {
			at := tree.Table()
			at.Set("prompt_tokens", tree.Number(a.PromptTokens))
			a.Rates.put(at, &p.Rates)
			above.Items = append(above.Items, at.Inline())
		}
		n.Set("above", above)
	}
	putModalities(n, p.Modalities)
	if len(p.Options) > 0 {
		options := tree.Table()
		for _, name := range slices.Sorted(maps.Keys(p.Options)) {
			values := tree.Table()
			for _, value := range slices.Sorted(maps.Keys(p.Options[name])) {
				values.Set(value, tree.Plain(p.Options[name][value].String()))
			}
			options.Set(name, values.Inline())
		}
		n.Set("options", options)
	}
	if len(p.Tools) > 0 {
		tools := tree.Table()
		for _, name := range slices.Sorted(maps.Keys(p.Tools)) {
			tools.Set(name, tree.Plain(p.Tools[name].String()))
		}
		n.Set("tools", tools.Inline())
	}
	return n
}

// put writes the rates different from their defaults.
func (v *Rates) put(n *tree.Value, base *Rates) {
	usual := v.usual(base)
	set := func(key string, price, fallback money.Price) {
		if price != fallback {
			n.Set(key, tree.Plain(price.String()))
		}
	}
	n.Set("input", tree.Plain(v.Input.String()))
	n.Set("output", tree.Plain(v.Output.String()))
	set("cached_input", v.CachedInput, usual.CachedInput)
	set("cache_write", v.CacheWrite, usual.CacheWrite)
	set("cache_write_1h", v.CacheWrite1h, usual.CacheWrite1h)
}

func (l *LineSpec) tree() *tree.Value {
	n := tree.Table()
	n.Set("id", tree.Quoted(l.ID))
	n.Set("provider", tree.Quoted(l.Provider))
	if l.BaseURL != "" {
		n.Set("base_url", tree.Quoted(l.BaseURL))
	}
	if l.APIKey != "" {
		n.Set("api_key", tree.Quoted(l.APIKey))
	}
	if len(l.APIKeys) > 0 {
		n.Set("api_keys", words(l.APIKeys))
	}
	models := tree.Table()
	for _, id := range slices.Sorted(maps.Keys(l.Models)) {
		models.Set(id, tree.Quoted(l.Models[id]))
	}
	n.Set("models", models)
	if len(l.Forms) > 0 {
		n.Set("forms", words(l.Forms))
	}
	setCount(n, "priority", int64(l.Priority), defaultPriority)
	setCount(n, "weight", int64(l.Weight), defaultWeight)
	setCount(n, "max_concurrent", int64(l.MaxConcurrent), 0)
	if l.Timeouts != (Timeouts{}) {
		times := tree.Table()
		for _, t := range []struct {
			key string
			d   time.Duration
		}{{"first_token", l.Timeouts.FirstToken}, {"idle", l.Timeouts.Idle}, {"total", l.Timeouts.Total}} {
			if t.d > 0 {
				times.Set(t.key, tree.Quoted(spell(t.d)))
			}
		}
		n.Set("timeouts", times.Inline())
	}
	if l.LimitField != "" {
		n.Set("limit_field", tree.Quoted(string(l.LimitField)))
	}
	if l.IgnoresLimit {
		n.Set("ignores_limit", tree.Plain("true"))
	}
	if len(l.Headers) > 0 {
		headers := tree.Table()
		for _, name := range slices.Sorted(maps.Keys(l.Headers)) {
			headers.Set(name, tree.Quoted(l.Headers[name]))
		}
		n.Set("headers", headers.Inline())
	}
	if len(l.Set) > 0 {
		n.Set("set", free(l.Set))
	}
	if l.Omit != nil {
		n.Set("omit", words(l.Omit))
	}
	if len(l.Pass) > 0 {
		n.Set("pass", words(l.Pass))
	}
	if cost := l.Costs.tree(); cost != nil {
		n.Set("cost", cost)
	}
	if len(l.Options) > 0 {
		n.Set("options", free(l.Options))
	}
	if len(l.ErrorSentences) > 0 {
		sentences := tree.List()
		for _, s := range l.ErrorSentences {
			sentences.Items = append(sentences.Items, tree.Quoted(s))
		}
		n.Set("error_sentences", sentences)
	}
	if !l.Enabled {
		n.Set("enabled", tree.Plain("false"))
	}
	return n
}

// setCount writes a number different from its default.
func setCount(n *tree.Value, key string, v, fallback int64) {
	if v != fallback {
		n.Set(key, tree.Number(v))
	}
}

// words is a list of texts on one line.
func words[T ~string](in []T) *tree.Value {
	out := tree.List()
	for _, w := range in {
		out.Items = append(out.Items, tree.Quoted(string(w)))
	}
	return out.Inline()
}

// free writes a value read by reader.free.
func free(v any) *tree.Value {
	switch v := v.(type) {
	case string:
		return tree.Quoted(v)
	case bool:
		return tree.Plain(strconv.FormatBool(v))
	case int64:
		return tree.Number(v)
	case float64:
		format := byte('f')
		if a := math.Abs(v); a < 1e-6 {
			format = 'e'
		}
		return tree.Plain(strconv.FormatFloat(v, format, -1, 64))
	case []any:
		out := tree.List()
		for _, item := range v {
			out.Items = append(out.Items, free(item))
		}
		return out.Inline()
	case map[string]any:
		out := tree.Table()
		for _, key := range slices.Sorted(maps.Keys(v)) {
			out.Set(key, free(v[key]))
		}
		return out.Inline()
	}
	return tree.Quoted(fmt.Sprint(v)) // reader.free makes nothing else
}

// spell writes a duration without the zero parts of time.Duration.String: 2m, not 2m0s.
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
