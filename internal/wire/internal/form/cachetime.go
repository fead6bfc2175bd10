package form

import (
	"tollgate/internal/wire"
	"tollgate/internal/wire/rawjson"
)

// cacheOption is the OpenAI field for the ttl of the whole prompt.
const cacheOption = "prompt_cache_options.ttl"

// cacheMark describes a member that marks a position of the prompt for the provider's cache. Its
// `ttl` is the lifetime of the cached prompt.
type cacheMark struct {
	option string // the catalog's name for the ttl
	short  string // the ttl at the price of ordinary cache writes
	long   string // a ttl at the price cache_write_1h, or ""
}

// cacheMarkOf returns the cache mark with a name, or nil for any other name. cache_control is
// Anthropic's and used by other vendors too, caching belongs to Anthropic's advisor tool, and
// prompt_cache_breakpoint is OpenAI's (platform.claude.com and developers.openai.com, Prompt
// caching). Anthropic's cache writes cost 1.25 times the input price for 5 minutes and twice the
// input price for an hour.
func cacheMarkOf(name []byte) *cacheMark {
	switch string(name) {
	case "cache_control", "caching":
		return &cacheMark{option: "cache_control.ttl", short: "5m", long: "1h"}
	case "prompt_cache_breakpoint":
		return &cacheMark{option: cacheOption, short: "30m"}
	}
	return nil
}

// readCacheMark reads the ttl of a mark at an offset of the body. A ttl other than short and long is
// recorded as an option, so that the catalog must have a price for it. Each ttl is recorded once.
func (r *Request) readCacheMark(mark *cacheMark, at int, value []byte) {
	ttl := rawjson.Field(value, "ttl")
	if ttl == nil {
		return
	}
	text := textOf(ttl)
	switch text {
	case mark.short:
		return
	case mark.long:
		r.LongCache = true
		return
	}
	r.LongCache = true
	for _, known := range r.cacheTimes {
		if known.Option == mark.option && known.Name == text {
			return
		}
	}
	r.cacheTimes = append(r.cacheTimes, wire.PricedField{Param: r.Doc.PathTo(at) + ".ttl", Option: mark.option, Name: text})
}
