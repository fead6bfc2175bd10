package catalog

import (
	"fmt"
	"regexp"
	"slices"
	"strings"

	"tollgate/internal/catalog/tree"
	"tollgate/internal/money"
	"tollgate/internal/wire"
	"tollgate/internal/wire/jobrequest"
)

// Shapes of names. They are compiled once and never changed.
var (
	modelID    = regexp.MustCompile(`^[A-Za-z0-9][A-Za-z0-9._:/@+-]{0,127}$`)
	lineID     = regexp.MustCompile(`^[A-Za-z0-9][A-Za-z0-9._-]{0,63}$`)
	fieldName  = regexp.MustCompile(`^[A-Za-z_][A-Za-z0-9_.-]{0,63}$`)
	valueName  = regexp.MustCompile(`^[A-Za-z0-9_][A-Za-z0-9_.:/-]{0,63}$`)
	tierName   = regexp.MustCompile(`^[1-9][0-9]{0,4}[Kp]$`)
	ratioName  = regexp.MustCompile(`^[1-9][0-9]{0,4}:[1-9][0-9]{0,4}$`)
	ratesNames = []string{"input", "output", "cached_input", "cache_write", "cache_write_1h"}
)

// Keys only valid for some kinds of models.
var (
	chatKeys = []string{"forms", "reasoning", "efforts", "context_window", "max_output_tokens", "default_output_tokens",
		"max_image_tokens"}
	mediaKeys = []string{"ratios", "max_references", "params"}
	imageKeys = []string{"max_images"}
	videoKeys = []string{"per_clip", "durations", "roles", "audio"}
)

// document reads the whole.
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
	// Where each id stands, by place in the file.
	models := map[string]*Model{}
	firstAt := map[string]string{}
	items := t.list("models", MaxModels)
	doc.Models = make([]Model, 0, len(items)) // never grows: models points into it
	for i, n := range items {
		path := fmt.Sprintf("models[%d]", i)
		m, ok := r.model(path, n)
		if m.ID != "" {
			if first, taken := firstAt[m.ID]; taken {
				r.fault(path+".id", n.Get("id"), "%s is already the id of %s", quote(m.ID), first)
			} else {
				firstAt[m.ID] = path
			}
		}
		if ok {
			doc.Models = append(doc.Models, m)
			models[m.ID] = &doc.Models[len(doc.Models)-1]
		}
	}
	served := r.lines(t, doc, models, firstAt)
	for i := range doc.Models {
		m := &doc.Models[i]
		if m.State == StateOpen && !served[m.ID] {
			r.warn(firstAt[m.ID], "model %s is open but no enabled line serves it", m.ID)
		}
	}
	for i := range doc.Models {
		if m := &doc.Models[i]; m.Speaks(wire.FormMessages) && m.Price.CacheWrite > m.Price.Input && m.Price.CacheWrite1h == m.Price.CacheWrite {
			r.warn(firstAt[m.ID]+".price", "cache writes for an hour (`ttl: 1h`) cost as much as those for five minutes. "+
				"Anthropic takes twice the input price for an hour: set cache_write_1h")
		}
	}
	r.warnings = append(r.warnings, doc.BelowCost()...)
	t.close()
	return doc
}

// model reads one model. It reports false when the model is to be left out.
func (r *reader) model(path string, n *tree.Value) (Model, bool) {
	t := r.table(path, n)
	if t == nil {
		return Model{}, false
	}
	m := Model{}
	m.ID = t.required("id", 128, ": the name that users send as model")
	if m.ID != "" && !modelID.MatchString(m.ID) {
		t.fault("id", "must begin with a letter or digit and hold only letters, digits and . _ : / @ + -")
		m.ID = ""
	}
	if r.lenient && !slices.Contains([]string{"chat", "image", "video"}, t.text("kind", 64)) {
		r.leaveOut(path, "is of a kind that this version does not know and was left out")
		return Model{}, false
	}
	m.Kind = choice(t, "kind", "", KindChat, KindImage, KindVideo)
	m.OwnedBy = t.text("owned_by", 64)
	states := []ModelState{StateOpen, StateComingSoon, StateMaintenance, StateRetired}
	if r.lenient && !slices.Contains(append(states, ""), ModelState(t.text("state", 64))) {
		r.leaveOut(t.at("state"), "is not known to this version: the model is under maintenance here")
		m.State = StateMaintenance
	} else {
		m.State = choice(t, "state", StateOpen, states...)
	}
	m.FreeDailyRequests = t.count("free_daily_requests", 0, maxRequests, 0)
	switch m.Kind {
	case KindChat:
		r.chatModel(t, &m)
	case KindImage, KindVideo:
		r.mediaModel(t, &m)
	default: // the fault is the kind's: the valid keys depend on the kind
		t.known["price"] = true
		for _, keys := range [][]string{chatKeys, mediaKeys, imageKeys, videoKeys} {
			for _, key := range keys {
				t.known[key] = true
			}
		}
	}
	t.close()
	return m, true
}

// chatModel reads the fields of chat models.
func (r *reader) chatModel(t *table, m *Model) {
	t.misplaced("is for image and video models only", mediaKeys...)
	t.misplaced("is for image models only", imageKeys...)
	t.misplaced("is for video models only", videoKeys...)
	m.Forms = r.forms(t, []wire.Form{wire.FormChat, wire.FormResponses, wire.FormMessages}, "a form: chat, responses or messages")
	if t.get("forms") == nil {
		m.Forms = []wire.Form{wire.FormChat}
	} else if n := t.get("forms"); n.Kind == tree.ListKind && len(n.Items) == 0 {
		t.fault("forms", "must name at least one of chat, responses, messages")
	}
	m.Reasoning = t.boolean("reasoning", false)
	m.Efforts = r.chosen(t, "efforts", wire.Efforts())
	for _, f := range []struct {
		key string
		to  *int64
		why string
	}{
		{"context_window", &m.ContextWindow, "the largest prompt, in tokens: the hold is bounded by it"},
		{"max_output_tokens", &m.MaxOutputTokens, "the longest answer, in tokens: the hold assumes it"},
	} {
		if t.get(f.key) == nil {
			t.fault(f.key, "is required for chat models: %s", f.why)
		}
		*f.to = t.count(f.key, 1, maxTokens, 0)
	}
	m.DefaultOutputTokens = t.count("default_output_tokens", 1, maxTokens, 0)
	if m.MaxOutputTokens > 0 && m.DefaultOutputTokens > m.MaxOutputTokens {
		t.fault("default_output_tokens", "must not be larger than max_output_tokens, %d", m.MaxOutputTokens)
	}
	m.MaxImageTokens = t.count("max_image_tokens", 1, maxTokens, DefaultMaxImageTokens)
	n := t.get("price")
	if n == nil {
		t.fault("price", "is required: nothing runs that cannot be billed (a free model says {input: 0, output: 0})")
		return
	}
	m.Price = r.chatPrice(t.at("price"), n)
	if m.FreeDailyRequests > 0 && (m.Price.Input > 0 || m.Price.Output > 0) {
		r.warnPricedQuota(t, m)
	}
}

// warnPricedQuota warns of a quota of free models on a model with a price.
func (r *reader) warnPricedQuota(t *table, m *Model) {
	r.warn(t.at("free_daily_requests"), "model %s has a daily quota of free models and a price: its requests are counted and charged", m.ID)
}

// forms reads a list of forms, each one of allowed. It returns nil if the key is absent.
func (r *reader) forms(t *table, allowed []wire.Form, what string) []wire.Form {
	var out []wire.Form
	for i, n := range t.list("forms", maxList) {
		path := fmt.Sprintf("%s[%d]", t.at("forms"), i)
		s, ok := r.scalar(path, n)
		form := wire.Form(s)
		switch {
		case !ok:
		case !slices.Contains(allowed, form) && r.lenient:
			r.leaveOut(path, "is not known to this version and was left out")
		case !slices.Contains(allowed, form):
			r.fault(path, n, "must be %s", what)
		case slices.Contains(out, form):
			r.fault(path, n, "is given twice")
		default:
			out = append(out, form)
		}
	}
	return out
}

// chatPrice reads prices per million tokens.
func (r *reader) chatPrice(path string, n *tree.Value) ChatPrice {
	t := r.table(path, n)
	if t == nil {
		return ChatPrice{}
	}
	p := ChatPrice{Rates: r.rates(t, nil)}
	var before int64
	for i, n := range t.list("above", maxAbove) {
		at := r.table(fmt.Sprintf("%s[%d]", t.at("above"), i), n)
		if at == nil {
			continue
		}
		a := Above{PromptTokens: at.count("prompt_tokens", 1, maxTokens, 0)}
		if at.get("prompt_tokens") == nil {
			at.fault("prompt_tokens", "is required: the prices are those of longer prompts")
		} else if a.PromptTokens > 0 && a.PromptTokens <= before {
			at.fault("prompt_tokens", "must be larger than that of the entry before, %d", before)
		}
		before = max(before, a.PromptTokens)
		a.Rates = r.rates(at, &p.Rates)
		at.close()
		p.Above = append(p.Above, a)
	}
	p.Modalities = r.modalities(t)
	p.Options = r.factors(t)
	if n := t.get("tools"); n != nil {
		if tools := r.table(t.at("tools"), n); tools != nil {
			p.Tools = map[string]money.Price{}
			tools.each(maxTools, func(name, path string, value *tree.Value) {
				if !fieldName.MatchString(name) {
					r.fault(path, value, "is not the name of a tool")
				} else if price, ok := r.price(path, value); ok {
					p.Tools[name] = price
				}
			})
		}
	}
	t.close()
	return p
}

// rates reads the five rates of a price list and fills in the defaults, those of
// longer prompts by the base price.
func (r *reader) rates(t *table, base *Rates) Rates {
	var v Rates
	given := map[string]bool{}
	for i, to := range []*money.Price{&v.Input, &v.Output, &v.CachedInput, &v.CacheWrite, &v.CacheWrite1h} {
		key := ratesNames[i]
		n := t.get(key)
		if n == nil {
			if key == "input" || key == "output" {
				t.fault(key, "is required: USD per million tokens")
			}
			continue
		}
		*to, given[key] = r.price(t.at(key), n)
	}
	usual := v.usual(base)
	if !given["cached_input"] {
		v.CachedInput = usual.CachedInput
	}
	if !given["cache_write"] {
		v.CacheWrite = usual.CacheWrite
	}
	if !given["cache_write_1h"] {
		v.CacheWrite1h = v.usual(base).CacheWrite1h
	}
	return v
}

// factors reads the factors of request options: field -> value -> factor.
func (r *reader) factors(t *table) map[string]map[string]money.Factor {
	n := t.get("options")
	if n == nil {
		return nil
	}
	options := r.table(t.at("options"), n)
	if options == nil {
		return nil
	}
	out := map[string]map[string]money.Factor{}
	options.each(maxFactors, func(name, path string, value *tree.Value) {
		if !fieldName.MatchString(name) {
			r.fault(path, value, "is not the name of a request field")
			return
		}
		values := r.table(path, value)
		if values == nil {
			return
		}
		if len(value.Fields) == 0 {
			r.fault(path, value, "must name at least one value and its factor")
			return
		}
		out[name] = map[string]money.Factor{}
		values.each(maxFactors, func(word, path string, value *tree.Value) {
			if !valueName.MatchString(word) {
				r.fault(path, value, "is not the value of a request field")
			} else if f, ok := r.factor(path, value); ok {
				out[name][word] = f
			}
		})
	})
	return out
}

// mediaModel reads the fields of image and video models.
func (r *reader) mediaModel(t *table, m *Model) {
	t.misplaced("is for chat models only", chatKeys...)
	price, clips := t.get("price"), t.get("per_clip")
	switch m.Kind {
	case KindImage:
		t.misplaced("is for video models only", videoKeys...)
		m.MaxImages = t.count("max_images", 1, maxPieces, defaultMaxImages)
		clips = nil
	case KindVideo:
		t.misplaced("is for image models only", imageKeys...)
		m.Durations = r.durations(t)
		if price != nil && clips != nil {
			t.fault("per_clip", "must not stand beside price: a clip is priced as a whole or by the second")
		}
		if clips == nil && t.get("durations") == nil {
			t.fault("durations", "is required where video is priced by the second: a list of seconds or {min, max}")
		}
	}
	key := "price"
	if clips != nil && price == nil {
		key, price, m.PerClip = "per_clip", clips, true
	}
	if price == nil {
		t.fault("price", "is required: nothing runs that cannot be billed")
	} else {
		m.Tiers = r.tiers(t.at(key), price)
	}
	m.Ratios = t.names("ratios", ratioName, `a ratio in quotes such as "16:9"`)
	m.MaxReferences = t.count("max_references", 0, maxPieces, 0)
	m.Params = t.names("params", fieldName, "the name of a field")
	if m.Kind == KindVideo {
		r.vocabulary(t, m)
	}
	for i, name := range m.Params {
		if jobrequest.OwnsParam(name) {
			r.warn(fmt.Sprintf("%s[%d]", t.at("params"), i), "%s is a field that submissions have anyway: it does not go to the line as it is", name)
		}
	}
	if m.FreeDailyRequests > 0 && slices.ContainsFunc(m.Tiers, func(tier Tier) bool { return tier.Price > 0 }) {
		r.warnPricedQuota(t, m)
	}
}

// chosen reads a list of some of the known words. One of a later version is left
// out.
func (r *reader) chosen(t *table, key string, known []string) (words []string) {
	for i, n := range t.list(key, maxList) {
		path := fmt.Sprintf("%s[%d]", t.at(key), i)
		switch {
		case !slices.Contains(known, n.Text) && r.lenient:
			r.leaveOut(path, "is not known to this version and was left out")
		case !slices.Contains(known, n.Text):
			r.fault(path, n, "must be one of %s", join(known))
		case slices.Contains(words, n.Text):
			r.fault(path, n, "is given twice")
		default:
			words = append(words, n.Text)
		}
	}
	return words
}

// vocabulary reads a video model's roles and sound. `audio` among the params, its place before it
// became a key, means optional sound.
func (r *reader) vocabulary(t *table, m *Model) {
	m.Roles = r.chosen(t, "roles", jobrequest.Roles())
	if len(m.Roles) > 0 && m.MaxReferences == 0 {
		t.fault("roles", "are those of references, of which the model takes none: set max_references")
	}
	if t.get("audio") != nil {
		m.Audio = choice(t, "audio", SoundOptional, SoundOn, SoundOff, SoundOptional)
	} else if slices.Contains(m.Params, "audio") {
		m.Audio = SoundOptional
	}
	m.Params = slices.DeleteFunc(m.Params, func(name string) bool { return name == "audio" })
}

// tiers reads prices by resolution tier, in the order of the text.
func (r *reader) tiers(path string, n *tree.Value) []Tier {
	t := r.table(path, n)
	if t == nil {
		return nil
	}
	if len(n.Fields) == 0 {
		r.fault(path, n, "must price at least one resolution tier")
	}
	var out []Tier
	t.each(maxTiers, func(name, path string, value *tree.Value) {
		if !tierName.MatchString(name) {
			r.fault(path, value, "is not a resolution tier: tiers are written like 1K or 720p")
		} else if p, ok := r.price(path, value); ok {
			out = append(out, Tier{name, p})
		}
	})
	return out
}

// durations reads a list of seconds or a range.
func (r *reader) durations(t *table) Durations {
	n := t.get("durations")
	if n == nil {
		return Durations{}
	}
	path := t.at("durations")
	var d Durations
	switch n.Kind {
	case tree.ListKind:
		if len(n.Items) == 0 {
			t.fault("durations", "must name at least one length in seconds")
		}
		for i, item := range t.list("durations", maxList) {
			at := fmt.Sprintf("%s[%d]", path, i)
			if v, ok := r.countAt(at, item, 1, maxSeconds); ok {
				if slices.Contains(d.List, v) {
					r.fault(at, item, "is given twice")
				}
				d.List = append(d.List, v)
			}
		}
	case tree.TableKind:
		span := r.table(path, n)
		for _, key := range []string{"min", "max"} {
			if span.get(key) == nil {
				span.fault(key, "is required in a range of seconds")
			}
		}
		d.Min, d.Max = span.count("min", 1, maxSeconds, 0), span.count("max", 1, maxSeconds, 0)
		if d.Min > 0 && d.Max > 0 && d.Max < d.Min {
			span.fault("max", "must not be smaller than min, %d", d.Min)
		}
		span.close()
	default:
		t.fault("durations", "must be a list of seconds or {min, max}")
	}
	return d
}

// join writes words for a message.
func join[T ~string](words []T) string {
	out := make([]string, len(words))
	for i, w := range words {
		out[i] = string(w)
	}
	return strings.Join(out, ", ")
}
