package chat

import (
	"errors"
	"regexp"
	"slices"
	"strings"

	"tollgate/internal/catalog"
	"tollgate/internal/fault"
	"tollgate/internal/line"
	"tollgate/internal/upstream"
	"tollgate/internal/wire"
	"tollgate/internal/wire/completions"
	"tollgate/internal/wire/messages"
	"tollgate/internal/wire/responses"
	"tollgate/internal/wire/translate"
)

// streamOptions is the field to request the usage of streams.
const streamOptions = "stream_options"

// limitField returns the limit field of a chat line, or empty for the client's own field.
func (x *chatRequest) limitField(on *line.Candidate) string {
	field := on.LimitField(x.Model)
	if _, isChat := x.Body.(*completions.Request); field == "" && !isChat {
		field = catalog.LimitMaxTokens // other forms have other names for the limit
	}
	return string(field)
}

// tooLong begins the message of the messages form for a prompt beyond the context window, since the form has
// no code. Claude Code shortens the conversation when it gets this message. Claude Code also knows Anthropic's
// message for a prompt and max_tokens that are too long together, so that message stays.
const tooLong = "prompt is too long"

var tooLongForClaude = regexp.MustCompile("(?i)" + tooLong + "|input length and .{0,2}max_tokens.{0,2} exceed")

// clientFailure returns an attempt's error for the client. If client and line use different forms,
// a rejection names the fields of the client's form. A prompt that is too long is reported in the
// words of the client's form.
func (a *attempt) clientFailure(err error) error {
	err = a.rejectedDefault(err)
	var f *upstream.Failure
	if !errors.As(err, &f) || f.Rejection == nil {
		return err
	}
	clientError := *f.Rejection
	if a.on.Form != a.Form {
		clientError.Param = translate.ClientParam(a.Form, a.on.Form, a.params, clientError.Param)
	}
	if a.Form == wire.FormMessages && clientError.Code == upstream.ContextLengthExceeded &&
		!tooLongForClaude.MatchString(clientError.Template) {
		rejection := *clientError.Rejection
		rejection.Prefix = tooLong + ": "
		clientError.Rejection = &rejection
	}
	result := *f
	result.Rejection = &clientError
	return &result
}

// rejectedDefault turns the rejection of a field added by the gateway into a failure of the line
// for this model, because the client has not sent the field and cannot fix it. It returns any other
// error unchanged.
func (a *attempt) rejectedDefault(err error) error {
	var f *upstream.Failure
	if !errors.As(err, &f) || f.Rejection == nil || !a.added(f) {
		return err
	}
	return &upstream.Failure{
		Code: fault.UpstreamUnavailable, Health: upstream.HealthModel, AddedField: true, Status: f.Status, Tokens: f.Tokens, Cause: f.Cause,
		// The message of a chat line may quote a field of the client's.
		Unproven: a.on.Form == wire.FormChat && f.Rejection.Param == "",
	}
}

// added reports whether a rejection is about a field not sent by the client.
func (a *attempt) added(f *upstream.Failure) bool {
	param := topLevel(f.Rejection.Param)
	// Other codes about a limit may mean that limit and prompt together are too long; the client
	// must fix this.
	unknown := isUnknown(f)
	_, limit := a.Model.OutputLimit(a.params.Limit)
	own, isChat := a.Body.(*completions.Request)
	switch a.on.Form {
	case wire.FormChat:
		if a.params.Stream && !(isChat && own.Has(streamOptions)) &&
			(param == streamOptions || param == "" && strings.Contains(f.Rejection.Template, streamOptions)) {
			return true
		}
		// The client may have sent its limit in another field, or no limit.
		return unknown && slices.Contains([]string{"max_tokens", "max_completion_tokens"}, param) && !(isChat && own.Has(param))
	case wire.FormResponses:
		if own, same := a.Body.(*responses.Request); same {
			if param == includeField && !own.Has(param) {
				return true
			}
		} else if addedToResponses(f.Rejection.Param) {
			return true
		}
		return unknown && (param == "store" || limit > 0 && param == "max_output_tokens")
	case wire.FormMessages:
		// The form demands a limit. Its errors have no param: the message
		// begins with the field.
		_, same := a.Body.(*messages.Request)
		return !same && a.params.Limit == 0 && strings.HasPrefix(f.Rejection.Template, "max_tokens:")
	}
	return false
}

// addedToResponses reports whether param is a field of the responses form that the gateway adds for
// clients of other forms. An error in such a field is a defect of the gateway.
func addedToResponses(param string) bool {
	if strings.HasPrefix(param, "input[") {
		member := param[strings.LastIndexByte(param, '.')+1:]
		return slices.Contains([]string{"id", "call_id", "phase", "encrypted_content"}, member)
	}
	return param == summaryField || slices.Contains([]string{includeField, "store", streamOptions}, topLevel(param))
}

// topLevel returns the top-level field of a path.
func topLevel(path string) string {
	if i := strings.IndexAny(path, ".["); i >= 0 {
		return path[:i]
	}
	return path
}
