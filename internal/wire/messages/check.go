package messages

import (
	"fmt"
	"strings"

	"tollgate/internal/fault"
	"tollgate/internal/wire"
	"tollgate/internal/wire/field"
	"tollgate/internal/wire/internal/form"
	"tollgate/internal/wire/rawjson"
)

// fields are the top-level fields that are known of the form.
var fields = field.Form("messages")

// Check applies the rules about the fields of a messages request and fills r's
// fields. Its error is a *fault.Error with the path of the field at fault.
// Only what the specification names is checked, and what the gateway itself
// must know; roles, unknown fields, tools and flags are the provider's to
// judge. What only a price can decide (Options, Tools) is reported, not
// refused.
func (r *Request) Check() error {
	r.Limit, r.LimitParam = 0, ""
	if err := r.check(); err != nil {
		return err
	}
	const param = "max_tokens"
	if limit, ok := rawjson.Integer(r.Doc.Raw(param)); !ok || limit < 1 {
		return fault.At(fault.InvalidMaxTokens, param, "`max_tokens` is required and must be a positive integer.")
	}
	return r.ReadLimit()
}

// CheckCount is Check for a request that only counts tokens: it has no limit.
func (r *Request) CheckCount() error {
	r.Limit, r.LimitParam = 0, ""
	return r.check()
}

// check applies the rules that all requests of the form have in common.
func (r *Request) check() error {
	if err := r.CheckNames(fields); err != nil {
		return err
	}
	r.N = 1
	r.Bound = wire.PromptBound{TextBytes: r.Size()}
	r.Key = wire.ConversationKey{}
	for _, check := range []func() error{
		r.CheckReferences, r.checkSystem, r.checkMessages, r.CheckStream, r.CheckStored, r.CheckAudio, r.checkOptions,
		r.checkTools,
		r.checkModelCalls, r.ReadRouting,
	} {
		if err := check(); err != nil {
			return err
		}
	}
	r.Conversation = r.Key.Sum
	return nil
}

// checkSystem reads the system prompt, with which a conversation opens.
func (r *Request) checkSystem() error {
	system := r.Doc.Raw("system")
	if path, audio := r.readContent(system, 0); audio {
		return form.Audio("system" + path)
	}
	r.addOpening(system)
	return nil
}

// checkMessages adds up the bound of the prompt.
func (r *Request) checkMessages() error {
	const param = "messages"
	raw := r.Doc.Raw(param)
	if raw == nil || raw[0] != '[' {
		return fault.At(fault.InvalidMessages, param, "`messages` must be a non-empty array.")
	}
	count := 0
	for i, message := range rawjson.Elements(raw) {
		count++
		if message[0] != '{' {
			return fault.At(fault.InvalidMessages, fmt.Sprintf("messages[%d]", i), "Each message must be an object.")
		}
		var role, content []byte
		for name, value := range rawjson.Members(message) {
			switch string(name) {
			case "role":
				role = value
			case "content":
				content = rawjson.NonNull(value)
			}
		}
		if path, audio := r.readContent(content, 0); audio {
			return form.Audio(fmt.Sprintf("messages[%d].content%s", i, path))
		}
		r.Key.Add(role)
		r.addOpening(content)
		r.Key.Complete = r.Key.Complete || rawjson.Unquote(role) == "user"
	}
	if count == 0 {
		return fault.At(fault.InvalidMessages, param, "`messages` must not be empty.")
	}
	return nil
}

// addOpening adds a system prompt or a message's content to what the
// conversation opens with. Clients move the mark of the cache from turn to
// turn, so it is left out.
func (r *Request) addOpening(content []byte) {
	switch {
	case r.Key.Complete || content == nil:
	case content[0] != '[':
		r.Key.Add(content)
	default:
		for _, block := range rawjson.Elements(content) {
			for name, value := range rawjson.Members(block) {
				if string(name) != "cache_control" && string(name) != "type" {
					r.Key.Add(value)
				}
			}
		}
	}
}

// checkOptions reports the values that change what the provider charges.
// `standard_only` and `standard` ask for what is charged anyway.
func (r *Request) checkOptions() error {
	r.ServiceTier, r.Options = "", nil
	for _, name := range form.PricedFields() {
		raw := r.Doc.Raw(name)
		if raw == nil {
			continue
		}
		if !rawjson.IsText(raw) {
			return fault.At(fault.InvalidRequest, name, "`{param}` must be a string.")
		}
		value := rawjson.Unquote(raw)
		switch {
		case name == "service_tier" && (value == "auto" || value == "default" || value == "standard_only"):
			continue
		case name == "service_tier":
			r.ServiceTier = value
		case name == "speed" && value == "standard":
			continue
		}
		r.Options = append(r.Options, wire.PricedField{Param: name, Name: value})
	}
	r.ReadModalities()
	r.ReadOptions()
	return nil
}

// checkTools reports the hosted tools that the request asks for.
func (r *Request) checkTools() error {
	r.Tools = nil
	const list = "tools"
	tools := r.Doc.Raw(list)
	if err := form.CheckToolList(tools, list); err != nil {
		return err
	}
	for i, tool := range rawjson.Elements(tools) {
		kind, err := form.ToolType(tool, list, i)
		if err != nil {
			return err
		}
		named := rawjson.Field(tool, "name") != nil || rawjson.Field(tool, "input_schema") != nil
		if kind == "" && named || form.IsClientTool(fields, kind, tool) {
			if err := form.CheckClientTool(fields, tool, list, i); err != nil {
				return err
			}
			continue
		}
		if err := r.HostTool(tool, form.ToolPath(list, i), kind); err != nil {
			return err
		}
	}
	if servers := r.Doc.Raw("mcp_servers"); servers != nil && string(servers) != "[]" {
		r.Host(wire.PricedField{Param: "mcp_servers", Name: "mcp"})
	}
	r.CheckVendorTools()
	return nil
}

// deepestBlock is how deep content may stand in content: a document in the
// result of a tool in a message, and room for more.
const deepestBlock = 16

// readContent adds a content value (a string, blocks, or one block) to the
// bound of the prompt. It returns the path of audio, which no line may get, and
// false if there is none.
func (r *Request) readContent(value []byte, depth int) (path string, audio bool) {
	switch {
	case len(value) == 0 || value[0] == '"':
	case depth > deepestBlock:
		r.Bound.Unbounded = true
		return form.FindAudio(value, 0)
	case value[0] == '[':
		for i, block := range rawjson.Elements(value) {
			if path, audio = r.readBlock(block, depth); audio {
				return fmt.Sprintf("[%d]%s", i, path), audio
			}
		}
	default:
		return r.readBlock(value, depth)
	}
	return "", false
}

// readBlock is readContent for one block. The arguments of tool calls may be
// named as the client likes, so nothing is looked for in them.
func (r *Request) readBlock(block []byte, depth int) (path string, audio bool) {
	if block[0] != '{' {
		return "", false
	}
	kind := ""
	var source, content []byte
	for name, value := range rawjson.Members(block) {
		switch string(name) {
		case "type":
			kind = rawjson.Unquote(value)
		case "source":
			source = rawjson.NonNull(value)
		case "content":
			content = rawjson.NonNull(value)
		}
	}
	switch kind {
	case "text", "thinking", "redacted_thinking", "tool_use", "server_tool_use", "mcp_tool_use", "tool_reference",
		"web_search_result", "search_result":
		return "", false
	case "image":
		path, audio = r.readImage(source)
		return ".source" + path, audio
	case "document":
		path, audio = r.readDocument(source, depth)
		return ".source" + path, audio
	}
	if strings.HasSuffix(kind, "_result") { // of the client's tools and of hosted ones
		path, audio = r.readContent(content, depth+1)
		return ".content" + path, audio
	}
	r.Bound.Unbounded = true // what nobody knows yet
	return form.FindAudio(block, 0)
}

// readImage counts an image. The bytes of an inline one do not count as text.
func (r *Request) readImage(source []byte) (path string, audio bool) {
	if path, audio = form.FindAudio(source, 0); audio {
		return path, audio
	}
	switch rawjson.Unquote(rawjson.Field(source, "type")) {
	case "base64":
		if !strings.HasPrefix(rawjson.Unquote(rawjson.Field(source, "media_type")), "image/") {
			r.Bound.Unbounded = true
			return "", false
		}
		r.Bound.TextBytes -= int64(len(rawjson.Field(source, "data")))
		r.Bound.Images++
	case "url":
		r.Bound.Images++
	default:
		r.Bound.Unbounded = true
	}
	return "", false
}

// readDocument reads where a document comes from: only text and blocks are
// bounded by their bytes.
func (r *Request) readDocument(source []byte, depth int) (path string, audio bool) {
	switch rawjson.Unquote(rawjson.Field(source, "type")) {
	case "text":
	case "content":
		path, audio = r.readContent(rawjson.Field(source, "content"), depth+1)
		return ".content" + path, audio
	default: // PDF and what lies elsewhere
		r.Bound.Unbounded = true
	}
	return form.FindAudio(source, 0)
}
