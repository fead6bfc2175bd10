package form

import (
	"tollgate/internal/wire"
	"tollgate/internal/wire/rawjson"
)

// cacheOption is the field of OpenAI's forms for the ttl of the whole prompt.
const cacheOption = "prompt_cache_options.ttl"

// cacheMark is a member that marks a place of the prompt for the provider's
// cache. Its `ttl` is how long the cached prompt lives.
type cacheMark struct {
	option string // the name by which the catalog prices the ttl
	short  string // the ttl at the price of ordinary cache writes
	long   string // a ttl that cache_write_1h pays without an option, or ""
}

// cacheMarkOf returns the mark of a name, or nil: Anthropic's, which other vendors know
// too, or OpenAI's (platform.claude.com and developers.openai.com, Prompt
// caching). Anthropic writes for 5 minutes at 1.25 times and for an hour at twice
// the price of the input.
func cacheMarkOf(name []byte) *cacheMark {
	switch string(name) {
	case "cache_control":
		return &cacheMark{option: "cache_control.ttl", short: "5m", long: "1h"}
	case "prompt_cache_breakpoint":
		return &cacheMark{option: cacheOption, short: "30m"}
	}
	return nil
}

// readCacheMark notes the ttl of a mark that stands at a place of the body. A ttl
// that no rate pays is an option, which needs a price; each value is noted once.
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
