package gemini

import (
	"bytes"
	"cmp"
	"slices"
	"strconv"

	"tollgate/internal/wire"
	"tollgate/internal/wire/conversation"
	"tollgate/internal/wire/internal/schema"
	"tollgate/internal/wire/rawjson"
)

const (
	// SignatureBypass replaces a required signature not returned by the client. The value is
	// documented for histories from elsewhere.
	SignatureBypass = "skip_thought_signature_validator"
	// emptyTurn replaces a missing first turn of the user, because the form requires one.
	emptyTurn = `,{"text":"."}`
	// MaxStops is Google's limit on stop sequences.
	MaxStops = 5
)

type encoder struct {
	*conversation.Request
	target        wire.Translation
	id            wire.Identity
	beforeGemini3 bool // the model accepts calls without a signature, and fetches nothing

	ids     conversation.CallIDs
	images  map[string]wire.FetchedImage // fetched images by address
	missing []string                     // distinct addresses of images not fetched yet

	system   []byte // all system texts, as the contents of a JSON string
	turns    []byte // the contents of the array
	lastRole string // of the last turn
}

// Encode returns the body of a request for a line's generateContent; the model is in the URL, not in
// the body. Fields that only adjust an answer (`logit_bias`, `verbosity`, `user`) are left out.
func Encode(c *conversation.Request, t wire.Translation, id wire.Identity) ([]byte, error) {
	ids := conversation.CallIDs{Clean: func(id string, _ int) string { return id }}
	e := &encoder{Request: c, target: t, id: id, beforeGemini3: generationOf(t.Model).isBefore3(), ids: ids}
	if err := e.checkSupported(); err != nil {
		return nil, err
	}
	turns, err := c.Repair()
	if err != nil {
		return nil, err
	}
	if err := e.addTurns(turns); err != nil {
		return nil, err
	}
	tools, choice := e.tools()
	config, err := e.generationConfig()
	if err != nil {
		return nil, err
	}
	if len(e.missing) > 0 { // the request is valid: all images are fetched at once
		images := make(map[string]wire.FetchedImage, len(e.missing))
		for i, image := range t.Images(e.missing) {
			images[e.missing[i]] = image
		}
		*e = encoder{Request: c, target: t, id: id, beforeGemini3: e.beforeGemini3, ids: ids, images: images}
		if err := e.addTurns(turns); err != nil {
			return nil, err
		}
	}
	var body conversation.ObjectWriter
	if e.system != nil {
		body.Add("systemInstruction", `{"parts":[{"text":"`, string(e.system), `"}]}`)
	}
	body.Add("contents", "[", string(e.turns), "]")
	if tools != nil {
		body.Add("tools", `[{"functionDeclarations":`, string(conversation.List(tools)), "}]")
		if choice != nil {
			body.Add("toolConfig", `{"functionCallingConfig":`, string(choice), "}")
		}
	}
	if len(config) > 0 {
		body.Add("generationConfig", string(config.Object()))
	}
	if e.ServiceTier != "" {
		body.Add("serviceTier", string(rawjson.Quote(e.ServiceTier)))
	}
	return body.Object(), nil
}

// checkSupported rejects values with an effect on the answer or its price and without a
// counterpart.
func (e *encoder) checkSupported() error {
	if err := e.CheckPriced("modalities", "service_tier"); err != nil {
		return err
	}
	for _, o := range e.Options {
		if o.Param == "service_tier" && o.Name != "flex" && o.Name != "priority" {
			return conversation.Unsupported(o.Param, "`{param}` must be auto, default, flex or priority for this model.")
		}
	}
	return nil
}

// addTurns adds a repaired history. Successive messages of the assistant become one turn.
func (e *encoder) addTurns(turns []conversation.Turn) error {
	for i := range turns {
		var err error
		switch t := &turns[i]; t.Role {
		case conversation.System:
			for k := range t.Parts {
				if e.system != nil {
					e.system = append(e.system, `\n\n`...)
				}
				e.system = append(e.system, t.Parts[k].Text...)
			}
		case conversation.Results:
			var calls []*conversation.CallPart
			if i > 0 {
				calls = callsOf(&turns[i-1])
			}
			err = e.addResults(calls, t)
		case conversation.Assistant:
			var parts []byte
			if parts, err = e.parts(t); err == nil {
				e.addTurn("model", parts)
			}
		default:
			var parts []byte
			if parts, err = e.parts(t); err == nil {
				e.addTurn("user", parts)
			}
		}
		if err != nil {
			return err
		}
	}
	if e.lastRole == "" {
		e.addTurn("user", []byte(emptyTurn))
	}
	return nil
}

// callsOf returns the calls of a turn.
func callsOf(t *conversation.Turn) (calls []*conversation.CallPart) {
	for i := range t.Parts {
		if call := t.Parts[i].Call; call != nil {
			calls = append(calls, call)
		}
	}
	return calls
}

// addTurn adds a turn of parts, each after a comma. An empty turn, rejected by the form, is left
// out.
func (e *encoder) addTurn(role string, parts []byte) {
	const end = "]}"
	switch {
	case len(parts) == 0:
		return
	case role == "model" && e.lastRole == role:
		e.turns = append(append(e.turns[:len(e.turns)-len(end)], parts...), end...)
		return
	case role == "model" && e.lastRole == "":
		e.addTurn("user", []byte(emptyTurn))
	}
	if e.lastRole != "" {
		e.turns = append(e.turns, ',')
	}
	e.turns = rawjson.Put(e.turns, `{"role":"`, role, `","parts":[`)
	e.turns = append(append(e.turns, parts[1:]...), end...)
	e.lastRole = role
}

// parts returns the parts of a turn, each after a comma.
func (e *encoder) parts(t *conversation.Turn) (dst []byte, err error) {
	first := true // the first call of a turn must have a signature
	for i := range t.Parts {
		p := &t.Parts[i]
		switch p.Kind {
		case conversation.Text, conversation.Refusal:
			dst = rawjson.Put(dst, `,{"text":"`, p.Text, `"}`)
		case conversation.Image, conversation.File:
			part, err := e.media(p)
			if err != nil {
				return nil, err
			}
			dst = rawjson.Put(dst, ",", part[:len(part)-1], "")
			if p.Media.Generated {
				dst = e.appendSignature(dst, p, true)
			}
			dst = append(dst, '}')
		case conversation.ToolCall:
			dst = append(e.appendSignature(e.appendCall(dst, p.Call), p, first), '}')
			first = false
		}
	}
	return dst, nil
}

// appendCall appends the start of a part with a call.
func (e *encoder) appendCall(dst []byte, c *conversation.CallPart) []byte {
	var call conversation.ObjectWriter
	if c.ID != "" {
		call.Add("id", string(rawjson.Quote(e.ids.Of(c))))
	}
	call.Add("name", string(rawjson.Quote(e.NameOnLine(c.Name, c.Namespace))))
	arguments := c.Arguments
	if c.Custom {
		arguments = c.FunctionText()
	}
	call.Add("args", string(conversation.AppendObject(nil, arguments)))
	return rawjson.Put(dst, `,{"functionCall":`, call.Object(), "")
}

// appendSignature appends the signature of a call or an image. If it is missing and required, it appends
// SignatureBypass.
func (e *encoder) appendSignature(dst []byte, p *conversation.Part, required bool) []byte {
	signature := p.Signature.Open(e.id, wire.FormGemini)
	if signature == nil || e.target.NoSealed {
		if !required || e.beforeGemini3 {
			return dst
		}
		signature = []byte(SignatureBypass)
	}
	return rawjson.Put(dst, `,"thoughtSignature":"`, signature, `"`)
}

// addResults adds the results of calls in the order of the calls. Images and files of the results follow in a
// turn of the user.
func (e *encoder) addResults(calls []*conversation.CallPart, t *conversation.Turn) error {
	var parts []byte
	var attachments conversation.Turn
	for _, call := range calls {
		k := slices.IndexFunc(t.Parts, func(p conversation.Part) bool { return p.Call == call })
		if k < 0 {
			continue
		}
		text, others := t.Parts[k].ResultText()
		if t.Parts[k].Result.Error {
			text = append([]byte("Error: "), text...)
		}
		if others != nil {
			label := rawjson.Put(nil, "From the result of the tool call ", rawjson.Contents(rawjson.Quote(call.ID)), ":")
			attachments.Parts = append(append(attachments.Parts, conversation.Part{Text: label}), others...)
		}
		var result conversation.ObjectWriter
		if call.ID != "" {
			result.Add("id", string(rawjson.Quote(e.ids.Of(call))))
		}
		result.Add("name", string(rawjson.Quote(e.NameOnLine(call.Name, call.Namespace))))
		quoted := conversation.Quoted(text)
		if inner := bytes.TrimSpace([]byte(rawjson.Unquote(quoted))); len(inner) > 0 && inner[0] == '{' && rawjson.IsValid(inner) {
			result.Add("response", string(inner))
		} else {
			result.Add("response", `{"result":`, string(quoted), "}")
		}
		parts = rawjson.Put(parts, `,{"functionResponse":`, result.Object(), "}")
	}
	e.addTurn("user", parts)
	more, err := e.parts(&attachments)
	if err == nil {
		e.addTurn("user", more)
	}
	return err
}

// tools returns the functionDeclarations, each after a comma, and the functionCallingConfig, either
// of them nil if absent. If no call is required, tools that are not allowed are not declared.
func (e *encoder) tools() (tools, config []byte) {
	c := &e.Choice
	offered := e.Tools
	if c.Mode != conversation.ChoiceAny {
		offered = e.Offered()
	}
	for _, tool := range offered {
		tool = tool.AsFunction()
		var out conversation.ObjectWriter
		out.Add("name", string(rawjson.Quote(tool.Line)))
		if len(tool.Description) > 2 {
			out.Add("description", string(tool.Description))
		}
		if s := tool.Schema; len(s) > 0 && s[0] == '{' && !isEmptyObject(s) {
			out.Add("parametersJsonSchema", string(s))
		}
		tools = rawjson.Put(tools, ",", out.Object(), "")
	}
	var only []byte
	for _, name := range c.Allowed {
		only = append(append(only, ','), rawjson.Quote(e.NameOnLine(name.Name, name.Namespace))...)
	}
	mode := ""
	switch c.Mode {
	case conversation.ChoiceNone:
		mode = "NONE"
	case conversation.ChoiceAuto:
		mode, only = "AUTO", nil
	case conversation.ChoiceAny:
		mode = "ANY"
	case conversation.ChoiceOfTool:
		mode, only = "ANY", append([]byte{','}, rawjson.Quote(e.NameOnLine(c.Tool.Name, c.Tool.Namespace))...)
	default:
		return tools, nil
	}
	var out conversation.ObjectWriter
	out.Add("mode", `"`+mode+`"`)
	if mode == "ANY" && only != nil {
		out.Add("allowedFunctionNames", string(conversation.List(only)))
	}
	return tools, out.Object()
}

func isEmptyObject(object []byte) bool {
	for range rawjson.Members(object) {
		return false
	}
	return true
}

// generationConfig returns the members of the generationConfig.
func (e *encoder) generationConfig() (config conversation.ObjectWriter, err error) {
	if limit := cmp.Or(e.Limit, e.target.Limit); limit > 0 {
		config.Add("maxOutputTokens", strconv.FormatInt(limit, 10))
	}
	for _, same := range [...]struct {
		name  string
		value []byte
	}{
		{"temperature", e.Temperature}, {"topP", e.TopP}, {"topK", e.TopK}, {"presencePenalty", e.PresencePenalty},
		{"frequencyPenalty", e.FrequencyPenalty}, {"responseLogprobs", e.Logprobs}, {"logprobs", e.TopLogprobs},
	} {
		if same.value != nil {
			config.Add(same.name, string(same.value))
		}
	}
	if e.Seed != nil {
		config.Add("seed", FoldSeed(e.Seed))
	}
	if e.N > 1 {
		config.Add("candidateCount", strconv.FormatInt(e.N, 10))
	}
	for _, step := range []func(*conversation.ObjectWriter) error{e.addStops, e.addFormat, e.addModalities} {
		if err := step(&config); err != nil {
			return nil, err
		}
	}
	thinking, err := e.thinkingConfig()
	if len(thinking) > 0 {
		config.Add("thinkingConfig", string(thinking.Object()))
	}
	return config, err
}

// FoldSeed folds a seed into Google's 32 bits. Equal seeds stay equal.
func FoldSeed(raw []byte) string {
	n, ok := rawjson.Integer(raw)
	if !ok || n == int64(int32(n)) {
		return string(raw)
	}
	return strconv.FormatInt(n&0x7fffffff, 10)
}

func (e *encoder) addStops(config *conversation.ObjectWriter) error {
	stops, err := e.TakeStops(MaxStops, nil)
	if stops != nil {
		config.Add("stopSequences", string(stops))
	}
	return err
}

// addFormat adds the format of the answer. Keywords of a schema ignored by the form are moved to
// its descriptions.
func (e *encoder) addFormat(config *conversation.ObjectWriter) error {
	if e.Format.Kind == conversation.Plain {
		return nil
	}
	config.Add("responseMimeType", `"application/json"`)
	if e.Format.Schema == nil {
		return nil
	}
	adapted, err := schema.Gemini().For(e.Format.Schema, e.Format.At)
	if err == nil {
		config.Add("responseJsonSchema", string(adapted))
	}
	return err
}

// imageSettings are the settings of images, by their names in chat completions and in this form.
var imageSettings = [...]struct{ chat, gemini string }{{"aspect_ratio", "aspectRatio"}, {"image_size", "imageSize"}}

// addModalities adds the kinds of output: only text unless images are requested, because some
// models make images unasked, at another price.
func (e *encoder) addModalities(config *conversation.ObjectWriter) error {
	text, image, err := e.OutputKinds()
	if err != nil {
		return err
	}
	switch {
	case !image:
		config.Add("responseModalities", `["TEXT"]`)
		return nil
	case text:
		config.Add("responseModalities", `["TEXT","IMAGE"]`)
	default:
		config.Add("responseModalities", `["IMAGE"]`)
	}
	var images conversation.ObjectWriter
	for _, same := range imageSettings {
		if value := rawjson.Field(e.ImageConfig, same.chat); value != nil {
			images.Add(same.gemini, string(value))
		}
	}
	if len(images) > 0 {
		config.Add("imageConfig", string(images.Object()))
	}
	return nil
}
