package chatresponses

import (
	"cmp"
	"fmt"

	"tollgate/internal/wire"
	"tollgate/internal/wire/rawjson"
	"tollgate/internal/wire/translate/internal/item"
	"tollgate/internal/wire/translate/internal/piece"
)

// Body returns the request in the responses form. Equal requests give equal bytes, and a request
// that continues another begins with the same items. Unsupported values are rejected with the path
// of the field. Fields that only adjust an answer (`seed`, penalties, `logit_bias`), and fields not
// supported by reasoning models, are left out. A reasoning model is asked for a summary, because
// the answer has a place for it. Check must be called first.
func (r chatOnResponses) Body(t wire.Translation) (rawjson.Pieces, error) {
	if err := r.checkSupported(t); err != nil {
		return nil, err
	}
	input := item.NewInput(t, r.id)
	for i, message := range rawjson.Elements(r.Doc.Raw("messages")) {
		if err := addMessage(input, message, t, fmt.Sprintf("messages[%d]", i)); err != nil {
			return nil, err
		}
	}
	format, err := r.format()
	if err != nil {
		return nil, err
	}
	effort, err := item.Effort(r.Doc.Raw("reasoning_effort"), t, "reasoning_effort")
	if err != nil {
		return nil, err
	}
	list := input.End(string(rawjson.Field(format, "type")) == `"json_object"`)
	out := make([]byte, 0, r.Size()+r.Size()/8+512)
	out = rawjson.Put(out, `{"model":`, rawjson.Quote(t.Model), "")
	out = rawjson.AppendMember(out, "input", list)
	if out, err = r.appendTools(out); err != nil {
		return nil, err
	}
	out = item.AppendLimit(out, cmp.Or(r.Limit, t.Limit))
	out = r.appendSampling(out, t)
	out = item.AppendFormat(out, format, r.Doc.Raw("verbosity"))
	out = item.AppendReasoning(out, t, effort, effort != "none", r.asksLogprobs())
	out = r.appendNames(out, t)
	return rawjson.Pieces{item.AppendEnd(out, t, r.Stream)}, nil
}

// checkSupported rejects values with an effect on the answer or its price and without a
// counterpart.
func (r chatOnResponses) checkSupported(t wire.Translation) error {
	if r.N > 1 {
		return piece.Unsupported("n", "This model gives one answer a request: leave `{param}` out or send 1.")
	}
	params := *r.Params()
	params.Options = nil
	for _, o := range r.Options {
		if o.Param != "service_tier" { // the form has this field
			params.Options = append(params.Options, o)
		}
	}
	if err := piece.CheckTranslatable(&params); err != nil {
		return err
	}
	if r.Doc.Raw("moderation") != nil {
		return piece.Unsupported("moderation", "`{param}` is not offered for this model. Leave it out.")
	}
	if stop := r.Doc.Raw("stop"); len(stop) > 2 { // not "" or []
		return piece.Unsupported("stop", "`{param}` is not offered for this model. Leave it out.")
	}
	if t.Reasoning && r.asksLogprobs() {
		return piece.Unsupported("logprobs", "`{param}` is not offered for this model, which thinks. Leave it out.")
	}
	return nil
}

// appendSampling appends the sampling parameters.
func (r chatOnResponses) appendSampling(out []byte, t wire.Translation) []byte {
	if t.Reasoning {
		return out
	}
	for _, name := range []string{"temperature", "top_p"} {
		if raw := r.Doc.Raw(name); raw != nil {
			out = rawjson.AppendMember(out, name, raw)
		}
	}
	if raw := r.Doc.Raw("top_logprobs"); raw != nil && r.asksLogprobs() {
		out = rawjson.AppendMember(out, "top_logprobs", raw)
	}
	return out
}

// appendNames appends the tier and the names of the user and the prompt.
func (r chatOnResponses) appendNames(out []byte, t wire.Translation) []byte {
	if tier := r.Doc.Raw("service_tier"); tier != nil {
		out = rawjson.AppendMember(out, "service_tier", tier)
	}
	user := rawjson.Unquote(r.Doc.Raw("safety_identifier"))
	if user == "" {
		user = rawjson.Unquote(r.Doc.Raw("user"))
	}
	out = item.AppendName(out, "safety_identifier", user)
	out = item.AppendName(out, "prompt_cache_key", rawjson.Unquote(r.Doc.Raw("prompt_cache_key")))
	if t.OpenAI {
		for _, name := range []string{"prompt_cache_options", "prompt_cache_retention"} {
			if raw := r.Doc.Raw(name); raw != nil {
				out = rawjson.AppendMember(out, name, raw)
			}
		}
	}
	return out
}

// format returns the format of the answer's text, or nil for plain text.
func (r chatOnResponses) format() ([]byte, error) {
	raw := r.Doc.Raw("response_format")
	if raw == nil {
		return nil, nil
	}
	switch rawjson.Unquote(rawjson.Field(raw, "type")) {
	case "text":
		return nil, nil
	case "json_object":
		return []byte(`{"type":"json_object"}`), nil
	case "json_schema":
	default:
		return nil, piece.Unsupported("response_format.type", "`{param}` must be text, json_object or json_schema for this model.")
	}
	jsonSchema := rawjson.Field(raw, "json_schema")
	schema := rawjson.Field(jsonSchema, "schema")
	if len(schema) == 0 || schema[0] != '{' {
		return nil, piece.Unsupported("response_format.json_schema.schema", "`{param}` must be an object.")
	}
	name := rawjson.Field(jsonSchema, "name")
	if !rawjson.IsText(name) || len(name) == 2 {
		name = []byte(`"output"`)
	}
	out := rawjson.Put(nil, `{"type":"json_schema","name":`, item.LineName(name), "")
	if text := rawjson.Field(jsonSchema, "description"); rawjson.IsText(text) {
		out = rawjson.AppendMember(out, "description", text)
	}
	out = rawjson.AppendMember(out, "schema", schema)
	return fmt.Appendf(out, `,"strict":%v}`, string(rawjson.Field(jsonSchema, "strict")) == "true"), nil
}
