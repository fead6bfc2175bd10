package completions

import (
	"bytes"
	"fmt"

	"tollgate/internal/wire"
	"tollgate/internal/wire/conversation"
	"tollgate/internal/wire/internal/form"
	"tollgate/internal/wire/rawjson"
)

// Decode decodes the request. Check must be called first.
func (r *Request) Decode() (*conversation.Request, error) {
	c := &conversation.Request{Parameters: &r.Parameters, Client: wire.FormChat}
	if r.Doc == nil { // a request without a body, for reading answers only
		return c, nil
	}
	c.Size = r.Size()
	if r.Doc.Raw("moderation") != nil {
		return nil, conversation.NotOffered("moderation")
	}
	d := decoder{Request: c, doc: r.Doc}
	for _, step := range []func() error{d.tools, d.choice, d.messages, d.stops, d.format} {
		if err := step(); err != nil {
			return nil, err
		}
	}
	d.fields()
	return c, nil
}

type decoder struct {
	*conversation.Request
	doc *rawjson.RequestBody
}

// fields reads the fields without a structure.
func (d *decoder) fields() {
	for _, field := range []struct {
		name string
		to   *[]byte
	}{
		{"temperature", &d.Temperature}, {"top_p", &d.TopP}, {"presence_penalty", &d.PresencePenalty},
		{"frequency_penalty", &d.FrequencyPenalty}, {"seed", &d.Seed}, {"logprobs", &d.Logprobs}, {"top_logprobs", &d.TopLogprobs},
		{"verbosity", &d.Verbosity}, {"user", &d.User}, {"safety_identifier", &d.SafetyID}, {"prompt_cache_key", &d.CacheKey},
		{"service_tier", &d.Tier}, {"parallel_tool_calls", &d.Parallel},
		{"modalities", &d.Modalities}, {"image_config", &d.ImageConfig},
	} {
		*field.to = d.doc.Raw(field.name)
	}
	effort := d.doc.Raw("reasoning_effort")
	d.Effort = conversation.Effort{Word: effort, Show: rawjson.Unquote(effort) != "none", At: "reasoning_effort"}
	for _, name := range []string{"prompt_cache_options", "prompt_cache_retention"} {
		if raw := d.doc.Raw(name); raw != nil {
			d.CacheOptions = append(d.CacheOptions, wire.Member{Name: name, Value: string(raw)})
		}
	}
}

// stops reads `stop`.
func (d *decoder) stops() error {
	raw := d.doc.Raw("stop")
	switch {
	case raw == nil:
	case rawjson.IsText(raw):
		d.Stops = append(d.Stops, raw)
	case raw[0] != '[':
		return conversation.Unsupported("stop", "`{param}` must be a string or an array of strings.")
	}
	for i, stop := range rawjson.Elements(raw) {
		switch {
		case rawjson.IsText(stop):
			d.Stops = append(d.Stops, stop)
		case rawjson.NonNull(stop) != nil:
			return conversation.Unsupported(fmt.Sprintf("stop[%d]", i), "`{param}` must be a string.")
		}
	}
	return nil
}

// format reads response_format.
func (d *decoder) format() error {
	raw := d.doc.Raw("response_format")
	if raw == nil {
		return nil
	}
	switch rawjson.Unquote(rawjson.Field(raw, "type")) {
	case "text":
	case "json_object":
		d.Format.Kind = conversation.JSONObject
	case "json_schema":
		inner := rawjson.Field(raw, "json_schema")
		d.Format = conversation.Format{
			Kind: conversation.JSONSchema, Name: rawjson.Field(inner, "name"), Description: rawjson.Field(inner, "description"),
			Schema: rawjson.Field(inner, "schema"), Strict: rawjson.Field(inner, "strict"), At: "response_format.json_schema.schema",
		}
	default:
		return conversation.Unsupported("response_format.type", "`{param}` must be text, json_object or json_schema for this model.")
	}
	return nil
}

// tools reads tools, and the older functions.
func (d *decoder) tools() error {
	for i, tool := range rawjson.Elements(d.doc.Raw("tools")) {
		at := fmt.Sprintf("tools[%d]", i)
		kind, function, custom := rawjson.Field(tool, "type"), rawjson.Field(tool, "function"), rawjson.Field(tool, "custom")
		mark := conversation.MarkOf(tool)
		switch {
		case rawjson.Unquote(kind) == "custom" && custom != nil:
			if err := d.addTool(custom, mark, true, at+".custom"); err != nil {
				return err
			}
			continue
		case rawjson.Unquote(kind) != "function" && (kind != nil || function == nil):
			return conversation.Unsupported(at+".type", "`{param}` must be function for this model.")
		case mark.Time == conversation.NoCache:
			mark = conversation.MarkOf(function)
		}
		if err := d.addTool(function, mark, false, at+".function"); err != nil {
			return err
		}
	}
	for i, function := range rawjson.Elements(d.doc.Raw("functions")) {
		if err := d.addTool(function, conversation.MarkOf(function), false, fmt.Sprintf("functions[%d]", i)); err != nil {
			return err
		}
	}
	return nil
}

func (d *decoder) addTool(tool []byte, mark conversation.Mark, custom bool, at string) error {
	name, schema := rawjson.Field(tool, "name"), rawjson.Field(tool, "parameters")
	switch {
	case !rawjson.IsText(name) || len(name) == 2:
		return conversation.Unsupported(at+".name", "`{param}` must be a string: name the tool.")
	case schema != nil && schema[0] != '{':
		return conversation.Unsupported(at+".parameters", "`{param}` must be an object: a JSON schema.")
	}
	d.Tools = append(d.Tools, &conversation.Tool{
		Name: rawjson.Unquote(name), Description: textOrNil(rawjson.Field(tool, "description")), Schema: schema,
		Strict: rawjson.Field(tool, "strict"), Custom: custom, Grammar: rawjson.Field(tool, "format"), Mark: mark, At: at,
	})
	return nil
}

// textOrNil returns raw if it is a JSON string, or nil.
func textOrNil(raw []byte) []byte {
	if rawjson.IsText(raw) {
		return raw
	}
	return nil
}

// choice reads tool_choice, or the older function_call.
func (d *decoder) choice() error {
	param, raw := "tool_choice", d.doc.Raw("tool_choice")
	if raw == nil {
		param, raw = "function_call", d.doc.Raw("function_call")
	}
	if raw == nil {
		return nil
	}
	c := &d.Choice
	c.At = param
	word := rawjson.Unquote(raw)
	if rawjson.Unquote(rawjson.Field(raw, "type")) == "allowed_tools" {
		allowed := rawjson.Field(raw, "allowed_tools")
		c.Restricted = true
		if word = "auto"; rawjson.Unquote(rawjson.Field(allowed, "mode")) == "required" {
			word = "required"
		}
		for i, tool := range rawjson.Elements(rawjson.Field(allowed, "tools")) {
			at := fmt.Sprintf("tool_choice.allowed_tools.tools[%d]", i)
			kind := rawjson.Unquote(rawjson.Field(tool, "type"))
			name, ok := toolName(tool)
			switch {
			case kind != "" && kind != "function" && kind != "custom":
				return conversation.Unsupported(at+".type", "`{param}` must be function for this model.")
			case !ok:
				return conversation.Unsupported(at, "`{param}` must name a function or a custom tool.")
			}
			c.Allowed = append(c.Allowed, name)
		}
		if len(c.Allowed) == 0 {
			return conversation.Unsupported("tool_choice.allowed_tools.tools", "`{param}` names no tool.")
		}
	}
	switch word {
	case "none", "auto", "required":
		c.Mode = conversation.ChoiceMode(word)
		return nil
	case "any":
		c.Mode = conversation.ChoiceAny
		return nil
	}
	var ok bool
	if c.Tool, ok = toolName(raw); !ok {
		return conversation.Unsupported(param, "`{param}` must be none, auto, required or name a tool.")
	}
	c.Mode = conversation.ChoiceOfTool
	return nil
}

// toolName reads the name of a tool in a choice, at its place in any version of the form.
func toolName(choice []byte) (conversation.ToolName, bool) {
	custom := rawjson.Field(choice, "custom")
	for _, owner := range [][]byte{rawjson.Field(choice, "function"), custom, choice} {
		if name := rawjson.Field(owner, "name"); rawjson.IsText(name) && len(name) > 2 {
			return conversation.ToolName{Name: rawjson.Unquote(name), Custom: custom != nil}, true
		}
	}
	return conversation.ToolName{}, false
}

// messages reads the history.
func (d *decoder) messages() error {
	list := d.doc.Raw("messages")
	for i, message := range rawjson.Elements(list) {
		if err := d.message(message, fmt.Sprintf("messages[%d]", i)); err != nil {
			return err
		}
	}
	return nil
}

func (d *decoder) message(message []byte, at string) error {
	t := conversation.Turn{Role: conversation.User, At: at}
	role := rawjson.Unquote(rawjson.Field(message, "role"))
	switch role {
	case "system", "developer":
		t.Role = conversation.System
	case "assistant":
		t.Role = conversation.Assistant
		for _, detail := range rawjson.Elements(rawjson.Field(message, "reasoning_details")) {
			if data := rawjson.Field(detail, "data"); data != nil {
				t.Parts = append(t.Parts, conversation.Part{Kind: conversation.Thinking, Signature: conversation.SignatureOf(data, "")})
			}
		}
	}
	parts, err := partsOf(rawjson.Field(message, "content"), t.Role == conversation.System, at+".content")
	if err != nil {
		return err
	}
	mark := conversation.MarkOf(message)
	switch role {
	case "tool", "function":
		t.Role = conversation.Results
		result := &conversation.ResultPart{Parts: parts}
		if role == "tool" {
			result.ID = rawjson.Unquote(rawjson.Field(message, "tool_call_id"))
		} else {
			result.Name = rawjson.Unquote(rawjson.Field(message, "name"))
		}
		parts = []conversation.Part{{Kind: conversation.ToolResult, Result: result, Mark: mark, At: at}}
	default:
		if mark.Time != conversation.NoCache {
			parts = append(parts, conversation.Part{Mark: mark})
		}
	}
	t.Parts = append(t.Parts, parts...)
	if role == "assistant" {
		if err := d.assistant(&t, message); err != nil {
			return err
		}
	}
	d.Turns = append(d.Turns, t)
	return nil
}

// assistant reads the members of assistant messages only: refusals, images and calls.
func (d *decoder) assistant(t *conversation.Turn, message []byte) error {
	if refusal := rawjson.Field(message, "refusal"); rawjson.IsText(refusal) {
		t.Parts = append(t.Parts, conversation.Part{Kind: conversation.Refusal, Text: rawjson.Contents(refusal), At: t.At + ".refusal"})
	}
	for k, image := range rawjson.Elements(rawjson.Field(message, "images")) {
		part, err := imageOf(image, fmt.Sprintf("%s.images[%d]", t.At, k))
		if err != nil {
			return err
		}
		part.Media.Generated, part.Signature = true, signatureOf(image)
		t.Parts = append(t.Parts, part)
	}
	for k, call := range rawjson.Elements(rawjson.Field(message, "tool_calls")) {
		at := fmt.Sprintf("%s.tool_calls[%d]", t.At, k)
		function, custom := rawjson.Field(call, "function"), rawjson.Field(call, "custom")
		input := "arguments"
		switch {
		case custom != nil:
			function, at, input = custom, at+".custom", "input"
		case function == nil:
			return conversation.Unsupported(at+".type", "`{param}` must be function or custom.")
		default:
			at += ".function"
		}
		if err := d.call(t, call, function, input, at); err != nil {
			return err
		}
	}
	if call := rawjson.Field(message, "function_call"); call != nil {
		return d.call(t, nil, call, "arguments", t.At+".function_call")
	}
	return nil
}

func (d *decoder) call(t *conversation.Turn, call, function []byte, input, at string) error {
	name := rawjson.Field(function, "name")
	if !rawjson.IsText(name) || len(name) == 2 {
		return conversation.Unsupported(at+".name", "`{param}` must be a string: the name of the tool.")
	}
	t.Parts = append(t.Parts, conversation.Part{
		Kind: conversation.ToolCall, Signature: signatureOf(call), Mark: conversation.MarkOf(call), At: at,
		Call: &conversation.CallPart{
			ID: rawjson.Unquote(rawjson.Field(call, "id")), Name: rawjson.Unquote(name),
			Arguments: rawjson.Field(function, input), Custom: input == "input",
		},
	})
	return nil
}

// signatureOf reads the signature of a call or an image from its place in Google's own chat form or
// in a client library's.
func signatureOf(owner []byte) conversation.Signature {
	for _, signature := range [][]byte{
		rawjson.Field(rawjson.Field(rawjson.Field(owner, "extra_content"), "google"), "thought_signature"),
		rawjson.Field(rawjson.Field(owner, "provider_specific_fields"), "thought_signature"),
	} {
		if rawjson.IsText(signature) && len(signature) > 2 {
			return conversation.SignatureOf(signature, wire.FormGemini)
		}
	}
	return conversation.Signature{}
}

// partsOf reads a content: a string, or parts.
func partsOf(content []byte, textOnly bool, at string) (parts []conversation.Part, err error) {
	if rawjson.IsText(content) {
		return []conversation.Part{conversation.TextPart(content, at)}, nil
	}
	for i, raw := range rawjson.Elements(content) {
		at := fmt.Sprintf("%s[%d]", at, i)
		part, err := partOf(raw, at)
		switch {
		case err != nil:
			return nil, err
		case part == nil:
			continue
		case textOnly && part.Kind != conversation.Text && part.Kind != conversation.Refusal:
			return nil, conversation.Unsupported(at, "`{param}` must be text for this model.")
		}
		part.Mark = conversation.MarkOf(raw)
		parts = append(parts, *part)
	}
	return parts, nil
}

// partOf reads a part. It returns nil for reasoning, which is only valid for its own model.
func partOf(raw []byte, at string) (*conversation.Part, error) {
	switch kind := rawjson.Unquote(rawjson.Field(raw, "type")); kind {
	case "text", "input_text", "output_text":
		text := rawjson.Field(raw, "text")
		if text != nil && !rawjson.IsText(text) {
			return nil, conversation.Unsupported(at+".text", "`{param}` must be a string.")
		}
		part := conversation.TextPart(text, at)
		return &part, nil
	case "refusal":
		return &conversation.Part{Kind: conversation.Refusal, Text: rawjson.Contents(rawjson.Field(raw, kind)), At: at}, nil
	case "thinking", "redacted_thinking", "reasoning":
		return nil, nil
	case "image_url", "input_image":
		part, err := imageOf(raw, at)
		return &part, err
	case "file":
		file := rawjson.Field(raw, "file")
		media := &conversation.Media{Address: rawjson.Field(file, "file_data"), Name: textOrNil(rawjson.Field(file, "filename")),
			At: at + ".file.file_data"}
		if !rawjson.IsText(media.Address) {
			return nil, conversation.Unsupported(media.At, "`{param}` must be a string: the file as a data address.")
		}
		return &conversation.Part{Kind: conversation.File, Media: media, At: at}, nil
	default:
		return nil, conversation.Unsupported(at+".type", "`{param}` must be text, image_url or file for this model, not `%s`.",
			form.Shorten(bytes.TrimSpace([]byte(kind))))
	}
}

func imageOf(raw []byte, at string) (conversation.Part, error) {
	image := rawjson.Field(raw, "image_url")
	media := &conversation.Media{Address: image, Detail: textOrNil(rawjson.Field(image, "detail")), At: at + ".image_url"}
	if len(image) > 0 && image[0] == '{' {
		media.Address, media.At = rawjson.Field(image, "url"), media.At+".url"
	}
	if !rawjson.IsText(media.Address) {
		return conversation.Part{}, conversation.Unsupported(media.At, "`{param}` must be the image's address.")
	}
	return conversation.Part{Kind: conversation.Image, Media: media, At: at}, nil
}
