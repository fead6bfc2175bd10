package sandbox

import (
	"encoding/json"
	"fmt"

	"github.com/tidwall/gjson"

	"tollgate/internal/wire"
)

// readMessages reads the fields of the messages form.
func (r *request) readMessages() *problem {
	if p := r.readMessagesPrompt(); p != nil {
		return p
	}
	limit := r.body.Get("max_tokens")
	switch {
	case absent(limit):
		return invalid("max_tokens", "max_tokens: Field required")
	case limit.Type != gjson.Number || limit.Num < 1:
		return invalid("max_tokens", "max_tokens: must be greater than or equal to 1")
	}
	r.limit = smallest(limit.Int(), 0)
	if p := r.checkTemperature(1); p != nil {
		return p
	}
	thinking := r.body.Get("thinking.type").Str
	if budget := r.body.Get("thinking.budget_tokens"); thinking == "enabled" && (budget.Num < 1024 || budget.Num >= limit.Num) {
		return invalid("thinking", "thinking.budget_tokens: must be at least 1024 and less than `max_tokens`")
	}
	if choice := r.body.Get("tool_choice.type").Str; (thinking == "enabled" || thinking == "adaptive") &&
		(choice == "any" || choice == "tool") {
		return invalid("thinking", "Thinking may not be enabled when tool_choice forces tool use.")
	}
	r.reasoning = thinking != "disabled" && (thinking != "" || thinks(r.model))
	r.hideThinking = r.body.Get("thinking.display").Str == "omitted"
	r.stop = words(r.body.Get("stop_sequences"))
	r.tool = r.messagesTools().choose(r)
	if format := r.body.Get("output_config.format"); format.Get("type").Str == "json_schema" {
		r.json, r.schema = true, format.Get("schema")
	}
	return nil
}

// readPrompt reads a messages request for a token count. Such a request needs no
// limit.
func readPrompt(body []byte) (request, *problem) {
	if !json.Valid(body) {
		return request{}, invalid("", "The body is not valid JSON.").in(wire.FormMessages)
	}
	r := request{form: wire.FormMessages, body: gjson.ParseBytes(body)}
	p := r.readMessagesPrompt()
	return r, p.in(wire.FormMessages)
}

// readMessagesPrompt reads the prompt in the order of the cache: tools, system,
// messages. A token count needs nothing else.
func (r *request) readMessagesPrompt() *problem {
	messages := r.body.Get("messages").Array()
	if len(messages) == 0 {
		return invalid("messages", "messages: at least one message is required")
	}
	var cache marks
	for _, t := range r.body.Get("tools").Array() {
		r.prompt += countPieces(t.Raw)
		cache.note(t, r.prompt)
	}
	if system := r.body.Get("system"); !absent(system) {
		r.prompt += messageTokens
		r.readBlocks(system, &cache)
	}
	repeated := 0 // tokens of the previous request
	for i, m := range messages {
		if m.Get("role").Str == "assistant" {
			repeated = r.prompt
		}
		r.prompt += messageTokens
		content := m.Get("content")
		r.readBlocks(content, &cache)
		if m.Get("role").Str != "user" {
			continue
		}
		if text := texts(content, "text"); text != "" {
			r.ask = text
		}
		if i == len(messages)-1 {
			r.toolResult, r.hasToolResult = toolResults(content)
		}
	}
	cache.note(r.body, r.prompt)
	if len(cache) > maxMarks {
		return invalid("cache_control", fmt.Sprintf("A maximum of %d blocks with cache_control may be provided. Found %d.", maxMarks, len(cache)))
	}
	r.cached, r.written5m, r.written1h = cache.counts(repeated)
	return nil
}

// readBlocks adds content, a string or an array of blocks, to the prompt.
func (r *request) readBlocks(content gjson.Result, cache *marks) {
	if content.Type == gjson.String {
		r.prompt += countPieces(content.Str)
		return
	}
	for _, block := range content.Array() {
		r.prompt += blockTokens(block, 0)
		cache.note(block, r.prompt)
	}
}

// maxBlocks is the maximum depth of nested blocks.
const maxBlocks = 4

// blockTokens returns the tokens of a content block. An image, or a file without text, counts as
// imageTokens.
func blockTokens(block gjson.Result, depth int) int {
	switch kind := block.Get("type").Str; kind {
	case "text":
		return countPieces(block.Get("text").Str)
	case "thinking":
		return countPieces(block.Get("thinking").Str)
	case "tool_use":
		return countPieces(block.Get("input").Raw)
	case "image":
		return imageTokens
	case "tool_result", "document":
		inner := block.Get("content")
		if kind == "document" {
			source := block.Get("source")
			if source.Get("type").Str == "text" {
				return countPieces(source.Get("data").Str)
			}
			inner = source.Get("content")
		}
		if inner.Type == gjson.String {
			return countPieces(inner.Str)
		}
		n := 0
		if depth < maxBlocks {
			for _, b := range inner.Array() {
				n += blockTokens(b, depth+1)
			}
		}
		if kind == "document" && n == 0 {
			return imageTokens
		}
		return n
	default:
		return 0
	}
}

// toolResults joins the tool results in a message. ok is false if there are
// none.
func toolResults(content gjson.Result) (text string, ok bool) {
	for _, block := range content.Array() {
		if block.Get("type").Str == "tool_result" {
			if ok {
				text += "\n"
			}
			text += texts(block.Get("content"), "text")
			ok = true
		}
	}
	return text, ok
}

// messagesTools reads the tools of the request. It skips hosted tools, which have a
// type of their own, since the client does not run them.
func (r *request) messagesTools() toolbox {
	choice := r.body.Get("tool_choice")
	b := toolbox{never: choice.Get("type").Str == "none", always: choice.Get("type").Str == "any"}
	if choice.Get("type").Str == "tool" {
		b.named = choice.Get("name").Str
	}
	for _, t := range r.body.Get("tools").Array() {
		if kind := t.Get("type").Str; kind == "" || kind == "custom" {
			b.add(t.Get("name").Str, t.Get("input_schema"))
		}
	}
	return b
}

// maxMarks is the maximum number of cache marks in a request.
const maxMarks = 4

// mark is the end of a part of the prompt to cache.
type mark struct {
	at   int // tokens before it
	long bool
}

// marks lists the marks of a request in the order of the prompt.
type marks []mark

// note records the mark, if any, of a block with its end at a place.
func (m *marks) note(block gjson.Result, at int) {
	if c := block.Get("cache_control"); c.IsObject() {
		*m = append(*m, mark{at, c.Get("ttl").Str == "1h"})
	}
}

// counts splits the marked part of the prompt into tokens read from the cache and
// tokens written to it. The sandbox stores nothing: the part repeated from the
// previous request counts as read, the rest as written for the time of its mark. Short
// prompts are not cached.
func (m marks) counts(repeated int) (read, written5m, written1h int) {
	if len(m) == 0 || m[len(m)-1].at < cacheFrom {
		return 0, 0, 0
	}
	if repeated >= cacheFrom {
		read = min(repeated, m[len(m)-1].at)
	}
	from := read
	for _, k := range m {
		switch n := k.at - from; {
		case n <= 0:
			continue
		case k.long:
			written1h += n
		default:
			written5m += n
		}
		from = k.at
	}
	return read, written5m, written1h
}
