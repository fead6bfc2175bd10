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

// fields are the known top-level fields of the form.
var fields = field.Form("messages")

// Check checks the fields of a messages request and sets r's parameters. It returns a *fault.Error
// with the path of the field. It checks only the rules of the specification and the gateway's own
// needs; roles, unknown fields, tools and flags are left to the provider. Options and tools in need
// of a price are recorded, not rejected.
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

// CheckCount is like Check for a request to count tokens, which has no limit.
func (r *Request) CheckCount() error {
	r.Limit, r.LimitParam = 0, ""
	return r.check()
}

// check applies the rules of all requests of the form.
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
		r.checkModelCalls,
	} {
		if err := check(); err != nil {
			return err
		}
	}
	r.Conversation = r.Key.Sum
	return nil
}

// checkSystem reads the system prompt, the first text of a conversation.
func (r *Request) checkSystem() error {
	system := r.Doc.Raw("system")
	if path, audio := r.readContent(system, 0); audio {
		return form.AudioError("system" + path)
	}
	r.addToKey(system)
	return nil
}

// checkMessages adds the messages to the bound of the prompt.
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
			return form.AudioError(fmt.Sprintf("messages[%d].content%s", i, path))
		}
		r.Key.Add(role)
		r.addToKey(content)
		r.Key.Complete = r.Key.Complete || rawjson.Unquote(role) == "user"
	}
	if count == 0 {
		return fault.At(fault.InvalidMessages, param, "`messages` must not be empty.")
	}
	return nil
}

// addToKey adds a system prompt or a message's content to the conversation key. Clients move the
// cache mark from request to request, so it is left out.
func (r *Request) addToKey(content []byte) {
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

// checkOptions collects the values with a price of their own.
func (r *Request) checkOptions() error {
	return r.CheckOptionsExcept("service_tier=standard_only", "speed=standard")
}

// checkTools records the hosted tools of the request.
func (r *Request) checkTools() error {
	r.Tools = nil
	err := r.CheckTools(fields, r.Doc.Raw("tools"), "tools", func(_ int, kind string, tool []byte) (string, bool, error) {
		return kind, kind == "" && (rawjson.Field(tool, "name") != nil || rawjson.Field(tool, "input_schema") != nil), nil
	})
	if err != nil {
		return err
	}
	if servers := r.Doc.Raw("mcp_servers"); servers != nil && string(servers) != "[]" {
		r.AddHosted(wire.PricedField{Param: "mcp_servers", Name: "mcp"})
	}
	r.CheckVendorTools()
	return r.CheckChoice(fields)
}

// maxBlockDepth is the nesting limit of content in content: a document in the result of a tool in a
// message, and some more.
const maxBlockDepth = 16

// readContent adds a content value (a string, blocks, or one block) to the bound of the prompt. If it finds
// audio, which no line accepts, it returns the path of the audio.
func (r *Request) readContent(value []byte, depth int) (path string, audio bool) {
	switch {
	case len(value) == 0 || value[0] == '"':
	case depth > maxBlockDepth:
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

// readBlock is readContent for one block. The client chooses the names inside arguments of tool
// calls, so they are not searched.
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
	if strings.HasSuffix(kind, "_result") { // of client tools and hosted tools
		path, audio = r.readContent(content, depth+1)
		return ".content" + path, audio
	}
	r.Bound.Unbounded = true // an unknown block
	return form.FindAudio(block, 0)
}

// readImage counts an image. The bytes of an inline image do not count as text.
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

// readDocument reads the source of a document. Only text and blocks are bounded by their bytes.
func (r *Request) readDocument(source []byte, depth int) (path string, audio bool) {
	switch rawjson.Unquote(rawjson.Field(source, "type")) {
	case "text":
	case "content":
		path, audio = r.readContent(rawjson.Field(source, "content"), depth+1)
		return ".content" + path, audio
	default: // PDF, or stored elsewhere
		r.Bound.Unbounded = true
	}
	return form.FindAudio(source, 0)
}
