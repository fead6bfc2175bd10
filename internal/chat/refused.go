package chat

import (
	"bytes"
	"errors"
	"regexp"
	"slices"
	"strings"

	"tollgate/internal/catalog"
	"tollgate/internal/line"
	"tollgate/internal/upstream"
	"tollgate/internal/upstream/chatcall"
	"tollgate/internal/wire"
	"tollgate/internal/wire/completions"
	"tollgate/internal/wire/responses"
)

// Fields added by the gateway for lines of the responses form, by their paths.
const (
	includeField = "include"           // reasoning comes back encrypted
	summaryField = "reasoning.summary" // asks for a summary, and needs a verified organisation
	// reasoningField is the reasoning in messages of chat lines. Some hosts reject it.
	reasoningField = "reasoning_content"
)

// stopField has the stop sequences of a chat line. If the model has none, the gateway ends the answers for
// clients of other forms.
const stopField = "stop"

// retryWithout repeats a rejected call without the rejected field, if the gateway had added the field or can
// replace it, once for each such field. It records the rejections if the last call is answered, or rejected
// for another reason. err is the error of the first call; retryWithout returns any other error unchanged.
func (a *attempt) retryWithout(call chatcall.Call, err error) (*chatcall.Response, error) {
	var refused []string
	for {
		field := a.rejectedField(refused, err)
		if field == "" {
			if f := (*upstream.Failure)(nil); errors.As(err, &f) && f.Rejection != nil {
				a.recordRejections(refused)
			}
			return nil, err
		}
		body, failed := a.pair.Body(a.translation)
		switch {
		case failed != nil:
			return nil, line.UntranslatableError{Err: failed}
		case bytes.Equal(body.Bytes(), call.Body.Bytes()):
			return nil, err // the body did not have the field
		}
		call.Body = body
		call.IdempotencyKey += "-" + field
		var answer *chatcall.Response
		answer, err = a.on.Chat(a.call.Ctx, call)
		refused = append(refused, field)
		if err == nil {
			a.recordRejections(refused)
			return answer, nil
		}
	}
}

// recordRejections records the fields refused by the model.
func (a *attempt) recordRejections(refused []string) {
	for _, field := range refused {
		if field != sealedField {
			a.on.LearnRefusal(field)
		}
	}
}

// sealedField stands for encrypted reasoning and signatures in the conversation, which a client may
// have from another account. Their rejection is not recorded, because it concerns this conversation only.
const sealedField = "encrypted_content"

// rejectedField returns the rejected field of a call and removes it from the translation, if the gateway can
// do without the field: the client has not sent it, or only returned it from an earlier answer, or the
// gateway can replace it. It returns the empty string for any other error, for a field removed before, and
// for a field that replaced a rejected one.
func (a *attempt) rejectedField(before []string, err error) string {
	var f *upstream.Failure
	if !errors.As(err, &f) || f.Rejection == nil {
		return ""
	}
	t := &a.translation
	switch a.on.Form {
	case wire.FormChat:
		if field := a.rejectedLimit(t, before, f); field != "" {
			return field
		}
		if !t.NoReasoning && !t.NeedsReasoning && a.Form != wire.FormChat && rejectsReasoning(f) {
			t.NoReasoning = true
			return reasoningField
		}
		if field := a.rejectedNoThinking(t, f); field != "" {
			return field
		}
		return a.rejectedStops(t, f)
	case wire.FormResponses:
		return a.rejectedReasoning(t, f)
	case wire.FormMessages, wire.FormGemini, wire.FormInteractions:
		if !t.NoSealed && strings.Contains(strings.ToLower(f.Rejection.Template), "signature") {
			t.NoSealed = true
			return sealedField
		}
	}
	return ""
}

// isUnknown reports whether a rejection is about an unknown field.
func isUnknown(f *upstream.Failure) bool {
	return f.Code == "unsupported_parameter" || f.Code == "unknown_parameter"
}

// rejectsReasoning reports whether a provider rejected the reasoning in a message. A demand for reasoning is
// not a rejection.
func rejectsReasoning(f *upstream.Failure) bool {
	return strings.Contains(f.Rejection.Param+f.Rejection.Template, reasoningField) &&
		(isUnknown(f) || reasoningRejected.MatchString(f.Rejection.Template))
}

var reasoningRejected = regexp.MustCompile(`(?i)unsupported|not supported|not permitted|not allowed|unexpected|unrecognized|unknown|extra`)

// isAbout reports whether a rejection is about a field: by its param, or without a param by the
// quoted name in its message.
func isAbout(f *upstream.Failure, field string) bool {
	return f.Rejection.Param == field || f.Rejection.Param == "" && slices.ContainsFunc([]string{"'", "`", `"`},
		func(quote string) bool { return strings.Contains(f.Rejection.Template, quote+field+quote) })
}

// rejectedReasoning is rejectedField for the reasoning fields of a line of the responses form.
func (x *chatRequest) rejectedReasoning(t *wire.Translation, f *upstream.Failure) string {
	if !t.Reasoning {
		return ""
	}
	own, isOwn := x.Body.(*responses.Request)
	once := func(out *bool, field string) string {
		if *out {
			return ""
		}
		*out = true
		return field
	}
	switch param := f.Rejection.Param; {
	case (strings.HasPrefix(param, includeField) || isAbout(f, includeField)) && !(isOwn && own.Has(includeField)):
		return once(&t.NoEncrypted, includeField)
	case f.Code == "invalid_encrypted_content":
		return once(&t.NoSealed, sealedField)
	case isOwn:
	case isAbout(f, summaryField):
		return once(&t.NoSummary, summaryField)
	}
	return ""
}

// rejectedNoThinking is rejectedField for the field that keeps a model on a chat line from thinking. A
// rejection of the forced tool itself goes to the client.
func (x *chatRequest) rejectedNoThinking(t *wire.Translation, f *upstream.Failure) string {
	own, isChat := x.Body.(*completions.Request)
	name := t.NoThinking.Name
	if name == "" || isChat && own.Has(name) || !isAbout(f, name) {
		return ""
	}
	t.NoThinking = wire.Member{}
	return name
}

// rejectedStops is rejectedField for the stop sequences on a chat line. They are the client's, but the gateway can
// end the answer itself.
func (x *chatRequest) rejectedStops(t *wire.Translation, f *upstream.Failure) string {
	_, isChat := x.Body.(*completions.Request)
	unsupported := isUnknown(f) || strings.Contains(strings.ToLower(f.Rejection.Template), "support")
	if isChat || t.NoStops || !unsupported || !isAbout(f, stopField) {
		return ""
	}
	t.NoStops = true
	return stopField
}

// rejectedLimit is rejectedField for the limit of a chat line. The repeated call uses the other limit field.
func (x *chatRequest) rejectedLimit(t *wire.Translation, before []string, f *upstream.Failure) string {
	if len(before) > 0 { // a field was replaced before
		return ""
	}
	own, isChat := x.Body.(*completions.Request)
	for _, field := range catalog.LimitFields() {
		quoted := "'" + string(field) + "'"
		named := f.Rejection.Param == string(field) && isUnknown(f) ||
			f.Rejection.Param == "" && strings.HasPrefix(strings.ToLower(f.Rejection.Template), "unsupported parameter: "+quoted)
		if named && !(isChat && own.Has(string(field))) {
			t.LimitField = string(field.Other())
			return string(field)
		}
	}
	return ""
}
