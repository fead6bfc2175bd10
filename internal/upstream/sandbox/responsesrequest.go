package sandbox

import (
	"slices"

	"github.com/tidwall/gjson"
)

// readResponses reads the fields of the responses form.
func (r *request) readResponses() *problem {
	input := r.body.Get("input")
	if input.Type != gjson.String && len(input.Array()) == 0 {
		return invalid("input", "Invalid 'input': expected a string or an array of items.")
	}
	if p := r.checkTemperature(2); p != nil {
		return p
	}
	r.limit = smallest(r.body.Get("max_output_tokens").Int(), 0)
	r.serviceTier = r.body.Get("service_tier").String()
	r.reasoning = thinks(r.model) && r.body.Get("reasoning.effort").Str != "none"
	r.summary = r.body.Get("reasoning.summary").Str != "" || r.body.Get("reasoning.generate_summary").Str != ""
	r.encrypted = slices.Contains(words(r.body.Get("include")), "reasoning.encrypted_content")
	r.addTools(r.body.Get("tools"))
	if instructions := r.body.Get("instructions"); !absent(instructions) {
		r.add(instructions.String(), 0)
	}
	r.readInput(input)
	r.tool = r.responsesTools().choose(r)
	switch format := r.body.Get("text.format"); format.Get("type").Str {
	case "json_object":
		r.json = true
	case "json_schema":
		r.json, r.schema = true, format.Get("schema")
	}
	return nil
}

// readInput reads the prompt: a string, or the items of a conversation.
func (r *request) readInput(input gjson.Result) {
	if input.Type == gjson.String {
		r.cached = cachedPart(r.prompt)
		r.ask = input.Str
		r.add(r.ask, 0)
		return
	}
	items := input.Array()
	for i, item := range items {
		last := i == len(items)-1
		if last {
			r.cached = cachedPart(r.prompt)
		}
		switch item.Get("type").Str {
		case "", "message":
			content := item.Get("content")
			text := texts(content, "input_text", "output_text", "text")
			if item.Get("role").Str == "user" {
				r.ask = text
			}
			r.add(text, int(content.Get(`#(type=="input_image")#|#`).Int()))
		case "function_call":
			r.add(item.Get("arguments").String(), 0)
		case "function_call_output", "custom_tool_call_output":
			output := item.Get("output")
			text := texts(output, "input_text")
			if last {
				r.toolResult, r.hasToolResult = text, true
			}
			r.add(text, int(output.Get(`#(type=="input_image")#|#`).Int()))
		default: // returned reasoning, and unknown items
			r.add("", 0)
		}
	}
}

// responsesTools reads the tools of the request. It skips hosted tools, since the
// client does not run them.
func (r *request) responsesTools() toolbox {
	choice := r.body.Get("tool_choice")
	b := toolbox{never: choice.Str == "none", always: choice.Str == "required"}
	if choice.Get("type").Str == "function" {
		b.named = choice.Get("name").Str
	}
	for _, t := range r.body.Get("tools").Array() {
		if t.Get("type").Str == "function" {
			b.add(t.Get("name").Str, t.Get("parameters"))
		}
	}
	return b
}
