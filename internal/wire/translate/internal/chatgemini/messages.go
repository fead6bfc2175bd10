package chatgemini

import (
	"bytes"
	"fmt"

	"tollgate/internal/wire"
	"tollgate/internal/wire/rawjson"
)

// geminiConversation writes messages as contents. Messages of the assistant
// that follow each other become one turn. The results of a turn's calls stand
// in one turn after it, as many as there were calls.
type geminiConversation struct {
	older bool // a model before Gemini 3: it takes calls without a signature, and fetches nothing

	fetches bool                         // images by address are fetched
	images  map[string]wire.FetchedImage // those that were, by address
	wanted  []string                     // and the others, each once

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
	// gave with its call, and the client returns none. The value is the
	// documented one for histories that come from elsewhere.
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
	parts, err := c.parts(nil, content, index)
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
	parts, err := c.parts(nil, content, index)
	if err != nil {
		return err
	}
	if refusal := rawjson.Field(message, "refusal"); rawjson.IsText(refusal) && len(refusal) > 2 {
		parts = rawjson.Put(parts, `,{"text":`, refusal, "}")
	}
	for k, image := range rawjson.Elements(rawjson.Field(message, "images")) {
		part, err := c.image(image, fmt.Sprintf("messages[%d].images[%d].image_url", index, k))
		if err != nil {
			return err
		}
		parts = rawjson.Put(parts, ",", part[:len(part)-1], "")
		if signature := c.signature(image, !c.older); signature != nil {
			parts = rawjson.Put(parts, `,"thoughtSignature":`, signature, "")
		}
		parts = append(parts, '}')
	}
	for k, call := range rawjson.Elements(rawjson.Field(message, "tool_calls")) {
		function := rawjson.Field(call, "function")
		if function == nil {
			return cannotGemini(fmt.Sprintf("messages[%d].tool_calls[%d].function", index, k),
				"is required: this model takes calls of functions only.")
		}
		if parts, err = c.appendCall(parts, call, function, rawjson.Unquote(rawjson.Field(call, "id")),
			fmt.Sprintf("messages[%d].tool_calls[%d].function", index, k)); err != nil {
			return err
		}
	}
	if function := rawjson.Field(message, "function_call"); function != nil {
		if parts, err = c.appendCall(parts, nil, function, "", fmt.Sprintf("messages[%d].function_call", index)); err != nil {
			return err
		}
	}
	c.turn("model", parts)
	return nil
}

// appendCall appends the call that tells a function, and notes that it waits for
// its result.
func (c *geminiConversation) appendCall(parts, told, function []byte, id, param string) ([]byte, error) {
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
	first := len(c.calls) == 0 // of a turn: it has to be signed
	if signature := c.signature(told, first && !c.older); signature != nil {
		parts = rawjson.Put(parts, `,"thoughtSignature":`, signature, "")
	}
	c.calls = append(c.calls, geminiCall{id: id, name: name})
	return append(parts, '}'), nil
}

// signature returns the signature that came with a call or an image, a JSON
// string, from where Google's own chat form has it or where a client's library
// keeps it; else, where the form demands one, what stands for it, or nil.
func (c *geminiConversation) signature(told []byte, demanded bool) []byte {
	for _, signature := range [][]byte{
		rawjson.Field(rawjson.Field(rawjson.Field(told, "extra_content"), "google"), "thought_signature"),
		rawjson.Field(rawjson.Field(told, "provider_specific_fields"), "thought_signature"),
	} {
		if rawjson.IsText(signature) && len(signature) > 2 {
			return signature
		}
	}
	if demanded {
		return []byte(geminiBypass)
	}
	return nil
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
