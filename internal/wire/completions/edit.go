package completions

import (
	"cmp"

	"tollgate/internal/wire"
	"tollgate/internal/wire/internal/form"
	"tollgate/internal/wire/rawjson"
)

// Body returns the body for a line: the client's bytes except for the gateway's fields. `store` is sent as
// false, so that nothing is kept at the provider, and state sealed for another provider account is left out.
// Check must be called first. The result must not be modified; it is the client's body itself if nothing
// changes.
func (r *Request) Body(e wire.Edits) rawjson.Pieces {
	d := r.Doc
	edits := rawjson.Edits{Doc: d}
	edits.SetText("model", e.Model)
	edits.Drop(e.Omit...)
	r.SetLimit(&edits, r.limitField(e), cmp.Or(r.Limit, e.Limit))
	if keep, ok := rawjson.Boolean(d.Raw("store")); keep || !ok {
		edits.Set("store", []byte("false"))
	}
	if e.SystemOnly || d.HasPrefix() {
		r.EditMessages(&edits, func(message []byte) []byte {
			if d.HasPrefix() {
				message = openState(message, e.Origin)
			}
			if e.SystemOnly {
				message = withoutDeveloper(message)
			}
			return message
		})
	}
	r.setThinking(&edits, e)
	if r.Stream && e.AskUsage && !r.IncludeUsage {
		if d.Raw("stream_options") == nil {
			edits.Set("stream_options", []byte(`{"include_usage":true}`))
		} else {
			edits.Splices = append(edits.Splices, askUsage(d))
		}
	}
	return edits.Body()
}

// openState opens the state of an account in a message, and removes state sealed for other accounts.
func openState(message []byte, origin string) []byte {
	inElements := func(name string, edit func([]byte) []byte) {
		message = form.EditMember(message, name, func(list []byte) []byte {
			out, _ := form.EditElements(list, edit)
			if string(out) == "[]" {
				return nil
			}
			return out
		})
	}
	signature := func(owner []byte) []byte { return openSignature(owner, origin) }
	inElements("reasoning_details", func(detail []byte) []byte { return form.OpenSealed(detail, origin, "data", "signature") })
	inElements("tool_calls", signature)
	inElements("images", signature)
	return signature(message)
}

// openSignature opens the signature of a call, an image or a message, at its place in Google's chat form.
func openSignature(owner []byte, origin string) []byte {
	return form.EditMember(owner, "extra_content", func(extra []byte) []byte {
		if google := rawjson.Field(extra, "google"); google != nil && form.OpenSealed(google, origin, "thought_signature") == nil {
			return nil
		}
		return form.EditMember(extra, "google", func(google []byte) []byte { return form.OpenSealed(google, origin, "thought_signature") })
	})
}

// setThinking sets an effort supported by the model, and disables thinking for a model that would
// reject a forced tool otherwise.
func (r *Request) setThinking(edits *rawjson.Edits, e wire.Edits) {
	effort := r.Doc.Raw("reasoning_effort")
	if e.NoThinking.Name != "" && r.forcesTool() {
		edits.Set(e.NoThinking.Name, []byte(e.NoThinking.Value))
		for _, name := range []string{"reasoning_effort", "thinking_budget"} {
			if r.Has(name) {
				edits.Drop(name)
			}
		}
		return
	}
	if supported, err := e.Effort(effort, "reasoning_effort"); err == nil && string(supported) != string(effort) {
		edits.Set("reasoning_effort", supported)
	}
}

// forcesTool reports whether the model must call a tool.
func (r *Request) forcesTool() bool {
	choice := r.Doc.Raw("tool_choice")
	if nested := rawjson.Field(choice, "allowed_tools"); nested != nil {
		return rawjson.Unquote(rawjson.Field(nested, "mode")) == "required"
	}
	return rawjson.Unquote(choice) == "required" || rawjson.Field(choice, "type") != nil
}

// withoutDeveloper returns a message with the role system instead of developer.
func withoutDeveloper(message []byte) []byte {
	if rawjson.Unquote(rawjson.Field(message, "role")) == "developer" {
		return form.WithMember(message, "role", []byte(`"system"`))
	}
	return message
}

// askUsage sets include_usage in the client's stream_options.
func askUsage(d *rawjson.RequestBody) rawjson.Splice {
	m := d.Find("stream_options")
	options := d.Body[m.From:m.To]
	last := 1 // after the brace
	for inner := range rawjson.Spans(options) {
		if string(inner.Name) == "include_usage" {
			return rawjson.Splice{From: m.From + inner.From, To: m.From + inner.To, Text: []byte("true")}
		}
		last = inner.To
	}
	text := []byte(`,"include_usage":true`)
	if last == 1 {
		text = text[1:]
	}
	return rawjson.Splice{From: m.From + last, To: m.From + last, Text: text}
}

// limitField returns the limit field of a chat line: the edits' field, or else the client's.
func (r *Request) limitField(e wire.Edits) string {
	switch {
	case e.LimitField != "":
		return e.LimitField
	case r.Doc.Raw("max_completion_tokens") != nil:
		return "max_completion_tokens"
	}
	return "max_tokens"
}
