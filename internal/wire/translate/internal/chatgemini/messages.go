package chatgemini

import (
	"bytes"
	"fmt"

	"tollgate/internal/wire"
	"tollgate/internal/wire/rawjson"
)

// conversation writes messages as contents. Successive messages of the assistant become one turn.
// The results of a turn's calls are one turn after it, as many as calls.
type conversation struct {
	beforeGemini3 bool // the model accepts calls without a signature, and fetches nothing

	fetches bool                         // images by address are fetched
	images  map[string]wire.FetchedImage // fetched images by address
	missing []string                     // distinct addresses of images not fetched yet

	system   []byte // all system texts, as the contents of a JSON string
	turns    []byte // the contents of the array
	lastRole string // of the last turn

	calls     []pendingCall // of the last turn, until their results are written
	hasResult bool          // one of them has its result
}

// pendingCall is a call waiting for its result.
type pendingCall struct {
	id       string // may be empty
	name     []byte // a JSON string
	response []byte // nil without a result
}

const (
	// signatureBypass replaces a required signature not returned by the client. The value is
	// documented for histories from elsewhere.
	signatureBypass = `"skip_thought_signature_validator"`
	// noResult replaces a missing result.
	noResult = `{"result":"(no result)"}`
	// emptyTurn is the user's first turn if it is missing. The form requires one.
	emptyTurn = `{"text":"."}`
)

// add adds a message.
func (c *conversation) add(message []byte, index int) error {
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
	parts, err := c.appendParts(nil, content, index)
	if err != nil {
		return err
	}
	c.addTurn("user", parts)
	return nil
}

// addSystem adds a text to the system instruction, whatever its position.
func (c *conversation) addSystem(content []byte, index int) error {
	return eachText(content, index, func(text []byte) {
		if c.system != nil {
			c.system = append(c.system, `\n\n`...)
		}
		c.system = append(c.system, text...)
	})
}

// eachText calls yield for the texts of a message without other parts, as the contents of JSON
// strings.
func eachText(content []byte, index int, yield func(text []byte)) error {
	if rawjson.IsText(content) {
		if len(content) > 2 {
			yield(content[1 : len(content)-1])
		}
		return nil
	}
	for k, part := range rawjson.Elements(content) {
		text := rawjson.Field(part, "text")
		if !rawjson.IsText(text) {
			return unsupported(fmt.Sprintf("messages[%d].content[%d]", index, k), "must be text for this model.")
		}
		if len(text) > 2 {
			yield(text[1 : len(text)-1])
		}
	}
	return nil
}

// addAssistant adds the model's texts, images and calls.
func (c *conversation) addAssistant(message, content []byte, index int) error {
	if c.hasResult {
		c.endCalls()
	}
	parts, err := c.appendParts(nil, content, index)
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
		if signature := c.signature(image, !c.beforeGemini3); signature != nil {
			parts = rawjson.Put(parts, `,"thoughtSignature":`, signature, "")
		}
		parts = append(parts, '}')
	}
	for k, call := range rawjson.Elements(rawjson.Field(message, "tool_calls")) {
		function := rawjson.Field(call, "function")
		if function == nil {
			return unsupported(fmt.Sprintf("messages[%d].tool_calls[%d].function", index, k),
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
	c.addTurn("model", parts)
	return nil
}

// appendCall appends the call of a function.
func (c *conversation) appendCall(parts, owner, function []byte, id, param string) ([]byte, error) {
	name := rawjson.Field(function, "name")
	if !rawjson.IsText(name) || len(name) == 2 {
		return nil, unsupported(param+".name", "is required.")
	}
	var call members
	if id != "" {
		call.add("id", string(rawjson.Quote(id)))
	}
	call.add("name", string(name))
	call.add("args", string(argumentsOf(rawjson.Field(function, "arguments"))))
	parts = rawjson.Put(parts, `,{"functionCall":`, call.object(), "")
	first := len(c.calls) == 0 // the first call of a turn must have a signature
	if signature := c.signature(owner, first && !c.beforeGemini3); signature != nil {
		parts = rawjson.Put(parts, `,"thoughtSignature":`, signature, "")
	}
	c.calls = append(c.calls, pendingCall{id: id, name: name})
	return append(parts, '}'), nil
}

// signature returns the signature of a call or an image, a JSON string, from its place in Google's
// own chat form or in a client library's. If it is missing, it returns signatureBypass if required,
// or nil.
func (c *conversation) signature(owner []byte, required bool) []byte {
	for _, signature := range [][]byte{
		rawjson.Field(rawjson.Field(rawjson.Field(owner, "extra_content"), "google"), "thought_signature"),
		rawjson.Field(rawjson.Field(owner, "provider_specific_fields"), "thought_signature"),
	} {
		if rawjson.IsText(signature) && len(signature) > 2 {
			return signature
		}
	}
	if required {
		return []byte(signatureBypass)
	}
	return nil
}

// argumentsOf returns the arguments of a call as an object, with the client's bytes. Another value
// is wrapped.
func argumentsOf(raw []byte) []byte {
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

// addResult adds the result of one of the last turn's calls, identified by a member of the message:
// the call's id or its function.
func (c *conversation) addResult(message, content []byte, index int, member string) error {
	param := fmt.Sprintf("messages[%d].%s", index, member)
	key := rawjson.Unquote(rawjson.Field(message, member))
	call := c.openCall(key, member == "name")
	if call == nil {
		return unsupported(param, "must name a call of the assistant's last message that has no result yet.")
	}
	var text []byte
	if err := eachText(content, index, func(t []byte) {
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
	c.hasResult = true
	return nil
}

// openCall returns the first call without a result, by id or by function name.
func (c *conversation) openCall(key string, byName bool) *pendingCall {
	for i := range c.calls {
		call := &c.calls[i]
		if call.response == nil && key != "" && (byName && rawjson.Unquote(call.name) == key || !byName && call.id == key) {
			return call
		}
	}
	return nil
}

// endCalls writes the results of the last turn's calls, in the order of the calls.
func (c *conversation) endCalls() {
	var parts []byte
	for _, call := range c.calls {
		var result members
		if call.id != "" {
			result.add("id", string(rawjson.Quote(call.id)))
		}
		result.add("name", string(call.name))
		if call.response == nil {
			call.response = []byte(noResult)
		}
		result.add("response", string(call.response))
		parts = rawjson.Put(parts, `,{"functionResponse":`, result.object(), "}")
	}
	c.addTurn("user", parts)
	c.calls, c.hasResult = c.calls[:0], false
}

// end completes the turns. There must be at least one.
func (c *conversation) end() {
	c.endCalls()
	if c.lastRole == "" {
		c.addTurn("user", []byte(","+emptyTurn))
	}
}

// addTurn adds a turn of parts, each after a comma. An empty turn, rejected by the form, is left
// out.
func (c *conversation) addTurn(role string, parts []byte) {
	const end = "]}"
	switch {
	case len(parts) == 0:
		return
	case role == "model" && c.lastRole == role:
		c.turns = append(c.turns[:len(c.turns)-len(end)], parts...)
		c.turns = append(c.turns, end...)
		return
	case role == "model" && c.lastRole == "":
		c.addTurn("user", []byte(","+emptyTurn))
	}
	if c.lastRole != "" {
		c.turns = append(c.turns, ',')
	}
	c.turns = rawjson.Put(c.turns, `{"role":"`, role, `","parts":[`)
	c.turns = append(c.turns, parts[1:]...)
	c.turns = append(c.turns, end...)
	c.lastRole = role
}
