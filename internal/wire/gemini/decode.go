package gemini

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
	c := &conversation.Request{Parameters: &r.Parameters, Client: wire.FormGemini}
	if r.Doc == nil { // a request without a body, for reading answers only
		return c, nil
	}
	c.Size = r.Size()
	if r.Doc.Raw("continuationToken") != nil {
		return nil, conversation.NotOffered("continuationToken")
	}
	d := decoder{Request: c, source: r}
	for _, step := range []func() error{d.tools, d.choice, d.contents, d.config, d.effort, d.format} {
		if err := step(); err != nil {
			return nil, err
		}
	}
	if r.ServiceTier != "" {
		c.Tier = rawjson.Quote(r.ServiceTier)
	}
	return c, nil
}

type decoder struct {
	*conversation.Request
	source *Request
	calls  int // in the history so far
}

// tools reads the function declarations. CheckPriced rejects the hosted tools.
func (d *decoder) tools() error {
	for i, tool := range list(d.source.Doc.Raw("tools")) {
		for k, function := range list(rawjson.Field(tool, "functionDeclarations")) {
			at := fmt.Sprintf("tools[%d].functionDeclarations[%d]", i, k)
			name := rawjson.Field(function, "name")
			if !rawjson.IsText(name) || len(name) == 2 {
				return conversation.Unsupported(at+".name", "`{param}` must be a string: name the function.")
			}
			schema, err := schemaOf(function, "parameters", "parametersJsonSchema", at)
			if err != nil {
				return err
			}
			t := &conversation.Tool{Name: rawjson.Unquote(name), Schema: schema, At: at}
			if text := rawjson.Field(function, "description"); rawjson.IsText(text) {
				t.Description = text
			}
			d.Tools = append(d.Tools, t)
		}
	}
	return nil
}

// schemaOf returns the JSON schema in one of two members of an object: one of Google's own schemas, or a JSON
// schema. It returns nil if the object has neither.
func schemaOf(object []byte, own, standard, at string) ([]byte, error) {
	if schema := rawjson.Field(object, standard); schema != nil {
		if schema[0] != '{' {
			return nil, conversation.Unsupported(at+"."+standard, "`{param}` must be an object: a JSON schema.")
		}
		return schema, nil
	}
	schema := rawjson.Field(object, own)
	switch {
	case schema == nil:
		return nil, nil
	case schema[0] != '{':
		return nil, conversation.Unsupported(at+"."+own, "`{param}` must be an object: a schema.")
	}
	return appendJSONSchema(nil, schema, 0), nil
}

// choice reads functionCallingConfig.
func (d *decoder) choice() error {
	const at = "toolConfig.functionCallingConfig"
	config := rawjson.Field(d.source.Doc.Raw("toolConfig"), "functionCallingConfig")
	if config == nil || len(d.Tools) == 0 {
		return nil
	}
	c := &d.Choice
	c.At = at
	switch mode := strings.ToUpper(rawjson.Unquote(rawjson.Field(config, "mode"))); mode {
	case "", "MODE_UNSPECIFIED":
		return nil
	case "AUTO", "VALIDATED":
		c.Mode = conversation.ChoiceAuto
	case "NONE":
		c.Mode = conversation.ChoiceNone
	case "ANY":
		c.Mode = conversation.ChoiceAny
	default:
		return conversation.Unsupported(at+".mode", "`{param}` must be AUTO, ANY, NONE or VALIDATED.")
	}
	for _, name := range rawjson.Elements(rawjson.Field(config, "allowedFunctionNames")) {
		c.Allowed = append(c.Allowed, conversation.ToolName{Name: rawjson.Unquote(name)})
	}
	if c.Mode == conversation.ChoiceAny && len(c.Allowed) == 1 {
		c.Mode, c.Tool, c.Allowed = conversation.ChoiceOfTool, c.Allowed[0], nil
	}
	c.Restricted = len(c.Allowed) > 0
	return nil
}

// contents reads the system instruction and the history.
func (d *decoder) contents() error {
	if system := d.source.Doc.Raw("systemInstruction"); system != nil {
		t := conversation.Turn{Role: conversation.System, At: "systemInstruction"}
		for k, part := range list(rawjson.Field(system, "parts")) {
			at := fmt.Sprintf("systemInstruction.parts[%d]", k)
			text := rawjson.Field(part, "text")
			if text == nil {
				return conversation.Unsupported(at, "`{param}` must be text for this model.")
			}
			t.Parts = append(t.Parts, conversation.TextPart(text, at))
		}
		d.Turns = append(d.Turns, t)
	}
	for i, content := range list(d.source.Doc.Raw("contents")) {
		t := conversation.Turn{Role: conversation.User, At: fmt.Sprintf("contents[%d]", i)}
		if rawjson.Unquote(rawjson.Field(content, "role")) == "model" {
			t.Role = conversation.Assistant
		}
		for k, part := range list(rawjson.Field(content, "parts")) {
			parts, err := partsOf(part, t.Role == conversation.Assistant, fmt.Sprintf("%s.parts[%d]", t.At, k))
			if err != nil {
				return err
			}
			d.nameCalls(parts)
			t.Parts = append(t.Parts, parts...)
		}
		d.Turns = append(d.Turns, t)
	}
	return nil
}

// nameCalls gives an id to each call without one. The id is the same in every request of the conversation.
// The form allows calls and results without ids, and matches them by name and order.
func (d *decoder) nameCalls(parts []conversation.Part) {
	for i := range parts {
		if call := parts[i].Call; call != nil {
			if d.calls++; call.ID == "" {
				call.ID = fmt.Sprintf("call_%d", d.calls)
			}
		}
	}
}

// partsOf reads a part. The parts of hosted tools are left out, and thoughts too: the line's reasoning
// before a call is in the signature of the call.
func partsOf(part []byte, byModel bool, at string) ([]conversation.Part, error) {
	p := conversation.Part{At: at}
	signature := rawjson.Field(part, "thoughtSignature")
	state := openState(signature)
	if unpack(signature) == nil && rawjson.IsText(signature) && len(signature) > 2 {
		p.Signature = conversation.SignatureOf(signature, wire.FormGemini)
	}
	for name, value := range rawjson.Members(part) {
		if rawjson.NonNull(value) == nil {
			continue
		}
		var err error
		switch string(name) {
		case "text":
			if string(rawjson.Field(part, "thought")) == "true" {
				return nil, nil
			}
			p.Text = rawjson.Contents(value)
			return []conversation.Part{p}, nil
		case "inlineData", "fileData":
			err = readMedia(&p, string(name), value, byModel)
			return []conversation.Part{p}, err
		case "functionCall":
			readCall(&p, value)
			return append(state, p), err
		case "functionResponse":
			err = readResult(&p, value)
			return []conversation.Part{p}, err
		}
	}
	return nil, nil
}

// readMedia reads an image or a file.
func readMedia(p *conversation.Part, name string, data []byte, byModel bool) error {
	at := p.At + "." + name
	mime := strings.ToLower(rawjson.Unquote(rawjson.Field(data, "mimeType")))
	content := rawjson.Field(data, "data")
	mime = form.MediaType(mime, rawjson.Contents(content))
	media := &conversation.Media{At: at, Generated: byModel}
	if display := rawjson.Field(data, "displayName"); rawjson.IsText(display) && len(display) > 2 {
		media.Name = display
	}
	p.Media = media
	switch {
	case strings.HasPrefix(mime, "image/"):
		p.Kind = conversation.Image
	case name == "inlineData" && (mime == "application/pdf" || strings.HasPrefix(mime, "text/")):
		p.Kind = conversation.File
	case name == "fileData" && (mime == "" || mime == "application/pdf"):
		p.Kind = conversation.File
		if mime == "" {
			p.Kind = conversation.Image
		}
	default:
		return conversation.Unsupported(at+".mimeType", "`{param}`: this model takes images and PDF files, not %s.", form.Shorten([]byte(mime)))
	}
	if name == "fileData" {
		media.At += ".fileUri"
		media.Address = rawjson.Field(data, "fileUri")
		if !conversation.HasScheme(media.Address) {
			return conversation.Unsupported(media.At, "`{param}` must be an http(s) address.")
		}
		return nil
	}
	media.At += ".data"
	if !rawjson.IsText(content) || len(content) == 2 {
		return conversation.Unsupported(media.At, "`{param}` must be a string in base64.")
	}
	media.Address = rawjson.Put(make([]byte, 0, len(content)+len(mime)+16), `"data:`, rawjson.Contents(rawjson.Quote(mime)), ";base64,")
	media.Address = append(append(media.Address, standardBase64(rawjson.Contents(content))...), '"')
	return nil
}

// standardBase64 returns base64 in the standard alphabet: clients may use the alphabet for URLs.
func standardBase64(data []byte) []byte {
	if !bytes.ContainsAny(data, "-_") {
		return data
	}
	return bytes.ReplaceAll(bytes.ReplaceAll(data, []byte("-"), []byte("+")), []byte("_"), []byte("/"))
}

func readCall(p *conversation.Part, call []byte) {
	name, args := rawjson.Field(call, "name"), rawjson.Field(call, "args")
	if args == nil {
		args = []byte("{}")
	}
	p.Kind = conversation.ToolCall
	p.Call = &conversation.CallPart{ID: rawjson.Unquote(rawjson.Field(call, "id")), Name: rawjson.Unquote(name), Arguments: args}
}

// readResult reads the result of a call: its response as text, and its images and files.
func readResult(p *conversation.Part, result []byte) error {
	at := p.At + ".functionResponse"
	response := rawjson.Field(result, "response")
	if response == nil {
		response = []byte("{}")
	}
	p.Kind = conversation.ToolResult
	p.Result = &conversation.ResultPart{ID: rawjson.Unquote(rawjson.Field(result, "id")), Name: rawjson.Unquote(rawjson.Field(result, "name"))}
	text, failed := resultText(response)
	p.Result.Error = failed
	p.Result.Parts = []conversation.Part{{Kind: conversation.Text, Text: text, At: at + ".response"}}
	for k, part := range list(rawjson.Field(result, "parts")) {
		parts, err := partsOf(part, false, fmt.Sprintf("%s.parts[%d]", at, k))
		if err != nil {
			return err
		}
		p.Result.Parts = append(p.Result.Parts, parts...)
	}
	return nil
}

// resultText returns a response as text, the contents of a JSON string, and whether it is an error. If the
// response has only a text in `output`, `result` or `error` (Google's names), the result is this text.
func resultText(response []byte) (text []byte, failed bool) {
	var only []byte
	n := 0
	for name, value := range rawjson.Members(response) {
		n++
		switch string(name) {
		case "output", "result", "error":
			only, failed = value, string(name) == "error"
		}
	}
	if n == 1 && rawjson.IsText(only) {
		return rawjson.Contents(only), failed
	}
	return conversation.AppendEscaped(nil, response), failed && n == 1
}

// config reads the members of generationConfig without a structure.
func (d *decoder) config() error {
	for _, field := range []struct {
		name string
		to   *[]byte
	}{
		{"temperature", &d.Temperature}, {"topP", &d.TopP}, {"topK", &d.TopK}, {"presencePenalty", &d.PresencePenalty},
		{"frequencyPenalty", &d.FrequencyPenalty}, {"seed", &d.Seed}, {"responseLogprobs", &d.Logprobs}, {"logprobs", &d.TopLogprobs},
	} {
		*field.to = d.source.config(field.name)
	}
	for i, stop := range rawjson.Elements(d.source.config("stopSequences")) {
		if !rawjson.IsText(stop) {
			return conversation.Unsupported(fmt.Sprintf("generationConfig.stopSequences[%d]", i), "`{param}` must be a string.")
		}
		if len(stop) > 2 {
			d.Stops = append(d.Stops, stop)
		}
	}
	d.output()
	return nil
}

// output reads the kinds of output and the settings of images.
func (d *decoder) output() {
	var kinds []byte
	for _, kind := range rawjson.Elements(d.source.config("responseModalities")) {
		kinds = append(append(kinds, ','), rawjson.Quote(strings.ToLower(rawjson.Unquote(kind)))...)
	}
	d.Modalities = conversation.List(kinds)
	var images conversation.ObjectWriter
	for _, same := range imageSettings {
		if value := rawjson.Field(d.source.config("imageConfig"), same.gemini); value != nil {
			images.Add(same.chat, string(value))
		}
	}
	if len(images) > 0 {
		d.ImageConfig = images.Object()
	}
}

// effort reads thinkingConfig.
func (d *decoder) effort() error {
	const at = "generationConfig.thinkingConfig"
	config := d.source.config("thinkingConfig")
	d.Effort = conversation.Effort{Show: string(rawjson.Field(config, "includeThoughts")) == "true", At: at + ".thinkingLevel"}
	if level := rawjson.Field(config, "thinkingLevel"); level != nil {
		switch word := strings.ToLower(rawjson.Unquote(level)); word {
		case "thinking_level_unspecified":
		case "minimal", "low", "medium", "high":
			d.Effort.Word = rawjson.Quote(word)
		default:
			return conversation.Unsupported(d.Effort.At, "`{param}` must be MINIMAL, LOW, MEDIUM or HIGH.")
		}
		return nil
	}
	budget := rawjson.Field(config, "thinkingBudget")
	if budget == nil {
		return nil
	}
	d.Effort.At = at + ".thinkingBudget"
	n, ok := rawjson.Integer(budget)
	switch {
	case !ok || n < -1:
		return conversation.Unsupported(d.Effort.At, "`{param}` must be an integer: a number of tokens, 0 for no thinking, or -1.")
	case n == 0:
		d.Effort.Word, d.Effort.Show = []byte(`"none"`), false
	case n < 0: // the model decides
	case n < 4<<10:
		d.Effort.Word = []byte(`"low"`)
	case n < 16<<10:
		d.Effort.Word = []byte(`"medium"`)
	default:
		d.Effort.Word = []byte(`"high"`)
	}
	return nil
}

// format reads the format of the answer.
func (d *decoder) format() error {
	const at = "generationConfig."
	schema, err := schemaOf(d.source.Doc.Raw("generationConfig"), "responseSchema", "responseJsonSchema", "generationConfig")
	if err != nil {
		return err
	}
	switch mime := rawjson.Unquote(d.source.config("responseMimeType")); {
	case mime == "application/json" && schema != nil:
		d.Format = conversation.Format{Kind: conversation.JSONSchema, Schema: schema, At: at + "responseJsonSchema"}
		if d.source.config("responseJsonSchema") == nil {
			d.Format.At = at + "responseSchema"
		}
	case mime == "application/json":
		d.Format.Kind = conversation.JSONObject
	case mime != "" && mime != "text/plain":
		return conversation.Unsupported(at+"responseMimeType", "`{param}` must be text/plain or application/json for this model.")
	}
	return nil
}
