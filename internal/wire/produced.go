package wire

import (
	"bytes"

	"tollgate/internal/wire/rawjson"
)

// keptText is how much of an answer's text is kept for counting its tokens;
// longer answers are estimated from that part.
const keptText = 64 << 10

// produced is what an answer has shown so far: its text for our own count of
// tokens, and which kinds of content there were.
type produced struct {
	text  []byte // content, refusal, reasoning and tool calls, without escapes
	bytes int64  // how many bytes there were, also those not kept

	content   bool // text, refusal, tool calls, images
	reasoning bool
	tools     Usage // calls of hosted tools, in ToolCalls
}

// note reads a message or a delta of one and tells whether it holds any token:
// text, reasoning in any vendor's field, refusal, tool calls. A role or empty
// members are none.
func (p *produced) note(message []byte) (token bool) {
	thought := false // the same reasoning may stand in two fields
	for name, value := range rawjson.Members(message) {
		if rawjson.IsNull(value) {
			continue
		}
		switch string(name) {
		case "role", "name", "id", "type", "index":
		case "content":
			token = p.noteContent(value) || token
		case "refusal", "audio", "images":
			if p.take(value, 0) {
				p.content, token = true, true
			}
		case "tool_calls", "function_call":
			if len(value) > 2 { // not [] or {}
				p.takeCalls(value)
				p.content, token = true, true
			}
		case "annotations":
			p.noteAnnotations(value)
		case "executed_tools":
			p.noteExecuted(value)
		default:
			if isThought(name) {
				if thought {
					continue
				}
				if p.take(value, 0) {
					p.reasoning, token, thought = true, true, true
				}
			}
		}
	}
	return token
}

// isThought tells whether a member holds reasoning: every vendor has a name of
// its own for it.
func isThought(name []byte) bool {
	return bytes.Contains(name, []byte("reasoning")) || bytes.Contains(name, []byte("thinking")) || bytes.Contains(name, []byte("thought"))
}

// noteContent reads content: a string, or parts among which thinking may be.
func (p *produced) noteContent(value []byte) (token bool) {
	if value[0] != '[' {
		token = p.take(value, 0)
		p.content = p.content || token
		return token
	}
	for _, part := range rawjson.Elements(value) {
		if !p.take(part, 0) {
			continue
		}
		token = true
		if isThought(rawjson.Field(part, "type")) {
			p.reasoning = true
		} else {
			p.content = true
		}
	}
	return token
}

// take adds all text in a value and tells whether there was any.
func (p *produced) take(value []byte, depth int) (any bool) {
	const deepest = 8 // deeper than any vendor's parts
	if len(value) == 0 || depth > deepest {
		return false
	}
	switch value[0] {
	case '"':
		if len(value) <= 2 {
			return false
		}
		p.add(value)
		return true
	case '[':
		for _, element := range rawjson.Elements(value) {
			any = p.take(element, depth+1) || any
		}
	case '{':
		for name, member := range rawjson.Members(value) {
			switch string(name) {
			case "type", "id", "index", "format", "signature", "expires_at":
			case "data", "file_data", "url", "image_url": // bytes, not text
				any = any || len(member) > 2
			default:
				any = p.take(member, depth+1) || any
			}
		}
	}
	return any
}

// takeCalls adds the names and arguments of tool calls.
func (p *produced) takeCalls(value []byte) {
	switch value[0] {
	case '[':
		for _, call := range rawjson.Elements(value) {
			p.takeCalls(call)
		}
	case '{':
		for name, member := range rawjson.Members(value) {
			switch string(name) {
			case "function", "custom":
				p.takeCalls(member)
			case "name", "arguments", "input":
				p.add(member) // arguments may be an object instead of a string
			}
		}
	}
}

// noteAnnotations counts one search when sources are cited: the form does not
// tell how many searches there were.
func (p *produced) noteAnnotations(value []byte) {
	for _, annotation := range rawjson.Elements(value) {
		if rawjson.Unquote(rawjson.Field(annotation, "type")) == "url_citation" {
			p.searched()
			return
		}
	}
}

// searched notes that a search was shown, once for the whole answer.
func (p *produced) searched() {
	if p.tools.ToolCalls["web_search"] == 0 {
		p.tools.addCalls("web_search", 1)
	}
}

// noteExecuted counts the hosted tools that one vendor lists one by one.
func (p *produced) noteExecuted(value []byte) {
	for _, tool := range rawjson.Elements(value) {
		switch kind := rawjson.Unquote(rawjson.Field(tool, "type")); kind {
		case "search":
			p.tools.addCalls("web_search", 1)
		case "python":
			p.tools.addCalls("code_interpreter", 1)
		default:
			if known := hostedTool(kind); known != "" {
				p.tools.addCalls(known, 1)
			}
		}
	}
}

// add keeps a JSON string without its escapes, or another value as it stands.
func (p *produced) add(value []byte) {
	before := len(p.text)
	room := keptText - before
	switch {
	case room <= 0:
		p.bytes += int64(len(value))
		return
	case !rawjson.IsText(value):
		p.text = append(p.text, value[:min(len(value), room)]...)
	default:
		p.text = rawjson.AppendUnquoted(p.text, value[1 : len(value)-1][:min(len(value)-2, room)])
		if len(value)-2 > room {
			p.bytes += int64(len(value) - 2 - room)
		}
	}
	p.bytes += int64(len(p.text) - before)
}

// estimate is a rough count of the tokens, without looking into the text.
func (p *produced) estimate() int64 { return estimatedTokens(p.bytes) }
