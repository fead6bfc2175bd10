package messages

import (
	"strconv"

	"tollgate/internal/wire"
	"tollgate/internal/wire/conversation"
	"tollgate/internal/wire/internal/form"
	"tollgate/internal/wire/internal/schema"
	"tollgate/internal/wire/rawjson"
)

const (
	// maxBreakpoints is the form's limit on cache breakpoints.
	maxBreakpoints = 4
	// defaultLimit is sent if neither client nor catalog has a limit, because the form requires a
	// limit.
	defaultLimit = 4096
	// maxHistoryTools is the limit on tools that only the history names, as on tools of a request.
	maxHistoryTools = 128
	// jsonInstruction requests a JSON object, since the form has no field for it.
	jsonInstruction = "Answer with one valid JSON object and nothing else."
)

type encoder struct {
	*conversation.Request
	target wire.Translation
	id     wire.Identity
	limit  int64

	system      []block
	turns       []turn
	names       []string // of the functions called, without repetition
	tools       []block
	fromHistory bool // tools holds only tools of the history; the model must not call them
}

// Encode returns the body of a request for a line. Equal requests give equal bytes, and a request
// that continues another begins with the same bytes.
func Encode(c *conversation.Request, t wire.Translation, id wire.Identity) ([]byte, error) {
	e := &encoder{Request: c, target: t, id: id, limit: defaultLimit}
	for _, limit := range []int64{t.MaxOutput, t.Limit, c.Limit} {
		if limit > 0 {
			e.limit = limit
		}
	}
	if err := c.CheckSingle(); err != nil {
		return nil, err
	}
	if err := c.CheckPriced(); err != nil {
		return nil, err
	}
	if err := e.addTools(); err != nil {
		return nil, err
	}
	history, err := c.Repair()
	if err != nil {
		return nil, err
	}
	if err := e.addTurns(history); err != nil {
		return nil, err
	}
	format, err := e.outputFormat()
	if err != nil {
		return nil, err
	}
	mode, err := e.thinking(endsInResults(history), c.ForcesTool())
	if err != nil {
		return nil, err
	}
	e.endTurns(mode.prefill)
	if len(e.tools) == 0 {
		e.addToolsOfHistory()
	}
	// The form rejects blank sequences.
	stops, err := e.TakeStops(len(e.Stops), func(stop []byte) bool { return !conversation.IsBlank(rawjson.Contents(stop)) })
	if err != nil {
		return nil, err
	}
	return e.body(mode, format, stops), nil
}

// endsInResults reports whether a history ends in results of tools.
func endsInResults(turns []conversation.Turn) bool {
	for i := len(turns) - 1; i >= 0; i-- {
		switch turns[i].Role {
		case conversation.Results:
			return true
		case conversation.Assistant:
			return false
		}
	}
	return false
}

// body returns the body. Cache breakpoints are written in the order of the form: tools, system,
// messages.
func (e *encoder) body(mode thinkingMode, format, stops []byte) []byte {
	marks := breakpoints{skip: countMarks(e.tools) + countMarks(e.system) - maxBreakpoints}
	for _, t := range e.turns {
		marks.skip += countMarks(t.first) + countMarks(t.then)
	}
	out := make([]byte, 0, e.Size+e.Size/8+512)
	out = rawjson.Put(out, `{"model":`, rawjson.Quote(e.target.Model), "")
	out = rawjson.AppendMember(out, "max_tokens", strconv.AppendInt(nil, e.limit, 10))
	if len(e.tools) > 0 {
		out = marks.append(append(out, `,"tools":`...), e.tools)
		if choice := e.toolChoice(mode.on); choice != nil {
			out = rawjson.AppendMember(out, "tool_choice", choice)
		}
	}
	if len(e.system) > 0 {
		out = marks.append(append(out, `,"system":`...), e.system)
	}
	out = append(out, `,"messages":`...)
	sep := byte('[')
	for _, t := range e.turns {
		role := `{"role":"assistant","content":`
		if t.user {
			role = `{"role":"user","content":`
		}
		out = append(append(out, sep), role...)
		out = append(marks.append(out, t.first, t.then), '}')
		sep = ','
	}
	out = append(out, ']')
	if stops != nil {
		out = rawjson.AppendMember(out, "stop_sequences", stops)
	}
	if mode.sampling {
		out = e.appendSampling(out)
	}
	if mode.field != nil {
		out = rawjson.AppendMember(out, "thinking", mode.field)
	}
	var config conversation.ObjectWriter
	if mode.effort != "" {
		config.Add("effort", string(rawjson.Quote(mode.effort)))
	}
	if format != nil {
		config.Add("format", string(format))
	}
	if config != nil {
		out = rawjson.AppendMember(out, "output_config", config.Object())
	}
	if user := e.user(); user != nil {
		out = rawjson.AppendMember(out, "metadata", rawjson.Put(nil, `{"user_id":`, user, "}"))
	}
	if e.Stream {
		out = append(out, `,"stream":true`...)
	}
	return append(out, '}')
}

// appendSampling appends top_k, and either temperature (at most 1) or top_p, because newer models accept only
// one of the two.
func (e *encoder) appendSampling(out []byte) []byte {
	if n, ok := rawjson.Integer(e.TopK); ok && n > 0 { // 0 has no effect in Gemini, and is refused here
		out = rawjson.AppendMember(out, "top_k", e.TopK)
	}
	switch raw := e.Temperature; {
	case raw != nil:
		if n, err := strconv.ParseFloat(string(raw), 64); err == nil && n > 1 {
			raw = []byte("1")
		}
		return rawjson.AppendMember(out, "temperature", raw)
	case e.TopP != nil:
		return rawjson.AppendMember(out, "top_p", e.TopP)
	}
	return out
}

// user returns the client's name of its end user, with a hash instead of an e-mail address. It
// returns nil if the client sent no name that the form accepts.
func (e *encoder) user() []byte {
	const longest = 256
	for _, raw := range [][]byte{e.SafetyID, e.User} {
		if rawjson.IsText(raw) && len(raw) > 2 && len(raw) <= longest {
			return form.EndUser(raw)
		}
	}
	return nil
}

// outputFormat returns the format of the answer, or nil. A JSON object without a schema becomes an
// instruction. A schema is adapted to the form.
func (e *encoder) outputFormat() ([]byte, error) {
	switch e.Format.Kind {
	case conversation.JSONObject:
		e.system = append(e.system, textBlock(rawjson.Contents(rawjson.Quote(jsonInstruction))))
	case conversation.JSONSchema:
		if len(e.Format.Schema) == 0 || e.Format.Schema[0] != '{' {
			return nil, conversation.Unsupported(e.Format.At, "`{param}` must be an object.")
		}
		adapted, err := schema.Messages().For(e.Format.Schema, e.Format.At)
		if err != nil {
			return nil, err
		}
		return append(rawjson.AppendMember([]byte(`{"type":"json_schema"`), "schema", adapted), '}'), nil
	}
	return nil, nil
}

// addTools adds the tools that the model may call.
func (e *encoder) addTools() error {
	for _, tool := range e.Offered() {
		tool = tool.AsFunction()
		json := append([]byte(`{"name":`), rawjson.Quote(tool.Line)...)
		if tool.Description != nil {
			json = rawjson.AppendMember(json, "description", tool.Description)
		}
		parameters, strict := tool.StrictSchema(tool.ObjectSchema(), schema.Messages())
		json = rawjson.AppendMember(json, "input_schema", parameters)
		if strict {
			json = rawjson.AppendMember(json, "strict", "true")
		}
		e.tools = append(e.tools, block{json: json, mark: tool.Mark.Time})
	}
	if e.Choice.Restricted && len(e.tools) == 0 {
		return conversation.Unsupported(e.Choice.At+".allowed_tools.tools", "`{param}` names no function of `tools`.")
	}
	return nil
}

// addToolsOfHistory adds tools for the functions called in the history, because a history with calls
// needs tools.
func (e *encoder) addToolsOfHistory() {
	for _, name := range e.names {
		json := append([]byte(`{"name":`), rawjson.Quote(name)...)
		e.tools = append(e.tools, block{json: rawjson.AppendMember(json, "input_schema", `{"type":"object"}`)})
		e.fromHistory = true
	}
}

// toolChoice returns the tool choice, or nil. A model that thinks cannot be forced to call a tool.
func (e *encoder) toolChoice(thinks bool) []byte {
	if e.fromHistory {
		return []byte(`{"type":"none"}`)
	}
	kind := string(e.Choice.Mode)
	if e.Choice.Mode == conversation.ChoiceAny {
		kind = "any"
	}
	if thinks && (kind == "any" || kind == "tool") {
		kind = "auto"
	}
	alone := string(e.Parallel) == "false" && kind != "none"
	switch {
	case kind == "" && !alone:
		return nil
	case kind == "":
		kind = "auto"
	}
	choice := rawjson.Put(nil, `{"type":"`, kind, `"`)
	if kind == "tool" {
		choice = rawjson.AppendMember(choice, "name", rawjson.Quote(e.NameOnLine(e.Choice.Tool.Name, e.Choice.Tool.Namespace)))
	}
	if alone {
		choice = append(choice, `,"disable_parallel_tool_use":true`...)
	}
	return append(choice, '}')
}
