package responses

import (
	"bytes"

	"tollgate/internal/wire"
	"tollgate/internal/wire/internal/form"
	"tollgate/internal/wire/rawjson"
)

// answer is an answer of the responses form that was not streamed.
type answer struct {
	form.Answer
	tier string

	reports form.Reports
}

// ReadAnswer reads a provider's answer and retains body. It returns ErrMalformed if body is not a
// JSON object.
func ReadAnswer(body []byte) (wire.Answer, error) {
	object := rawjson.Object(body)
	if object == nil {
		return nil, wire.ErrMalformed
	}
	r := readResponse(object)
	a := &answer{tier: r.tier}
	a.reports.Add(r.usage, true)
	for _, item := range rawjson.Elements(r.output) {
		addOutputItem(&a.Output, item)
		addHostedCall(&a.Output, item)
	}
	a.Content, a.Reasoning = a.Output.Content, a.Output.Reasoning
	a.Finish(r.finish())
	if a.Err = r.failed(); a.Err == nil && form.IsError(object, r.output != nil) {
		a.Err = &wire.ProviderError{Body: body}
	}
	a.Ended = a.Err == nil && (r.status == "completed" || r.status == "incomplete")
	return a, nil
}

func (a *answer) Usage() (wire.Usage, bool) {
	return a.reports.Complete(a.tier, a.Output.Tools), a.reports.IsFinal()
}

// pieces returns an answer with the gateway's members, in pieces to be written one after the other, so
// that a long answer is not copied.
func pieces(body []byte, r *Request, id wire.Identity) [3][]byte {
	from := bytes.IndexByte(body, '{')
	members := newObjectEdits(r, id)
	edits := shift(members.of(body[from:]), from)
	switch len(edits) {
	case 0:
		return [3][]byte{body}
	case 1:
		return [3][]byte{body[:edits[0].From], edits[0].Text, body[edits[0].To:]}
	}
	return [3][]byte{rawjson.Replace(body, edits)}
}

// objectEdits are the gateway's members of response objects, in JSON. A nil member is unchanged.
type objectEdits struct{ model, store, id, previous []byte }

// newObjectEdits returns the members for the answer to r.
func newObjectEdits(r *Request, id wire.Identity) objectEdits {
	e := objectEdits{model: rawjson.Quote(id.Model), store: []byte("false")}
	if r.Stored {
		e.id, e.store = rawjson.Quote(ID(id.Request)), []byte("true")
	}
	if r.previous != "" {
		e.previous = r.previousJSON()
	}
	return e
}

// of returns the edits of a response object. A null `store` stays, unless the response is stored.
func (e *objectEdits) of(object []byte) []rawjson.Splice {
	var edits []rawjson.Splice
	for m := range rawjson.Spans(object) {
		var text []byte
		value := object[m.From:m.To]
		switch string(m.Name) {
		case "model":
			text = e.model
		case "store":
			if text = e.store; e.id == nil && rawjson.NonNull(value) == nil {
				text = nil
			}
		case "id":
			text = e.id
		case "previous_response_id":
			text = e.previous
		}
		if text != nil && !bytes.Equal(value, text) {
			edits = append(edits, rawjson.Splice{From: m.From, To: m.To, Text: text})
		}
	}
	return edits
}

// responseBody holds the members of a response object.
type responseBody struct {
	status     string
	incomplete string // the reason
	tier       string
	output     []byte // the array, or nil
	failure    []byte // the error object, or nil

	usage form.UsageReport
}

func readResponse(object []byte) (r responseBody) {
	for name, value := range rawjson.Members(object) {
		if rawjson.NonNull(value) == nil {
			continue
		}
		switch string(name) {
		case "status":
			r.status = rawjson.Unquote(value)
		case "incomplete_details":
			r.incomplete = rawjson.Unquote(rawjson.Field(value, "reason"))
		case "service_tier":
			r.tier = rawjson.Unquote(value)
		case "output":
			r.output = value
		case "error":
			r.failure = value
		case "usage":
			r.usage = form.ReadUsage(value)
		}
	}
	return r
}

// finish returns FinishLimit or FinishFiltered for an incomplete answer, or FinishNone.
func (r *responseBody) finish() form.FinishKind {
	switch r.incomplete {
	case "max_output_tokens", "max_tokens":
		return form.FinishLimit
	case "content_filter":
		return form.FinishFiltered
	}
	return form.FinishNone
}

// failed returns the error of a response that failed, was cancelled or has an error. It returns nil for any
// other response.
func (r *responseBody) failed() *wire.ProviderError {
	if r.failure != nil {
		body := rawjson.Put(nil, `{"error":`, r.failure, "}")
		if form.IsError(body, true) {
			return &wire.ProviderError{Body: body}
		}
	}
	for _, reason := range [...]string{r.status, r.incomplete} {
		if form.FinishOf(reason) == form.FinishFailed {
			return &wire.ProviderError{Reason: reason}
		}
	}
	return nil
}

// errorBody returns the body of an `error` event, with the members of the error in an error object.
// The form has them at the top level.
func errorBody(data []byte) []byte {
	if inner := rawjson.Field(data, "error"); inner != nil {
		return rawjson.Put(nil, `{"error":`, inner, "}")
	}
	out := []byte(`{"error":{`)
	for name, value := range rawjson.Members(data) {
		switch string(name) {
		case "code", "message", "param":
			if out[len(out)-1] != '{' {
				out = append(out, ',')
			}
			out = append(rawjson.Put(out, `"`, name, `":`), value...)
		}
	}
	return append(out, "}}"...)
}

// isClientCall reports whether an item is the call of a client tool.
func isClientCall(item []byte) bool {
	kind := rawjson.Field(item, "type")
	return string(kind) == `"function_call"` || string(kind) == `"custom_tool_call"`
}

// addOutputItem adds an item of an answer and reports whether there was a token. Searches of hosted
// tools alone are not content.
func addOutputItem(o *form.Output, item []byte) (token bool) {
	switch kind := rawjson.Unquote(rawjson.Field(item, "type")); kind {
	case "reasoning":
		token = addItem(o, item) || rawjson.Field(item, "encrypted_content") != nil
		o.Reasoning = o.Reasoning || token
	case "message":
		token = addItem(o, item)
		o.Content = o.Content || token
	case "web_search_call", "file_search_call", "code_interpreter_call", "mcp_list_tools", "tool_search_call":
	default:
		addItem(o, item)
		o.Content, token = true, true
	}
	return token
}

// addHostedCall counts the item if it is the call of a hosted tool.
func addHostedCall(o *form.Output, item []byte) {
	if name := hostedCall(item); name != "" {
		o.Tools.Add(name, 1)
	}
}

// ReportedUsage returns the usage at the top level of an object.
func ReportedUsage(object []byte) wire.Usage {
	return form.ReadUsage(rawjson.Field(object, "usage")).Usage
}
