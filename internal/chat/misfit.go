package chat

import (
	"errors"
	"strings"

	"tollgate/internal/fault"
	"tollgate/internal/upstream"
	"tollgate/internal/wire"
)

// streamOptions is the field by which streams are asked for their usage.
const streamOptions = "stream_options"

// limitField is the name of the limit that the gateway adds for a model whose
// catalog entry has one.
func (x *exchange) limitField() string {
	if x.Model.Reasoning {
		return "max_completion_tokens" // the only one that such models take
	}
	return "max_tokens"
}

// misfit turns the rejection of a field that the gateway added into a failure
// of the line for this model: the client has not sent it and cannot mend it.
// Any other error is returned as it is.
func (x *exchange) misfit(err error) error {
	var f *upstream.Failure
	r, ok := x.Body.(*wire.ChatRequest)
	if !ok || !errors.As(err, &f) || f.Passed == nil {
		return err
	}
	param := f.Passed.Param
	if i := strings.IndexAny(param, ".["); i >= 0 {
		param = param[:i]
	}
	_, limit := x.Model.OutputLimit(r.Limit)
	switch {
	case r.Stream && !r.Has(streamOptions) &&
		(param == streamOptions || param == "" && strings.Contains(f.Passed.Message, streamOptions)):
	case limit > 0 && param == x.limitField() && (f.Code == "unsupported_parameter" || f.Code == "unknown_parameter"):
		// Other codes may mean that limit and prompt together are too long,
		// which is for the client to mend.
	default:
		return err
	}
	return &upstream.Failure{Code: fault.UpstreamUnavailable, Health: upstream.HealthModel, Status: f.Status, Cause: f.Cause}
}
