package completions

import (
	"bytes"
	"fmt"
	"slices"

	"tollgate/internal/fault"
	"tollgate/internal/wire"
	"tollgate/internal/wire/field"
	"tollgate/internal/wire/internal/form"
	"tollgate/internal/wire/rawjson"
)

// fields are the known top-level fields of the form.
var fields = field.Form("chat")

// Check checks the fields of a chat-completions request and sets r's parameters. It returns a
// *fault.Error with the path of the field. Options and tools in need of a price are recorded, not
// rejected. Fields without a rule are left to the provider.
func (r *Request) Check() error {
	if err := r.CheckNames(fields); err != nil {
		return err
	}
	r.Bound = wire.PromptBound{TextBytes: r.Size()}
	r.Key, r.SoundInput = wire.ConversationKey{}, ""
	if key := r.Doc.Raw("prompt_cache_key"); rawjson.IsText(key) && len(key) > 2 {
		r.Key.SetName(key)
	}
	for _, check := range []func() error{
		r.CheckReferences, r.checkMessages, r.checkLimits, r.checkFlags, r.checkStored, r.CheckModalities,
		r.CheckOptions, r.checkSound, r.checkTools,
	} {
		if err := check(); err != nil {
			return err
		}
	}
	r.Conversation = r.Key.Sum
	return nil
}

// checkLimits reads the token limit and n.
func (r *Request) checkLimits() error {
	r.N = 1
	if err := r.ReadLimit(); err != nil {
		return err
	}
	if raw := r.Doc.Raw("n"); raw != nil {
		n, ok := rawjson.Integer(raw)
		if !ok || n < 1 || n > form.MaxChoices {
			return fault.At(fault.InvalidRequest, "n", "`{param}` must be an integer from 1 to %d.", form.MaxChoices)
		}
		r.N = n
	}
	return nil
}

// checkFlags reads stream and stream_options. The gateway edits the options of a stream, so it
// checks them; without a stream they are left to the provider.
func (r *Request) checkFlags() error {
	if err := r.CheckStream(); err != nil {
		return err
	}
	r.IncludeUsage = false
	options := r.Doc.Raw("stream_options")
	if !r.Stream || options == nil {
		return nil
	}
	if options[0] != '{' {
		return fault.At(fault.InvalidRequest, "stream_options", "`{param}` must be an object.")
	}
	var ok bool
	if r.IncludeUsage, ok = rawjson.Boolean(rawjson.Field(options, "include_usage")); !ok {
		return fault.At(fault.InvalidRequest, "stream_options.include_usage", "`{param}` must be true or false.")
	}
	return nil
}

func (r *Request) checkMessages() error {
	const param = "messages"
	raw := r.Doc.Raw(param)
	if raw == nil || raw[0] != '[' {
		return fault.At(fault.InvalidMessages, param, "`messages` must be a non-empty array.")
	}
	count := 0
	for i, message := range rawjson.Elements(raw) {
		count++
		if err := r.checkMessage(message, i); err != nil {
			return err
		}
	}
	if count == 0 {
		return fault.At(fault.InvalidMessages, param, "`messages` must not be empty.")
	}
	return nil
}

func (r *Request) checkMessage(message []byte, index int) error {
	if message[0] != '{' {
		return fault.At(fault.InvalidMessages, fmt.Sprintf("messages[%d]", index), "Each message must be an object.")
	}
	var role, content, sound, images []byte
	for name, value := range rawjson.Members(message) {
		switch string(name) {
		case "role":
			role = rawjson.NonNull(value)
		case "content":
			content = rawjson.NonNull(value)
		case "audio":
			sound = rawjson.NonNull(value)
		case "images": // from an earlier answer
			images = rawjson.NonNull(value)
		case "tool_calls", "function_call":
		default:
			r.Bound.Unbounded = r.Bound.Unbounded || form.HasFile(name, value, 0)
		}
	}
	switch {
	case role == nil:
		return fault.At(fault.InvalidMessages, fmt.Sprintf("messages[%d].role", index), "Each message needs a `role`.")
	case !rawjson.IsText(role) || !isRole(role):
		return fault.At(fault.InvalidRole, fmt.Sprintf("messages[%d].role", index),
			"`role` must be one of system, developer, user, assistant, tool and function.")
	case sound != nil: // names an earlier answer
		return form.StoredError(fmt.Sprintf("messages[%d].audio", index))
	}
	r.Key.Add(message)
	r.Key.Complete = r.Key.Complete || string(role) == `"user"`
	for k, image := range rawjson.Elements(images) {
		if err := r.checkPart(image, index, k, "images"); err != nil {
			return err
		}
	}
	switch {
	case content == nil || content[0] == '"':
		return nil
	case content[0] != '[':
		return fault.At(fault.InvalidMessages, fmt.Sprintf("messages[%d].content", index),
			"`content` must be a string, an array of parts or null.")
	}
	for k, part := range rawjson.Elements(content) {
		if err := r.checkPart(part, index, k, "content"); err != nil {
			return err
		}
	}
	return nil
}

// isRole reports whether a JSON string is a role.
func isRole(raw []byte) bool {
	role := raw[1 : len(raw)-1]
	if bytes.IndexByte(role, '\\') >= 0 {
		role = []byte(rawjson.Unquote(raw))
	}
	switch string(role) {
	case "system", "developer", "user", "assistant", "tool", "function":
		return true
	}
	return false
}

// checkPart checks one part of a list in a message and adds it to the bound. A part other than text
// and images makes the prompt unbounded.
func (r *Request) checkPart(part []byte, message, index int, list string) error {
	if part[0] != '{' {
		return nil
	}
	at := func(path string) string { return fmt.Sprintf("messages[%d].%s[%d]%s", message, list, index, path) }
	kind := rawjson.Unquote(rawjson.Field(part, "type"))
	switch kind {
	case "input_audio":
		return r.checkSoundPart(part, at)
	case "audio", "audio_url":
		if rawjson.Field(part, kind) != nil {
			return form.AudioError(at("." + kind))
		}
		return form.AudioError(at(".type"))
	}
	if path, found := form.FindAudio(part, 0); found {
		return form.AudioError(at(path))
	}
	switch kind {
	case "text", "refusal", "thinking", "redacted_thinking", "input_text", "output_text":
	case "image_url", "input_image":
		address := rawjson.Field(part, "image_url")
		if address != nil && address[0] == '{' {
			address = rawjson.Field(address, "url")
		}
		r.AddImage(address)
	case "item_reference":
		return form.StoredError(at(".type"))
	default: // files, video, and unknown parts
		r.Bound.Unbounded = true
	}
	return nil
}

// checkSoundPart checks a part with sound: the documented object, with the bytes in base64. An address
// or another member could bring in more than the price covers.
func (r *Request) checkSoundPart(part []byte, at func(path string) string) error {
	sound := rawjson.Field(part, "input_audio")
	data := rawjson.Field(sound, "data")
	switch {
	case len(sound) == 0 || sound[0] != '{':
		return fault.At(fault.InvalidRequest, at(".input_audio"), "`{param}` must be an object with `data` and `format`.")
	case !rawjson.IsText(data) || bytes.ContainsAny(data, ":\\"):
		return fault.At(fault.InvalidRequest, at(".input_audio.data"), "`{param}` must be the sound in base64.")
	}
	for name := range rawjson.Members(part) {
		if !slices.Contains([]string{"type", "input_audio", "cache_control"}, string(name)) {
			return fault.At(fault.InvalidRequest, at("."+string(name)), "`{param}` is not known beside `input_audio`. Leave it out.")
		}
	}
	r.Bound.Unbounded = true
	r.Bound.Sound += form.SoundTokens(int64(len(data)), form.UsualSoundRate)
	if r.SoundInput == "" {
		r.SoundInput = at(".input_audio")
	}
	return nil
}

// checkSound adds the options for sound as input and output. They need prices.
func (r *Request) checkSound() error {
	if raw := r.Doc.Raw("audio"); raw != nil {
		if raw[0] != '{' {
			return fault.At(fault.InvalidRequest, "audio", "`{param}` must be an object with `voice` and `format`.")
		}
		r.Options = append(r.Options, wire.PricedField{Param: "audio", Option: "modalities", Name: "audio"})
	}
	if r.SoundInput != "" {
		r.Options = append(r.Options, wire.PricedField{Param: r.SoundInput, Option: "input_audio", Name: "audio"})
	}
	return nil
}

// checkStored rejects references to objects stored at the provider. All users share the provider's
// account, so the object may belong to another user.
func (r *Request) checkStored() error {
	if err := r.CheckStored(); err != nil {
		return err
	}
	if rawjson.Field(r.Doc.Raw("prompt"), "id") != nil {
		return form.StoredError("prompt.id")
	}
	return nil
}
