package responseschat

import (
	"bytes"
	"fmt"
	"strconv"

	"tollgate/internal/fault"
	"tollgate/internal/wire"
	"tollgate/internal/wire/rawjson"
	"tollgate/internal/wire/translate/internal/item"
	"tollgate/internal/wire/translate/internal/piece"
)

// Body returns the request in the chat-completions form. Unsupported values are rejected with the
// path of the field. Fields without an effect there are left out: cache keys, reasoning of earlier
// answers except for its signatures, `include`, and `metadata` (only for stored answers). Check
// must be called first.
func (r responsesOnChat) Body(t wire.Translation) (rawjson.Pieces, error) {
	d := r.Doc
	if err := checkSupported(d); err != nil {
		return nil, err
	}
	out := append([]byte(`{"model":`), rawjson.Quote(t.Model)...)
	tools, err := chatToolsOf(d)
	if err != nil {
		return nil, err
	}
	messages, err := chatMessagesOf(d, tools, r.id)
	if err != nil {
		return nil, err
	}
	out = rawjson.Put(out, `,"messages":[`, messages, "]")
	if out, err = appendChatTools(out, d, tools); err != nil {
		return nil, err
	}
	if out, err = appendChatFormat(out, d); err != nil {
		return nil, err
	}
	if out, err = appendChatThinking(out, d, t); err != nil {
		return nil, err
	}
	limit := r.Limit
	if limit == 0 {
		limit = t.Limit
	}
	if limit > 0 {
		name := t.LimitField
		if name == "" {
			name = "max_completion_tokens"
		}
		out = strconv.AppendInt(rawjson.AppendMember(out, name, ""), limit, 10)
	}
	for _, name := range []string{
		"temperature", "top_p", "presence_penalty", "frequency_penalty",
		"user", "safety_identifier", "prompt_cache_key",
	} {
		if raw := d.Raw(name); raw != nil {
			out = rawjson.AppendMember(out, name, raw)
		}
	}
	if r.ServiceTier != "" {
		out = rawjson.AppendMember(out, "service_tier", rawjson.Quote(r.ServiceTier))
	}
	out = appendChatLogprobs(out, d)
	if r.Stream {
		out = rawjson.AppendMember(out, "stream", "true")
		if t.AskUsage {
			out = rawjson.AppendMember(out, "stream_options", `{"include_usage":true}`)
		}
	}
	return rawjson.Pieces{append(out, '}')}, nil
}

// unsupported rejects a field not supported by any chat line.
func unsupported(param string) error {
	return fault.At(fault.InvalidRequest, param,
		"`{param}` asks for something that this model is not offered with. Leave it out, or use another model.")
}

// checkSupported rejects values that a chat line would silently ignore.
func checkSupported(d *rawjson.RequestBody) error {
	if raw := d.Raw("truncation"); raw != nil && rawjson.Unquote(raw) != "disabled" {
		return unsupported("truncation")
	}
	if raw := d.Raw("context_management"); len(raw) > 2 {
		return unsupported("context_management")
	}
	for _, name := range []string{"prompt", "moderation"} {
		if d.Raw(name) != nil {
			return unsupported(name)
		}
	}
	if mode := rawjson.Field(d.Raw("reasoning"), "mode"); mode != nil && rawjson.Unquote(mode) != "standard" {
		return unsupported("reasoning.mode")
	}
	return nil
}

// appendChatLogprobs appends the logprobs requested by `top_logprobs` and `include`.
func appendChatLogprobs(dst []byte, d *rawjson.RequestBody) []byte {
	top, _ := rawjson.Count(d.Raw("top_logprobs"))
	enabled := top > 0
	for _, name := range rawjson.Elements(d.Raw("include")) {
		enabled = enabled || rawjson.Unquote(name) == "message.output_text.logprobs"
	}
	if enabled {
		dst = rawjson.AppendMember(dst, "logprobs", "true")
	}
	if top > 0 {
		dst = strconv.AppendInt(rawjson.AppendMember(dst, "top_logprobs", ""), top, 10)
	}
	return dst
}

// appendChatFormat appends the format requested by `text`.
func appendChatFormat(dst []byte, d *rawjson.RequestBody) ([]byte, error) {
	text := d.Raw("text")
	format := rawjson.Field(text, "format")
	switch kind := rawjson.Unquote(rawjson.Field(format, "type")); {
	case format == nil || kind == "text":
	case kind == "json_object":
		dst = rawjson.AppendMember(dst, "response_format", `{"type":"json_object"}`)
	case kind == "json_schema":
		dst = rawjson.AppendMember(dst, "response_format", `{"type":"json_schema","json_schema":{"name":`)
		dst = rawjson.AppendOr(dst, rawjson.Field(format, "name"), `"output"`)
		for _, name := range []string{"description", "schema", "strict"} {
			if raw := rawjson.Field(format, name); raw != nil {
				dst = rawjson.AppendMember(dst, name, raw)
			}
		}
		dst = append(dst, "}}"...)
	default:
		return nil, unsupported("text.format.type")
	}
	if verbosity := rawjson.Field(text, "verbosity"); verbosity != nil {
		dst = rawjson.AppendMember(dst, "verbosity", verbosity)
	}
	return dst, nil
}

// appendChatThinking appends the reasoning effort. It disables thinking if the model would reject a
// forced tool otherwise.
func appendChatThinking(dst []byte, d *rawjson.RequestBody, t wire.Translation) ([]byte, error) {
	if t.NoThinking.Name != "" && forcesTool(d.Raw("tool_choice")) {
		return rawjson.AppendMember(dst, t.NoThinking.Name, t.NoThinking.Value), nil
	}
	effort, err := t.Effort(rawjson.Field(d.Raw("reasoning"), "effort"), "reasoning.effort")
	if err == nil && effort != nil {
		dst = rawjson.AppendMember(dst, "reasoning_effort", effort)
	}
	return dst, err
}

// forcesTool reports whether a tool choice requires a call.
func forcesTool(choice []byte) bool {
	switch kind := rawjson.Unquote(rawjson.Field(choice, "type")); {
	case rawjson.IsText(choice):
		return rawjson.Unquote(choice) == "required"
	case kind == "allowed_tools":
		return rawjson.Unquote(rawjson.Field(choice, "mode")) == "required"
	default:
		return kind == "function" || kind == "custom"
	}
}

// chatMessages writes the messages of a chat request from the items of an input.
type chatMessages struct {
	out   []byte // the messages so far, with commas
	tools *chatTools

	// The assistant's message that may get more calls.
	open    bool
	content []byte // a JSON string, or nil
	calls   []chatCall
	sealed  []byte // sealed signature of the reasoning before the next call

	id      wire.Identity
	results map[string]*callResults // by call id
}

// chatCall is a tool call: JSON strings, and the contents of one with the signature of the
// reasoning before it.
type chatCall struct{ id, name, arguments, sealed []byte }

// callResults are the results of the calls with the same id, in order. Some clients reuse ids in
// every turn.
type callResults struct {
	list  []callResult
	calls int // number of calls so far
	used  int // number of results given to calls
}

// callResult is the result of a call: one output, or several if a tool reports progress.
type callResult []callOutput

type callOutput struct {
	output []byte
	path   string
}

// chatMessagesOf returns the messages for instructions and input.
func chatMessagesOf(d *rawjson.RequestBody, tools *chatTools, id wire.Identity) ([]byte, error) {
	m := chatMessages{tools: tools, id: id}
	if instructions := d.Raw("instructions"); instructions != nil {
		if !rawjson.IsText(instructions) {
			return nil, unsupported("instructions")
		}
		m.message("system", instructions)
	}
	const param = "input"
	input := d.Raw(param)
	if rawjson.IsText(input) {
		m.message("user", input)
		return m.out, nil
	}
	if err := m.collect(input, param); err != nil {
		return nil, err
	}
	for i, item := range rawjson.Elements(input) {
		if err := m.item(item, element(param, i)); err != nil {
			return nil, err
		}
	}
	if err := m.close(); err != nil {
		return nil, err
	}
	if len(m.out) == 0 {
		return nil, fault.At(fault.InvalidRequest, param, "`input` must hold a message.")
	}
	return m.out, nil
}

// collect collects the results of calls. They must follow the message with the calls directly,
// wherever the client put them. An output belongs to the first call with its id and without a
// result, or else to the last one.
func (m *chatMessages) collect(input []byte, path string) error {
	m.results = make(map[string]*callResults)
	for i, item := range rawjson.Elements(input) {
		output := isCallOutput(item)
		if !output && !isCall(item) {
			continue
		}
		id := rawjson.Field(item, "call_id")
		if !rawjson.IsText(id) {
			return fault.At(fault.InvalidRequest, element(path, i)+".call_id", "A call and its output need a `call_id`.")
		}
		key := rawjson.Unquote(id)
		results := m.results[key]
		if results == nil {
			results = &callResults{}
			m.results[key] = results
		}
		result := callOutput{rawjson.Field(item, "output"), element(path, i) + ".output"}
		switch {
		case !output:
			results.calls++
		case results.calls == 0:
			return fault.At(fault.InvalidRequest, element(path, i)+".call_id", "No call before this output has its `call_id`.")
		case len(results.list) < results.calls:
			results.list = append(results.list, callResult{result})
		default:
			last := &results.list[len(results.list)-1]
			*last = append(*last, result)
		}
	}
	return nil
}

func isCall(item []byte) bool {
	kind := rawjson.Unquote(rawjson.Field(item, "type"))
	return kind == "function_call" || kind == "custom_tool_call"
}

func isCallOutput(item []byte) bool {
	kind := rawjson.Unquote(rawjson.Field(item, "type"))
	return kind == "function_call_output" || kind == "custom_tool_call_output"
}

// item adds one item.
func (m *chatMessages) item(item []byte, path string) error {
	switch kind := rawjson.Unquote(rawjson.Field(item, "type")); kind {
	case "", "message":
		return m.addMessage(item, path)
	case "function_call", "custom_tool_call":
		return m.addCall(item, kind, path)
	case "reasoning":
		m.sealed = rawjson.Contents(rawjson.Field(item, "encrypted_content"))
		return nil
	case "additional_tools", "tool_search_call", "tool_search_output": // their tools are among the tools
		return nil
	case "function_call_output", "custom_tool_call_output":
		return m.close()
	}
	return unsupported(path + ".type")
}

// addMessage adds a message. Compatible vendors do not know the role developer, and all accept
// `system` for it.
func (m *chatMessages) addMessage(item []byte, path string) error {
	if err := m.close(); err != nil {
		return err
	}
	content, err := readChatContent(rawjson.Field(item, "content"), path+".content")
	if err != nil {
		return err
	}
	switch role := rawjson.Unquote(rawjson.Field(item, "role")); role {
	case "user":
		m.message(role, content.value())
	case "system", "developer":
		if !content.isText() {
			return unsupported(path + ".content")
		}
		m.message("system", content.text())
	case "assistant":
		if !content.isText() {
			return unsupported(path + ".content")
		}
		m.open = true
		if len(content.texts) > 0 {
			m.content = content.text()
		}
	default:
		return fault.At(fault.InvalidRequest, path+".role", "`role` must be one of user, assistant, system and developer.")
	}
	return nil
}

// message appends a message with the given JSON content.
func (m *chatMessages) message(role string, content []byte) {
	m.comma()
	m.out = rawjson.Put(m.out, `{"role":"`, role, `","content":`)
	m.out = rawjson.Put(m.out, "", content, "}")
}

func (m *chatMessages) comma() {
	if len(m.out) > 0 {
		m.out = append(m.out, ',')
	}
}

// addCall adds a call to the assistant's message before it, or to a new one. The input of a custom
// tool becomes the argument of the function replacing it.
func (m *chatMessages) addCall(item []byte, kind, path string) error {
	call := chatCall{id: rawjson.Field(item, "call_id"), name: rawjson.Field(item, "name"), arguments: rawjson.Field(item, "arguments")}
	if kind == "custom_tool_call" {
		call.arguments = piece.WrapInput(rawjson.Field(item, "input"))
	}
	switch {
	case !rawjson.IsText(call.id):
		return fault.At(fault.InvalidRequest, path+".call_id", "A call needs its `call_id`.")
	case !rawjson.IsText(call.name):
		return fault.At(fault.InvalidRequest, path+".name", "A call needs its `name`.")
	case call.arguments == nil || string(call.arguments) == `""`: // some vendors reject text other than JSON
		call.arguments = []byte(`"{}"`)
	case !rawjson.IsText(call.arguments):
		call.arguments = rawjson.Quote(string(call.arguments))
	}
	call.name = rawjson.Quote(m.tools.functionFor(nameOfTool(item)))
	call.sealed, m.sealed = m.sealed, nil
	m.open = true
	m.calls = append(m.calls, call)
	return nil
}

// close appends the open message of the assistant, if any, and the results of its calls.
func (m *chatMessages) close() error {
	if !m.open {
		return nil
	}
	if m.content != nil || len(m.calls) > 0 {
		m.comma()
		m.out = append(m.out, `{"role":"assistant","content":`...)
		m.out = rawjson.AppendOr(m.out, m.content, "null")
		for i, call := range m.calls {
			m.out = append(m.out, [...]string{`,"tool_calls":[`, ","}[min(i, 1)]...)
			m.out = rawjson.Put(m.out, `{"id":`, call.id, "")
			m.out = rawjson.Put(m.out, `,"type":"function","function":{"name":`, call.name, "")
			m.out = rawjson.Put(m.out, `,"arguments":`, call.arguments, "}")
			m.out = append(item.AppendSignature(m.out, m.id, call.sealed), '}')
		}
		if len(m.calls) > 0 {
			m.out = append(m.out, ']')
		}
		m.out = append(m.out, '}')
	}
	calls := m.calls
	m.open, m.content, m.calls = false, nil, nil
	return m.writeResults(calls)
}

// writeResults appends the results of calls. The form accepts only text there, so images and files
// follow in a user message.
func (m *chatMessages) writeResults(calls []chatCall) error {
	var attachments []byte
	for _, call := range calls {
		content := rawjson.Quote(noResult)
		if found := m.nextResult(rawjson.Unquote(call.id)); found != nil {
			var read chatContent
			for _, part := range found {
				more, err := readChatContent(part.output, part.path)
				if err != nil {
					return err
				}
				read.texts, read.parts = append(read.texts, more.texts...), append(read.parts, more.parts...)
			}
			content = read.text()
			if !read.isText() {
				attachments = append(attachments, read.attachments(call.id)...)
				if len(read.texts) == 0 {
					content = []byte(`"(shown in the next message)"`)
				}
			}
		}
		m.comma()
		m.out = rawjson.Put(m.out, `{"role":"tool","tool_call_id":`, call.id, "")
		m.out = rawjson.Put(m.out, `,"content":`, content, "}")
	}
	if len(attachments) > 0 {
		m.message("user", rawjson.Put(nil, "[", attachments[1:], "]"))
	}
	return nil
}

// nextResult returns the next result of a call, or nil.
func (m *chatMessages) nextResult(id string) callResult {
	results := m.results[id]
	if results == nil || results.used == len(results.list) {
		return nil
	}
	results.used++
	return results.list[results.used-1]
}

// chatContent is content in the chat form.
type chatContent struct {
	texts [][]byte // the contents of JSON strings
	parts [][]byte // all parts in order, including text
}

// readChatContent reads the content of a message or the output of a call: a string, or parts.
func readChatContent(content []byte, path string) (c chatContent, err error) {
	if rawjson.IsText(content) {
		c.addText(content)
		return c, nil
	}
	for i, part := range rawjson.Elements(content) {
		path := element(path, i)
		switch kind := rawjson.Unquote(rawjson.Field(part, "type")); kind {
		case "input_text", "output_text", "text", "refusal", "summary_text", "reasoning_text":
			name := "text"
			if kind == "refusal" {
				name = kind
			}
			text := rawjson.Field(part, name)
			if !rawjson.IsText(text) {
				return c, fault.At(fault.InvalidRequest, path+"."+name, "`%s` must be a string.", name)
			}
			c.addText(text)
		case "input_image":
			err = c.addImage(part, path)
		case "input_file":
			err = c.addFile(part, path)
		default:
			err = unsupported(path + ".type")
		}
		if err != nil {
			return c, err
		}
	}
	return c, nil
}

func (c *chatContent) addText(text []byte) {
	c.texts = append(c.texts, text[1:len(text)-1])
	c.parts = append(c.parts, rawjson.Put(nil, `{"type":"text","text":`, text, "}"))
}

func (c *chatContent) addImage(part []byte, path string) error {
	address := rawjson.Field(part, "image_url")
	if len(address) > 0 && address[0] == '{' {
		address = rawjson.Field(address, "url")
	}
	if !rawjson.IsText(address) {
		return fault.At(fault.InvalidRequest, path+".image_url", "`image_url` must be the image's address.")
	}
	out := append([]byte(`{"type":"image_url","image_url":{"url":`), address...)
	if detail := rawjson.Field(part, "detail"); detail != nil {
		out = rawjson.AppendMember(out, "detail", detail)
	}
	c.parts = append(c.parts, append(out, "}}"...))
	return nil
}

func (c *chatContent) addFile(part []byte, path string) error {
	data := rawjson.Field(part, "file_data")
	switch {
	case rawjson.Field(part, "file_url") != nil:
		return unsupported(path + ".file_url")
	case !rawjson.IsText(data):
		return fault.At(fault.InvalidRequest, path+".file_data", "`file_data` must hold the file itself.")
	}
	out := append([]byte(`{"type":"file","file":{"file_data":`), data...)
	if name := rawjson.Field(part, "filename"); name != nil {
		out = rawjson.AppendMember(out, "filename", name)
	}
	c.parts = append(c.parts, append(out, "}}"...))
	return nil
}

// isText reports whether the content is only text.
func (c *chatContent) isText() bool { return len(c.texts) == len(c.parts) }

// text returns all text as one JSON string, with a line for each part.
func (c *chatContent) text() []byte {
	return rawjson.Put(nil, `"`, bytes.Join(c.texts, []byte(`\n`)), `"`)
}

// value returns the content as JSON: a string if possible, since not all vendors accept parts.
func (c *chatContent) value() []byte {
	if c.isText() && len(c.parts) <= 1 {
		return c.text()
	}
	return rawjson.Put(nil, "[", bytes.Join(c.parts, []byte{','}), "]")
}

// attachments returns the parts other than text, each with a comma before it, after a line with the
// call's id.
func (c *chatContent) attachments(id []byte) (out []byte) {
	out = append(out, `,{"type":"text","text":"Result of the call `...)
	out = rawjson.Put(out, "", id[1:len(id)-1], `:"}`)
	for _, part := range c.parts {
		if !bytes.HasPrefix(part, []byte(`{"type":"text"`)) {
			out = rawjson.Put(out, ",", part, "")
		}
	}
	return out
}

// noResult is the result of a call without one.
const noResult = "(no result)"

// element returns the path of an array's element.
func element(path string, index int) string { return fmt.Sprintf("%s[%d]", path, index) }
