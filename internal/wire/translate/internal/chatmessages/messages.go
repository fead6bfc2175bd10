package chatmessages

import (
	"fmt"
	"strconv"

	"tollgate/internal/wire"
	"tollgate/internal/wire/internal/form"
	"tollgate/internal/wire/internal/schema"
	"tollgate/internal/wire/rawjson"
	"tollgate/internal/wire/translate/internal/piece"
)

const (
	// maxBreakpoints is the form's limit on cache breakpoints.
	maxBreakpoints = 4
	// defaultLimit is sent if neither client nor catalog has a limit, because the form requires a
	// limit.
	defaultLimit = 4096
	// continueText is the text of a user turn that the form requires and the client did not send.
	continueText = "Continue."
	// noResult replaces the missing result of a tool call.
	noResult = "(no result)"
	// jsonInstruction requests a JSON object, since the form has no field for it.
	jsonInstruction = "Answer with one valid JSON object and nothing else."
)

// Body returns the request in the messages form. Equal requests give equal bytes, and a request
// that continues another begins with the same bytes. A history rejected by the form is repaired:
// successive turns of one role are merged, missing results become "(no result)", and empty texts
// are left out. Fields without a counterpart are dropped, or rejected if they change the answer or
// its price. Check must be called first.
func (r chatOnMessages) Body(t wire.Translation) (rawjson.Pieces, error) {
	if r.N > 1 {
		return nil, unsupported("n", "This model gives one answer a request: leave `{param}` out or send 1.")
	}
	if err := piece.CheckTranslatable(r.Params()); err != nil {
		return nil, err
	}
	tools, err := r.messagesTools()
	if err != nil {
		return nil, err
	}
	h := history{used: map[string]int{}}
	for i, message := range rawjson.Elements(r.Doc.Raw("messages")) {
		if err := h.add(message, i); err != nil {
			return nil, err
		}
	}
	format, err := r.outputFormat(&h)
	if err != nil {
		return nil, err
	}
	limit := r.messagesLimit(t)
	kind, _, err := r.toolChoice()
	if err != nil {
		return nil, err
	}
	mode, err := r.thinking(t, limit, h.inLoop(), len(tools.list) > 0 && (kind == "any" || kind == "tool"))
	if err != nil {
		return nil, err
	}
	h.finish(mode.prefill)
	if len(tools.list) == 0 {
		tools.addFromHistory(h.names)
	}
	out, err := r.assemble(t, limit, tools, &h, mode, format)
	return rawjson.Pieces{out}, err
}

// messagesLimit returns the limit on output tokens, required by the form.
func (r chatOnMessages) messagesLimit(t wire.Translation) int64 {
	for _, limit := range []int64{r.Limit, t.Limit, t.MaxOutput} {
		if limit > 0 {
			return limit
		}
	}
	return defaultLimit
}

// assemble returns the body. Cache breakpoints are written in the order of the form: tools, system,
// messages.
func (r chatOnMessages) assemble(t wire.Translation, limit int64, tools *messagesTools, h *history, mode thinkingMode,
	format []byte) ([]byte, error) {
	marks := breakpoints{skip: tools.marks() + h.marks() - maxBreakpoints}
	out := make([]byte, 0, r.Size()+r.Size()/8+512)
	out = rawjson.Put(out, `{"model":`, rawjson.Quote(t.Model), "")
	out = rawjson.AppendMember(out, "max_tokens", strconv.AppendInt(nil, limit, 10))
	out = tools.append(out, &marks)
	if len(tools.list) > 0 {
		choice, err := r.messagesToolChoice(tools, mode.on)
		if err != nil {
			return nil, err
		}
		if choice != nil {
			out = rawjson.AppendMember(out, "tool_choice", choice)
		}
	}
	out = h.append(out, &marks)
	stops, err := r.stopSequences()
	if err != nil {
		return nil, err
	}
	if stops != nil {
		out = rawjson.AppendMember(out, "stop_sequences", stops)
	}
	if mode.sampling {
		out = r.appendSampling(out)
	}
	if mode.field != nil {
		out = rawjson.AppendMember(out, "thinking", mode.field)
	}
	if config := outputConfig(mode.effort, format); config != nil {
		out = rawjson.AppendMember(out, "output_config", config)
	}
	if user := r.messagesUser(); user != nil {
		out = rawjson.AppendMember(out, "metadata", rawjson.Put(nil, `{"user_id":`, user, "}"))
	}
	if r.Stream {
		out = append(out, `,"stream":true`...)
	}
	return append(out, '}'), nil
}

// appendSampling appends temperature, limited to 1, or top_p. Newer models accept only one of the
// two.
func (r chatOnMessages) appendSampling(out []byte) []byte {
	if raw := r.Doc.Raw("temperature"); raw != nil {
		if n, err := strconv.ParseFloat(string(raw), 64); err == nil && n > 1 {
			raw = []byte("1")
		}
		return rawjson.AppendMember(out, "temperature", raw)
	}
	if raw := r.Doc.Raw("top_p"); raw != nil {
		return rawjson.AppendMember(out, "top_p", raw)
	}
	return out
}

// outputConfig returns the member output_config, or nil if it is empty.
func outputConfig(effort string, format []byte) []byte {
	var config []byte
	if effort != "" {
		config = rawjson.AppendMember(config, "effort", rawjson.Quote(effort))
	}
	if format != nil {
		config = rawjson.AppendMember(config, "format", format)
	}
	if config == nil {
		return nil
	}
	config[0] = '{' // replaces the first comma
	return append(config, '}')
}

// stopSequences returns `stop` as a list, or nil if it is empty. Blank sequences, rejected by the
// form, are dropped.
func (r chatOnMessages) stopSequences() ([]byte, error) {
	raw := r.Doc.Raw("stop")
	var list []byte
	add := func(param string, stop []byte) error {
		if !rawjson.IsText(stop) {
			return unsupported(param, "`{param}` must be a string.")
		}
		if !piece.IsBlank(stop) {
			list = rawjson.Put(list, ",", stop, "")
		}
		return nil
	}
	switch {
	case raw == nil:
	case raw[0] == '[':
		for i, stop := range rawjson.Elements(raw) {
			if err := add(fmt.Sprintf("stop[%d]", i), stop); err != nil {
				return nil, err
			}
		}
	default:
		if err := add("stop", raw); err != nil {
			return nil, err
		}
	}
	if list == nil {
		return nil, nil
	}
	list[0] = '['
	return append(list, ']'), nil
}

// messagesUser returns the client's name of its end user, with a hash instead of an e-mail address.
// It returns nil if the client sent no name that the form accepts.
func (r chatOnMessages) messagesUser() []byte {
	const longest = 256
	for _, name := range []string{"safety_identifier", "user"} {
		if raw := r.Doc.Raw(name); rawjson.IsText(raw) && len(raw) > 2 && len(raw) <= longest {
			return form.EndUser(raw)
		}
	}
	return nil
}

// outputFormat translates response_format. A JSON object without a schema becomes an instruction. A
// schema is adapted to the form.
func (r chatOnMessages) outputFormat(h *history) ([]byte, error) {
	raw := r.Doc.Raw("response_format")
	if raw == nil {
		return nil, nil
	}
	switch kind := rawjson.Unquote(rawjson.Field(raw, "type")); kind {
	case "text":
		return nil, nil
	case "json_object":
		h.system = append(h.system, textBlock(rawjson.Quote(jsonInstruction)))
		return nil, nil
	case "json_schema":
		const param = "response_format.json_schema.schema"
		schemaJSON := rawjson.Field(rawjson.Field(raw, "json_schema"), "schema")
		if len(schemaJSON) == 0 || schemaJSON[0] != '{' {
			return nil, unsupported(param, "`{param}` must be an object.")
		}
		adapted, err := schema.Messages().For(schemaJSON, param)
		if err != nil {
			return nil, err
		}
		return append(rawjson.AppendMember([]byte(`{"type":"json_schema"`), "schema", adapted), '}'), nil
	}
	return nil, unsupported("response_format.type", "`{param}` must be text, json_object or json_schema for this model.")
}
