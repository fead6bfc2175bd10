package chat

import (
	"fmt"
	"strings"
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
		{wire.FormChat, wire.FormResponses, "stream_options", "unknown_parameter", true, true},
		{wire.FormMessages, wire.FormResponses, "input[3].call_id", "string_above_max_length", false, true},
		{wire.FormMessages, wire.FormResponses, "store", "unknown_parameter", false, true},
		{wire.FormChat, wire.FormResponses, "input[1].content", "invalid_value", false, false},
		{wire.FormMessages, wire.FormChat, "messages", "invalid_value", true, false},
	} {
		t.Run(fmt.Sprintf("%s on %s, %s", c.client, c.on, c.param), func(t *testing.T) {
			t.Parallel()
			replies := []reply{{failure: rejected(c.param, c.code)}}
			if c.on == wire.FormChat && c.param == "max_tokens" { // asked again with the other field, which is refused too
				replies = append(replies, reply{failure: rejected("max_completion_tokens", c.code)})
			}
			tr := newTrial(t, replies...)
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

// TestRejectionsNameTheClientsFields: what a line of another form says about a
// field reaches the client under its own name.
func TestRejectionsNameTheClientsFields(t *testing.T) {
	t.Parallel()
	for param, want := range map[string]string{
		"input": "messages", "input[1].content[0].image_url": "messages", "reasoning.effort": "reasoning_effort",
		"text.format.schema": "response_format", "text.verbosity": "verbosity", "tools[1].parameters": "tools[1].function.parameters",
		"tools": "tools", "service_tier": "service_tier", "": "",
	} {
		t.Run(param, func(t *testing.T) {
			t.Parallel()
			tr := newTrial(t, reply{failure: upstream.Classify(400, "application/json", fmt.Appendf(nil,
				`{"error":{"message":"No.","type":"invalid_request_error","param":%q,"code":"invalid_value"}}`, param), nil)})
			if f := faultOf(t, tr.conduct(formCall(t, wire.FormChat, wire.FormResponses, false)), "invalid_value"); f.Param != want {
				t.Errorf("param %q, want %q", f.Param, want)
			}
		})
	}
	tr := newTrial(t, reply{failure: upstream.Classify(400, "application/json", []byte(
		`{"error":{"message":"Your input exceeds the context window of this model.","code":"context_length_exceeded","param":"input"}}`), nil)})
	f := faultOf(t, tr.conduct(formCall(t, wire.FormMessages, wire.FormResponses, false)), "context_length_exceeded")
	if f.Message != "prompt is too long: Your input exceeds the context window of this model." {
		t.Error(f.Message)
	}
}

// TestReasoningIsAskedForOnceMoreWithout: a line that refuses to encrypt what a
// model has thought, to sum it up, or to read what another has encrypted, gets the
// request once more without; the client knows nothing of it.
func TestReasoningIsAskedForOnceMoreWithout(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		client      wire.Form
		param, code string
		again       bool
	}{
		{wire.FormChat, "include", "unsupported_parameter", true},
		{wire.FormResponses, "include", "unsupported_parameter", true},
		{wire.FormMessages, "reasoning.summary", "unsupported_value", true},
		{wire.FormChat, "", "invalid_encrypted_content", true},
		{wire.FormResponses, "reasoning.summary", "unsupported_value", false},
		{wire.FormChat, "input", "invalid_value", false},
	} {
		t.Run(fmt.Sprintf("%s, %s %s", c.client, c.param, c.code), func(t *testing.T) {
			t.Parallel()
			refusal := upstream.Classify(400, "application/json", fmt.Appendf(nil,
				`{"error":{"message":"No.","type":"invalid_request_error","param":%q,"code":%q}}`, c.param, c.code), nil)
			replies := []reply{{failure: refusal}}
			if c.again {
				replies = append(replies, reply{pieces: []string{goodWhole(wire.FormResponses)}})
			}
			tr := newTrial(t, replies...)
			call := formCall(t, c.client, wire.FormResponses, false)
			model := *call.Model
			model.Reasoning = true
			call.Model = &model
			out := tr.conduct(call)
			if !c.again {
				if f := faultOf(t, out, fault.Code(c.code)); f.Passed == nil {
					t.Errorf("%v is not passed on", f)
				}
				return
			}
			if out.err != nil {
				t.Fatal(out.err)
			}
			tr.want(ledger.Billed, costUsage, 200, "")
			calls := tr.provider.calls
			if len(calls) != 2 || !strings.Contains(string(calls[0].Body), "encrypted_content") ||
				strings.Contains(string(calls[1].Body), "encrypted_content") || calls[0].IdempotencyKey == calls[1].IdempotencyKey {
				t.Errorf("%d calls, the last %s", len(calls), calls[len(calls)-1].Body)
			}
		})
	}
}
