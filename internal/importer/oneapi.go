package importer

import (
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"maps"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"time"

	"tollgate/internal/catalog"
)

// States of channels, users and tokens at one-api and new-api.
const (
	statusOn       = 1
	statusOff      = 2
	statusGone     = 3 // of users: deleted; of channels: switched off by the program; of tokens: expired
	roleRoot       = 100
	channelAutoOff = 3
	defaultGroup   = "default"
	maxRootQuota   = 1_000_000 // US dollars; see setCredit
)

// oneAPI reads a source of one-api or new-api.
type oneAPI struct {
	*draft
	plan   *Contents
	now    time.Time
	tables tables
	prices *ratios
	groups map[string]map[string]bool // models of enabled channels by group
}

func readOneAPI(ctx context.Context, o Options, p *Contents, d *draft) error {
	found, err := readTables(ctx, o.Source, []string{"channels", "users", "tokens", "options"}, []string{"redemptions"})
	if err != nil {
		return err
	}
	settings := map[string]string{}
	for _, row := range found["options"] {
		settings[row["key"]] = row["value"]
	}
	ratioSettings, err := readSettings(o.Settings)
	if err != nil {
		return err
	}
	maps.Copy(settings, ratioSettings) // the program's current settings take precedence
	s := oneAPI{plan: p, draft: d, now: o.Now, tables: found, groups: map[string]map[string]bool{}}
	if s.prices, err = ratiosOf(p.Program, settings); err != nil {
		return err
	}
	s.readChannels(o.Providers)
	s.readUsers()
	s.remarkRest(settings)
	return nil
}

// typeSuffix matches the name of a ratio for channels of one type.
var typeSuffix = regexp.MustCompile(`\([0-9]+\)$`)

// remarkRest remarks on data without a counterpart.
func (s *oneAPI) remarkRest(settings map[string]string) {
	unused := 0
	for _, row := range s.tables["redemptions"] {
		if row["deleted_at"] == "" && s.status(row, "redemption code") == statusOn {
			unused++
		}
	}
	if unused > 0 {
		s.remark(entry{"redemption code", "", ""}, fmt.Sprintf("not carried over: unused codes, %d", unused),
			"make new ones with `tollgate codes create`")
	}
	if len(s.prices.model)+len(s.prices.perRequest)+len(s.prices.expression) == 0 {
		s.remark(entry{"setting", "", "ModelRatio"}, "the database has no prices: the built-in prices of the program apply",
			"give the answer of GET /api/option/ as --options")
	}
	for _, name := range slices.Sorted(maps.Keys(s.prices.model)) {
		if typeSuffix.MatchString(name) {
			s.remark(entry{"setting", "", "ModelRatio " + name}, "not carried over: a price for channels of one type",
				"a model has one price on all lines")
		}
	}
	for _, name := range []string{"GroupGroupRatio", "AudioRatio", "AudioCompletionRatio", "ImageRatio"} {
		if text := strings.TrimSpace(settings[name]); text != "" && text != "{}" {
			s.remark(entry{"setting", "", name}, "it is not carried over", "see docs/operator.md, Catalog, for modalities and account prices")
		}
	}
}

// readChannels turns channels into models and lines.
func (s *oneAPI) readChannels(providers map[string]catalog.Provider) {
	channels := s.tables["channels"]
	slices.SortStableFunc(channels, byID)
	s.readModels(channels)
	ranks := s.ranksOf(channels)
	weighted := slices.ContainsFunc(channels, func(c record) bool { return s.plan.Program == NewAPI && s.channelNumber(c, "weight") > 0 })
	kinds := kindsOf(s.plan.Program)
	count := s.count("lines")
	for _, c := range channels {
		weight := 100
		if weighted {
			weight = int(min(max(s.channelNumber(c, "weight"), 1), maxWeight))
		}
		lines := s.linesOf(c, kinds, ranks[s.channelNumber(c, "priority")], weight)
		count.Found += max(len(lines), 1)
		added := 0
		for _, l := range lines {
			if s.addLine(l, providers) {
				added++
			}
		}
		count.Made += added
		count.Left += max(len(lines), 1) - added
		if added > 0 && s.status(c, "channel") == statusOn {
			s.addToGroups(c)
		}
	}
}

// maxWeight is the largest weight of a line.
const maxWeight = 1_000_000

// ranksOf maps the priority of a channel to the priority of its lines. A larger number of a channel, but
// a smaller number of a line, means to be used first.
func (s *oneAPI) ranksOf(channels []record) map[int64]int {
	var all []int64
	for _, c := range channels {
		all = append(all, s.channelNumber(c, "priority"))
	}
	slices.Sort(all)
	all = slices.Compact(all)
	slices.Reverse(all)
	ranks := map[int64]int{}
	for i, priority := range all {
		ranks[priority] = i + 1
	}
	return ranks
}

// readModels adds the models of channels with their prices.
func (s *oneAPI) readModels(channels []record) {
	names := map[string]bool{}
	for _, c := range channels {
		for _, model := range c.list("models", ",") {
			names[model] = true
		}
	}
	s.count("models").Found = len(names)
	for _, model := range slices.Sorted(maps.Keys(names)) {
		s.readModel(model)
	}
}

func (s *oneAPI) readModel(model string) {
	e := entry{"model", "", model}
	if what := otherKind(model, s.known[model]); what != "" {
		s.remark(e, "it is left out: its name says that it makes "+what+", not chat answers",
			"add it to the catalog by hand, if tollgate has models of its kind")
		return
	}
	if text, ok := s.prices.expression[model]; ok {
		s.remark(e, "it is left out: its price is the expression "+oneLine(text),
			"add it to the catalog: the factor of p is input, of c output, of cr cached_input, of cc cache_write and of cc1h cache_write_1h "+
				"in its price; each further step of len is an entry of above")
		return
	}
	if s.prices.perRequest[model] != nil {
		s.remark(e, "it is left out: it has a price per request, and tollgate's chat prices are per token",
			"add it to the catalog with prices by the token")
		return
	}
	price, guessed, ok := s.prices.priceOf(model)
	if !ok {
		s.remark(e, "it is left out: no setting has its price",
			"give the answer of GET /api/option/ as --options, or add it to the catalog by hand")
		return
	}
	s.addModel(model, price)
	if guessed && s.has(model) {
		s.remark(e, "its output price is a guess from a built-in rule of "+string(s.plan.Program),
			"compare it with what was charged")
	}
}

// linesOf returns the lines of a channel, one for each credential. If the channel cannot become a line,
// linesOf remarks on the reason and returns nil.
func (s *oneAPI) linesOf(c record, kinds map[int64]channelKind, priority, weight int) []draftLine {
	e := entry{"channel", c["id"], c["name"]}
	number, readable := wholeOf(c["type"])
	kind, known := kinds[number]
	switch {
	case !known || !readable:
		s.remark(e, "it is left out: its type "+c["type"]+" is not known", "add a line for it to the catalog by hand")
		return nil
	case kind.provider == "":
		s.remark(e, "it is left out: channels of "+kind.name+" are not carried over", "see docs/providers.md for what tollgate has for it")
		return nil
	}
	spec := catalog.LineSpec{Provider: kind.provider, Forms: kind.forms, Priority: priority, Weight: weight,
		IgnoresLimit: kind.ignores, Enabled: s.status(c, "channel") == statusOn}
	base, ok := s.baseOf(c, kind)
	if !ok {
		s.remark(e, "it is left out: its address cannot be the address of a line", "add a line for it to the catalog by hand")
		return nil
	}
	spec.BaseURL = base
	if kind.bare && kind.provider == "openai" && base != "" && !strings.HasPrefix(base, "https://api.openai.com/") {
		spec.Forms = compatible("", "", "").forms
	}
	if spec.Models = s.modelsOf(c, e, kind); len(spec.Models) == 0 {
		s.remark(e, "it is left out: none of its models was carried over", "")
		return nil
	}
	if organization := c["open_ai_organization"]; organization != "" {
		spec.Headers = map[string]string{"Openai-Organization": organization}
	}
	s.remarkChannel(c, e, kind)
	return s.splitByKey(c, e, spec)
}

// baseOf returns the base address of a channel's line.
func (s *oneAPI) baseOf(c record, kind channelKind) (string, bool) {
	own := c["base_url"]
	if s.plan.Program == NewAPI && kind.name == "custom" { // the whole address of chat completions
		whole, ok := strings.CutSuffix(strings.TrimRight(own, "/"), "/chat/completions")
		return whole, ok && !strings.Contains(whole, "{model}")
	}
	return kind.address(own)
}

// modelsOf returns the imported models of a channel with the provider's names.
func (s *oneAPI) modelsOf(c record, e entry, kind channelKind) map[string]string {
	mapping := map[string]string{}
	if text := strings.TrimSpace(c["model_mapping"]); text != "" {
		if err := json.Unmarshal([]byte(text), &mapping); err != nil {
			s.remark(e, "its model_mapping cannot be read, and is left out", "write the provider's names into the line")
		}
	}
	models := map[string]string{}
	for _, model := range c.list("models", ",") {
		if !s.has(model) {
			continue
		}
		providerModel := cmp.Or(mapping[model], model)
		if kind.provider == "azure" {
			providerModel = strings.ReplaceAll(providerModel, ".", "") // as both programs name deployments
		}
		models[model] = providerModel
	}
	return models
}

// splitByKey returns a line for each credential of a channel. The lines share the channel's weight.
func (s *oneAPI) splitByKey(c record, e entry, spec catalog.LineSpec) []draftLine {
	var info struct {
		Multi  bool           `json:"is_multi_key"`
		Status map[string]int `json:"multi_key_status_list"`
	}
	_ = json.Unmarshal([]byte(c["channel_info"]), &info) // older versions have none
	keys := []string{strings.TrimSpace(c["key"])}
	if info.Multi {
		keys = c.list("key", "\n")
	}
	lines := make([]draftLine, 0, len(keys))
	for i, key := range keys {
		one := spec
		one.Weight = max(spec.Weight/len(keys), 1)
		if status, hasStatus := info.Status[strconv.Itoa(i)]; hasStatus && status != statusOn {
			one.Enabled = false
		}
		lines = append(lines, draftLine{entry: e, spec: one, credential: key})
	}
	return lines
}

// remarkChannel remarks on settings without a counterpart.
func (s *oneAPI) remarkChannel(c record, e entry, kind channelKind) {
	switch s.status(c, "channel") {
	case statusOn:
	case channelAutoOff:
		s.remark(e, "it was switched off by "+string(s.plan.Program)+" itself, and its line is not enabled",
			"set enabled: true where it works again")
	default:
		s.remark(e, "it was switched off, and its line is not enabled", "")
	}
	if kind.provider == "azure" {
		s.remark(e, "its line uses the newest interface of Azure, without a version in the address", "see docs/providers.md")
	}
	fields := []string{"system_prompt", "param_override", "header_override", "status_code_mapping", "setting", "settings", "config"}
	for _, field := range fields {
		if text := strings.TrimSpace(c[field]); text != "" && !isEmptyConfig(text) {
			s.remark(e, "not carried over: "+field, "see set, omit, headers and options of lines in docs/operator.md, Catalog")
		}
	}
}

// isEmptyConfig reports whether all members of a JSON object are empty.
func isEmptyConfig(text string) bool {
	var members map[string]any
	if json.Unmarshal([]byte(text), &members) != nil {
		return false
	}
	for _, value := range members {
		if value != nil && value != "" && value != false && value != 0.0 {
			return false
		}
	}
	return true
}

// addToGroups adds a channel's models to its groups.
func (s *oneAPI) addToGroups(c record) {
	groups := c.list("group", ",")
	if len(groups) == 0 {
		groups = []string{defaultGroup}
	}
	for _, group := range groups {
		if s.groups[group] == nil {
			s.groups[group] = map[string]bool{}
		}
		for _, model := range c.list("models", ",") {
			if s.has(model) {
				s.groups[group][model] = true
			}
		}
	}
}
