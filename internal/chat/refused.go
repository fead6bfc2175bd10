package chat

import (
	"bytes"
	"context"
	"errors"
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

// Fields that lines of responses get beyond the client's words, by their paths.
const (
	includeField = "include"           // reasoning comes back encrypted
	summaryField = "reasoning.summary" // and summed up, which takes a verified organisation
)

// askWithout repeats a call that was refused for what the gateway had added to the
// client's words, without it: once for each such field. What the model refuses is
// kept once the request without has met an answer, or a refusal of something else.
// err is the first call's; any other comes back as it is.
func (x *exchange) askWithout(ctx context.Context, on *line.Attempt, pair wire.Pair, t wire.Translation, call chatcall.Call, err error,
) (*chatcall.Response, error) {
	var refused []string
	for {
		field := x.refused(on, &t, refused, err)
		if field == "" {
			if f := (*upstream.Failure)(nil); errors.As(err, &f) && f.Passed != nil {
				learn(on, refused)
			}
			return nil, err
		}
		body, failed := pair.Body(t)
		switch {
		case failed != nil:
			return nil, line.Untranslatable{Err: failed}
		case bytes.Equal(body.Bytes(), call.Body.Bytes()):
			return nil, err // it was not there
		}
		call.Body = body
		call.IdempotencyKey += "-" + field
		var answer *chatcall.Response
		answer, err = on.Chat(ctx, call)
		refused = append(refused, field)
		if err == nil {
			learn(on, refused)
			return answer, nil
		}
	}
}

// learn keeps what the model refuses.
func learn(on *line.Attempt, refused []string) {
	for _, field := range refused {
		if field != sealedField {
			on.LearnRefusal(field)
		}
	}
}

// sealedField stands for encrypted reasoning of the conversation: that a model
// cannot read this one says nothing about others.
const sealedField = "encrypted_content"

// refused returns the field that a call was refused for although the client has
// not sent it, and takes it out of the translation; empty: it was not that, or
// the field was out already, or is in place of one that was refused before.
func (x *exchange) refused(on *line.Attempt, t *wire.Translation, before []string, err error) string {
	var f *upstream.Failure
	if !errors.As(err, &f) || f.Passed == nil {
		return ""
	}
	switch on.Form {
	case wire.FormChat:
		if field := x.refusedLimit(t, before, f); field != "" {
			return field
		}
		return x.refusedNoThinking(t, f)
	case wire.FormResponses:
		return x.refusedReasoning(t, f)
	}
	return ""
}

// isUnknown tells whether a rejection says that a field is not known.
func isUnknown(f *upstream.Failure) bool {
	return f.Code == "unsupported_parameter" || f.Code == "unknown_parameter"
}

// names tells whether a rejection is about a field: by its param, or where it has
// none by a name in quotes.
func names(f *upstream.Failure, field string) bool {
	return f.Passed.Param == field || f.Passed.Param == "" && slices.ContainsFunc([]string{"'", "`", `"`},
		func(quote string) bool { return strings.Contains(f.Passed.Template, quote+field+quote) })
}

// refusedReasoning is refused of a line of responses.
func (x *exchange) refusedReasoning(t *wire.Translation, f *upstream.Failure) string {
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
	switch param := f.Passed.Param; {
	case (strings.HasPrefix(param, includeField) || names(f, includeField)) && !(isOwn && own.Has(includeField)):
		return once(&t.NoEncrypted, includeField)
	case isOwn:
	case names(f, summaryField):
		return once(&t.NoSummary, summaryField)
	case f.Code == "invalid_encrypted_content":
		return once(&t.NoSealed, sealedField)
	}
	return ""
}

// refusedNoThinking is refused of what keeps a model of a chat line from thinking:
// what it says to the forced tool alone is the client's.
func (x *exchange) refusedNoThinking(t *wire.Translation, f *upstream.Failure) string {
	own, isChat := x.Body.(*completions.Request)
	name := t.NoThinking.Name
	if name == "" || isChat && own.Has(name) || !names(f, name) {
		return ""
	}
	t.NoThinking = wire.Member{}
	return name
}

// refusedLimit is refused of a chat line: the limit goes in the other field then.
func (x *exchange) refusedLimit(t *wire.Translation, before []string, f *upstream.Failure) string {
	if len(before) > 0 { // the other one
		return ""
	}
	own, isChat := x.Body.(*completions.Request)
	for _, field := range catalog.LimitFields() {
		quoted := "'" + string(field) + "'"
		told := f.Passed.Param == string(field) && isUnknown(f) ||
			f.Passed.Param == "" && strings.HasPrefix(strings.ToLower(f.Passed.Template), "unsupported parameter: "+quoted)
		if told && !(isChat && own.Has(string(field))) {
			t.LimitField = string(field.Other())
			return string(field)
		}
	}
	return ""
}
