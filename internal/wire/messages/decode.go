package messages

import (
	"bytes"
	"fmt"
	"strings"

	"tollgate/internal/wire"
	"tollgate/internal/wire/conversation"
	"tollgate/internal/wire/internal/form"
	"tollgate/internal/wire/rawjson"
)

// Decode decodes the request. Check must be called first.
func (r *Request) Decode() (*conversation.Request, error) {
	c := &conversation.Request{Parameters: &r.Parameters, Client: wire.FormMessages}
	if r.Doc == nil { // a request without a body, for reading answers only
		return c, nil
	}
	c.Size = r.Size()
	if r.Doc.Raw("mcp_servers") != nil {
		return nil, conversation.NotOffered("mcp_servers")
	}
	d := decoder{Request: c, doc: r.Doc}
	for _, step := range []func() error{d.tools, d.choice, d.system, d.messages, d.effort, d.format} {
		if err := step(); err != nil {
			return nil, err
		}
	}
	c.Temperature, c.TopP, c.TopK = r.Doc.Raw("temperature"), r.Doc.Raw("top_p"), r.Doc.Raw("top_k")
	for _, stop := range rawjson.Elements(r.Doc.Raw("stop_sequences")) {
		if rawjson.IsText(stop) && len(stop) > 2 {
			c.Stops = append(c.Stops, stop)
		}
	}
	if user := rawjson.Field(r.Doc.Raw("metadata"), "user_id"); rawjson.IsText(user) && len(user) > 2 {
		c.User = user
		if session := sessionOf(rawjson.Unquote(user)); session != "" {
			c.CacheKey = rawjson.Quote(session)
		}
	}
	return c, nil
}

// sessionOf returns the session in a user id of a coding agent: JSON with a session_id, or a suffix. It
// returns "" for any other id, which is no cache key because all conversations of the user share it.
func sessionOf(user string) string {
	if session := rawjson.Unquote(rawjson.Field([]byte(user), "session_id")); rawjson.IsValid([]byte(user)) && session != "" {
		return session
	}
	_, session, _ := strings.Cut(user, "_session_")
	return session
}

type decoder struct {
	*conversation.Request
	doc *rawjson.RequestBody
}

// tools reads the client's tools.
func (d *decoder) tools() error {
	for i, tool := range rawjson.Elements(d.doc.Raw("tools")) {
		at := fmt.Sprintf("tools[%d]", i)
		if kind := rawjson.Field(tool, "type"); kind != nil && rawjson.Unquote(kind) != "custom" {
			return conversation.Unsupported(at+".type", "`{param}`: this model takes the client's own tools only, of type custom.")
		}
		name, schema := rawjson.Field(tool, "name"), rawjson.Field(tool, "input_schema")
		switch {
		case !rawjson.IsText(name) || len(name) == 2:
			return conversation.Unsupported(at+".name", "`{param}` must be a string: name the tool.")
		case len(schema) == 0 || schema[0] != '{':
			return conversation.Unsupported(at+".input_schema", "`{param}` must be an object: a JSON schema.")
		}
		t := &conversation.Tool{Name: rawjson.Unquote(name), Schema: schema, Mark: conversation.MarkOf(tool), At: at}
		if text := rawjson.Field(tool, "description"); rawjson.IsText(text) {
			t.Description = text
		}
		if strict := rawjson.Field(tool, "strict"); string(strict) == "true" {
			t.Strict = strict
		}
		d.Tools = append(d.Tools, t)
	}
	return nil
}

// choice reads tool_choice.
func (d *decoder) choice() error {
	raw := d.doc.Raw("tool_choice")
	if raw == nil || len(d.Tools) == 0 {
		return nil
	}
	c := &d.Choice
	c.At = "tool_choice"
	switch kind := rawjson.Unquote(rawjson.Field(raw, "type")); kind {
	case "auto", "none":
		c.Mode = conversation.ChoiceMode(kind)
	case "any":
		c.Mode = conversation.ChoiceAny
	case "tool":
		c.Mode, c.Tool.Name = conversation.ChoiceOfTool, rawjson.Unquote(rawjson.Field(raw, "name"))
		if c.Tool.Name == "" {
			return conversation.Unsupported("tool_choice.name", "`{param}` must be a string: name the tool.")
		}
	default:
		return conversation.Unsupported("tool_choice.type", "`{param}` must be auto, any, tool or none.")
	}
	switch alone := rawjson.Field(raw, "disable_parallel_tool_use"); {
	case string(alone) == "true":
		d.Parallel = []byte("false")
	case alone != nil:
		d.Parallel = []byte("true")
	}
	return nil
}

// effort reads the effort and thinking.
func (d *decoder) effort() error {
	raw := rawjson.Field(d.doc.Raw("output_config"), "effort")
	d.Effort = conversation.Effort{Word: raw, At: "output_config.effort"}
	if raw != nil {
		if _, known := wire.NearestEffort(rawjson.Unquote(raw), wire.Efforts()); !known {
			return conversation.Unsupported(d.Effort.At, "`{param}` must be one of low, medium, high, xhigh and max.")
		}
	}
	thinking := d.doc.Raw("thinking")
	switch kind := rawjson.Unquote(rawjson.Field(thinking, "type")); kind {
	case "disabled":
		d.Effort.Word = []byte(`"none"`)
	case "enabled":
		if raw == nil {
			d.Effort.Word = budgetEffort(thinking)
		}
	}
	d.Effort.Show = asksThinking(thinking)
	return nil
}

// budgetEffort returns the effort for a thinking budget.
func budgetEffort(thinking []byte) []byte {
	budget, _ := rawjson.Integer(rawjson.Field(thinking, "budget_tokens"))
	switch {
	case budget < 4<<10:
		return []byte(`"low"`)
	case budget < 16<<10:
		return []byte(`"medium"`)
	}
	return []byte(`"high"`)
}

// format reads the format of the answer.
func (d *decoder) format() error {
	param, format := "output_config.format", rawjson.Field(d.doc.Raw("output_config"), "format")
	if format == nil {
		param, format = "output_format", d.doc.Raw("output_format") // the name in a beta
	}
	if format == nil {
		return nil
	}
	schema := rawjson.Field(format, "schema")
	if rawjson.Unquote(rawjson.Field(format, "type")) != "json_schema" || len(schema) == 0 || schema[0] != '{' {
		return conversation.Unsupported(param, "`{param}` must be of type json_schema, with a schema.")
	}
	d.Format = conversation.Format{Kind: conversation.JSONSchema, Schema: schema, At: param + ".schema"}
	return nil
}

// system reads the system prompt.
func (d *decoder) system() error {
	content := d.doc.Raw("system")
	if content == nil {
		return nil
	}
	parts, err := systemParts(content, "system")
	d.Turns = append(d.Turns, conversation.Turn{Role: conversation.System, Parts: parts, At: "system"})
	return err
}

// billingPrefix starts a block that one coding agent puts before its system prompt. The block
// changes with every request and would spoil the provider's cache.
const billingPrefix = "x-anthropic-billing-header:"

// systemParts reads a system prompt, a string or text blocks.
func systemParts(content []byte, at string) (parts []conversation.Part, err error) {
	switch {
	case rawjson.IsText(content):
		return []conversation.Part{conversation.TextPart(content, at)}, nil
	case content[0] != '[':
		return nil, conversation.Unsupported(at, "`{param}` must be a string or an array of text blocks.")
	}
	for i, b := range rawjson.Elements(content) {
		text := rawjson.Field(b, "text")
		if !rawjson.IsText(text) {
			return nil, conversation.Unsupported(fmt.Sprintf("%s[%d]", at, i), "`%s` may hold text blocks only.", at)
		}
		p := conversation.TextPart(text, at)
		if bytes.HasPrefix(p.Text, []byte(billingPrefix)) {
			continue
		}
		p.Mark = conversation.MarkOf(b)
		parts = append(parts, p)
	}
	return parts, nil
}

// messages reads the history.
func (d *decoder) messages() error {
	for i, message := range rawjson.Elements(d.doc.Raw("messages")) {
		t := conversation.Turn{At: fmt.Sprintf("messages[%d]", i)}
		role, content, at := rawjson.Unquote(rawjson.Field(message, "role")), rawjson.Field(message, "content"), t.At+".content"
		if content == nil || content[0] != '"' && content[0] != '[' {
			return conversation.Unsupported(at, "`{param}` must be a string or an array of blocks.")
		}
		var err error
		switch role {
		case "system":
			t.Role = conversation.System
			t.Parts, err = systemParts(content, at)
		case "user":
			t.Role = conversation.User
			t.Parts, err = userParts(content, at)
		case "assistant":
			t.Role = conversation.Assistant
			t.Parts, err = assistantParts(content, at)
		default:
			return conversation.Unsupported(t.At+".role", "`{param}` must be user, assistant or system.")
		}
		if err != nil {
			return err
		}
		d.Turns = append(d.Turns, t)
	}
	return nil
}

// assistantParts reads an assistant's blocks. The blocks of hosted tools are left out. A signature
// before a call, in a block of its own or in the call's id, belongs to the call.
func assistantParts(content []byte, at string) (parts []conversation.Part, err error) {
	if rawjson.IsText(content) {
		return []conversation.Part{conversation.TextPart(content, at)}, nil
	}
	for i, b := range rawjson.Elements(content) {
		at := fmt.Sprintf("%s[%d]", at, i)
		p := conversation.Part{Mark: conversation.MarkOf(b), At: at}
		switch rawjson.Unquote(rawjson.Field(b, "type")) {
		case "text":
			p.Text = rawjson.Contents(rawjson.Field(b, "text"))
		case "compaction":
			p.Text = compactionText(b)
		case "thinking":
			p.Kind, p.Text = conversation.Thinking, rawjson.Contents(rawjson.Field(b, "thinking"))
			p.Signature = conversation.SignatureOf(rawjson.Field(b, "signature"), wire.FormMessages)
		case "redacted_thinking":
			p.Kind, p.Signature = conversation.Thinking, conversation.SignatureOf(rawjson.Field(b, "data"), wire.FormMessages)
		case "tool_use":
			id, name := rawjson.Field(b, "id"), rawjson.Field(b, "name")
			if !rawjson.IsText(id) || !rawjson.IsText(name) || len(id) == 2 || len(name) == 2 {
				return nil, conversation.Unsupported(at, "`{param}` needs `id` and `name`, as strings.")
			}
			p.Kind = conversation.ToolCall
			own, state := conversation.OpenID(rawjson.Unquote(id))
			parts = append(parts, state...)
			p.Call = &conversation.CallPart{ID: own, Name: rawjson.Unquote(name), Arguments: rawjson.Field(b, "input")}
			if p.Call.Arguments == nil {
				p.Call.Arguments = []byte("{}")
			}
			if n := len(parts); n > 0 && parts[n-1].Kind == conversation.Thinking {
				p.Signature = parts[n-1].Signature
			}
		default:
			continue
		}
		parts = append(parts, p)
	}
	return parts, nil
}

// compactionText returns the text of a compaction block: a summary that replaces the conversation before it.
func compactionText(b []byte) []byte {
	content := rawjson.Field(b, "content")
	if rawjson.IsText(content) {
		return rawjson.Contents(content)
	}
	var parts []conversation.Part
	for _, inner := range rawjson.Elements(content) {
		parts = append(parts, textParts("", rawjson.Field(inner, "text"))...)
	}
	return conversation.TextOf(parts)
}

// userParts reads a user's blocks.
func userParts(content []byte, at string) (parts []conversation.Part, err error) {
	if rawjson.IsText(content) {
		return []conversation.Part{conversation.TextPart(content, at)}, nil
	}
	for i, b := range rawjson.Elements(content) {
		at := fmt.Sprintf("%s[%d]", at, i)
		if rawjson.Unquote(rawjson.Field(b, "type")) != "tool_result" {
			more, err := blockParts(b, at, 0)
			if err != nil {
				return nil, err
			}
			parts = append(parts, more...)
			continue
		}
		result := &conversation.ResultPart{}
		result.ID, _ = conversation.OpenID(rawjson.Unquote(rawjson.Field(b, "tool_use_id")))
		result.Error = string(rawjson.Field(b, "is_error")) == "true"
		inner := rawjson.Field(b, "content")
		if rawjson.IsText(inner) {
			result.Parts = []conversation.Part{conversation.TextPart(inner, at)}
		}
		for k, block := range rawjson.Elements(inner) {
			more, err := blockParts(block, fmt.Sprintf("%s.content[%d]", at, k), 0)
			if err != nil {
				return nil, err
			}
			result.Parts = append(result.Parts, more...)
		}
		parts = append(parts, conversation.Part{Kind: conversation.ToolResult, Result: result, Mark: conversation.MarkOf(b), At: at})
	}
	return parts, nil
}

// blockParts reads a block of the user, or one inside a result. Empty texts are left out.
func blockParts(b []byte, at string, depth int) ([]conversation.Part, error) {
	switch kind := rawjson.Unquote(rawjson.Field(b, "type")); kind {
	case "text":
		text := rawjson.Field(b, "text")
		if !rawjson.IsText(text) {
			return nil, conversation.Unsupported(at+".text", "`{param}` must be a string.")
		}
		parts := textParts(at, text)
		if len(parts) > 0 {
			parts[0].Mark = conversation.MarkOf(b)
		}
		return parts, nil
	case "compaction":
		return []conversation.Part{{Text: compactionText(b), Mark: conversation.MarkOf(b), At: at}}, nil
	case "image":
		return imageParts(b, at)
	case "document":
		return documentParts(b, at, depth)
	case "search_result":
		parts := textParts(at, rawjson.Field(b, "title"), rawjson.Field(b, "source"))
		for _, inner := range rawjson.Elements(rawjson.Field(b, "content")) {
			parts = append(parts, textParts(at, rawjson.Field(inner, "text"))...)
		}
		return parts, nil
	case "tool_reference":
		return nil, nil
	default:
		return nil, conversation.Unsupported(at+".type", "`{param}`: this model takes text, images and documents, not `%s`.",
			form.Shorten([]byte(kind)))
	}
}

// textParts returns the parts for JSON strings that are not blank.
func textParts(at string, texts ...[]byte) (parts []conversation.Part) {
	for _, text := range texts {
		if !conversation.IsBlank(rawjson.Contents(text)) {
			parts = append(parts, conversation.TextPart(text, at))
		}
	}
	return parts
}

func imageParts(b []byte, at string) ([]conversation.Part, error) {
	source := rawjson.Field(b, "source")
	media := &conversation.Media{At: at + ".source"}
	var ok bool
	if media.Address, ok = dataAddress(source); !ok {
		media.Address = rawjson.Field(source, "url")
		if rawjson.Unquote(rawjson.Field(source, "type")) != "url" || !conversation.HasScheme(media.Address) {
			return nil, conversation.Unsupported(media.At, "`{param}` must be of type base64 or url.")
		}
	}
	return []conversation.Part{{Kind: conversation.Image, Media: media, Mark: conversation.MarkOf(b), At: at}}, nil
}

// dataAddress returns the base64 source of a file as a data address.
func dataAddress(source []byte) (address []byte, ok bool) {
	media, data := rawjson.Field(source, "media_type"), rawjson.Field(source, "data")
	if rawjson.Unquote(rawjson.Field(source, "type")) != "base64" || !rawjson.IsText(media) || !rawjson.IsText(data) {
		return nil, false
	}
	address = make([]byte, 0, len(media)+len(data)+16)
	address = rawjson.Put(address, `"data:`, rawjson.Contents(media), "")
	return rawjson.Put(address, ";base64,", rawjson.Contents(data), `"`), true
}

// documentParts returns the parts of a document: a PDF is a file, text is text.
func documentParts(b []byte, at string, depth int) ([]conversation.Part, error) {
	const deepest = 4 // a document of documents, and some more
	source, title := rawjson.Field(b, "source"), rawjson.Field(b, "title")
	file := func(address []byte, at string) []conversation.Part {
		name := title
		if !rawjson.IsText(title) || conversation.IsBlank(rawjson.Contents(title)) {
			name = []byte(`"document.pdf"`)
		}
		return []conversation.Part{{Kind: conversation.File, Media: &conversation.Media{Address: address, Name: name, At: at}, At: at}}
	}
	parts := textParts(at, title, rawjson.Field(b, "context"))
	content := rawjson.Field(source, "content")
	switch kind := rawjson.Unquote(rawjson.Field(source, "type")); {
	case kind == "base64":
		address, ok := dataAddress(source)
		declared := rawjson.Unquote(rawjson.Field(source, "media_type"))
		if !ok || form.MediaType(declared, rawjson.Contents(rawjson.Field(source, "data"))) != "application/pdf" {
			return nil, conversation.Unsupported(at+".source.media_type", "`{param}` must be application/pdf.")
		}
		return file(address, at+".source.data"), nil
	case kind == "url" && conversation.HasScheme(rawjson.Field(source, "url")):
		return file(rawjson.Field(source, "url"), at+".source.type"), nil
	case kind == "text":
		return append(parts, textParts(at, rawjson.Field(source, "data"))...), nil
	case kind == "content" && rawjson.IsText(content):
		return append(parts, textParts(at, content)...), nil
	case kind == "content":
		for i, inner := range rawjson.Elements(content) {
			at := fmt.Sprintf("%s.source.content[%d]", at, i)
			if depth >= deepest {
				return nil, conversation.Unsupported(at, "`{param}` nests too deep.")
			}
			more, err := blockParts(inner, at, depth+1)
			if err != nil {
				return nil, err
			}
			parts = append(parts, more...)
		}
		return parts, nil
	}
	return nil, conversation.NotFetched(at + ".source.type")
}
