package responses

import (
	"bytes"
	"cmp"
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"strconv"
	"strings"

	"tollgate/internal/wire"
	"tollgate/internal/wire/conversation"
	"tollgate/internal/wire/rawjson"
)

// jsonHint is the mention of JSON required by the form if JSON is requested.
const jsonHint = "Answer with one valid JSON object and nothing else."

type encoder struct {
	*conversation.Request
	target wire.Translation
	id     wire.Identity
}

// Encode returns the body of a request for a line. Equal requests give equal bytes, and a request
// that continues another begins with the same items. Fields that only adjust an answer (`seed`,
// penalties, `logit_bias`), and fields not supported by reasoning models, are left out.
func Encode(c *conversation.Request, t wire.Translation, id wire.Identity) ([]byte, error) {
	e := &encoder{Request: c, target: t, id: id}
	if err := e.checkSupported(); err != nil {
		return nil, err
	}
	effort, err := c.EffortFor(t)
	if err != nil {
		return nil, err
	}
	format, err := e.format()
	if err != nil {
		return nil, err
	}
	input, err := e.input()
	if err != nil {
		return nil, err
	}
	out := make([]byte, 0, c.Size+c.Size/8+512)
	out = rawjson.Put(out, `{"model":`, rawjson.Quote(t.Model), `,"input":`)
	out = append(out, input...)
	out = e.appendTools(out)
	if limit := cmp.Or(c.Limit, t.Limit); limit > 0 {
		out = strconv.AppendInt(rawjson.AppendMember(out, outputLimit, ""), max(limit, wire.LeastResponsesLimit), 10)
	}
	add := func(name string, value []byte) {
		if value != nil {
			out = rawjson.AppendMember(out, name, value)
		}
	}
	if !t.Reasoning {
		add("temperature", c.Temperature)
		add("top_p", c.TopP)
		if e.asksLogprobs() {
			add("top_logprobs", c.TopLogprobs)
		}
	}
	var text conversation.ObjectWriter
	if format != nil {
		text.Add("format", string(format))
	}
	if c.Verbosity != nil {
		text.Add("verbosity", string(c.Verbosity))
	}
	if text != nil {
		add("text", text.Object())
	}
	out = e.appendReasoning(out, effort)
	add("service_tier", c.Tier)
	out = appendName(out, "safety_identifier", cmp.Or(rawjson.Unquote(c.SafetyID), rawjson.Unquote(c.User)))
	out = appendName(out, "prompt_cache_key", rawjson.Unquote(c.CacheKey))
	if t.OpenAI {
		for _, option := range c.CacheOptions {
			add(option.Name, []byte(option.Value))
		}
	}
	out = append(out, `,"store":false`...)
	if c.Stream {
		out = append(out, `,"stream":true`...)
		if t.OpenAI { // without the padding of its streams
			out = append(out, `,"stream_options":{"include_obfuscation":false}`...)
		}
	}
	return append(out, '}'), nil
}

// checkSupported rejects values with an effect on the answer or its price and without a
// counterpart.
func (e *encoder) checkSupported() error {
	if err := e.CheckSingle(); err != nil {
		return err
	}
	if err := e.CheckPriced("service_tier"); err != nil {
		return err
	}
	if _, err := e.TakeStops(0, nil); err != nil {
		return err
	}
	if e.target.Reasoning && e.asksLogprobs() {
		return conversation.Unsupported(e.FieldName("logprobs"), "`{param}` is not offered for this model, which thinks. Leave it out.")
	}
	return nil
}

func (e *encoder) asksLogprobs() bool { return string(e.Logprobs) == "true" }

// appendReasoning appends the reasoning settings of a reasoning model and requests its encrypted reasoning.
// For any other model, it requests logprobs if the client wants them.
func (e *encoder) appendReasoning(dst []byte, effort string) []byte {
	t := e.target
	switch {
	case !t.Reasoning && e.asksLogprobs():
		return append(dst, `,"include":["message.output_text.logprobs"]`...)
	case !t.Reasoning:
		return dst
	}
	var members conversation.ObjectWriter
	if effort != "" {
		members.Add("effort", string(rawjson.Quote(effort)))
	}
	if e.Effort.Show && !t.NoSummary {
		members.Add("summary", `"auto"`)
	}
	if members != nil {
		dst = rawjson.AppendMember(dst, "reasoning", members.Object())
	}
	if t.NoEncrypted {
		return dst
	}
	return append(dst, `,"include":["reasoning.encrypted_content"]`...)
}

// appendName appends a member with the name of a user or a conversation, if any. A name too long
// for the form is replaced by its hash.
func appendName(dst []byte, member, name string) []byte {
	const longest = 64
	if name == "" {
		return dst
	}
	if len(name) > longest {
		sum := sha256.Sum256([]byte(name))
		name = hex.EncodeToString(sum[:])
	}
	return rawjson.AppendMember(dst, member, rawjson.Quote(name))
}

// format returns the format of the answer's text, or nil for plain text.
func (e *encoder) format() ([]byte, error) {
	f := &e.Format
	switch f.Kind {
	case conversation.Plain:
		return nil, nil
	case conversation.JSONObject:
		return []byte(`{"type":"json_object"}`), nil
	}
	if len(f.Schema) == 0 || f.Schema[0] != '{' {
		return nil, conversation.Unsupported(f.At, "`{param}` must be an object.")
	}
	name := cmp.Or(rawjson.Unquote(f.Name), "output")
	out := rawjson.Put(nil, `{"type":"json_schema","name":"`, conversation.LineName(name), `"`)
	if rawjson.IsText(f.Description) {
		out = rawjson.AppendMember(out, "description", f.Description)
	}
	strict := string(f.Strict) == "true"
	if e.Client == wire.FormMessages || e.Client == wire.FormGemini { // the client's form has no such setting
		strict = isStrict(f.Schema, 0)
	}
	return fmt.Appendf(rawjson.AppendMember(out, "schema", f.Schema), `,"strict":%v}`, strict), nil
}

// isStrict reports whether providers accept a schema as strict: each object requires all its
// properties and allows no others.
func isStrict(schema []byte, depth int) bool {
	const deepest = 32
	if depth > deepest {
		return false
	}
	if len(schema) > 0 && schema[0] == '[' {
		for _, inner := range rawjson.Elements(schema) {
			if !isStrict(inner, depth+1) {
				return false
			}
		}
		return true
	}
	properties := rawjson.Field(schema, "properties")
	if properties != nil || strings.Contains(string(rawjson.Field(schema, "type")), `"object"`) {
		if string(rawjson.Field(schema, "additionalProperties")) != "false" {
			return false
		}
		required := map[string]bool{}
		for _, name := range rawjson.Elements(rawjson.Field(schema, "required")) {
			required[rawjson.Unquote(name)] = true
		}
		for name := range rawjson.Members(properties) {
			if !required[string(name)] {
				return false
			}
		}
	}
	for name, inner := range rawjson.Members(schema) {
		switch string(name) {
		case "properties", "$defs", "definitions":
			for _, member := range rawjson.Members(inner) {
				if !isStrict(member, depth+1) {
					return false
				}
			}
		case "items", "anyOf", "oneOf", "allOf", "prefixItems":
			if !isStrict(inner, depth+1) {
				return false
			}
		}
	}
	return true
}

// isCustom reports whether the line gets a tool or a call as a custom one. OpenAI's hosts have custom
// tools.
func (e *encoder) isCustom(custom bool) bool { return custom && e.target.OpenAI }

// appendTools appends the tools and the tool choice. All tools stay declared if the choice is
// restricted, for the provider's prompt cache. It always writes strict, because providers default to
// strict and then require every parameter.
func (e *encoder) appendTools(out []byte) []byte {
	var list []byte
	for _, tool := range e.Tools {
		custom := e.isCustom(tool.Custom)
		if !custom {
			tool = tool.AsFunction()
		}
		kind := "function"
		if custom {
			kind = "custom"
		}
		list = rawjson.Put(list, `,{"type":"`, kind, `","name":`)
		list = append(list, rawjson.Quote(tool.Line)...)
		if tool.Description != nil {
			list = rawjson.AppendMember(list, "description", tool.Description)
		}
		if custom {
			list = append(appendGrammar(list, tool.Grammar), '}')
			continue
		}
		list = rawjson.AppendMember(list, "parameters", tool.ObjectSchema())
		list = fmt.Appendf(list, `,"strict":%v}`, string(tool.Strict) == "true")
	}
	if list == nil {
		return out
	}
	out = rawjson.AppendMember(out, "tools", conversation.List(list))
	switch c := &e.Choice; {
	case c.Restricted:
		var allowed []byte
		for _, name := range c.Allowed {
			allowed = append(append(allowed, ','), e.toolOf(name)...)
		}
		out = rawjson.Put(out, `,"tool_choice":{"type":"allowed_tools","mode":"`, string(c.Mode), `","tools":`)
		out = append(append(out, conversation.List(allowed)...), '}')
	case c.Mode == conversation.ChoiceOfTool:
		out = rawjson.AppendMember(out, "tool_choice", e.toolOf(c.Tool))
	case c.Mode != conversation.NoChoice:
		out = rawjson.AppendMember(out, "tool_choice", rawjson.Quote(string(c.Mode)))
	}
	if e.Parallel != nil {
		out = rawjson.AppendMember(out, "parallel_tool_calls", e.Parallel)
	}
	return out
}

// toolOf returns the name of a tool in a choice.
func (e *encoder) toolOf(name conversation.ToolName) []byte {
	kind := "function"
	if e.isCustom(name.Custom) {
		kind = "custom"
	}
	out := rawjson.Put(nil, `{"type":"`, kind, `","name":`)
	return rawjson.Put(out, "", rawjson.Quote(e.NameOnLine(name.Name, name.Namespace)), "}")
}

// appendGrammar appends the format of a custom tool. Its grammar is one level higher than in chat
// completions.
func appendGrammar(dst, format []byte) []byte {
	grammar := rawjson.Field(format, "grammar")
	if grammar == nil {
		if format != nil {
			dst = rawjson.AppendMember(dst, "format", format)
		}
		return dst
	}
	dst = append(dst, `,"format":{"type":"grammar"`...)
	for _, name := range []string{"syntax", "definition"} {
		if value := rawjson.Field(grammar, name); value != nil {
			dst = rawjson.AppendMember(dst, name, value)
		}
	}
	return append(dst, '}')
}

// withHint returns the input with a mention of JSON if the form requires one.
func (e *encoder) withHint(list []byte) []byte {
	if e.Format.Kind != conversation.JSONObject || bytes.Contains(bytes.ToLower(list), []byte("json")) {
		return list
	}
	return append(e.message(nil, e.systemRole(), rawjson.Quote(jsonHint)), list...)
}
