package wire

import (
	"bytes"
	"strings"

	"tollgate/internal/wire/rawjson"
)

// MessagesAnswer is an answer of the messages form that was not streamed.
type MessagesAnswer struct {
	Outcome

	body  []byte
	made  produced
	usage messagesUsage
}

// ReadMessagesAnswer reads a provider's answer; ErrMalformed when it is no
// JSON object. It keeps body.
func ReadMessagesAnswer(body []byte) (Answer, error) {
	from := rawjson.SkipSpace(body, 0)
	if from >= len(body) || body[from] != '{' || !rawjson.IsValid(body) {
		return nil, ErrMalformed
	}
	a := &MessagesAnswer{body: body}
	object := body[from:]
	var reason string
	blocks := false
	for name, value := range rawjson.Members(object) {
		switch string(name) {
		case "content":
			for _, block := range rawjson.Elements(value) {
				noteBlock(&a.made, block)
			}
			blocks = value[0] == '['
		case "stop_reason":
			reason = rawjson.Unquote(value)
		case "usage":
			a.usage.merge(value, true)
		}
	}
	a.Content, a.Reasoning = a.made.content, a.made.reasoning
	kind := kindOfFinish(reason)
	a.Limited, a.Filtered = kind == finishLimit, kind == finishFiltered
	a.Ended = kind != finishNone && kind != finishFailed
	switch {
	case isError(object, blocks):
		a.Err = &ProviderError{Body: body}
	case kind == finishFailed && !a.Content: // what there is of an answer is passed on
		a.Err = &ProviderError{Reason: reason}
	}
	return a, nil
}

// noteBlock reads a content block, or the start of one in a stream, and tells
// whether it is a token: text, opened thinking, and calls of tools are. What
// hosted tools returned was not produced by the model.
func noteBlock(p *produced, block []byte) (token bool) {
	var kind, text, name, input []byte
	for member, value := range rawjson.Members(block) {
		switch string(member) {
		case "type":
			kind = rawjson.NameOf(value)
		case "text", "thinking":
			text = rawjson.Present(value)
		case "name":
			name = rawjson.Present(value)
		case "input":
			input = rawjson.Present(value)
		}
	}
	switch string(kind) {
	case "text":
		token = p.take(text, 0)
		p.content = p.content || token
		return token
	case "thinking", "redacted_thinking":
		p.take(text, 0)
		p.reasoning = true
		return true
	case "tool_use", "server_tool_use", "mcp_tool_use":
		p.take(name, 0)
		if len(input) > 2 { // not {}
			p.add(input)
		}
		p.content = true
		if string(kind) == "server_tool_use" {
			noteHosted(p, string(rawjson.NameOf(name)))
		}
		return true
	}
	if len(kind) == 0 || bytes.HasSuffix(kind, []byte("_result")) {
		return false
	}
	token = p.take(block, 0)
	p.content = p.content || token
	return token
}

// noteHosted counts the call of a hosted tool, by the name of its function
// (`web_search`, `bash_code_execution`).
func noteHosted(p *produced, name string) {
	if strings.HasSuffix(name, "code_execution") {
		name = "code_execution"
	}
	if known := hostedTool(name); known != "" {
		p.tools.addCalls(known, 1)
	}
}

// Usage returns what the provider reported; false when it did not count the
// prompt and the answer.
func (a *MessagesAnswer) Usage() (Usage, bool) {
	return a.usage.result(a.made.tools.ToolCalls), a.usage.known()
}

// Text returns what was produced (text, thinking, tool calls), as far as it is
// kept.
func (a *MessagesAnswer) Text() []byte { return a.made.text }

// Completion returns our own count of the tokens produced.
func (a *MessagesAnswer) Completion(c *Counter) int64 { return c.Count(a.made.text, a.made.bytes) }

// pieces returns the answer's bytes with the model that the client asked for, in
// pieces to be written one after the other, so that a long answer is not
// copied.
func (a *MessagesAnswer) pieces(model string) [3][]byte {
	return rawjson.Around(a.body, "model", rawjson.Quote(model))
}
