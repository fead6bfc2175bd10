package completions

import (
	"cmp"
	"strconv"

	"tollgate/internal/wire"
	"tollgate/internal/wire/conversation"
	"tollgate/internal/wire/internal/schema"
	"tollgate/internal/wire/rawjson"
)

const (
	// maxStops is the form's limit on stop sequences.
	maxStops = 4
	// maxUserLength is the longest name of an end user accepted by all providers, with quotes.
	maxUserLength = 64 + 2
	// maxIDLength is the limit on the id of a call at all providers of the form.
	maxIDLength = 40
)

type encoder struct {
	*conversation.Request
	target wire.Translation
	id     wire.Identity
	out    []byte
}

// Encode returns the body of a request for a line. Equal requests give equal bytes.
func Encode(c *conversation.Request, t wire.Translation, id wire.Identity) ([]byte, error) {
	if err := c.CheckPriced(priced(c.Client)...); err != nil {
		return nil, err
	}
	if err := c.CheckSingle(); err != nil {
		return nil, err
	}
	turns, err := c.Repair()
	if err != nil {
		return nil, err
	}
	e := &encoder{Request: c, target: t, id: id, out: make([]byte, 0, c.Size+c.Size/8+512)}
	e.out = rawjson.Put(e.out, `{"model":`, rawjson.Quote(t.Model), `,"messages":`)
	if err := e.appendMessages(turns); err != nil {
		return nil, err
	}
	steps := []func() error{e.appendLimit, e.appendSampling, e.appendTools, e.appendEffort, e.appendFormat, e.appendNames}
	if c.Client == wire.FormResponses { // such requests keep their established order of fields
		steps = []func() error{e.appendTools, e.appendFormat, e.appendEffort, e.appendLimit, e.appendSampling, e.appendNames}
	}
	for _, step := range steps {
		if err := step(); err != nil {
			return nil, err
		}
	}
	if c.Stream {
		e.add("stream", []byte("true"))
		if t.AskUsage || c.Client == wire.FormMessages {
			e.add("stream_options", []byte(`{"include_usage":true}`))
		}
	}
	return append(e.out, '}'), nil
}

// priced returns the priced fields that the form accepts from a client's form.
func priced(client wire.Form) []string {
	if client == wire.FormResponses {
		return []string{"service_tier"}
	}
	return nil
}

// add appends a member unless its value is nil.
func (e *encoder) add(name string, value []byte) {
	if value != nil {
		e.out = rawjson.AppendMember(e.out, name, value)
	}
}

// appendLimit appends the limit on output tokens and the stop sequences.
func (e *encoder) appendLimit() error {
	field := "max_completion_tokens"
	if e.Client == wire.FormMessages {
		field = "max_tokens"
	}
	if limit := cmp.Or(e.Limit, e.target.Limit); limit > 0 {
		e.add(cmp.Or(e.target.LimitField, field), strconv.AppendInt(nil, limit, 10))
	}
	most := maxStops
	if e.target.NoStops {
		most = 0
	}
	stops, err := e.TakeStops(most, nil)
	e.add("stop", stops)
	return err
}

// appendSampling appends the sampling fields. Reasoning models reject most of them.
func (e *encoder) appendSampling() error {
	if !e.target.Reasoning || e.Client == wire.FormResponses {
		e.add("temperature", e.Temperature)
		e.add("top_p", e.TopP)
	}
	e.add("presence_penalty", e.PresencePenalty)
	e.add("frequency_penalty", e.FrequencyPenalty)
	e.add("seed", e.Seed)
	return nil
}

// appendNames appends the names of the user and the conversation, the tier, and logprobs.
func (e *encoder) appendNames() error {
	if e.Client != wire.FormMessages {
		e.add("user", e.User)
		e.add("safety_identifier", e.SafetyID)
		e.add("prompt_cache_key", e.CacheKey)
	} else if len(e.User) <= maxUserLength {
		e.add("user", e.User)
	}
	if e.ServiceTier != "" {
		e.add("service_tier", rawjson.Quote(e.ServiceTier))
	}
	e.add("logprobs", e.Logprobs)
	e.add("top_logprobs", e.TopLogprobs)
	return nil
}

// appendTools appends the tools and the tool choice.
func (e *encoder) appendTools() error {
	var list []byte
	for _, tool := range e.Offered() {
		tool = tool.AsFunction()
		list = rawjson.Put(list, `,{"type":"function","function":{"name":`, rawjson.Quote(tool.Line), "")
		if tool.Description != nil {
			list = rawjson.AppendMember(list, "description", tool.Description)
		}
		parameters, strict := tool.Schema, tool.Strict
		if e.Client == wire.FormMessages { // that form allows more schemas as strict
			var adapted bool
			if parameters, adapted = tool.StrictSchema(tool.Schema, schema.Strict()); !adapted {
				strict = nil
			}
		}
		if parameters != nil {
			list = rawjson.AppendMember(list, "parameters", parameters)
		}
		if strict != nil {
			list = rawjson.AppendMember(list, "strict", strict)
		}
		list = append(list, "}}"...)
	}
	if list == nil {
		return nil
	}
	e.add("tools", conversation.List(list))
	if (e.Client == wire.FormMessages || e.Client == wire.FormGemini) && e.disablesThinking() {
		e.add(e.target.NoThinking.Name, []byte(e.target.NoThinking.Value))
	}
	switch e.Choice.Mode {
	case conversation.NoChoice:
	case conversation.ChoiceOfTool:
		e.out = rawjson.Put(e.out, `,"tool_choice":{"type":"function","function":{"name":`,
			rawjson.Quote(e.NameOnLine(e.Choice.Tool.Name, e.Choice.Tool.Namespace)), "}}")
	default:
		e.add("tool_choice", rawjson.Quote(string(e.Choice.Mode)))
	}
	if e.Client == wire.FormResponses || string(e.Parallel) == "false" {
		e.add("parallel_tool_calls", e.Parallel)
	}
	return nil
}

// disablesThinking reports whether thinking must be disabled, because the model rejects a forced tool while
// it thinks.
func (e *encoder) disablesThinking() bool { return e.target.NoThinking.Name != "" && e.ForcesTool() }

func (e *encoder) appendEffort() error {
	if e.disablesThinking() {
		if e.Client == wire.FormResponses {
			e.add(e.target.NoThinking.Name, []byte(e.target.NoThinking.Value))
		}
		return nil
	}
	if !e.target.Reasoning && (e.Client == wire.FormMessages || e.Client == wire.FormGemini) {
		return nil
	}
	effort, err := e.target.Effort(e.Effort.Word, e.Effort.At)
	if err == nil {
		e.add("reasoning_effort", effort)
	}
	return err
}

// appendFormat appends the format of the answer with the schema unchanged.
func (e *encoder) appendFormat() error {
	f := &e.Format
	switch f.Kind {
	case conversation.JSONObject:
		e.add("response_format", []byte(`{"type":"json_object"}`))
	case conversation.JSONSchema:
		e.out = append(e.out, `,"response_format":{"type":"json_schema","json_schema":{"name":`...)
		e.out = rawjson.AppendOr(e.out, f.Name, `"output"`)
		e.add("description", f.Description)
		e.add("schema", f.Schema)
		e.add("strict", f.Strict)
		e.out = append(e.out, "}}"...)
	}
	e.add("verbosity", e.Verbosity)
	return nil
}
