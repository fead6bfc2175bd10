package importer

import (
	"cmp"
	"encoding/json"
	"fmt"
	"math/big"
	"os"
	"regexp"
	"slices"

	"tollgate/internal/catalog"
	"tollgate/internal/money"
	"tollgate/internal/wire"
)

// facts has the data of a model from a file.
type facts struct {
	mode            string // chat, embedding, image_generation, …; may be empty
	context, output int64  // maximum, in tokens, 0 if unknown
	rates           rates
	reasoning       bool
}

// rates are the prices of a model.
type rates struct {
	perMillion
	above []ratesAbove // ascending
}

// ratesAbove has the prices for prompts longer than tokens.
type ratesAbove struct {
	tokens int64
	perMillion
}

// perMillion are US dollars per million tokens, nil if unknown.
type perMillion struct{ input, output, cached, written *big.Rat }

// Default limits of models.
const (
	assumedContext = 128_000
	assumedOutput  = 16_384
)

// maxModelsFile bounds the file of models in bytes.
const maxModelsFile = 64 << 20

// readModels reads a file in the form of LiteLLM's model_prices_and_context_window.json.
func readModels(path string) (map[string]facts, error) {
	if path == "" {
		return nil, nil
	}
	raw, err := readFile(path, maxModelsFile)
	if err != nil {
		return nil, err
	}
	var entries map[string]json.RawMessage
	if err := json.Unmarshal(raw, &entries); err != nil {
		return nil, fmt.Errorf("%s: must be a JSON object of models: %w", path, err)
	}
	known := make(map[string]facts, len(entries))
	for name, entry := range entries {
		var members map[string]json.RawMessage
		if json.Unmarshal(entry, &members) == nil {
			known[name] = factsOf(recordOf(members))
		}
	}
	return known, nil
}

// recordOf returns the members of a JSON object as texts, without nulls.
func recordOf(members map[string]json.RawMessage) record {
	r := make(record, len(members))
	for name, raw := range members {
		text := string(raw)
		_ = json.Unmarshal(raw, &text) // anything but a string keeps its JSON form
		if text != "null" {
			r[name] = text
		}
	}
	return r
}

// factsOf reads the data of a model. An unreadable member counts as absent.
func factsOf(data record) facts {
	return facts{mode: data["mode"], reasoning: data.flag("supports_reasoning"), rates: ratesOf(data),
		context: cmp.Or(tokensOf(data["max_input_tokens"]), tokensOf(data["max_tokens"])), output: tokensOf(data["max_output_tokens"])}
}

// tokensOf reads a number of tokens, or returns 0.
func tokensOf(text string) int64 {
	n, _ := wholeOf(text)
	return max(n, 0)
}

// priceName finds the prompt length in the name of a price.
var priceName = regexp.MustCompile(`^input_cost_per_token(_above_([1-9][0-9]{0,4})k_tokens)$`)

// ratesOf reads prices in US dollars per token and returns them per million tokens.
func ratesOf(data record) (r rates) {
	million := func(name string) *big.Rat {
		if n := number(data[name]); n != nil {
			return product(n, whole(1_000_000))
		}
		return nil
	}
	all := func(ending string) perMillion {
		return perMillion{million("input_cost_per_token" + ending), million("output_cost_per_token" + ending),
			million("cache_read_input_token_cost" + ending), million("cache_creation_input_token_cost" + ending)}
	}
	r.perMillion = all("")
	for name := range data {
		found := priceName.FindStringSubmatch(name)
		if found == nil {
			continue
		}
		above := ratesAbove{number(found[2]).Num().Int64() * 1000, all(found[1])}
		above.output = cmp.Or(above.output, r.output)
		r.above = append(r.above, above)
	}
	slices.SortFunc(r.above, func(a, b ratesAbove) int { return int(a.tokens - b.tokens) })
	return r
}

// readFile reads a file of at most limit bytes.
func readFile(path string, limit int64) ([]byte, error) {
	info, err := os.Stat(path)
	if err != nil {
		return nil, err
	}
	if info.Size() > limit {
		return nil, fmt.Errorf("%s has more than %d MiB", path, limit>>20)
	}
	return os.ReadFile(path)
}

// otherKinds has patterns of the names of models that do not chat, by their output.
var otherKinds = []struct {
	what string
	name *regexp.Regexp
}{
	{"embeddings", regexp.MustCompile(`(?i)embed|^bge-|^m3e|^gte-|^e5-`)},
	{"rankings", regexp.MustCompile(`(?i)rerank`)},
	{"speech", regexp.MustCompile(`(?i)whisper|^tts-|-tts|transcribe|speech|realtime|audio`)},
	{"images", regexp.MustCompile(`(?i)dall-?e|gpt-image|stable-diffusion|^sd[-_]|^flux|imagen|cogview|^wanx|midjourney|^mj_|seedream|` +
		`ideogram|recraft`)},
	{"videos or music", regexp.MustCompile(`(?i)^sora|^veo-|kling|cogvideo|hailuo|seedance|runway|^luma|suno|^viggle`)},
	{"judgements", regexp.MustCompile(`(?i)moderation`)},
}

// otherKind returns the output of a model that does not chat, or "" for a chat model.
func otherKind(name string, f facts) string {
	switch f.mode {
	case "chat", "responses", "completion":
		return ""
	case "":
	default:
		return f.mode
	}
	for _, kind := range otherKinds {
		if kind.name.MatchString(name) {
			return kind.what
		}
	}
	return ""
}

// chatModel returns a model with its price. It returns false if the price is out of range.
func chatModel(id string, r rates, f facts) (catalog.Model, bool) {
	m := catalog.Model{ID: id, Kind: catalog.KindChat, State: catalog.StateOpen,
		Forms:          []wire.Form{wire.FormChat, wire.FormResponses, wire.FormMessages},
		Reasoning:      f.reasoning,
		ContextWindow:  cmp.Or(f.context, assumedContext),
		MaxImageTokens: catalog.DefaultMaxImageTokens}
	m.MaxOutputTokens = cmp.Or(f.output, min(assumedOutput, m.ContextWindow))
	fits := true
	price := func(usd *big.Rat, fallback money.Price) money.Price {
		if usd == nil {
			return fallback
		}
		p, ok := priceOf(usd)
		fits = fits && ok
		return p
	}
	list := func(usd perMillion) (v catalog.Rates) {
		v.Input = price(usd.input, 0)
		v.Output = price(usd.output, 0)
		v.CachedInput = price(usd.cached, v.Input)
		v.CacheWrite = price(usd.written, v.Input)
		v.CacheWrite1h = v.CacheWrite
		return v
	}
	m.Price.Rates = list(r.perMillion)
	for _, a := range r.above {
		m.Price.Bands = append(m.Price.Bands, catalog.Band{PromptTokens: a.tokens, Rates: list(a.perMillion)})
	}
	return m, fits
}
