package messages

import (
	"bytes"
	"strings"

	"tollgate/internal/wire"
	"tollgate/internal/wire/internal/form"
	"tollgate/internal/wire/rawjson"
)

// answer is an answer of the messages form that was not streamed.
type answer struct {
	form.Answer
	usage usageSum
}

// ReadAnswer reads a provider's answer and retains body. It returns ErrMalformed if body is not a
// JSON object.
func ReadAnswer(body []byte) (wire.Answer, error) {
	object := rawjson.Object(body)
	if object == nil {
		return nil, wire.ErrMalformed
	}
	a := new(answer)
	var reason string
	blocks := false
	for name, value := range rawjson.Members(object) {
		switch string(name) {
		case "content":
			for _, block := range rawjson.Elements(value) {
				addBlock(&a.Output, block)
			}
			blocks = value[0] == '['
		case "stop_reason":
			reason = rawjson.Unquote(value)
		case "usage":
			a.usage.merge(value, true)
		}
	}
	a.Content, a.Reasoning = a.Output.Content, a.Output.Reasoning
	kind := form.FinishOf(reason)
	a.Finish(kind)
	a.Ended = kind != form.FinishNone && kind != form.FinishFailed
	switch {
	case form.IsError(object, blocks):
		a.Err = &wire.ProviderError{Body: body}
	case kind == form.FinishFailed:
		a.Err = &wire.ProviderError{Reason: reason}
	}
	return a, nil
}

// addBlock adds a content block, or the start of one in a stream. It reports whether the block is a
// token: text, the start of thinking, or a tool call. Results of hosted tools are not output of the
// model.
func addBlock(o *form.Output, block []byte) (token bool) {
	var kind, text, name, input []byte
	for member, value := range rawjson.Members(block) {
		switch string(member) {
		case "type":
			kind = rawjson.UnquoteBytes(value)
		case "text", "thinking":
			text = rawjson.NonNull(value)
		case "name":
			name = rawjson.NonNull(value)
		case "input":
			input = rawjson.NonNull(value)
		}
	}
	switch string(kind) {
	case "text":
		token = o.AddAll(text, 0)
		o.Content = o.Content || token
		return token
	case "thinking", "redacted_thinking":
		o.AddAll(text, 0)
		o.Reasoning = true
		return true
	case "tool_use", "server_tool_use", "mcp_tool_use":
		o.AddAll(name, 0)
		if len(input) > 2 { // not {}
			o.Add(input)
		}
		o.Content = true
		if string(kind) == "server_tool_use" {
			addHostedCall(o, string(rawjson.UnquoteBytes(name)))
		}
		return true
	}
	if len(kind) == 0 || bytes.HasSuffix(kind, []byte("_result")) {
		return false
	}
	token = o.AddAll(block, 0)
	o.Content = o.Content || token
	return token
}

// addHostedCall counts the call of a hosted tool by the name of its function (`web_search`,
// `bash_code_execution`).
func addHostedCall(o *form.Output, name string) {
	if strings.HasSuffix(name, "code_execution") {
		name = "code_execution"
	}
	if known := form.HostedTool(name); known != "" {
		o.Tools.Add(known, 1)
	}
}

func (a *answer) Usage() (wire.Usage, bool) {
	return a.usage.result(a.Output.Tools), a.usage.known()
}
