package chatresponses

import (
	"fmt"

	"tollgate/internal/wire"
	"tollgate/internal/wire/internal/form"
	"tollgate/internal/wire/rawjson"
	"tollgate/internal/wire/translate/internal/item"
	"tollgate/internal/wire/translate/internal/piece"
)

// addMessage adds a message of the conversation.
func addMessage(input *item.Input, message []byte, t wire.Translation, at string) error {
	content := rawjson.Field(message, "content")
	switch rawjson.Unquote(rawjson.Field(message, "role")) {
	case "system", "developer":
		return eachText(content, at, input.System)
	case "assistant":
		return addAssistant(input, message, content, at)
	case "tool":
		output, err := resultOf(content, t, at)
		if err != nil {
			return err
		}
		input.Result(rawjson.Unquote(rawjson.Field(message, "tool_call_id")), "", output)
		return nil
	case "function":
		output, err := resultOf(content, t, at)
		if err != nil {
			return err
		}
		input.Result("", rawjson.Unquote(rawjson.Field(message, "name")), output)
		return nil
	}
	userContent, err := contentOf(content, t, at)
	input.User(userContent)
	return err
}

// eachText calls add for each text of a message. It returns an error if the message has parts of
// other types.
func eachText(content []byte, at string, add func(text []byte)) error {
	if rawjson.IsText(content) {
		add(content)
		return nil
	}
	for k, part := range rawjson.Elements(content) {
		text := rawjson.Field(part, "text")
		if !rawjson.IsText(text) {
			at := fmt.Sprintf("%s.content[%d]", at, k)
			return piece.Unsupported(at, "`{param}` must be text for this model.")
		}
		add(text)
	}
	return nil
}

// addAssistant adds the assistant's reasoning, texts and calls.
func addAssistant(input *item.Input, message, content []byte, at string) error {
	calls, legacyCall := rawjson.Field(message, "tool_calls"), rawjson.Field(message, "function_call")
	for _, detail := range rawjson.Elements(rawjson.Field(message, "reasoning_details")) {
		input.Reasoning(nil, rawjson.Contents(rawjson.Field(detail, "data")))
	}
	hasCalls := len(calls) > 2 || legacyCall != nil // two bytes are an empty array
	if rawjson.IsText(content) {
		input.Assistant(content, hasCalls)
	}
	for k, part := range rawjson.Elements(content) {
		switch {
		case rawjson.IsText(rawjson.Field(part, "text")):
			input.Assistant(rawjson.Field(part, "text"), hasCalls)
		case rawjson.IsText(rawjson.Field(part, "refusal")):
			input.Assistant(rawjson.Field(part, "refusal"), hasCalls)
		default:
			at := fmt.Sprintf("%s.content[%d]", at, k)
			return piece.Unsupported(at, "`{param}` must be text for this model.")
		}
	}
	if refusal := rawjson.Field(message, "refusal"); rawjson.IsText(refusal) { // sent as text, because refusal parts need ids
		input.Assistant(refusal, hasCalls)
	}
	for k, call := range rawjson.Elements(calls) {
		at := fmt.Sprintf("%s.tool_calls[%d]", at, k)
		if err := addCall(input, call, at); err != nil {
			return err
		}
	}
	if legacyCall != nil {
		name, arguments := rawjson.Field(legacyCall, "name"), rawjson.Field(legacyCall, "arguments")
		return input.Call("", name, argumentsOf(arguments), false, at+".function_call")
	}
	return nil
}

// addCall adds a call of a function or of a custom tool.
func addCall(input *item.Input, call []byte, at string) error {
	id := rawjson.Unquote(rawjson.Field(call, "id"))
	if custom := rawjson.Field(call, "custom"); custom != nil {
		text := rawjson.Field(custom, "input")
		if !rawjson.IsText(text) {
			text = []byte(`""`)
		}
		return input.Call(id, rawjson.Field(custom, "name"), text, true, at+".custom")
	}
	function := rawjson.Field(call, "function")
	if function == nil {
		return piece.Unsupported(at+".type", "`{param}` must be function or custom for this model.")
	}
	return input.Call(id, rawjson.Field(function, "name"), argumentsOf(rawjson.Field(function, "arguments")), false, at+".function")
}

// argumentsOf returns the arguments of a call as a JSON string. The client's bytes stay unchanged.
func argumentsOf(raw []byte) []byte {
	switch {
	case raw == nil || piece.IsBlank(raw) && rawjson.IsText(raw):
		return []byte(`"{}"`)
	case rawjson.IsText(raw):
		return raw
	}
	return piece.AppendQuoted(nil, raw)
}

// resultOf returns the result of a tool. If all parts are texts, resultOf joins them to one string.
func resultOf(content []byte, t wire.Translation, at string) ([]byte, error) {
	if rawjson.IsText(content) || content == nil {
		if content == nil {
			content = []byte(`""`)
		}
		return content, nil
	}
	var text []byte
	plain := true
	for k, part := range rawjson.Elements(content) {
		partText := rawjson.Contents(rawjson.Field(part, "text"))
		if kind := rawjson.Unquote(rawjson.Field(part, "type")); kind != "text" {
			plain = false
		}
		if k > 0 {
			text = append(text, `\n`...)
		}
		text = append(text, partText...)
	}
	if plain {
		return rawjson.Put(nil, `"`, text, `"`), nil
	}
	return contentOf(content, t, at)
}

// contentOf returns the content of a user message, or nil if it is blank.
func contentOf(content []byte, t wire.Translation, at string) ([]byte, error) {
	if rawjson.IsText(content) {
		if piece.IsBlank(content) {
			return nil, nil
		}
		return content, nil
	}
	var parts []byte
	for k, part := range rawjson.Elements(content) {
		before := len(parts)
		var err error
		if parts, err = appendPart(parts, part, fmt.Sprintf("%s.content[%d]", at, k)); err != nil {
			return nil, err
		}
		if mark := rawjson.Field(part, "prompt_cache_breakpoint"); mark != nil && t.OpenAI && len(parts) > before {
			parts = append(rawjson.AppendMember(parts[:len(parts)-1], "prompt_cache_breakpoint", mark), '}')
		}
	}
	return item.Parts(parts), nil
}

// appendPart appends a comma and a part of a user message. A blank text is omitted.
func appendPart(dst, part []byte, at string) ([]byte, error) {
	switch kind := rawjson.Unquote(rawjson.Field(part, "type")); kind {
	case "text":
		text := rawjson.Field(part, "text")
		if !rawjson.IsText(text) {
			return nil, piece.Unsupported(at+".text", "`{param}` must be a string.")
		}
		if piece.IsBlank(text) {
			return dst, nil
		}
		return item.AppendText(dst, rawjson.Contents(text)), nil
	case "image_url":
		image := rawjson.Field(part, "image_url")
		address, detail := rawjson.Field(image, "url"), rawjson.Field(image, "detail")
		if rawjson.IsText(image) {
			address = image
		}
		if !rawjson.IsText(address) {
			return nil, piece.Unsupported(at+".image_url", "`{param}` must hold `url`, a string.")
		}
		if !rawjson.IsText(detail) {
			detail = []byte(`"auto"`)
		}
		return item.AppendImage(dst, address, detail), nil
	case "file":
		file := rawjson.Field(part, "file")
		p := piece.Part{File: rawjson.Field(file, "file_data"), Name: rawjson.Field(file, "filename")}
		if !rawjson.IsText(p.File) {
			return nil, piece.Unsupported(at+".file.file_data", "`{param}` must be a string: the file as a data address.")
		}
		if !rawjson.IsText(p.Name) {
			p.Name = []byte(`"document.pdf"`)
		}
		return item.AppendPart(dst, p), nil
	default:
		return nil, piece.Unsupported(at+".type", "`{param}`: this model takes text, images and files, not `%s`.", form.Shorten([]byte(kind)))
	}
}
