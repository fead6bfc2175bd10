package sandbox

import (
	"encoding/json"
	"strings"

	"github.com/tidwall/gjson"
)

// request is what the sandbox reads of a chat request.
type request struct {
	model        string
	ask          string // text of the last user message
	told         string // text of the last message, when a tool wrote it
	prompt       int    // tokens of all messages
	cached       int    // of them, those that a conversation repeats
	limit        int    // most tokens of an answer; 0: none
	n            int
	stop         []string
	tool         *tool        // the tool to call; nil: answer with text
	schema       gjson.Result // the shape of a JSON answer
	json         bool
	reasoning    bool
	serviceTier  string
	includeUsage bool
}

// tool is a function that the answer calls.
type tool struct {
	name       string
	parameters gjson.Result
}

// problem is an error object as a provider words it.
type problem struct{ message, kind, code, param string }

// body renders the error answer.
func (p problem) body() []byte {
	null := func(s string) any {
		if s == "" {
			return nil
		}
		return s
	}
	out, _ := json.Marshal(map[string]any{"error": map[string]any{ // strings only: cannot fail
		"message": p.message, "type": p.kind, "code": null(p.code), "param": null(p.param),
	}})
	return out
}

// Prompts of providers that cache are cached in blocks of so many tokens, from
// so many on.
const (
	cacheBlock = 128
	cacheFrom  = 1024
)

// readRequest reads a chat request, or says what is wrong with it as a
// provider would.
func readRequest(body []byte) (request, *problem) {
	invalid := func(param, message string) (request, *problem) {
		return request{}, &problem{message, "invalid_request_error", "invalid_value", param}
	}
	if !gjson.ValidBytes(body) {
		return invalid("", "The body is not valid JSON.")
	}
	root := gjson.ParseBytes(body)
	messages := root.Get("messages").Array()
	if len(messages) == 0 {
		return invalid("messages", "Invalid 'messages': empty array.")
	}
	if t := root.Get("temperature"); t.Exists() && t.Type != gjson.Null && (t.Type != gjson.Number || t.Num < 0 || t.Num > 2) {
		return invalid("temperature", "Invalid 'temperature': must be a number from 0 to 2.")
	}
	r := request{
		model:        root.Get("model").String(),
		n:            max(1, min(128, int(root.Get("n").Int()))),
		limit:        smallest(root.Get("max_tokens").Int(), root.Get("max_completion_tokens").Int()),
		includeUsage: root.Get("stream_options.include_usage").Bool(),
		serviceTier:  root.Get("service_tier").String(),
	}
	r.reasoning = thinks(r.model, root.Get("reasoning_effort").String())
	for i, m := range messages {
		said := textOf(m.Get("content"))
		if i == len(messages)-1 {
			r.cached = cachedPart(r.prompt)
			if role := m.Get("role").Str; role == "tool" || role == "function" {
				r.told = said
			}
		}
		if m.Get("role").Str == "user" {
			r.ask = said
		}
		r.prompt += 4 + len(pieces(said)) + imageTokens*int(m.Get(`content.#(type=="image_url")#|#`).Int())
	}
	if stop := root.Get("stop"); stop.Exists() && stop.Type != gjson.Null {
		for _, s := range stop.Array() { // a single string is an array of one here
			if s.Str != "" {
				r.stop = append(r.stop, s.Str)
			}
		}
	}
	r.tool = chooseTool(root, r.ask, r.told != "")
	switch root.Get("response_format.type").Str {
	case "json_object":
		r.json = true
	case "json_schema":
		r.json, r.schema = true, root.Get("response_format.json_schema.schema")
	}
	return r, nil
}

// imageTokens is what one image in the prompt counts.
const imageTokens = 85

// cachedPart returns how much of a conversation's repeated part counts as
// cached.
func cachedPart(tokens int) int {
	if tokens < cacheFrom {
		return 0
	}
	return tokens - tokens%cacheBlock
}

// thinks reports whether a model of this name thinks before it answers.
func thinks(model, effort string) bool {
	if effort == "none" {
		return false
	}
	return strings.Contains(model, "think") || strings.Contains(model, "reason")
}

// smallest returns the smaller of two limits of which 0 means none.
func smallest(a, b int64) int {
	if a <= 0 || (b > 0 && b < a) {
		a = b
	}
	return int(max(0, min(a, maxTokens)))
}

// textOf joins the text of a message's content, a string or an array of parts.
func textOf(content gjson.Result) string {
	if content.Type == gjson.String {
		return content.Str
	}
	var parts []string
	for _, p := range content.Array() {
		if p.Get("type").Str == "text" {
			parts = append(parts, p.Get("text").Str)
		}
	}
	return strings.Join(parts, "\n")
}

// chooseTool decides whether to call a tool: the one that `tool_choice` names,
// the first when a call is required, else one that the user's text names, once.
func chooseTool(root gjson.Result, ask string, answered bool) *tool {
	choice := root.Get("tool_choice")
	named := choice.Get("function.name").Str
	if choice.Str == "none" {
		return nil
	}
	for _, t := range root.Get("tools").Array() {
		f := t.Get("function")
		name := f.Get("name").Str
		if name == "" {
			continue
		}
		wanted := named == name || (named == "" && choice.Str == "required")
		if named == "" && !answered && mentions(ask, name) {
			wanted = true
		}
		if wanted {
			return &tool{name: name, parameters: f.Get("parameters")}
		}
	}
	return nil
}

// mentions reports whether a text names a tool, as `get_weather` or in words.
func mentions(text, name string) bool {
	text = strings.ToLower(text)
	name = strings.ToLower(name)
	return strings.Contains(text, name) || strings.Contains(text, strings.ReplaceAll(name, "_", " "))
}
