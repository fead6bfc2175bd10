package catalog

import (
	"fmt"
	"reflect"
	"regexp"
	"slices"
	"strings"

	"tollgate/internal/catalog/tree"
	"tollgate/internal/money"
	"tollgate/internal/wire"
	"tollgate/internal/wire/jobrequest"
)

// Valid names. Never changed.
var (
	modelID    = regexp.MustCompile(`^[A-Za-z0-9][A-Za-z0-9._:/@+-]{0,127}$`)
	lineID     = regexp.MustCompile(`^[A-Za-z0-9][A-Za-z0-9._-]{0,63}$`)
	fieldName  = regexp.MustCompile(`^[A-Za-z_][A-Za-z0-9_.-]{0,63}$`)
	valueName  = regexp.MustCompile(`^[A-Za-z0-9_][A-Za-z0-9_.:/-]{0,63}$`)
	tierName   = regexp.MustCompile(`^[1-9][0-9]{0,4}[Kp]$`)
	ratioName  = regexp.MustCompile(`^[1-9][0-9]{0,4}:[1-9][0-9]{0,4}$`)
	modelForms = []wire.Form{wire.FormChat, wire.FormResponses, wire.FormMessages, wire.FormGemini}
	ratesNames = []string{"input", "output", "cached_input", "cache_write", "cache_write_1h"}
)

// IsModelID reports whether text can be the ID of a model.
func IsModelID(text string) bool { return modelID.MatchString(text) }

// IsLineID reports whether text can be the ID of a line.
func IsLineID(text string) bool { return lineID.MatchString(text) }

// document reads a whole document. The result is nil if root is not a mapping.
func (r *reader) document(root *tree.Value) *Document {
	if root.Kind != tree.TableKind {
		r.fault("document", root, "must be a mapping with the keys models and lines, not %s", root.Kind)
		return nil
	}
	t := r.table("", root)
	doc := &Document{}
	if t.get("models") == nil {
		t.fault("models", "is required")
	}
	modelsByID := map[string]*Model{}
	pathsByID := map[string]string{} // the path of each id
	for path, n := range t.items("models", MaxModels) {
		m, ok := r.model(path, n)
		if firstPath, exists := pathsByID[m.ID]; exists {
			r.fault(path+".id", n.Get("id"), "%s is already the id of %s", quote(m.ID), firstPath)
		} else if m.ID != "" {
			pathsByID[m.ID] = path
		}
		if ok {
			doc.Models = append(doc.Models, m)
			modelsByID[m.ID] = &m
		}
	}
	withLine := r.lines(t, doc, modelsByID, pathsByID)
	for _, m := range doc.Models {
		if m.State == StateOpen && !withLine[m.ID] {
			r.warn(pathsByID[m.ID], "model %s is open, but no enabled line serves it, so requests for it fail. "+
				"Add a line, or change the model's state", m.ID)
		}
	}
	for _, m := range doc.Models {
		if m.Supports(wire.FormMessages) && m.Price.CacheWrite > m.Price.Input && m.Price.CacheWrite1h == m.Price.CacheWrite {
			r.warn(pathsByID[m.ID]+".price", "cache writes for an hour (`ttl: 1h`) have the price of writes for five minutes. "+
				"Anthropic charges twice the input price for an hour: set cache_write_1h")
		}
	}
	r.warnings = append(r.warnings, doc.CostWarnings()...)
	t.close()
	return doc
}

// model reads one model. It returns false if the model must be left out.
func (r *reader) model(path string, n *tree.Value) (Model, bool) {
	t := r.table(path, n)
	if t == nil {
		return Model{}, false
	}
	m := Model{}
	m.ID = t.required("id", 128, ": the name that users send as model")
	if m.ID != "" && !modelID.MatchString(m.ID) {
		t.fault("id", "must begin with a letter or digit and contain only letters, digits and . _ : / @ + -")
		m.ID = ""
	}
	if r.lenient && !slices.Contains(Kinds(), Kind(t.text("kind", 64))) {
		r.leaveOut(path, "has a kind unknown to this version of the gateway, so the model was left out")
		return Model{}, false
	}
	m.Kind = choice(t, "kind", "", Kinds()...)
	m.OwnedBy = t.text("owned_by", 64)
	states := []ModelState{StateOpen, StateComingSoon, StateMaintenance, StateRetired}
	if r.lenient && !slices.Contains(append(states, ""), ModelState(t.text("state", 64))) {
		r.leaveOut(t.pathOf("state"), "is unknown to this version of the gateway, so the model is under maintenance here")
		m.State = StateMaintenance
	} else {
		m.State = choice(t, "state", StateOpen, states...)
	}
	m.FreeDailyRequests = t.count("free_daily_requests", 0, maxRequests, 0)
	t.checkKeys(m.Kind)
	switch m.Kind {
	case KindChat:
		r.chatModel(t, &m)
	case KindImage, KindVideo:
		r.mediaModel(t, &m)
	default:
		if d := m.Kind.Definition(); d != nil {
			r.definedModel(t, &m, d)
		}
	}
	t.close()
	return m, true
}

// checkKeys reports keys of other kinds of models, by the tags of Model. If the kind is unknown,
// all keys are allowed, because the kind itself is reported.
func (t *table) checkKeys(kind Kind) {
	d := kind.Definition()
	check := func(key, kinds string) {
		if kinds == "" || t.node.Get(key) == nil || d != nil && d.HasField(key) {
			return
		}
		if t.get(key) != nil && !strings.Contains(kinds, string(kind)) && !t.lenient {
			t.fault(key, "is for %s models only", strings.ReplaceAll(kinds, " ", " and "))
		}
	}
	for _, tag := range tags[reflect.TypeFor[Model]()] {
		if tag.key != "price" { // for all kinds
			check(tag.key, tag.kinds)
		}
	}
	check("per_clip", "video")
	t.get("price")
}

// chatModel reads the fields of chat models.
func (r *reader) chatModel(t *table, m *Model) {
	m.Forms = choices(t, "forms", modelForms, "a form: chat, responses, messages or gemini")
	if t.get("forms") == nil {
		m.Forms = []wire.Form{wire.FormChat}
	} else if t.emptyList("forms") {
		t.fault("forms", "must name at least one of chat, responses, messages, gemini")
	}
	m.Reasoning = t.boolean("reasoning", false)
	m.Efforts = oneOf(t, "efforts", wire.Efforts())
	for _, f := range []struct {
		key    string
		target *int64
		reason string
	}{
		{"context_window", &m.ContextWindow, "the largest prompt in tokens, which limits the hold"},
		{"max_output_tokens", &m.MaxOutputTokens, "the longest answer in tokens, which the hold assumes"},
	} {
		if t.get(f.key) == nil {
			t.fault(f.key, "is required for chat models: %s", f.reason)
		}
		*f.target = t.count(f.key, 1, maxTokens, 0)
	}
	m.DefaultOutputTokens = t.count("default_output_tokens", 1, maxTokens, 0)
	if m.MaxOutputTokens > 0 && m.DefaultOutputTokens > m.MaxOutputTokens {
		t.fault("default_output_tokens", "must not be larger than max_output_tokens, %d", m.MaxOutputTokens)
	}
	m.MaxImageTokens = t.count("max_image_tokens", 1, maxTokens, DefaultMaxImageTokens)
	n := t.get("price")
	if n == nil {
		t.fault("price", "is required, because nothing runs without a price. For a free model, write {input: 0, output: 0}")
		return
	}
	m.Price = r.chatPrice(t.pathOf("price"), n)
	if m.FreeDailyRequests > 0 && (m.Price.Input > 0 || m.Price.Output > 0) {
		r.warnPricedQuota(t, m)
	}
}

// warnPricedQuota warns of free_daily_requests on a model with a price.
func (r *reader) warnPricedQuota(t *table, m *Model) {
	r.warn(t.pathOf("free_daily_requests"), "model %s has a price too, so its requests count against the daily limit and are also charged. "+
		"Remove one of the two", m.ID)
}

// chatPrice reads prices per million tokens.
func (r *reader) chatPrice(path string, n *tree.Value) ChatPrice {
	t := r.table(path, n)
	if t == nil {
		return ChatPrice{}
	}
	p := ChatPrice{Rates: t.rates(nil)}
	var previous int64
	for path, n := range t.items("above", maxAbove) {
		entry := r.table(path, n)
		if entry == nil {
			continue
		}
		a := Band{PromptTokens: entry.count("prompt_tokens", 1, maxTokens, 0)}
		if entry.get("prompt_tokens") == nil {
			entry.fault("prompt_tokens", "is required: the prices of this entry apply to longer prompts")
		} else if a.PromptTokens > 0 && a.PromptTokens <= previous {
			entry.fault("prompt_tokens", "must be larger than in the previous entry, %d", previous)
		}
		previous = max(previous, a.PromptTokens)
		a.Rates = entry.rates(&p.Rates)
		entry.close()
		p.Bands = append(p.Bands, a)
	}
	p.Modalities = t.modalities()
	p.Options = t.factors()
	if tools := t.child("tools"); tools != nil {
		p.Tools = map[string]money.Price{}
		tools.prices(maxTools, fieldName, "the name of a tool", func(name string, price money.Price) { p.Tools[name] = price })
	}
	t.close()
	return p
}

// rates reads the rates of a price list and fills in the defaults. base is nil, or the base rates
// of a band.
func (t *table) rates(base *Rates) Rates {
	var v Rates
	prices := map[string]*money.Price{"input": &v.Input, "output": &v.Output, "cached_input": &v.CachedInput,
		"cache_write": &v.CacheWrite, "cache_write_1h": &v.CacheWrite1h}
	valid := map[string]bool{}
	for _, key := range ratesNames {
		if n := t.get(key); n != nil {
			*prices[key], valid[key] = t.price(t.pathOf(key), n)
		} else if key == "input" || key == "output" {
			t.fault(key, "is required: USD per million tokens")
		}
	}
	if !valid["cached_input"] {
		v.CachedInput = v.defaults(base).CachedInput
	}
	if !valid["cache_write"] {
		v.CacheWrite = v.defaults(base).CacheWrite
	}
	if !valid["cache_write_1h"] {
		v.CacheWrite1h = v.defaults(base).CacheWrite1h
	}
	return v
}

// factors reads the factors of request options: option -> value -> factor.
func (t *table) factors() map[string]map[string]money.Factor {
	options := t.child("options")
	if options == nil {
		return nil
	}
	out := map[string]map[string]money.Factor{}
	options.each(maxFactors, func(option, path string, value *tree.Value) {
		if !fieldName.MatchString(option) {
			t.reader.fault(path, value, "is not the name of a request field")
			return
		}
		values := t.table(path, value)
		if values == nil {
			return
		}
		if len(value.Fields) == 0 {
			t.reader.fault(path, value, "must name at least one value and its factor")
			return
		}
		out[option] = map[string]money.Factor{}
		values.each(maxFactors, func(optionValue, path string, value *tree.Value) {
			if !valueName.MatchString(optionValue) {
				t.reader.fault(path, value, "is not a valid value of a request field")
			} else if f, ok := decimal(t.reader, path, value, money.ParseFactor); ok {
				out[option][optionValue] = f
			}
		})
	})
	return out
}

// mediaModel reads the fields of image and video models.
func (r *reader) mediaModel(t *table, m *Model) {
	price, perClip := t.get("price"), t.get("per_clip")
	switch m.Kind {
	case KindImage:
		m.MaxImages = t.count("max_images", 1, maxPieces, defaultMaxImages)
		perClip = nil
	case KindVideo:
		m.Durations = r.durations(t)
		if price != nil && perClip != nil {
			t.fault("per_clip", "cannot be combined with price: per_clip is the price of a clip, price the price of a second")
		}
		if perClip == nil && t.get("durations") == nil {
			t.fault("durations", "is required if a video is priced per second: a list of seconds, or {min, max}")
		}
	}
	key := "price"
	if perClip != nil && price == nil {
		key, price, m.PerClip = "per_clip", perClip, true
	}
	if price == nil {
		t.fault("price", "is required, because nothing runs without a price")
	} else {
		m.Tiers = r.tiers(t.pathOf(key), price)
	}
	m.Ratios = t.names("ratios", ratioName, `a ratio in quotes such as "16:9"`)
	m.MaxReferences = t.count("max_references", 0, maxPieces, 0)
	m.Params = t.names("params", fieldName, "the name of a field")
	if m.Kind == KindVideo {
		r.rolesAndAudio(t, m)
	}
	for i, name := range m.Params {
		if jobrequest.OwnsParam(name) {
			r.warn(fmt.Sprintf("%s[%d]", t.pathOf("params"), i), "%s is a standard field of submissions, "+
				"which the gateway translates for each provider. It has no effect in params: remove it", name)
		}
		if slices.Contains(pricedParams, name) {
			r.warn(fmt.Sprintf("%s[%d]", t.pathOf("params"), i),
				"%s changes what some providers charge, but not the price here. "+
					"Set the price for its most expensive value, or remove it from params", name)
		}
	}
	if m.FreeDailyRequests > 0 && slices.ContainsFunc(m.Tiers, func(tier Tier) bool { return tier.Price > 0 }) {
		r.warnPricedQuota(t, m)
	}
}

// pricedParams are further fields of submissions. Their values change the price at a provider of
// images or videos: OpenAI, xAI, Ideogram, Kling, Gemini, fal and Replicate, by their price lists.
var pricedParams = []string{
	"quality", "rendering_speed", "mode", "generate_audio", "generateAudio", "enable_audio", "thinkingConfig", "service_tier",
	"enable_web_search", "num_images", "num_outputs", "samples", "steps", "num_inference_steps", "megapixels",
	"upscale", "fps", "num_frames",
}

// rolesAndAudio reads a video model's roles and sound. In older catalogs, `audio` in params stands
// for optional sound.
func (r *reader) rolesAndAudio(t *table, m *Model) {
	m.Roles = oneOf(t, "roles", jobrequest.Roles())
	if len(m.Roles) > 0 && m.MaxReferences == 0 {
		t.fault("roles", "have no effect, because the model accepts no references: set max_references too")
	}
	if t.get("audio") != nil {
		m.Audio = choice(t, "audio", SoundOptional, SoundOn, SoundOff, SoundOptional)
	} else if slices.Contains(m.Params, "audio") {
		m.Audio = SoundOptional
	}
	m.Params = slices.DeleteFunc(m.Params, func(name string) bool { return name == "audio" })
}

// tiers reads prices by resolution tier, in the order of the document.
func (r *reader) tiers(path string, n *tree.Value) (tiers Tiers) {
	t := r.table(path, n)
	if t == nil {
		return nil
	}
	if len(n.Fields) == 0 {
		r.fault(path, n, "must have the price of at least one resolution tier")
	}
	t.prices(maxTiers, tierName, "a resolution tier: tiers are written like 1K or 720p", func(name string, price money.Price) {
		tiers = append(tiers, Tier{name, price})
	})
	return tiers
}

// durations reads a list of seconds or a range.
func (r *reader) durations(t *table) Durations {
	n := t.get("durations")
	if n == nil {
		return Durations{}
	}
	var d Durations
	switch n.Kind {
	case tree.ListKind:
		if len(n.Items) == 0 {
			t.fault("durations", "must name at least one length in seconds")
		}
		for path, item := range t.items("durations", maxList) {
			if v, ok := r.countAt(path, item, 1, maxSeconds); ok {
				if slices.Contains(d.List, v) {
					r.fault(path, item, "is given twice")
				}
				d.List = append(d.List, v)
			}
		}
	case tree.TableKind:
		limits := t.child("durations")
		for _, key := range []string{"min", "max"} {
			if limits.get(key) == nil {
				limits.fault(key, "is required in a range of seconds")
			}
		}
		d.Min, d.Max = limits.count("min", 1, maxSeconds, 0), limits.count("max", 1, maxSeconds, 0)
		if d.Min > 0 && d.Max > 0 && d.Max < d.Min {
			limits.fault("max", "must not be smaller than min, %d", d.Min)
		}
		limits.close()
	default:
		t.fault("durations", "must be a list of seconds or {min, max}")
	}
	return d
}

// join joins words with commas for a message.
func join[T ~string](words []T) string {
	out := make([]string, len(words))
	for i, w := range words {
		out[i] = string(w)
	}
	return strings.Join(out, ", ")
}
