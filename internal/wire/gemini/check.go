package gemini

import (
	"fmt"
	"slices"
	"strings"

	"tollgate/internal/fault"
	"tollgate/internal/wire"
	"tollgate/internal/wire/internal/form"
	"tollgate/internal/wire/rawjson"
)

// Check checks the fields of a generateContent request and sets r's parameters. It returns a
// *fault.Error with Google's path of the field. Options and tools in need of a price are recorded, not
// rejected.
func (r *Request) Check() error {
	r.ServiceTier, r.Options = "", nil
	r.Bound = wire.PromptBound{TextBytes: r.Size(), Unbounded: r.Doc.Raw("continuationToken") != nil}
	r.Key = wire.ConversationKey{}
	for _, check := range []func() error{
		r.checkFields, r.CheckReferences, r.checkSystem, r.checkContents, r.checkConfig, r.checkTier, r.checkModalities, r.checkTools,
		r.checkChoice,
	} {
		if err := check(); err != nil {
			return err
		}
	}
	r.Conversation = r.Key.Sum
	return nil
}

// checkFields checks the names at the top level, and rejects a request to store the answer at the provider.
func (r *Request) checkFields() error {
	for i := range r.Doc.Members {
		if name := string(r.Doc.Members[i].Name); !slices.Contains(fields, name) && r.Doc.Raw(name) != nil {
			return fault.At(fault.InvalidRequest, name, "`{param}` is not a field of this request that is offered here. Leave it out.")
		}
	}
	if store := r.Doc.Raw("store"); store != nil && string(store) != "false" {
		return fault.At(fault.InvalidRequest, "store",
			"`{param}` is not offered: the answer would be stored at the provider. Leave it out.")
	}
	return nil
}

// checkMembers rejects members of an object other than known ones. kind is Google's name of the object.
func checkMembers(object []byte, at, kind string, known []string) error {
	if object[0] != '{' {
		return fault.At(fault.InvalidRequest, at, "`{param}` must be an object.")
	}
	for name, value := range rawjson.Members(object) {
		if rawjson.NonNull(value) != nil && !slices.Contains(known, string(name)) {
			return fault.At(fault.InvalidRequest, at+"."+form.Shorten(name),
				"`{param}` is not a member of %s that is offered here. Leave it out.", kind)
		}
	}
	return nil
}

// checkSystem reads the system instruction, the first text of a conversation.
func (r *Request) checkSystem() error {
	system := r.Doc.Raw("systemInstruction")
	if system == nil {
		return nil
	}
	r.Key.Add(system)
	return r.checkContent(system, "systemInstruction")
}

// checkContents adds the contents to the bound of the prompt.
func (r *Request) checkContents() error {
	const param = "contents"
	raw := r.Doc.Raw(param)
	if raw == nil || raw[0] != '[' && raw[0] != '{' {
		return fault.At(fault.InvalidMessages, param, "`contents` must be a non-empty array of contents.")
	}
	count := 0
	for i, content := range list(raw) {
		count++
		at := fmt.Sprintf("contents[%d]", i)
		if content[0] != '{' {
			return fault.At(fault.InvalidMessages, at, "Each content must be an object with `role` and `parts`.")
		}
		role := rawjson.Unquote(rawjson.Field(content, "role"))
		switch role {
		case "", "user", "model", "function", "tool":
		default:
			return fault.At(fault.InvalidRole, at+".role", "`role` must be user or model.")
		}
		if err := r.checkContent(content, at); err != nil {
			return err
		}
		r.Key.Add(content)
		r.Key.Complete = r.Key.Complete || role != "model"
	}
	if count == 0 {
		return fault.At(fault.InvalidMessages, param, "`contents` must not be empty.")
	}
	return nil
}

func (r *Request) checkContent(content []byte, at string) error {
	if err := checkMembers(content, at, "a content", contentMembers); err != nil {
		return err
	}
	for k, part := range list(rawjson.Field(content, "parts")) {
		if err := r.checkPart(part, fmt.Sprintf("%s.parts[%d]", at, k)); err != nil {
			return err
		}
	}
	return nil
}

// checkPart checks one part and adds it to the bound. A part other than text and images makes the prompt
// unbounded.
func (r *Request) checkPart(part []byte, at string) error {
	if err := checkMembers(part, at, "a part", partMembers); err != nil {
		return err
	}
	for name, value := range rawjson.Members(part) {
		if rawjson.NonNull(value) == nil {
			continue
		}
		at := at + "." + string(name)
		var err error
		switch string(name) {
		case "text", "thoughtSignature":
			if !rawjson.IsText(value) {
				err = fault.At(fault.InvalidMessages, at, "`{param}` must be a string.")
			}
		case "inlineData":
			err = r.checkData(value, at, inlineMembers)
		case "fileData":
			err = r.checkData(value, at, fileMembers)
		case "functionCall":
			err = checkCall(value, at)
		case "functionResponse":
			err = r.checkResult(value, at)
		case "mediaResolution", "videoMetadata":
			r.Bound.Unbounded = true
		}
		if err != nil {
			return err
		}
	}
	return nil
}

// checkData counts an image or a file. The bytes of an inline image do not count as text.
func (r *Request) checkData(data []byte, at string, members []string) error {
	if err := checkMembers(data, at, "this part", members); err != nil {
		return err
	}
	if path, audio := form.FindAudio(data, 0); audio {
		return form.AudioError(at + path)
	}
	if uri := rawjson.Unquote(rawjson.Field(data, "fileUri")); isStoredFile(uri) {
		return form.StoredError(at + ".fileUri")
	}
	if !strings.HasPrefix(strings.ToLower(rawjson.Unquote(rawjson.Field(data, "mimeType"))), "image/") {
		r.Bound.Unbounded = true
		return nil
	}
	r.Bound.TextBytes -= int64(len(rawjson.Field(data, "data")))
	r.Bound.Images++
	return nil
}

// isStoredFile reports whether an address is the address of a file stored at Google.
func isStoredFile(uri string) bool {
	rest, found := strings.CutPrefix(strings.ToLower(uri), "https://")
	host, _, _ := strings.Cut(rest, "/")
	return found && strings.HasSuffix("."+host, ".generativelanguage.googleapis.com")
}

func checkCall(call []byte, at string) error {
	if err := checkMembers(call, at, "a function call", callMembers); err != nil {
		return err
	}
	if name := rawjson.Field(call, "name"); !rawjson.IsText(name) || len(name) == 2 {
		return fault.At(fault.InvalidMessages, at+".name", "`{param}` must be a string: the name of the function.")
	}
	return checkObject(rawjson.Field(call, "args"), at+".args")
}

// checkObject checks a value that may be missing.
func checkObject(value []byte, at string) error {
	if value != nil && value[0] != '{' {
		return fault.At(fault.InvalidMessages, at, "`{param}` must be an object.")
	}
	return nil
}

func (r *Request) checkResult(result []byte, at string) error {
	if err := checkMembers(result, at, "a function response", resultMembers); err != nil {
		return err
	}
	if err := checkObject(rawjson.Field(result, "response"), at+".response"); err != nil {
		return err
	}
	for k, part := range list(rawjson.Field(result, "parts")) {
		if err := r.checkPart(part, fmt.Sprintf("%s.parts[%d]", at, k)); err != nil {
			return err
		}
	}
	return nil
}

// checkConfig reads generationConfig.
func (r *Request) checkConfig() error {
	const param = "generationConfig"
	r.N, r.Limit, r.LimitParam = 1, 0, ""
	config := r.Doc.Raw(param)
	if config == nil {
		return nil
	}
	if rawjson.Field(config, "speechConfig") != nil {
		return form.AudioError(param + ".speechConfig")
	}
	if err := checkMembers(config, param, param, configMembers); err != nil {
		return err
	}
	if raw := r.config("maxOutputTokens"); raw != nil {
		limit, ok := rawjson.Integer(raw)
		if !ok || limit < 1 {
			return fault.At(fault.InvalidMaxTokens, param+".maxOutputTokens", "`{param}` must be a positive integer.")
		}
		r.Limit, r.LimitParam = limit, param+".maxOutputTokens"
	}
	if raw := r.config("candidateCount"); raw != nil {
		n, ok := rawjson.Integer(raw)
		if !ok || n < 1 || n > form.MaxChoices {
			return fault.At(fault.InvalidRequest, param+".candidateCount", "`{param}` must be an integer from 1 to %d.", form.MaxChoices)
		}
		r.N = n
	}
	if thinking := r.config("thinkingConfig"); thinking != nil {
		if err := checkMembers(thinking, param+".thinkingConfig", "a thinking config", thinkingMembers); err != nil {
			return err
		}
	}
	r.Bound.Unbounded = r.Bound.Unbounded || r.config("mediaResolution") != nil // images may count more tokens
	return nil
}

// checkTier records a service tier other than the ordinary one.
func (r *Request) checkTier() error {
	const param = "serviceTier"
	raw := r.Doc.Raw(param)
	if raw == nil {
		return nil
	}
	if !rawjson.IsText(raw) {
		return fault.At(fault.InvalidRequest, param, "`{param}` must be a string.")
	}
	switch tier := strings.ToLower(rawjson.Unquote(raw)); tier {
	case "", "unspecified", "standard":
	default:
		r.ServiceTier = tier
		r.Options = append(r.Options, wire.PricedField{Param: param, Option: "service_tier", Name: tier})
	}
	return nil
}

// checkModalities records an option for each kind of output except text. Audio has no price.
func (r *Request) checkModalities() error {
	const param = "generationConfig.responseModalities"
	raw := r.config("responseModalities")
	if raw != nil && raw[0] != '[' {
		return fault.At(fault.InvalidRequest, param, "`{param}` must be an array of strings.")
	}
	for i, modality := range rawjson.Elements(raw) {
		name := strings.ToLower(strings.TrimSpace(rawjson.Unquote(modality)))
		if name == "audio" {
			return form.AudioError(fmt.Sprintf("%s[%d]", param, i))
		}
		same := func(o wire.PricedField) bool { return o.Option == "modalities" && o.Name == name }
		if name != "text" && !slices.ContainsFunc(r.Options, same) {
			r.Options = append(r.Options, wire.PricedField{Param: param, Option: "modalities", Name: name})
		}
	}
	return nil
}

// checkTools checks the functions and records the hosted tools: every other member of a tool.
func (r *Request) checkTools() error {
	r.Tools = nil
	tools := r.Doc.Raw("tools")
	if tools != nil && tools[0] != '[' && tools[0] != '{' {
		return fault.At(fault.InvalidRequest, "tools", "`tools` must be an array of tools.")
	}
	for i, tool := range list(tools) {
		at := fmt.Sprintf("tools[%d]", i)
		if tool[0] != '{' {
			return fault.At(fault.InvalidRequest, at, "`{param}` must be an object, such as one with `functionDeclarations`.")
		}
		for name, value := range rawjson.Members(tool) {
			if rawjson.NonNull(value) == nil {
				continue
			}
			at := at + "." + form.Shorten(name)
			if string(name) != "functionDeclarations" {
				if path := form.FindStored(value, 0); path != "" {
					return form.StoredError(at + path)
				}
				r.AddHosted(wire.PricedField{Param: at, Name: form.HostedTool(snakeCase(string(name))), Options: form.ToolOptions(value,
					at)})
				continue
			}
			for k, function := range list(value) {
				if err := checkMembers(function, fmt.Sprintf("%s[%d]", at, k), "a function declaration", functionMembers); err != nil {
					return err
				}
			}
		}
	}
	return nil
}

// checkChoice checks the names in toolConfig.
func (r *Request) checkChoice() error {
	const param = "toolConfig"
	config := r.Doc.Raw(param)
	if config == nil {
		return nil
	}
	if err := checkMembers(config, param, "a tool config", choiceMembers); err != nil {
		return err
	}
	calling := rawjson.Field(config, "functionCallingConfig")
	if calling == nil {
		return nil
	}
	return checkMembers(calling, param+".functionCallingConfig", "a function calling config", callingMembers)
}
