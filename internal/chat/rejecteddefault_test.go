package chat

import (
	"fmt"
	"testing"

	"tollgate/internal/fault"
	"tollgate/internal/ledger"
	"tollgate/internal/upstream"
	"tollgate/internal/wire"
)

// TestAddedFieldsAreTheLines: a provider that rejects what the gateway has
// added, and the client has not sent, is a line that does not fit.
func TestAddedFieldsAreTheLines(t *testing.T) {
	t.Parallel()
	rejected := func(param, code string) *upstream.Failure {
		return upstream.Classify(400, "application/json", fmt.Appendf(nil,
			`{"error":{"message":"Unsupported: %s","type":"invalid_request_error","param":%q,"code":%q}}`, param, param, code), nil)
	}
	for _, c := range []struct {
		client, on  wire.Form
		param, code string
		stream      bool
		added       bool
	}{
		{wire.FormMessages, wire.FormChat, "stream_options", "unknown_parameter", true, true},
		{wire.FormResponses, wire.FormChat, "stream_options", "unknown_parameter", true, true},
		{wire.FormResponses, wire.FormChat, "max_tokens", "unsupported_parameter", false, true},
		{wire.FormResponses, wire.FormResponses, "max_output_tokens", "unsupported_parameter", false, true},
		{wire.FormResponses, wire.FormResponses, "temperature", "unsupported_parameter", false, false},
		{wire.FormMessages, wire.FormChat, "messages", "invalid_value", true, false},
	} {
		t.Run(fmt.Sprintf("%s on %s, %s", c.client, c.on, c.param), func(t *testing.T) {
			t.Parallel()
			tr := newTrial(t, reply{failure: rejected(c.param, c.code)})
			out := tr.conduct(formCall(t, c.client, c.on, c.stream))
			want := fault.Code(c.code)
			if c.added {
				want = fault.UpstreamUnavailable
			}
			f := faultOf(t, out, want)
			tr.want(ledger.Failed, "0", f.Status(), want)
		})
	}
}
