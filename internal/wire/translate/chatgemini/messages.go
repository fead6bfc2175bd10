package chatgemini

import (
	"bytes"
	"fmt"
	"strings"

	"tollgate/internal/wire/rawjson"
)

// geminiConversation writes messages as contents. Messages of the assistant
// that follow each other become one turn. The results of a turn's calls stand
// in one turn after it, as many as there were calls.
type geminiConversation struct {
	unsigned bool // the model takes calls without a signature

	system []byte // the inside of a string: all system texts; nil: none
	turns  []byte // the inside of the array
	last   string // the role of the last turn

	calls    []geminiCall // of the last turn, without their results
	answered bool         // one of them has its result
}

// geminiCall is a call that waits for its result.
type geminiCall struct {
	id       string // empty: it has none
	name     []byte // a JSON string
	response []byte // nil: no result yet
}

const (
	// geminiBypass stands where the form demands the signature that a model
	// gave with its call. Signatures are bound to a provider and do not
	// survive the chat-completions form; the value is the documented one for
	// histories that come from elsewhere.
	geminiBypass = `"skip_thought_signature_validator"`
	// geminiNoResult stands for a result that the client left out.
	geminiNoResult = `{"result":"(no result)"}`
	// geminiNothing is the turn of a user who said nothing: the form demands
	// one at the beginning.
	geminiNothing = `{"text":"."}`
)

// add adds a message.
func (c *geminiConversation) add(message []byte, index int) error {
	content := rawjson.Field(message, "content")
	switch rawjson.Unquote(rawjson.Field(message, "role")) {
	case "system", "developer":
		return c.addSystem(content, index)
	case "tool":
		return c.addResult(message, content, index, "tool_call_id")
	case "function":
		return c.addResult(message, content, index, "name")
	case "assistant":
		return c.addAssistant(message, content, index)
	}
	c.endCalls()
	parts, err := geminiParts(nil, content, index)
	if err != nil {
		return err
	}
	c.turn("user", parts)
	return nil
}

// addSystem adds a text to the system's, wherever it stood.
func (c *geminiConversation) addSystem(content []byte, index int) error {
	return geminiTexts(content, index, func(text []byte) {
		if c.system != nil {
			c.system = append(c.system, `\n\n`...)
		}
		c.system = append(c.system, text...)
	})
}

// geminiTexts walks the texts of a message that may hold nothing else, as the
// insides of strings.
func geminiTexts(content []byte, index int, yield func(text []byte)) error {
	if rawjson.IsText(content) {
		if len(content) > 2 {
			yield(content[1 : len(content)-1])
		}
		return nil
	}
	for k, part := range rawjson.Elements(content) {
		text := rawjson.Field(part, "text")
		if !rawjson.IsText(text) {
			return cannotGemini(fmt.Sprintf("messages[%d].content[%d]", index, k), "must be text for this model.")
		}
		if len(text) > 2 {
			yield(text[1 : len(text)-1])
		}
	}
	return nil
}

// addAssistant adds what the model said and called.
func (c *geminiConversation) addAssistant(message, content []byte, index int) error {
	if c.answered {
		c.endCalls()
	}
	parts, err := geminiParts(nil, content, index)
	if err != nil {
		return err
	}
	if refusal := rawjson.Field(message, "refusal"); rawjson.IsText(refusal) && len(refusal) > 2 {
		parts = rawjson.Put(parts, `,{"text":`, refusal, "}")
	}
	for k, call := range rawjson.Elements(rawjson.Field(message, "tool_calls")) {
		function := rawjson.Field(call, "function")
		if function == nil {
			return cannotGemini(fmt.Sprintf("messages[%d].tool_calls[%d].function", index, k),
				"is required: this model takes calls of functions only.")
		}
		if parts, err = c.appendCall(parts, function, rawjson.Unquote(rawjson.Field(call, "id")),
			fmt.Sprintf("messages[%d].tool_calls[%d].function", index, k)); err != nil {
			return err
		}
	}
	if function := rawjson.Field(message, "function_call"); function != nil {
		if parts, err = c.appendCall(parts, function, "", fmt.Sprintf("messages[%d].function_call", index)); err != nil {
			return err
		}
	}
	c.turn("model", parts)
	return nil
}

// appendCall appends a call and notes that it waits for its result.
func (c *geminiConversation) appendCall(parts, function []byte, id, param string) ([]byte, error) {
	name := rawjson.Field(function, "name")
	if !rawjson.IsText(name) || len(name) == 2 {
		return nil, cannotGemini(param+".name", "is required.")
	}
	var call geminiFields
	if id != "" {
		call.add("id", string(rawjson.Quote(id)))
	}
	call.add("name", string(name))
	call.add("args", string(geminiArguments(rawjson.Field(function, "arguments"))))
	parts = rawjson.Put(parts, `,{"functionCall":`, call.object(), "")
	if !c.unsigned && len(c.calls) == 0 { // the first of a turn carries it
		parts = rawjson.Put(parts, `,"thoughtSignature":`, geminiBypass, "")
	}
	c.calls = append(c.calls, geminiCall{id: id, name: name})
	return append(parts, '}'), nil
}

// geminiArguments returns the arguments of a call as an object, with the bytes
// that the client sent. What is no object is wrapped.
func geminiArguments(raw []byte) []byte {
	if len(raw) == 0 {
		return []byte("{}")
	}
	if raw[0] == '{' {
		return raw
	}
	text := bytes.TrimSpace([]byte(rawjson.Unquote(raw)))
	switch {
	case rawjson.IsText(raw) && len(text) == 0:
		return []byte("{}")
	case len(text) > 0 && text[0] == '{' && rawjson.IsValid(text):
		return text
	}
	return rawjson.Put(nil, `{"_raw":`, raw, "}")
}

// addResult adds the result of one of the last turn's calls, which a member of
// the message names by its id or its function.
func (c *geminiConversation) addResult(message, content []byte, index int, member string) error {
	param := fmt.Sprintf("messages[%d].%s", index, member)
	key := rawjson.Unquote(rawjson.Field(message, member))
	call := c.waiting(key, member == "name")
	if call == nil {
		return cannotGemini(param, "must name a call of the assistant's last message that has no result yet.")
	}
	var text []byte
	if err := geminiTexts(content, index, func(t []byte) {
		if text != nil {
			text = append(text, `\n`...)
		}
		text = append(text, t...)
	}); err != nil {
		return err
	}
	quoted := rawjson.Put(nil, `"`, text, `"`)
	if inner := bytes.TrimSpace([]byte(rawjson.Unquote(quoted))); len(inner) > 0 && inner[0] == '{' && rawjson.IsValid(inner) {
		call.response = inner
	} else {
		call.response = rawjson.Put(nil, `{"result":`, quoted, "}")
	}
	c.answered = true
	return nil
}

// waiting returns the first call with an id, or of a function, that has no
// result yet.
func (c *geminiConversation) waiting(key string, byName bool) *geminiCall {
	for i := range c.calls {
		call := &c.calls[i]
		if call.response == nil && key != "" && (byName && rawjson.Unquote(call.name) == key || !byName && call.id == key) {
			return call
		}
	}
	return nil
}

// endCalls writes the results of the last turn's calls, in the order of the
// calls.
func (c *geminiConversation) endCalls() {
	var parts []byte
	for _, call := range c.calls {
		var result geminiFields
		if call.id != "" {
			result.add("id", string(rawjson.Quote(call.id)))
		}
		result.add("name", string(call.name))
		if call.response == nil {
			call.response = []byte(geminiNoResult)
		}
		result.add("response", string(call.response))
		parts = rawjson.Put(parts, `,{"functionResponse":`, result.object(), "}")
	}
	c.turn("user", parts)
	c.calls, c.answered = c.calls[:0], false
}

// end writes what is left. Somebody has to have said something.
func (c *geminiConversation) end() {
	c.endCalls()
	if c.last == "" {
		c.turn("user", []byte(","+geminiNothing))
	}
}

// turn writes parts, each behind a comma. A turn without parts is left out:
// the form refuses it.
func (c *geminiConversation) turn(role string, parts []byte) {
	const end = "]}"
	switch {
	case len(parts) == 0:
		return
	case role == "model" && c.last == role:
		c.turns = append(c.turns[:len(c.turns)-len(end)], parts...)
		c.turns = append(c.turns, end...)
		return
	case role == "model" && c.last == "":
		c.turn("user", []byte(","+geminiNothing))
	}
	if c.last != "" {
		c.turns = append(c.turns, ',')
	}
	c.turns = rawjson.Put(c.turns, `{"role":"`, role, `","parts":[`)
	c.turns = append(c.turns, parts[1:]...)
	c.turns = append(c.turns, end...)
	c.last = role
}

// geminiParts appends the parts of a message's content, each behind a comma.
func geminiParts(dst, content []byte, index int) ([]byte, error) {
	add := func(text []byte) {
		if rawjson.IsText(text) && len(text) > 2 { // empty ones are refused there
			dst = rawjson.Put(dst, `,{"text":`, text, "}")
		}
	}
	if rawjson.IsText(content) {
		add(content)
		return dst, nil
	}
	for k, part := range rawjson.Elements(content) {
		at := func(member string) string { return fmt.Sprintf("messages[%d].content[%d].%s", index, k, member) }
		switch kind := rawjson.Unquote(rawjson.Field(part, "type")); kind {
		case "text", "input_text", "output_text":
			add(rawjson.Field(part, "text"))
		case "refusal":
			add(rawjson.Field(part, kind))
		case "thinking", "redacted_thinking": // without its signature it means nothing
		case "image_url", "input_image":
			address := rawjson.Field(part, "image_url")
			if address != nil && address[0] == '{' {
				address = rawjson.Field(address, "url")
			}
			inline, err := geminiInline(address, at("image_url"), "image, such as data:image/png;base64,…")
			if err != nil {
				return nil, err
			}
			dst = rawjson.Put(dst, ",", inline, "")
		case "file":
			inline, err := geminiInline(rawjson.Field(rawjson.Field(part, kind), "file_data"), at("file.file_data"),
				"file, such as data:application/pdf;base64,…")
			if err != nil {
				return nil, err
			}
			dst = rawjson.Put(dst, ",", inline, "")
		default:
			return nil, cannotGemini(at("type"), "must be text, image_url or file for this model.")
		}
	}
	return dst, nil
}

// geminiInline makes the part of an image or a file out of its data address, a
// JSON string. Nobody fetches other addresses there.
func geminiInline(address []byte, param, what string) ([]byte, error) {
	if !rawjson.IsText(address) {
		return nil, cannotGemini(param, "must be the data address of the "+what)
	}
	raw := address
	head, data, found := bytes.Cut(raw[1:len(raw)-1], []byte(","))
	if bytes.IndexByte(raw, '\\') >= 0 {
		raw = rawjson.Quote(rawjson.Unquote(raw))
		head, data, found = bytes.Cut(raw[1:len(raw)-1], []byte(","))
	}
	const longest = 256 // of what stands before the data
	scheme, kind, _ := strings.Cut(string(head[:min(len(head), longest)]), ":")
	kind, encoded := strings.CutSuffix(strings.ToLower(kind), ";base64")
	kind, _, _ = strings.Cut(kind, ";") // parameters
	switch {
	case !strings.EqualFold(scheme, "data"):
		return nil, cannotGemini(param, "is an address, and this model takes files inline only. Send the data address of the "+what)
	case !found || !encoded || kind == "" || len(data) == 0:
		return nil, cannotGemini(param, "must be base64 with its type: the data address of the "+what)
	}
	out := rawjson.Put(nil, `{"inlineData":{"mimeType":"`, kind, `","data":"`)
	return rawjson.Put(out, "", data, `"}}`), nil
}
