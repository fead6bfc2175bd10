package chat

import (
	"errors"
	"slices"
	"strings"

	"tollgate/internal/catalog"
	"tollgate/internal/fault"
	"tollgate/internal/line"
	"tollgate/internal/upstream"
	"tollgate/internal/wire"
	"tollgate/internal/wire/completions"
	"tollgate/internal/wire/messages"
)

// streamOptions is the field by which streams are asked for their usage.
const streamOptions = "stream_options"

// limitField is where a chat line reads the limit; empty: where the client sent
// it.
func (x *exchange) limitField(on *line.Candidate) string {
	field := on.Line.ReadsLimit(x.Model)
	if _, isChat := x.Body.(*completions.Request); field == "" && !isChat {
		field = catalog.LimitMaxTokens // other forms call it otherwise
	}
	return string(field)
}

// rejectedDefault turns the rejection of a field that the gateway added into a failure
// of the line for this model: the client has not sent it and cannot mend it.
// Any other error is returned as it is.
func (x *exchange) rejectedDefault(on *line.Attempt, err error) error {
	var f *upstream.Failure
	if !errors.As(err, &f) || f.Passed == nil || !x.added(on, f) {
		return err
	}
	return &upstream.Failure{
		Code: fault.UpstreamUnavailable, Health: upstream.HealthModel, Status: f.Status, Used: f.Used, Cause: f.Cause,
		// The message of a chat line may quote a field of the client's.
		Unproven: on.Form == wire.FormChat && f.Passed.Param == "",
	}
}

// added tells whether a rejection is about a field that the client has not
// sent.
func (x *exchange) added(on *line.Attempt, f *upstream.Failure) bool {
	param := f.Passed.Param
	if i := strings.IndexAny(param, ".["); i >= 0 {
		param = param[:i]
	}
	// Other codes about a limit may mean that limit and prompt together are too
	// long, which is for the client to mend.
	unknown := f.Code == "unsupported_parameter" || f.Code == "unknown_parameter"
	_, limit := x.Model.OutputLimit(x.asked.Limit)
	own, isChat := x.Body.(*completions.Request)
	switch on.Form {
	case wire.FormChat:
		if x.asked.Stream && !(isChat && own.Has(streamOptions)) &&
			(param == streamOptions || param == "" && strings.Contains(f.Passed.Message, streamOptions)) {
			return true
		}
		// The client may have called its limit otherwise, or sent none.
		return unknown && slices.Contains([]string{"max_tokens", "max_completion_tokens"}, param) && !(isChat && own.Has(param))
	case wire.FormResponses:
		return unknown && (param == "store" || limit > 0 && param == "max_output_tokens")
	case wire.FormMessages:
		// The form demands a limit. Its errors have no param: the message
		// begins with the field.
		_, same := x.Body.(*messages.Request)
		return !same && x.asked.Limit == 0 && strings.HasPrefix(f.Passed.Message, "max_tokens:")
	}
	return false
}
