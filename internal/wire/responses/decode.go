package responses

import (
	"fmt"

	"tollgate/internal/fault"
	"tollgate/internal/wire"
	"tollgate/internal/wire/conversation"
	"tollgate/internal/wire/rawjson"
)

// Decode decodes the request. Fields without an effect on lines of other forms are left out: `include`,
// except for logprobs, and `metadata` (only for stored answers). Check must be called first.
func (r *Request) Decode() (*conversation.Request, error) {
	c := &conversation.Request{Parameters: &r.Parameters, Client: wire.FormResponses}
	if r.Doc == nil { // a request without a body, for reading answers only
		return c, nil
	}
	c.Size = r.Size()
	d := decoder{Request: c, doc: r.Doc}
	for _, step := range []func() error{d.checkSupported, d.tools, d.choice, d.input, d.format} {
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

	turn  *conversation.Turn // the assistant's turn that may get more calls, or nil
	calls map[string]int     // number of calls by id
}

// unsupported rejects a field not supported by any line of another form.
func unsupported(param string) error {
	return conversation.Unsupported(param,
		"`{param}` asks for something that this model is not offered with. Leave it out, or use another model.")
}

// checkSupported rejects values that a line would silently ignore.
func (d *decoder) checkSupported() error {
	if raw := d.doc.Raw("truncation"); raw != nil && rawjson.Unquote(raw) != "disabled" {
		return unsupported("truncation")
	}
	if raw := d.doc.Raw("context_management"); len(raw) > 2 {
		return unsupported("context_management")
	}
	for _, name := range []string{"prompt", "moderation"} {
		if d.doc.Raw(name) != nil {
			return unsupported(name)
		}
	}
	if mode := rawjson.Field(d.doc.Raw("reasoning"), "mode"); mode != nil && rawjson.Unquote(mode) != "standard" {
		return unsupported("reasoning.mode")
	}
	return nil
}

// fields reads the fields without a structure.
func (d *decoder) fields() {
	for _, field := range []struct {
		name string
		to   *[]byte
	}{
		{"temperature", &d.Temperature}, {"top_p", &d.TopP}, {"presence_penalty", &d.PresencePenalty},
		{"frequency_penalty", &d.FrequencyPenalty}, {"user", &d.User}, {"safety_identifier", &d.SafetyID},
		{"prompt_cache_key", &d.CacheKey}, {"service_tier", &d.Tier}, {"parallel_tool_calls", &d.Parallel},
	} {
		*field.to = d.doc.Raw(field.name)
	}
	top, _ := rawjson.Count(d.doc.Raw("top_logprobs"))
	if top > 0 {
		d.Logprobs, d.TopLogprobs = []byte("true"), fmt.Appendf(nil, "%d", top)
	}
	for _, name := range rawjson.Elements(d.doc.Raw("include")) {
		if rawjson.Unquote(name) == "message.output_text.logprobs" {
			d.Logprobs = []byte("true")
		}
	}
	reasoning := d.doc.Raw("reasoning")
	d.Effort = conversation.Effort{Word: rawjson.Field(reasoning, "effort"), At: "reasoning.effort"}
	for _, name := range [...]string{"summary", "generate_summary"} { // the second is the older name
		d.Effort.Show = d.Effort.Show || rawjson.Field(reasoning, name) != nil
	}
}

// format reads the format requested by `text`.
func (d *decoder) format() error {
	text := d.doc.Raw("text")
	format := rawjson.Field(text, "format")
	d.Verbosity = rawjson.Field(text, "verbosity")
	switch kind := rawjson.Unquote(rawjson.Field(format, "type")); {
	case format == nil || kind == "text":
	case kind == "json_object":
		d.Format.Kind = conversation.JSONObject
	case kind == "json_schema":
		d.Format = conversation.Format{
			Kind: conversation.JSONSchema, Name: rawjson.Field(format, "name"), Description: rawjson.Field(format, "description"),
			Schema: rawjson.Field(format, "schema"), Strict: rawjson.Field(format, "strict"), At: "text.format.schema",
		}
	default:
		return unsupported("text.format.type")
	}
	return nil
}

// tools reads the tools, including those in items.
func (d *decoder) tools() error {
	if err := d.addTools(d.doc.Raw("tools"), "", "tools"); err != nil {
		return err
	}
	input := d.doc.Raw("input")
	if rawjson.IsText(input) {
		return nil
	}
	var known map[conversation.ToolName]bool
	for i, item := range rawjson.Elements(input) {
		if kind := rawjson.Unquote(rawjson.Field(item, "type")); kind != "additional_tools" && kind != "tool_search_output" {
			continue
		}
		if known == nil {
			known = make(map[conversation.ToolName]bool)
			for _, tool := range d.Tools {
				known[conversation.ToolName{Name: tool.Name, Namespace: tool.Namespace}] = true
			}
		}
		had := len(d.Tools)
		if err := d.addTools(rawjson.Field(item, "tools"), "", element("input", i)+".tools"); err != nil {
			return err
		}
		kept := d.Tools[:had]
		for _, tool := range d.Tools[had:] { // except those already known
			if name := (conversation.ToolName{Name: tool.Name, Namespace: tool.Namespace}); !known[name] {
				known[name], kept = true, append(kept, tool)
			}
		}
		d.Tools = kept
	}
	return nil
}

// addTools adds tools. namespace is empty for tools outside of a namespace.
func (d *decoder) addTools(tools []byte, namespace, path string) error {
	for i, tool := range rawjson.Elements(tools) {
		kind, definition, at := rawjson.Unquote(rawjson.Field(tool, "type")), tool, element(path, i)
		switch {
		case kind == "namespace" && namespace == "":
			name := rawjson.Unquote(rawjson.Field(tool, "name"))
			if name == "" {
				return unsupported(at + ".name")
			}
			if err := d.addTools(rawjson.Field(tool, "tools"), name, at+".tools"); err != nil {
				return err
			}
			continue
		case kind == "tool_search": // the tools to find are in the request, or only the client has them
			continue
		case kind != "function" && kind != "custom":
			return unsupported(at + ".type")
		}
		if nested := rawjson.Field(tool, "function"); kind == "function" && nested != nil {
			definition = nested // in the chat form
		}
		schema := rawjson.Field(definition, "parameters")
		if schema != nil && schema[0] != '{' {
			return conversation.Unsupported(at+".parameters", "`{param}` must be an object: a JSON schema.")
		}
		d.Tools = append(d.Tools, &conversation.Tool{
			Name: rawjson.Unquote(rawjson.Field(definition, "name")), Namespace: namespace,
			Description: rawjson.Field(definition, "description"), Schema: schema,
			Strict: rawjson.Field(definition, "strict"), Custom: kind == "custom", Grammar: rawjson.Field(definition, "format"), At: at,
		})
	}
	return nil
}

// choice reads tool_choice.
func (d *decoder) choice() error {
	raw := d.doc.Raw("tool_choice")
	c := &d.Choice
	c.At = "tool_choice"
	switch kind := rawjson.Unquote(rawjson.Field(raw, "type")); {
	case raw == nil:
	case rawjson.IsText(raw):
		c.Mode = conversation.ChoiceMode(rawjson.Unquote(raw))
	case kind == "function" || kind == "custom":
		function := raw
		if nested := rawjson.Field(raw, kind); rawjson.Field(raw, "name") == nil && nested != nil {
			function = nested // in the chat form
		}
		c.Mode, c.Tool = conversation.ChoiceOfTool, nameOf(function)
		c.Tool.Custom = kind == "custom"
	case kind == "allowed_tools":
		c.Mode, c.Restricted = conversation.ChoiceMode(rawjson.Unquote(rawjson.Field(raw, "mode"))), true
		for _, tool := range rawjson.Elements(rawjson.Field(raw, "tools")) {
			name := nameOf(tool)
			if rawjson.Unquote(rawjson.Field(tool, "type")) == "namespace" {
				name = conversation.ToolName{Namespace: name.Name}
			}
			c.Allowed = append(c.Allowed, name)
		}
	default:
		return unsupported("tool_choice.type")
	}
	return nil
}

// nameOf reads the name of a tool, a call or a choice.
func nameOf(object []byte) conversation.ToolName {
	namespace, name := rawjson.Field(object, "namespace"), rawjson.Field(object, "name")
	return conversation.ToolName{Namespace: rawjson.Unquote(namespace), Name: rawjson.Unquote(name)}
}

// input reads the instructions and the items.
func (d *decoder) input() error {
	if instructions := d.doc.Raw("instructions"); instructions != nil {
		if !rawjson.IsText(instructions) {
			return unsupported("instructions")
		}
		d.add(conversation.System, "instructions", conversation.TextPart(instructions, "instructions"))
	}
	const param = "input"
	input := d.doc.Raw(param)
	if rawjson.IsText(input) {
		d.add(conversation.User, param, conversation.TextPart(input, param))
		return nil
	}
	d.calls = make(map[string]int)
	for i, item := range rawjson.Elements(input) {
		if err := d.item(item, element(param, i)); err != nil {
			return err
		}
	}
	for i := range d.Turns {
		if d.Turns[i].Role != conversation.Assistant {
			return nil
		}
		for k := range d.Turns[i].Parts {
			if d.Turns[i].Parts[k].Kind != conversation.Thinking {
				return nil
			}
		}
	}
	return fault.At(fault.InvalidRequest, param, "`{param}` must hold a message.")
}

// add adds a turn and closes the assistant's turn.
func (d *decoder) add(role conversation.TurnRole, at string, parts ...conversation.Part) {
	d.turn = nil
	d.Turns = append(d.Turns, conversation.Turn{Role: role, Parts: parts, At: at})
}

// addToAssistant adds a part to the assistant's turn, starting it if necessary.
func (d *decoder) addToAssistant(p conversation.Part) {
	if d.turn == nil {
		d.add(conversation.Assistant, p.At)
		d.turn = &d.Turns[len(d.Turns)-1]
	}
	d.turn.Parts = append(d.turn.Parts, p)
}

func (d *decoder) item(item []byte, at string) error {
	switch kind := rawjson.Unquote(rawjson.Field(item, "type")); kind {
	case "", "message":
		return d.message(item, at)
	case "function_call", "custom_tool_call":
		return d.call(item, kind == "custom_tool_call", at)
	case "function_call_output", "custom_tool_call_output":
		return d.output(item, at)
	case "reasoning":
		d.reasoning(item, at)
		return nil
	case "compaction":
		if text := readableText(item); text != nil { // other compactions can be read by their provider only
			d.addToAssistant(conversation.Part{Text: text, At: at})
			return nil
		}
	case "additional_tools", "tool_search_call", "tool_search_output": // decoder.tools has read their tools
		return nil
	}
	return unsupported(at + ".type")
}

func (d *decoder) message(item []byte, at string) error {
	parts, err := partsOf(rawjson.Field(item, "content"), at+".content")
	if err != nil {
		return err
	}
	role := rawjson.Unquote(rawjson.Field(item, "role"))
	for i := range parts {
		if parts[i].Media != nil && role != "user" {
			return unsupported(at + ".content")
		}
	}
	switch role {
	case "user":
		d.add(conversation.User, at, parts...)
	case "system", "developer":
		d.add(conversation.System, at, parts...)
	case "assistant":
		if d.turn != nil && d.turn.Parts[len(d.turn.Parts)-1].Kind != conversation.Thinking {
			d.turn = nil
		}
		for _, p := range parts {
			d.addToAssistant(p)
		}
	default:
		return fault.At(fault.InvalidRequest, at+".role", "`{param}` must be one of user, assistant, system and developer.")
	}
	return nil
}

// readableText returns the text of an item's summary or content, each a string or a list of parts. It
// returns nil for an item without text.
func readableText(item []byte) (text []byte) {
	for _, source := range [...]string{"summary", "content"} {
		value := rawjson.Field(item, source)
		if rawjson.IsText(value) && len(value) > 2 {
			return rawjson.Contents(value)
		}
		for _, part := range rawjson.Elements(value) {
			if more := rawjson.Contents(rawjson.Field(part, "text")); len(more) > 0 {
				if text != nil {
					text = append(text, `\n\n`...)
				}
				text = append(text, more...)
			}
		}
		if text != nil {
			return text
		}
	}
	return nil
}

// reasoning reads the assistant's reasoning.
func (d *decoder) reasoning(item []byte, at string) {
	text := readableText(item)
	signature := conversation.SignatureOf(rawjson.Field(item, "encrypted_content"), wire.FormResponses)
	d.addToAssistant(conversation.Part{Kind: conversation.Thinking, Text: text, Signature: signature, At: at})
}

// call reads a call. A signature of the reasoning before it belongs to the call.
func (d *decoder) call(item []byte, custom bool, at string) error {
	id, name := rawjson.Field(item, "call_id"), nameOf(item)
	member := "arguments"
	if custom {
		member = "input"
	}
	switch {
	case !rawjson.IsText(id):
		return fault.At(fault.InvalidRequest, at+".call_id", "A call needs its `call_id`.")
	case !rawjson.IsText(rawjson.Field(item, "name")):
		return fault.At(fault.InvalidRequest, at+".name", "A call needs its `name`.")
	}
	call := &conversation.CallPart{ID: rawjson.Unquote(id), Name: name.Name, Namespace: name.Namespace, Arguments: rawjson.Field(item, member),
		Custom: custom}
	p := conversation.Part{Kind: conversation.ToolCall, Call: call, At: at}
	if d.turn != nil {
		if last := d.turn.Parts[len(d.turn.Parts)-1]; last.Kind == conversation.Thinking {
			p.Signature = last.Signature
		}
	}
	d.calls[call.ID]++
	d.addToAssistant(p)
	return nil
}

// output reads the result of a call.
func (d *decoder) output(item []byte, at string) error {
	id := rawjson.Field(item, "call_id")
	if !rawjson.IsText(id) {
		return fault.At(fault.InvalidRequest, at+".call_id", "An output needs a `call_id`.")
	}
	result := &conversation.ResultPart{ID: rawjson.Unquote(id)}
	if d.calls[result.ID] == 0 {
		return fault.At(fault.InvalidRequest, at+".call_id", "No call before this output has its `call_id`.")
	}
	var err error
	if result.Parts, err = partsOf(rawjson.Field(item, "output"), at+".output"); err != nil {
		return err
	}
	d.add(conversation.Results, at, conversation.Part{Kind: conversation.ToolResult, Result: result, At: at})
	return nil
}

// partsOf reads the content of a message or the output of a call: a string, or parts.
func partsOf(content []byte, at string) (parts []conversation.Part, err error) {
	if rawjson.IsText(content) {
		return []conversation.Part{conversation.TextPart(content, at)}, nil
	}
	for i, raw := range rawjson.Elements(content) {
		p, err := partOf(raw, element(at, i))
		if err != nil {
			return nil, err
		}
		parts = append(parts, p)
	}
	return parts, nil
}

func partOf(raw []byte, at string) (conversation.Part, error) {
	p := conversation.Part{Mark: conversation.MarkOf(raw), At: at}
	switch kind := rawjson.Unquote(rawjson.Field(raw, "type")); kind {
	case "input_text", "output_text", "text", "refusal", "summary_text", "reasoning_text":
		name := "text"
		if kind == "refusal" {
			name, p.Kind = kind, conversation.Refusal
		}
		text := rawjson.Field(raw, name)
		if !rawjson.IsText(text) {
			return p, fault.At(fault.InvalidRequest, at+"."+name, "`{param}` must be a string.")
		}
		p.Text = rawjson.Contents(text)
	case "input_image":
		p.Kind = conversation.Image
		p.Media = &conversation.Media{Address: rawjson.Field(raw, "image_url"), Detail: rawjson.Field(raw, "detail"), At: at + ".image_url"}
		if address := p.Media.Address; len(address) > 0 && address[0] == '{' {
			p.Media.Address, p.Media.At = rawjson.Field(address, "url"), p.Media.At+".url"
		}
		if !rawjson.IsText(p.Media.Address) {
			return p, fault.At(fault.InvalidRequest, p.Media.At, "`{param}` must be the image's address.")
		}
	case "input_file":
		p.Kind = conversation.File
		p.Media = &conversation.Media{Address: rawjson.Field(raw, "file_data"), Name: rawjson.Field(raw, "filename"), At: at + ".file_data"}
		switch {
		case rawjson.Field(raw, "file_url") != nil:
			return p, unsupported(at + ".file_url")
		case !rawjson.IsText(p.Media.Address):
			return p, fault.At(fault.InvalidRequest, p.Media.At, "`{param}` must hold the file itself.")
		}
	default:
		return p, unsupported(at + ".type")
	}
	return p, nil
}
