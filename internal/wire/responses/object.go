package responses

import (
	"strconv"
	"strings"

	"tollgate/internal/fault"
	"tollgate/internal/wire"
	"tollgate/internal/wire/rawjson"
)

// Object writes the response objects of one answer: those of a translated answer, and the one for a
// broken stream. They have every member of the form, null if unset, and repeat the request's
// parameters.
type Object struct {
	id, created []byte // JSON
	model       []byte // JSON
	echo        []byte // the members that repeat the request
	tier        string // requested
}

// NewObject returns the writer of the answer to r.
func NewObject(id wire.Identity, r *Request) Object {
	tier := "default"
	if r.ServiceTier != "" {
		tier = r.ServiceTier
	}
	return Object{
		id:      rawjson.Quote(ID(id.Request)),
		created: strconv.AppendInt(nil, id.Created, 10),
		model:   rawjson.Quote(id.Model),
		echo:    appendEcho(nil, r),
		tier:    tier,
	}
}

// ID returns the gateway's id of the response to a request, from the id of the request.
func ID(request string) string { return "resp_" + strings.TrimPrefix(request, "req_") }

// State holds the differences between the response objects of an answer.
type State struct {
	Status string
	Reason string       // of an incomplete response
	err    *fault.Error // of a failed response
	Output []byte       // the items, without brackets
	Usage  *wire.Usage
}

// Append appends the response in the given state.
func (o *Object) Append(dst []byte, s State) []byte {
	dst = rawjson.Put(dst, `{"id":`, o.id, "")
	dst = rawjson.Put(dst, `,"object":"response","created_at":`, o.created, "")
	dst = rawjson.Put(dst, `,"status":"`, s.Status, `","completed_at":`)
	if s.Status == "completed" {
		dst = append(dst, o.created...) // the start of the answer, since there is no clock here
	} else {
		dst = append(dst, "null"...)
	}
	dst = append(dst, `,"error":`...)
	if s.err != nil {
		dst = rawjson.Put(dst, `{"code":`, rawjson.Quote(string(s.err.Code)), "")
		dst = rawjson.Put(dst, `,"message":`, rawjson.Quote(s.err.Message()), "}")
	} else {
		dst = append(dst, "null"...)
	}
	dst = append(dst, `,"incomplete_details":`...)
	if s.Reason != "" {
		dst = rawjson.Put(dst, `{"reason":`, rawjson.Quote(s.Reason), "}")
	} else {
		dst = append(dst, "null"...)
	}
	dst = rawjson.Put(dst, `,"model":`, o.model, "")
	dst = rawjson.Put(dst, `,"output":[`, s.Output, "]")
	dst = append(dst, o.echo...)
	tier := o.tier
	if s.Usage != nil && s.Usage.ServiceTier != "" {
		tier = tierOf(s.Usage.ServiceTier)
	}
	dst = rawjson.Put(dst, `,"service_tier":`, rawjson.Quote(tier), "")
	dst = append(dst, `,"usage":`...)
	if s.Usage != nil {
		dst = appendResponsesUsage(dst, *s.Usage)
	} else {
		dst = append(dst, "null"...)
	}
	return append(dst, '}')
}

// tierOf returns the form's name for the tier reported by a line of any form. Other forms name the
// ordinary tier differently.
func tierOf(tier string) string {
	switch tier {
	case "flex", "scale", "priority":
		return tier
	}
	return "default"
}

func appendResponsesUsage(dst []byte, u wire.Usage) []byte {
	for _, count := range [...]struct {
		name string
		n    int64
	}{
		{`{"input_tokens":`, u.Prompt},
		{`,"input_tokens_details":{"cached_tokens":`, u.Cached},
		{`,"cache_write_tokens":`, u.CacheWrite + u.CacheWrite1h},
		{`},"output_tokens":`, u.Completion},
		{`,"output_tokens_details":{"reasoning_tokens":`, u.Reasoning},
		{`},"total_tokens":`, u.Prompt + u.Completion},
	} {
		dst = strconv.AppendInt(append(dst, count.name...), count.n, 10)
	}
	return append(dst, '}')
}

// appendEcho appends the members of a response that repeat the request, each after a comma. `background` is
// always false, and `store` reports whether the gateway stores the response.
func appendEcho(dst []byte, r *Request) []byte {
	d := r.Doc
	dst = rawjson.Put(dst, `,"background":false,"previous_response_id":`, r.previousJSON(), "")
	dst = strconv.AppendBool(append(dst, `,"store":`...), r.Stored)
	for _, member := range [...]struct{ name, otherwise string }{
		{"frequency_penalty", "0"},
		{"instructions", "null"},
		{outputLimit, "null"},
		{"max_tool_calls", "null"},
		{"metadata", "{}"},
		{"parallel_tool_calls", "true"},
		{"presence_penalty", "0"},
		{"prompt_cache_key", "null"},
		{"safety_identifier", "null"},
		{"temperature", "1"},
		{"tool_choice", `"auto"`},
		{"top_logprobs", "0"},
		{"top_p", "1"},
		{"truncation", `"disabled"`},
	} {
		dst = rawjson.Put(dst, `,"`, member.name, `":`)
		dst = rawjson.AppendOr(dst, d.Raw(member.name), member.otherwise)
	}
	if user := d.Raw("user"); user != nil { // it cannot be null in this form
		dst = rawjson.AppendLine(append(dst, `,"user":`...), user)
	}
	reasoning := d.Raw("reasoning")
	dst = rawjson.AppendOr(append(dst, `,"reasoning":{"effort":`...), rawjson.Field(reasoning, "effort"), "null")
	dst = append(rawjson.AppendOr(append(dst, `,"summary":`...), rawjson.Field(reasoning, "summary"), "null"), '}')
	dst = appendTextEcho(dst, d.Raw("text"))
	return appendToolsEcho(dst, d.Raw("tools"))
}

// appendTextEcho appends the member `text`.
func appendTextEcho(dst, text []byte) []byte {
	dst = append(dst, `,"text":{"format":`...)
	format := rawjson.Field(text, "format")
	if rawjson.Unquote(rawjson.Field(format, "type")) == "json_schema" {
		dst = append(dst, `{"type":"json_schema"`...)
		dst = rawjson.AppendOr(append(dst, `,"name":`...), rawjson.Field(format, "name"), `""`)
		dst = rawjson.AppendOr(append(dst, `,"description":`...), rawjson.Field(format, "description"), "null")
		dst = rawjson.AppendOr(append(dst, `,"schema":`...), rawjson.Field(format, "schema"), "{}")
		dst = append(rawjson.AppendOr(append(dst, `,"strict":`...), rawjson.Field(format, "strict"), "false"), '}')
	} else {
		dst = rawjson.AppendOr(dst, format, `{"type":"text"}`)
	}
	return append(rawjson.AppendOr(append(dst, `,"verbosity":`...), rawjson.Field(text, "verbosity"), `"medium"`), '}')
}

// appendToolsEcho appends the member `tools`, with all members of the functions.
func appendToolsEcho(dst, tools []byte) []byte {
	dst = append(dst, `,"tools":[`...)
	for i, tool := range rawjson.Elements(tools) {
		if i > 0 {
			dst = append(dst, ',')
		}
		if rawjson.Unquote(rawjson.Field(tool, "type")) != "function" {
			dst = rawjson.AppendLine(dst, tool)
			continue
		}
		if inner := rawjson.Field(tool, "function"); inner != nil {
			tool = inner
		}
		dst = rawjson.AppendOr(append(dst, `{"type":"function","name":`...), rawjson.Field(tool, "name"), `""`)
		dst = rawjson.AppendOr(append(dst, `,"description":`...), rawjson.Field(tool, "description"), "null")
		dst = rawjson.AppendOr(append(dst, `,"parameters":`...), rawjson.Field(tool, "parameters"), "null")
		dst = append(rawjson.AppendOr(append(dst, `,"strict":`...), rawjson.Field(tool, "strict"), "false"), '}')
	}
	return append(dst, ']')
}

// BeginEvent appends an event of the form up to its sequence number.
func BeginEvent(dst []byte, kind string, sequence int64) []byte {
	dst = rawjson.Put(dst, "event: ", kind, "")
	dst = rawjson.Put(dst, "\ndata: {\"type\":\"", kind, "")
	return strconv.AppendInt(append(dst, `","sequence_number":`...), sequence, 10)
}

// endEvent completes an event after BeginEvent.
func endEvent(dst []byte) []byte { return append(dst, "}\n\n"...) }

// AppendFailed appends the terminal event of a broken stream.
func (o *Object) AppendFailed(dst []byte, sequence int64, err *fault.Error) []byte {
	dst = append(BeginEvent(dst, "response.failed", sequence), `,"response":`...)
	return endEvent(o.Append(dst, State{Status: "failed", err: err}))
}
