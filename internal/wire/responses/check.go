package responses

import (
	"fmt"
	"slices"
	"strings"

	"tollgate/internal/fault"
	"tollgate/internal/wire"
	"tollgate/internal/wire/field"
	"tollgate/internal/wire/internal/form"
	"tollgate/internal/wire/rawjson"
)

// outputLimit is the form's field for the limit on output tokens.
const outputLimit = "max_output_tokens"

// fields are the known top-level fields of the form.
var fields = field.Form("responses")

// Check checks the fields of a responses request and sets r's parameters. It returns a *fault.Error
// with the path of the field. Options and tools in need of a price are recorded, not rejected.
// Unknown fields, items and parts are left to the provider.
func (r *Request) Check() error {
	if err := r.CheckNames(fields); err != nil {
		return err
	}
	r.N = 1
	r.Bound = wire.PromptBound{TextBytes: r.Size()}
	r.Tools, r.ModelCalls = nil, nil
	r.Key = wire.ConversationKey{}
	if key := r.Doc.Raw("prompt_cache_key"); rawjson.IsText(key) && len(key) > 2 {
		r.Key.SetName(key)
	}
	for _, check := range []func() error{
		r.CheckReferences, r.checkInput, r.ReadLimit, r.CheckStream, r.checkStored, r.checkAudio,
		r.CheckOptions, r.checkModelCalls,
		func() error { return r.checkTools(r.Doc.Raw("tools"), "tools", 0) },
	} {
		if err := check(); err != nil {
			return err
		}
	}
	r.CheckVendorTools()
	r.LimitCalls()
	r.Conversation = r.Key.Sum
	return r.CheckChoice(fields)
}

// checkStored rejects references to objects stored at the provider, and requests to store there.
// All users share the provider's account, so an object may belong to another user.
func (r *Request) checkStored() error {
	if err := r.CheckStored(); err != nil {
		return err
	}
	switch prompt := r.Doc.Raw("prompt"); {
	case rawjson.IsText(prompt):
		return form.StoredError("prompt")
	case rawjson.Field(prompt, "id") != nil:
		return form.StoredError("prompt.id")
	}
	return nil
}

// checkAudio rejects audio output, which has no price.
func (r *Request) checkAudio() error {
	for i, modality := range rawjson.Elements(r.Doc.Raw("modalities")) {
		if strings.EqualFold(strings.TrimSpace(rawjson.Unquote(modality)), "audio") {
			return form.AudioError(element("modalities", i))
		}
	}
	return r.Request.CheckAudio()
}

// checkInput checks the input and adds it to the prompt's bound.
func (r *Request) checkInput() error {
	const param = "input"
	r.Key.Add(r.Doc.Raw("instructions"))
	input := r.Doc.Raw(param)
	switch {
	case input == nil:
		return fault.At(fault.InvalidRequest, param, "`input` is required: a string, or an array of items.")
	case input[0] == '"':
		r.Key.Add(input)
		return nil
	case input[0] != '[':
		return inputError()
	}
	for i, item := range rawjson.Elements(input) {
		if item[0] != '{' {
			return fault.At(fault.InvalidRequest, element(param, i), "Each item of `input` must be an object.")
		}
		if err := r.checkItem(item, element(param, i)); err != nil {
			return err
		}
	}
	return nil
}

// element returns the path of an array's element.
func element(path string, index int) string { return fmt.Sprintf("%s[%d]", path, index) }

// inputItem holds members of an item. Absent members are nil.
type inputItem struct {
	kind, role, content, output, id []byte
}

// readItem reads an item without repeated keys.
func readItem(item []byte) (i inputItem) {
	for name, value := range rawjson.Members(item) {
		switch string(name) {
		case "type":
			i.kind = rawjson.NonNull(value)
		case "role":
			i.role = rawjson.NonNull(value)
		case "content":
			i.content = rawjson.NonNull(value)
		case "output":
			i.output = rawjson.NonNull(value)
		case "id":
			i.id = rawjson.NonNull(value)
		}
	}
	return i
}

func (r *Request) checkItem(item []byte, path string) error {
	read := readItem(item)
	if read.kind != nil && !rawjson.IsText(read.kind) {
		return fault.At(fault.InvalidRequest, path+".type", "The `type` of an item must be a string.")
	}
	r.Key.Add(item)
	if read.id != nil && lacksContent(item, rawjson.Unquote(read.kind)) {
		return notStoredError(path + ".id")
	}
	switch kind := rawjson.Unquote(read.kind); kind {
	case "item_reference":
		return notStoredError(path + ".type")
	case "", "message":
		switch {
		case read.role == nil && kind == "" && read.id != nil: // a reference may omit its type
			return notStoredError(path + ".id")
		case !rawjson.IsText(read.role):
			return fault.At(fault.InvalidRequest, path+".role", "A message of `input` needs a `role`: user, assistant, system or developer.")
		}
		r.Key.Complete = r.Key.Complete || rawjson.Unquote(read.role) == "user"
		return r.checkContent(read.content, path+".content")
	case "function_call_output", "custom_tool_call_output":
		return r.checkContent(read.output, path+".output")
	case "function_call", "custom_tool_call", "reasoning":
		return nil // text chosen by the client
	case "computer_call_output":
		if inner, found := form.FindAudio(read.output, 0); found {
			return form.AudioError(path + ".output" + inner)
		}
		r.AddImage(rawjson.Field(read.output, "image_url"))
	case "image_generation_call":
		if image := rawjson.Field(item, "result"); image != nil {
			r.Bound.TextBytes -= int64(len(image))
			r.Bound.Images++
		}
	case "compaction_trigger":
		r.ModelCalls = append(r.ModelCalls, wire.ModelCall{Param: path + ".type", Calls: 1})
	case "additional_tools", "tool_search_output":
		if err := r.checkTools(rawjson.Field(item, "tools"), path+".tools", 0); err != nil {
			return err
		}
	case "local_shell_call", "local_shell_call_output", "shell_call", "shell_call_output",
		"apply_patch_call", "apply_patch_call_output", "computer_call", "tool_search_call",
		"web_search_call", "mcp_list_tools", "mcp_call", "mcp_approval_request", "mcp_approval_response":
	default: // unknown items, and items that stand for more content than they hold
		if inner, found := form.FindAudio(item, 0); found {
			return form.AudioError(path + inner)
		}
		r.Bound.Unbounded = true
	}
	return nil
}

// itemContent names the members of items with their content, by type.
var itemContent = map[string][]string{
	"image_generation_call": {"result"}, "web_search_call": {"action"}, "file_search_call": {"queries", "results"},
	"code_interpreter_call": {"code"}, "computer_call": {"action", "actions"}, "local_shell_call": {"action"}, "shell_call": {"action"},
	"apply_patch_call": {"operation"}, "tool_search_call": {"arguments"}, "mcp_call": {"name"}, "mcp_approval_request": {"name"},
	"mcp_list_tools": {"tools"}, "tool_search_output": {"tools"}, "additional_tools": {"tools"}, "compaction": {"encrypted_content"},
	"computer_call_output": {"output"}, "shell_call_output": {"output"}, "local_shell_call_output": {"output"}, "program": {"code"},
	"program_output": {"result"},
}

// lacksContent reports whether an item with an id is only a reference to an item stored at the
// provider. Messages, function calls and reasoning are sent without their ids, and references are
// rejected by their type.
func lacksContent(item []byte, kind string) bool {
	switch kind {
	case "", "message", "reasoning", "function_call", "function_call_output", "custom_tool_call", "custom_tool_call_output", "item_reference":
		return false
	}
	contents, known := itemContent[kind]
	for name, value := range rawjson.Members(item) {
		isContent := slices.Contains(contents, string(name))
		if !known {
			isContent = string(name) != "type" && string(name) != "id" && string(name) != "status"
		}
		if isContent && rawjson.NonNull(value) != nil && string(value) != `""` {
			return false
		}
	}
	return true
}

// notStoredError rejects a reference to an item of an earlier answer. Some clients send it by
// default because they expect answers to be stored.
func notStoredError(param string) error {
	return fault.At(fault.InvalidRequest, param, "`{param}` refers to a single item of an earlier answer, which is not possible here. "+
		"Send the item itself (clients do once their `store` is false), or `previous_response_id`.")
}

// checkContent checks the content of a message, or the output of a tool: a string, or parts.
func (r *Request) checkContent(content []byte, path string) error {
	switch {
	case content == nil || content[0] == '"':
		return nil
	case content[0] != '[':
		return fault.At(fault.InvalidRequest, path, "`%s` must be a string or an array of parts.", path[strings.LastIndexByte(path, '.')+1:])
	}
	for i, part := range rawjson.Elements(content) {
		if part[0] != '{' {
			return fault.At(fault.InvalidRequest, element(path, i), "Each part must be an object.")
		}
		if err := r.checkPart(part, element(path, i)); err != nil {
			return err
		}
	}
	return nil
}

// checkPart checks one part and adds it to the bound. A part other than text and images makes the
// prompt unbounded.
func (r *Request) checkPart(part []byte, path string) error {
	kind := rawjson.Unquote(rawjson.Field(part, "type"))
	switch kind {
	case "input_text", "output_text", "text", "refusal", "summary_text", "reasoning_text":
		return nil // with or without citations of an earlier answer
	case "input_audio", "audio", "audio_url":
		return form.AudioError(path + ".type")
	}
	if inner, found := form.FindAudio(part, 0); found {
		return form.AudioError(path + inner)
	}
	switch kind {
	case "input_image", "image_url", "computer_screenshot":
		address := rawjson.Field(part, "image_url")
		if address != nil && address[0] == '{' {
			address = rawjson.Field(address, "url")
		}
		r.AddImage(address)
	case "item_reference":
		return notStoredError(path + ".type")
	default: // files, video, and unknown parts
		r.Bound.Unbounded = true
	}
	return nil
}

// checkModelCalls records the passes over the prompt made by the provider to compact the conversation. Each
// entry of context_management may cause one pass.
func (r *Request) checkModelCalls() error {
	const param = "context_management"
	entries := r.Doc.Raw(param)
	if entries != nil && entries[0] != '[' {
		return fault.At(fault.InvalidRequest, param, "`{param}` must be an array of objects with a `type`.")
	}
	for i := range rawjson.Elements(entries) {
		r.ModelCalls = append(r.ModelCalls, wire.ModelCall{Param: element(param, i), Calls: 1})
	}
	return nil
}

// maxToolDepth is the nesting limit of tools inside a tool (a namespace).
const maxToolDepth = 4

// checkTools records the hosted tools among tools.
func (r *Request) checkTools(tools []byte, path string, depth int) error {
	return r.CheckTools(fields, tools, path, func(i int, kind string, tool []byte) (string, bool, error) {
		inner := rawjson.Field(tool, "tools")
		switch {
		case inner == nil:
			return kind, false, nil
		case depth >= maxToolDepth:
			return "", false, fault.At(fault.InvalidRequest, element(path, i)+".tools", "Tools are nested too deep.")
		}
		return kind, false, r.checkTools(inner, element(path, i)+".tools", depth+1)
	})
}

// hostedCall returns the catalog's name of the hosted tool called by an item of an answer. It
// returns "" for other items, and for free steps of a tool.
func hostedCall(item []byte) string {
	kind, ok := strings.CutSuffix(rawjson.Unquote(rawjson.Field(item, "type")), "_call")
	if !ok {
		return ""
	}
	if kind == "function" || kind == "custom_tool" {
		return ""
	}
	name := form.HostedTool(kind)
	if name == "web_search" {
		if action := rawjson.Unquote(rawjson.Field(rawjson.Field(item, "action"), "type")); action != "" && action != "search" {
			return "" // opening a page found by the search
		}
	}
	return name
}
