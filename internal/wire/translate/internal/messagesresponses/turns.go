package messagesresponses

import (
	"fmt"
	"strings"

	"tollgate/internal/wire/rawjson"
	"tollgate/internal/wire/translate/internal/item"
	"tollgate/internal/wire/translate/internal/piece"
)

// conversation converts the turns of a messages request into items.
type conversation struct {
	input  *item.Input
	blocks piece.Blocks
}

// billingPrefix starts a block that one coding agent puts before its system prompt. The block
// changes with every request and would spoil the provider's cache.
const billingPrefix = "x-anthropic-billing-header:"

// addSystem adds a system prompt, a string or text blocks.
func (c *conversation) addSystem(content []byte, at string) error {
	return piece.EachSystemText(content, at, func(text []byte) {
		if rawjson.IsText(content) || !strings.HasPrefix(string(rawjson.Contents(text)), billingPrefix) {
			c.input.System(text)
		}
	})
}

// add adds the message at index of the client's list.
func (c *conversation) add(message []byte, index int) error {
	at := fmt.Sprintf("messages[%d].content", index)
	role, content := rawjson.Unquote(rawjson.Field(message, "role")), rawjson.Field(message, "content")
	if content == nil || content[0] != '"' && content[0] != '[' {
		return piece.Unsupported(at, "`{param}` must be a string or an array of blocks.")
	}
	switch role {
	case "system":
		return c.addSystem(content, at)
	case "user":
		if !rawjson.IsText(content) {
			return c.addUser(content, at)
		}
		if !piece.IsBlank(content) {
			c.input.User(content)
		}
		return nil
	case "assistant":
		return c.addAssistant(content, at)
	}
	return piece.Unsupported(fmt.Sprintf("messages[%d].role", index), "`messages[%d].role` must be user, assistant or system.", index)
}

// addAssistant adds an assistant's blocks. Thinking sealed for another line, and the blocks of
// hosted tools, are left out.
func (c *conversation) addAssistant(content []byte, at string) error {
	if rawjson.IsText(content) {
		c.input.Assistant(content, false)
		return nil
	}
	calls := false
	for _, b := range rawjson.Elements(content) {
		calls = calls || rawjson.Unquote(rawjson.Field(b, "type")) == "tool_use"
	}
	for i, b := range rawjson.Elements(content) {
		switch rawjson.Unquote(rawjson.Field(b, "type")) {
		case "text":
			if text := rawjson.Field(b, "text"); rawjson.IsText(text) {
				c.input.Assistant(text, calls)
			}
		case "thinking":
			c.input.Reasoning(rawjson.Contents(rawjson.Field(b, "thinking")), rawjson.Contents(rawjson.Field(b, "signature")))
		case "redacted_thinking":
			c.input.Reasoning(nil, rawjson.Contents(rawjson.Field(b, "data")))
		case "tool_use":
			if err := c.addCall(b, fmt.Sprintf("%s[%d]", at, i)); err != nil {
				return err
			}
		}
	}
	return nil
}

// addCall adds a tool call.
func (c *conversation) addCall(b []byte, at string) error {
	id, name := rawjson.Field(b, "id"), rawjson.Field(b, "name")
	if !rawjson.IsText(id) || !rawjson.IsText(name) || len(id) == 2 || len(name) == 2 {
		return piece.Unsupported(at, "`{param}` needs `id` and `name`, as strings.")
	}
	input := rawjson.Field(b, "input")
	if input == nil {
		input = []byte("{}")
	}
	return c.input.Call(rawjson.Unquote(id), name, piece.AppendQuoted(nil, input), false, at)
}

// addUser adds a user's blocks: first the results of tools, then the rest as one message.
func (c *conversation) addUser(content []byte, at string) error {
	var list []byte
	texts := 0
	var text []byte
	for i, b := range rawjson.Elements(content) {
		at := fmt.Sprintf("%s[%d]", at, i)
		if rawjson.Unquote(rawjson.Field(b, "type")) == "tool_result" {
			output, err := c.resultOf(b, at)
			if err != nil {
				return err
			}
			c.input.Result(rawjson.Unquote(rawjson.Field(b, "tool_use_id")), "", output)
			continue
		}
		parts, err := c.blocks.Parts(b, at)
		if err != nil {
			return err
		}
		for _, p := range parts {
			if len(p.Text) > 0 {
				texts, text = texts+1, p.Text
			}
			list = item.AppendPart(list, p)
		}
	}
	if texts == 1 && len(list) == len(item.AppendText(nil, text)) { // a string is accepted everywhere
		c.input.User(rawjson.Put(nil, `"`, text, `"`))
		return nil
	}
	c.input.User(item.Parts(list))
	return nil
}

// resultOf returns the result of a tool: one string if it is only text, or else parts.
func (c *conversation) resultOf(b []byte, at string) ([]byte, error) {
	parts, err := c.blocks.Result(b, at)
	if err != nil {
		return nil, err
	}
	if string(rawjson.Field(b, "is_error")) == "true" {
		if len(parts) == 0 || parts[0].Text == nil {
			parts = append([]piece.Part{{}}, parts...)
		}
		parts[0].Text = append([]byte("Error: "), parts[0].Text...)
	}
	var text, list []byte
	plain := true
	for _, p := range parts {
		list = item.AppendPart(list, p)
		plain = plain && p.Image == nil && p.File == nil && p.FileURL == nil
		if len(p.Text) > 0 {
			if text != nil {
				text = append(text, `\n`...)
			}
			text = append(text, p.Text...)
		}
	}
	if plain {
		return rawjson.Put(nil, `"`, text, `"`), nil
	}
	return item.Parts(list), nil
}
