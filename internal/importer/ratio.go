package importer

import (
	"cmp"
	"encoding/json"
	"fmt"
	"math/big"
	"strings"
)

// ratios has the prices of one-api and new-api. A ratio is the price of a prompt token in quota.
type ratios struct {
	program    Program
	quota      *big.Rat // per US dollar
	model      map[string]*big.Rat
	completion map[string]*big.Rat // share of the prompt's price
	cached     map[string]*big.Rat // share of the prompt's price
	written    map[string]*big.Rat // share of the prompt's price
	group      map[string]*big.Rat
	perRequest map[string]*big.Rat // US dollars per request; replaces the ratios
	expression map[string]string   // replaces ratios and prices per request; new-api only
}

// defaultQuota is the quota per US dollar if the source does not set one.
const defaultQuota = 500_000

// maxSettings bounds the file of settings in bytes.
const maxSettings = 16 << 20

// readSettings reads the answer of GET /api/option/.
func readSettings(path string) (map[string]string, error) {
	if path == "" {
		return nil, nil
	}
	raw, err := readFile(path, maxSettings)
	if err != nil {
		return nil, err
	}
	var answer struct {
		Data []struct {
			Key   string          `json:"key"`
			Value json.RawMessage `json:"value"`
		} `json:"data"`
	}
	if err := json.Unmarshal(raw, &answer); err != nil || len(answer.Data) == 0 {
		return nil, fmt.Errorf("%s: must be the answer of GET /api/option/, with the settings under data", path)
	}
	settings := map[string]string{}
	for _, s := range answer.Data {
		text := string(s.Value)
		_ = json.Unmarshal(s.Value, &text) // anything but a string keeps its JSON form
		settings[s.Key] = text
	}
	return settings, nil
}

// ratiosOf reads prices out of the settings of a program.
func ratiosOf(p Program, settings map[string]string) (*ratios, error) {
	r := &ratios{program: p, quota: whole(defaultQuota)}
	if text, ok := settings["QuotaPerUnit"]; ok {
		if r.quota = number(text); r.quota == nil || r.quota.Sign() <= 0 {
			return nil, fmt.Errorf("the setting QuotaPerUnit is not a number above zero")
		}
	}
	for name, into := range map[string]*map[string]*big.Rat{
		"ModelRatio": &r.model, "CompletionRatio": &r.completion, "CacheRatio": &r.cached, "CreateCacheRatio": &r.written,
		"GroupRatio": &r.group, "ModelPrice": &r.perRequest,
	} {
		read, err := numbersOf(settings[name])
		if err != nil {
			return nil, fmt.Errorf("the setting %s: %w", name, err)
		}
		*into = read
	}
	if p == NewAPI {
		r.expression = expressionsOf(settings)
	}
	return r, nil
}

// numbersOf reads a JSON object of numbers.
func numbersOf(text string) (map[string]*big.Rat, error) {
	if strings.TrimSpace(text) == "" {
		return nil, nil
	}
	var raw map[string]json.Number
	if err := json.Unmarshal([]byte(text), &raw); err != nil {
		return nil, fmt.Errorf("must be a JSON object of numbers: %w", err)
	}
	out := make(map[string]*big.Rat, len(raw))
	for name, n := range raw {
		if out[name] = number(n.String()); out[name] == nil {
			return nil, fmt.Errorf("%q is out of the range of prices", excerpt(name))
		}
	}
	return out, nil
}

// expressionsOf returns the price expressions of new-api by model.
func expressionsOf(settings map[string]string) map[string]string {
	var modes, texts map[string]string
	_ = json.Unmarshal([]byte(settings["billing_setting.billing_mode"]), &modes) // unreadable settings price nothing
	_ = json.Unmarshal([]byte(settings["billing_setting.billing_expr"]), &texts)
	out := map[string]string{}
	for model, mode := range modes {
		if mode == "tiered_expr" {
			out[model] = texts[model]
		}
	}
	return out
}

// usd converts quota to US dollars.
func (r *ratios) usd(quota int64) *big.Rat { return new(big.Rat).Quo(whole(quota), r.quota) }

// priceOf returns the price of a model. ok is false if the model has no ratio. guessed is true if a rule
// of the program sets the output price.
func (r *ratios) priceOf(model string) (price rates, guessed, ok bool) {
	ratio := r.model[model]
	if ratio == nil {
		return rates{}, false, false
	}
	price.input = new(big.Rat).Quo(product(ratio, whole(1_000_000)), r.quota)
	share, configured := r.completionShare(model)
	price.output = product(price.input, share)
	if r.program == NewAPI {
		if cached := r.cached[model]; cached != nil {
			price.cached = product(price.input, cached)
		}
		defaultShare := big.NewRat(5, 4) // of new-api
		price.written = product(price.input, cmp.Or(r.written[model], defaultShare))
	}
	return price, !configured, true
}

// completionShare returns the ratio of output to input prices, and reports whether a setting configures it.
// Binding rules of new-api take precedence over settings.
func (r *ratios) completionShare(model string) (*big.Rat, bool) {
	configured := r.completion[model]
	share, binding := ruleShare(r.program, model)
	if configured == nil || r.program == NewAPI && binding && !strings.Contains(model, "/") {
		return share, false
	}
	return configured, true
}

// ruleShare returns the share of a program's own rule for a model, from version 0.6.11 of one-api and
// 0.6.3 of new-api. No setting of new-api changes a binding rule.
func ruleShare(p Program, model string) (share *big.Rat, binding bool) {
	for _, rule := range shareRules {
		if rule.matches(p, model) {
			return rule.share, !rule.open
		}
	}
	return whole(1), false
}

// shareRule is a program's rule for the models with certain names.
type shareRule struct {
	program      Program // empty for both
	is           string
	begins, ends string
	share        *big.Rat
	open         bool // a setting of new-api overrides the rule
}

func (r shareRule) matches(p Program, model string) bool {
	return (r.program == "" || r.program == p) && (r.is == "" || r.is == model) &&
		strings.HasPrefix(model, r.begins) && strings.HasSuffix(model, r.ends)
}

// shareRules are tried in order.
var shareRules = []shareRule{
	{is: "gpt-3.5-turbo", share: whole(3)},
	{begins: "gpt-3.5", ends: "0125", share: whole(3)},
	{begins: "gpt-3.5", ends: "1106", share: whole(2)},
	{begins: "gpt-3.5", share: big.NewRat(4, 3)},
	{is: "gpt-4o-2024-05-13", share: whole(3)},
	{begins: "gpt-4o", share: whole(4)},
	{program: NewAPI, begins: "gpt-4.5-preview", share: whole(2)},
	{begins: "gpt-4-turbo", share: whole(3)},
	{program: OneAPI, begins: "gpt-4", ends: "preview", share: whole(3)},
	{program: NewAPI, begins: "gpt-4", ends: "gpt-4-1106", share: whole(3)},
	{begins: "gpt-4", share: whole(2), open: true},
	{begins: "o1", share: whole(4)},
	{program: NewAPI, begins: "o3", share: whole(4)},
	{is: "chatgpt-4o-latest", share: whole(3)},
	{begins: "claude-3", share: whole(5)},
	{program: OneAPI, begins: "claude-", share: whole(3)},
	{program: NewAPI, begins: "claude-instant-1", share: whole(3)},
	{program: NewAPI, begins: "claude-2", share: whole(3)},
	{begins: "mistral-", share: whole(3)},
	{program: OneAPI, begins: "gemini-", share: whole(3)},
	{program: NewAPI, begins: "gemini-1.5", share: whole(4)},
	{program: NewAPI, begins: "gemini-2.0", share: whole(4)},
	{program: NewAPI, begins: "gemini-2.5-pro-preview", share: whole(8)},
	{program: NewAPI, begins: "gemini-", share: whole(4), open: true},
	{program: NewAPI, is: "deepseek-chat", share: whole(4)},
	{program: NewAPI, is: "deepseek-reasoner", share: whole(4)},
	{program: OneAPI, begins: "deepseek-", share: whole(2)},
	{is: "command-r", share: whole(3)},
	{is: "command-r-plus", share: whole(5)},
	{program: NewAPI, begins: "command", share: whole(4), open: true},
	{program: OneAPI, begins: "command", share: whole(2)},
	{program: NewAPI, begins: "ERNIE-", share: whole(2)},
}
