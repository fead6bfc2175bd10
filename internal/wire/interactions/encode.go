package interactions

import (
	"cmp"
	"strconv"

	"tollgate/internal/wire"
	"tollgate/internal/wire/conversation"
	"tollgate/internal/wire/gemini"
	"tollgate/internal/wire/internal/schema"
	"tollgate/internal/wire/rawjson"
)

type encoder struct {
	*conversation.Request
	target wire.Translation
	id     wire.Identity
	images map[string]wire.FetchedImage // by address
}

// Encode returns the body of a request for a line. Fields that only adjust an answer (`temperature`, `top_p`,
// penalties, `verbosity`) are left out, because the form has none of them.
func Encode(c *conversation.Request, t wire.Translation, id wire.Identity) ([]byte, error) {
	e := &encoder{Request: c, target: t, id: id}
	if err := e.checkSupported(); err != nil {
		return nil, err
	}
	modalities, formats, err := e.formats()
	if err != nil {
		return nil, err
	}
	tools, choice := e.tools()
	config, err := e.generationConfig(choice)
	if err != nil {
		return nil, err
	}
	turns, err := c.Repair()
	if err != nil {
		return nil, err
	}
	e.fetchImages(turns)
	w := stepWriter{encoder: e}
	if err := w.turns(turns); err != nil {
		return nil, err
	}
	var body conversation.ObjectWriter
	body.Add("model", string(rawjson.Quote(t.Model)))
	if w.system != nil {
		body.Add("system_instruction", `"`, string(w.system), `"`)
	}
	body.Add("input", string(conversation.List(w.out)))
	if tools != nil {
		body.Add("tools", string(conversation.List(tools)))
	}
	body.Add("response_modalities", modalities)
	if formats != nil {
		body.Add("response_format", string(conversation.List(formats)))
	}
	if len(config) > 0 {
		body.Add("generation_config", string(config.Object()))
	}
	if c.ServiceTier != "" {
		body.Add("service_tier", string(rawjson.Quote(c.ServiceTier)))
	}
	body.Add("store", "false")
	if c.Stream {
		body.Add("stream", "true")
	}
	return body.Object(), nil
}

// checkSupported rejects values with an effect on the answer or its price and without a counterpart.
func (e *encoder) checkSupported() error {
	if err := e.CheckSingle(); err != nil {
		return err
	}
	if err := e.CheckPriced("modalities", "service_tier"); err != nil {
		return err
	}
	for _, o := range e.Options {
		if o.Param == "service_tier" && o.Name != "flex" && o.Name != "priority" {
			return conversation.Unsupported(o.Param, "`{param}` must be auto, default, flex or priority for this model.")
		}
	}
	if string(e.Logprobs) == "true" {
		return conversation.NotOffered(e.FieldName("logprobs"))
	}
	return nil
}

// tools returns the functions, each after a comma, and the choice of tools, either of them nil if absent.
// If no call is required, tools that are not allowed are not declared.
func (e *encoder) tools() (tools, choice []byte) {
	c := &e.Choice
	offered := e.Tools
	if c.Mode != conversation.ChoiceAny {
		offered = e.Offered()
	}
	for _, tool := range offered {
		tool = tool.AsFunction()
		var out conversation.ObjectWriter
		out.Add("type", `"function"`)
		out.Add("name", string(rawjson.Quote(tool.Line)))
		if len(tool.Description) > 2 {
			out.Add("description", string(tool.Description))
		}
		if s := tool.Schema; len(s) > 0 && s[0] == '{' && !isEmpty(s) {
			out.Add("parameters", string(s))
		}
		tools = rawjson.Put(tools, ",", out.Object(), "")
	}
	if tools == nil {
		return nil, nil
	}
	names := c.Allowed
	switch c.Mode {
	case conversation.ChoiceNone:
		return tools, []byte(`"none"`)
	case conversation.ChoiceAuto:
		return tools, []byte(`"auto"`)
	case conversation.ChoiceOfTool:
		names = []conversation.ToolName{c.Tool}
	case conversation.NoChoice:
		return tools, nil
	}
	if len(names) == 0 {
		return tools, []byte(`"any"`)
	}
	var allowed []byte
	for _, name := range names {
		allowed = append(append(allowed, ','), rawjson.Quote(e.NameOnLine(name.Name, name.Namespace))...)
	}
	return tools, rawjson.Put(nil, `{"allowed_tools":{"mode":"any","tools":`, conversation.List(allowed), "}}")
}

// generationConfig returns the members of the generation_config.
func (e *encoder) generationConfig(choice []byte) (config conversation.ObjectWriter, err error) {
	if limit := cmp.Or(e.Limit, e.target.Limit); limit > 0 {
		config.Add("max_output_tokens", strconv.FormatInt(limit, 10))
	}
	if e.Seed != nil {
		config.Add("seed", gemini.FoldSeed(e.Seed))
	}
	stops, err := e.TakeStops(gemini.MaxStops, nil)
	if err != nil {
		return nil, err
	}
	if stops != nil {
		config.Add("stop_sequences", string(stops))
	}
	word, err := e.EffortFor(e.target)
	if err != nil {
		return nil, err
	}
	if word != "" {
		level, _ := wire.NearestEffort(word, gemini.ThinkingLevels(e.target.Model))
		config.Add("thinking_level", `"`+level+`"`)
	}
	if e.target.Reasoning && word != "none" {
		config.Add("thinking_summaries", `"auto"`)
	}
	if choice != nil {
		config.Add("tool_choice", string(choice))
	}
	return config, nil
}

// formats returns the kinds of output and their formats, each after a comma, or nil for plain text. Only
// text is requested unless the client asks for images, because some models make images unasked, at
// another price.
func (e *encoder) formats() (modalities string, formats []byte, err error) {
	text, image, err := e.OutputKinds()
	if err != nil {
		return "", nil, err
	}
	modalities = map[bool]string{true: `["text"]`, false: `["text","image"]`}[!image]
	if !text {
		modalities = `["image"]`
	}
	if text && e.Format.Kind != conversation.Plain {
		formats = append(formats, `,{"type":"text","mime_type":"application/json"`...)
		if e.Format.Schema != nil {
			adapted, err := schema.Gemini().For(e.Format.Schema, e.Format.At)
			if err != nil {
				return "", nil, err
			}
			formats = rawjson.AppendMember(formats, "schema", adapted)
		}
		formats = append(formats, '}')
	}
	if !image {
		return modalities, formats, nil
	}
	if text && formats == nil {
		formats = append(formats, `,{"type":"text"}`...)
	}
	formats = append(formats, `,{"type":"image"`...)
	for _, name := range []string{"aspect_ratio", "image_size"} {
		if value := rawjson.Field(e.ImageConfig, name); value != nil {
			formats = rawjson.AppendMember(formats, name, value)
		}
	}
	return modalities, append(formats, '}'), nil
}
