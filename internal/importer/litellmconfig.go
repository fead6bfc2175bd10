package importer

import (
	"cmp"
	"fmt"
	"maps"
	"math/big"
	"path/filepath"
	"regexp"
	"slices"
	"strings"

	"tollgate/internal/catalog"
	"tollgate/internal/catalog/tree"
	"tollgate/internal/wire"
)

// maxConfig bounds LiteLLM's config file in bytes.
const maxConfig = 4 << 20

// config reads a config file of LiteLLM.
type config struct {
	*draft
	providers map[string]catalog.Provider
	kinds     map[string]vendorKind
	names     map[string]bool // of the models so far
	lines     []*draftLine    // collected first, because entries with the same credential share a line
}

// readConfig turns a config file into models and lines.
func readConfig(o Options, d *draft) error {
	raw, err := readFile(o.Config, maxConfig)
	if err != nil {
		return err
	}
	root, err := tree.Read(raw)
	if err != nil {
		return fmt.Errorf("%s: %w", filepath.Base(o.Config), err)
	}
	if root.Kind != tree.TableKind {
		return fmt.Errorf("%s: must be a mapping with model_list, as LiteLLM's config file is", filepath.Base(o.Config))
	}
	c := config{draft: d, providers: o.Providers, kinds: vendorKinds(), names: map[string]bool{}}
	if list := root.Get("model_list"); list != nil {
		for _, item := range list.Items {
			c.deployment(item)
		}
	}
	c.aliases(root)
	c.addLines()
	c.remarkRest(root)
	return nil
}

// recordOfTable returns the scalar members of a table as texts.
func recordOfTable(t *tree.Value) record {
	r := record{}
	if t == nil {
		return r
	}
	for _, f := range t.Fields {
		if f.Value.Kind == tree.PlainKind || f.Value.Kind == tree.QuotedKind {
			r[f.Name] = f.Value.Text
		}
	}
	return r
}

// deployment adds an entry of model_list to a line. If the entry is the first with its name,
// deployment also adds the model.
func (c *config) deployment(item *tree.Value) {
	name := recordOfTable(item)["model_name"]
	params, info := recordOfTable(item.Get("litellm_params")), recordOfTable(item.Get("model_info"))
	e := entry{"model", "", name}
	if !c.names[name] {
		c.count("models").Found++
		c.names[name] = true
	}
	leaveOut := func(what, do string) {
		c.count("lines").Left++
		c.remark(e, "it is left out: "+what, do)
	}
	prefix, id := splitModel(params["model"], params["custom_llm_provider"], params["api_base"])
	kind := c.kinds[prefix]
	switch {
	case strings.Contains(name, "*") || strings.Contains(params["model"], "*"):
		leaveOut("patterns of models are not supported", "name the models that it stands for")
		return
	case kind.provider == "":
		leaveOut("its provider "+excerpt(prefix)+" is not carried over", "see docs/providers.md for what tollgate has for it")
		return
	case kind.needs && params["api_base"] == "":
		leaveOut("it has no api_base", "add a line for it to the catalog by hand")
		return
	}
	own := c.factsFor(e, params, info, id)
	if what := otherKind(id, own); what != "" {
		leaveOut("it makes "+what+", not chat answers", "add it to the catalog by hand, if tollgate has models of its kind")
		return
	}
	if !c.addPriced(e, own) {
		c.count("lines").Left++
		return
	}
	c.addToLine(e, kind, params, id)
	c.remarkParams(e, params)
}

// addPriced adds the model of an entry, unless an earlier entry has added it, and reports whether the
// model is in the catalog.
func (c *config) addPriced(e entry, own facts) bool {
	if own.rates.input == nil || own.rates.output == nil {
		if !c.has(e.name) {
			c.remark(e, "it is left out: neither the config nor --models has its price",
				"give LiteLLM's model_prices_and_context_window.json as --models")
		}
		return c.has(e.name)
	}
	if m := c.models[e.name]; m != nil {
		if input, _ := priceOf(own.rates.input); input != m.Price.Input {
			c.remark(e, "its entries have different prices: the model gets the price of the first entry", "")
		}
		return true
	}
	c.known[e.name] = own
	c.addModel(e.name, own.rates)
	return c.has(e.name)
}

// factsFor returns the facts of an entry from the entry itself and the file of models.
func (c *config) factsFor(e entry, params, info record, id string) facts {
	var f facts
	for _, name := range []string{info["base_model"], params["base_model"], params["model"], id} {
		if known, ok := c.known[name]; ok && name != "" {
			f = known
			break
		}
	}
	own := record{}
	maps.Copy(own, info)
	maps.Copy(own, params)
	for _, name := range slices.Sorted(maps.Keys(own)) {
		if factColumn.MatchString(name) && strings.TrimSpace(own[name]) != "" && number(own[name]) == nil {
			c.unreadable(e, name, own[name], "absent")
		}
	}
	ownFacts := factsOf(own)
	if ownFacts.rates.input != nil || ownFacts.rates.output != nil {
		f.rates = ownFacts.rates
		f.rates.input = cmp.Or(f.rates.input, new(big.Rat))
		f.rates.output = cmp.Or(f.rates.output, new(big.Rat))
	}
	f.mode = cmp.Or(ownFacts.mode, f.mode)
	if info["max_input_tokens"] != "" {
		f.context = ownFacts.context
	}
	if info["max_output_tokens"] != "" {
		f.output = ownFacts.output
	}
	f.reasoning = f.reasoning || ownFacts.reasoning
	return f
}

// factColumn matches the limits and prices of an entry.
var factColumn = regexp.MustCompile(`^max_(input_|output_)?tokens$|_cost_per_token|_token_cost`)

// environment matches a reference to an environment variable.
var environment = regexp.MustCompile(`^os\.environ/([A-Za-z_][A-Za-z0-9_]{0,127})$`)

// addToLine adds an entry to the line with its credential and settings, or to a new line.
func (c *config) addToLine(e entry, kind vendorKind, params record, id string) {
	spec := catalog.LineSpec{Provider: kind.provider, BaseURL: strings.TrimRight(params["api_base"], "/"), Forms: kind.forms, Enabled: true,
		Priority: c.boundedNumber(e, params, "order", 1), Weight: c.weightOf(e, params),
		MaxConcurrent: c.boundedNumber(e, params, "max_parallel_requests", 0)}
	if found := environment.FindStringSubmatch(spec.BaseURL); found != nil {
		c.remark(e, "its address is in the variable "+found[1]+", but a line needs the address itself", "write it as base_url into the catalog")
		spec.BaseURL = ""
	}
	if spec.BaseURL == "" {
		spec.BaseURL = kind.base
	} else if kind.provider == "openai" {
		spec.Forms = []wire.Form{wire.FormChat}
	}
	credential := params["api_key"]
	if found := environment.FindStringSubmatch(credential); found != nil {
		credential, spec.APIKey = "", "${"+found[1]+"}"
	} else if credential == "" && kind.key != "" {
		spec.APIKey = "${" + kind.key + "}"
	}
	for _, l := range c.lines {
		if _, serves := l.spec.Models[e.name]; !serves && sameLine(&l.spec, &spec) && l.credential == credential {
			l.spec.Models[e.name] = id
			return
		}
	}
	spec.Models = map[string]string{e.name: id}
	c.lines = append(c.lines, &draftLine{entry: entry{"line", "", kind.provider + " " + e.name}, spec: spec, credential: credential})
}

// sameLine reports whether two entries can share a line.
func sameLine(a, b *catalog.LineSpec) bool {
	return a.Provider == b.Provider && a.BaseURL == b.BaseURL && a.APIKey == b.APIKey && slices.Equal(a.Forms, b.Forms) &&
		a.Priority == b.Priority && a.Weight == b.Weight && a.MaxConcurrent == b.MaxConcurrent
}

// boundedNumber reads a whole number of an entry and limits it to least through maxWeight.
func (c *config) boundedNumber(e entry, params record, name string, least int64) int {
	n := c.whole(e, params, name, 0, "0")
	return int(min(max(n, least), maxWeight))
}

// weightOf returns the weight of an entry's line: LiteLLM's weight times 100. Without a weight, it is
// LiteLLM's rpm, or 100.
func (c *config) weightOf(e entry, params record) int {
	if weight, _ := c.decimal(e, params, "weight"); weight != nil && weight.Sign() > 0 {
		n, ok := scaled(weight, 2, true, maxWeight)
		if ok {
			return int(max(n, 1))
		}
	}
	if rpm := c.whole(e, params, "rpm", 0, "0"); rpm > 0 {
		return int(min(rpm, maxWeight))
	}
	return 100
}

// aliases adds other names of models.
func (c *config) aliases(root *tree.Value) {
	for _, section := range []string{"router_settings", "litellm_settings"} {
		settings := root.Get(section)
		if settings == nil {
			continue
		}
		for _, key := range []string{"model_group_alias", "model_alias_map"} {
			if t := settings.Get(key); t != nil {
				for _, f := range t.Fields {
					c.alias(f.Name, f.Value)
				}
			}
		}
	}
}

// alias adds another name of a model, with its price and on its lines.
func (c *config) alias(name string, value *tree.Value) {
	target := value.Text
	if value.Kind == tree.TableKind {
		target = recordOfTable(value)["model"]
	}
	e := entry{"model", "", name}
	c.count("models").Found++
	m := c.models[target]
	if m == nil || c.has(name) {
		c.remark(e, "it is left out: it is another name of "+excerpt(target)+", which was not carried over", "")
		return
	}
	alias := *m
	alias.ID = name
	if err := checkDocument(&catalog.Document{Models: []catalog.Model{alias}}, nil); err != nil {
		c.remark(e, "it is left out: "+oneLine(err.Error()), "add it to the catalog by hand, by another name")
		return
	}
	c.models[name] = &alias
	c.order = append(c.order, name)
	for _, l := range c.lines {
		if providerModel, serves := l.spec.Models[target]; serves {
			l.spec.Models[name] = providerModel
		}
	}
}

// addLines adds the lines to the draft. In the report, entries that share a line count as one.
func (c *config) addLines() {
	count := c.count("lines")
	made := 0
	for _, l := range c.lines {
		if c.addLine(*l, c.providers) {
			made++
		}
	}
	count.Found, count.Made, count.Left = count.Left+len(c.lines), made, count.Left+len(c.lines)-made
}

// remarkParams remarks on parameters without a counterpart.
func (c *config) remarkParams(e entry, params record) {
	carried := []string{"model", "api_base", "api_key", "custom_llm_provider", "base_model", "weight", "order", "max_parallel_requests",
		"mode", "input_cost_per_token", "output_cost_per_token", "cache_read_input_token_cost", "cache_creation_input_token_cost"}
	var left []string
	for _, name := range slices.Sorted(maps.Keys(params)) {
		if !slices.Contains(carried, name) && !priceName.MatchString(name) {
			left = append(left, excerpt(name))
		}
	}
	if len(left) > 0 {
		c.remark(e, "not carried over: "+strings.Join(left, ", "), "see lines in docs/operator.md, Catalog")
	}
}

// remarkRest remarks on settings of the file.
func (c *config) remarkRest(root *tree.Value) {
	for _, section := range []string{"router_settings", "litellm_settings", "general_settings"} {
		t := root.Get(section)
		if t == nil {
			continue
		}
		for _, f := range t.Fields {
			what, do := "it is not carried over", ""
			switch f.Name {
			case "model_group_alias", "model_alias_map":
				continue
			case "fallbacks", "default_fallbacks", "context_window_fallbacks", "content_policy_fallbacks":
				do = "give a model a second line, with a larger number as its priority"
			case "master_key":
				do = "operators have admin_token, see docs/operator.md, Settings"
			}
			c.remark(entry{"setting", "", section + "." + f.Name}, what, do)
		}
	}
}
