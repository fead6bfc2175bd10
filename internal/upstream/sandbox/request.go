package sandbox

import (
	"encoding/json"
	"fmt"
	"net/http"
	"strings"

	"github.com/tidwall/gjson"

	"tollgate/internal/wire"
)

// request holds the fields of a chat request in any form.
type request struct {
	form          wire.Form
	body          gjson.Result
	model         string
	ask           string // text of the last user message
	toolResult    string // text of the tool results in the last message
	hasToolResult bool   // the last message has a tool result
	prompt        int    // tokens of the prompt
	cached        int    // tokens of the prompt read from the cache
	limit         int    // maximum number of tokens of an answer, or 0
	n             int
	stop          []string
	tool          *tool        // the tool to call, or nil to answer with a text
	schema        gjson.Result // the shape of a JSON answer
	json          bool
	reasoning     bool
	serviceTier   string

	includeUsage bool // chat form: a frame of a stream holds the usage

	written5m, written1h int  // messages form: tokens written to the cache
	hideThinking         bool // messages form: thinking is not shown

	summary   bool // responses form: reasoning is shown as a summary
	encrypted bool // responses form: reasoning comes encrypted too
}

// readRequest reads a request of a form, or returns a provider's error for it.
func readRequest(form wire.Form, body []byte) (request, *problem) {
	if !json.Valid(body) {
		return request{}, invalid("", "The body is not valid JSON.").in(form)
	}
	r := request{form: form, body: gjson.ParseBytes(body), n: 1}
	r.model = r.body.Get("model").String()
	var p *problem
	switch form {
	case wire.FormResponses:
		p = r.readResponses()
	case wire.FormMessages:
		p = r.readMessages()
	default:
		p = r.readChat()
	}
	return r, p.in(form)
}

// invalid returns the error for an invalid request.
func invalid(param, message string) *problem {
	return &problem{http.StatusBadRequest, message, invalidRequest, "invalid_value", param}
}

// in returns the error in a form: the messages form has neither code nor param.
func (p *problem) in(form wire.Form) *problem {
	if p != nil && form == wire.FormMessages {
		p.code, p.param = "", ""
	}
	return p
}

// checkTemperature checks the only sampling field of the sandbox.
func (r *request) checkTemperature(limit float64) *problem {
	t := r.body.Get("temperature")
	if absent(t) || (t.Type == gjson.Number && t.Num >= 0 && t.Num <= limit) {
		return nil
	}
	return invalid("temperature", fmt.Sprintf("Invalid 'temperature': must be a number from 0 to %g.", limit))
}

// absent reports whether a field is missing or null.
func absent(v gjson.Result) bool { return !v.Exists() || v.Type == gjson.Null }

// Tokens of a prompt besides its text.
const (
	messageTokens = 4  // a message
	imageTokens   = 85 // an image
)

// add adds a message to the prompt.
func (r *request) add(text string, images int) {
	r.prompt += messageTokens + countPieces(text) + images*imageTokens
}

// addTools adds the description of tools to the prompt.
func (r *request) addTools(tools gjson.Result) {
	for _, t := range tools.Array() {
		r.prompt += countPieces(t.Raw)
	}
}

// The shortest cached prompt, and the unit of cached prompts without the client's cache marks, in tokens.
const (
	cacheFrom  = 1024
	cacheBlock = 128
)

// cachedPart returns the cached tokens of a conversation's repeated part.
func cachedPart(tokens int) int {
	if tokens < cacheFrom {
		return 0
	}
	return tokens - tokens%cacheBlock
}

// thinks reports whether a model of this name thinks before it answers.
func thinks(model string) bool {
	return strings.Contains(model, "think") || strings.Contains(model, "reason")
}

// smallest returns the smaller of two limits. A limit of 0 means none.
func smallest(a, b int64) int {
	if a <= 0 || (b > 0 && b < a) {
		a = b
	}
	return int(max(0, min(a, maxTokens)))
}

// texts joins the text of a message's content: a string, or the parts of the given
// types in an array.
func texts(content gjson.Result, types ...string) string {
	if content.Type == gjson.String {
		return content.Str
	}
	var parts []string
	for _, p := range content.Array() {
		for _, t := range types {
			if p.Get("type").Str == t {
				parts = append(parts, p.Get("text").Str)
			}
		}
	}
	return strings.Join(parts, "\n")
}

// words reads a string or an array of strings, without empty ones.
func words(v gjson.Result) []string {
	if absent(v) {
		return nil
	}
	var out []string
	for _, s := range v.Array() { // a single string is an array of one here
		if s.Str != "" {
			out = append(out, s.Str)
		}
	}
	return out
}

// tool is a function for the answer to call.
type tool struct {
	name       string
	parameters gjson.Result
}

// toolbox holds the tools and the tool choice of a request.
type toolbox struct {
	tools  []tool
	never  bool   // no tool may be called
	always bool   // some tool must be called
	named  string // name of the demanded tool
}

// add adds a tool. It ignores a tool without a name.
func (b *toolbox) add(name string, parameters gjson.Result) {
	if name != "" {
		b.tools = append(b.tools, tool{name, parameters})
	}
}

// choose returns the tool to call: the demanded tool, the first tool if any call is
// demanded, else a tool named in the user's text that has not answered yet.
func (b toolbox) choose(r *request) *tool {
	if b.never {
		return nil
	}
	for i, t := range b.tools {
		wanted := b.always || (!r.hasToolResult && mentions(r.ask, t.name))
		if b.named != "" {
			wanted = b.named == t.name
		}
		if wanted {
			return &b.tools[i]
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
