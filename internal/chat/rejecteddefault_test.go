package chat

import (
	"encoding/json"
	"fmt"
	"strings"
	"testing"

	"tollgate/internal/fault"
	"tollgate/internal/gatewaytest/fakeprovider"
	"tollgate/internal/ledger"
	"tollgate/internal/upstream"
	"tollgate/internal/wire"
)

// TestAddedFieldsAreTheLines checks that the rejection of a field added by the gateway counts
// against the line.
func TestAddedFieldsAreTheLines(t *testing.T) {
	t.Parallel()
	rejected := func(param, code string) reply {
		return rejecting(`"message":"Unsupported: %s","type":"invalid_request_error","param":%q,"code":%q`, param, param, code)
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
			replies := []reply{rejected(c.param, c.code)}
			if c.on == wire.FormChat && c.param == "max_tokens" { // repeated with the other field, also rejected
				replies = append(replies, rejected("max_completion_tokens", c.code))
			}
			tr := newTrial(t, replies...)
			out := tr.send(formCall(t, c.client, c.on, c.stream))
			want := fault.Code(c.code)
			if c.added {
				want = fault.UpstreamUnavailable
			}
			f := wantFault(t, out, want)
			tr.want(ledger.Failed, "0", f.Status(), want)
		})
	}
}

// TestRejectionsNameTheClientsFields checks that the rejection of a field by a line of another form
// reaches the client under the client's name of the field.
func TestRejectionsNameTheClientsFields(t *testing.T) {
	t.Parallel()
	for param, want := range map[string]string{
		"input": "messages", "input[1].content[0].image_url": "messages", "reasoning.effort": "reasoning_effort",
		"text.format.schema": "response_format", "text.verbosity": "verbosity", "tools[1].parameters": "tools[1].function.parameters",
		"tools": "tools", "service_tier": "service_tier", "": "",
	} {
		t.Run(param, func(t *testing.T) {
			t.Parallel()
			tr := newTrial(t, rejecting(`"message":"No.","type":"invalid_request_error","param":%q,"code":"invalid_value"`, param))
			if f := wantFault(t, tr.send(formCall(t, wire.FormChat, wire.FormResponses, false)), "invalid_value"); f.Param != want {
				t.Errorf("param %q, want %q", f.Param, want)
			}
		})
	}
}

// TestTooLongInTheClientsWords checks that a client learns in its own way of a prompt that is too long:
// clients of messages by the message, all others by the code.
func TestTooLongInTheClientsWords(t *testing.T) {
	t.Parallel()
	for message, forMessages := range map[string]string{
		"Your input exceeds the context window.":                  "prompt is too long: Your input exceeds the context window.",
		"prompt is too long: 9 tokens > 8 maximum":                "prompt is too long: 9 tokens > 8 maximum",
		"input length and `max_tokens` exceed context limit: 9+2": "input length and `max_tokens` exceed context limit: 9+2",
	} {
		for _, client := range []wire.Form{wire.FormChat, wire.FormResponses, wire.FormMessages} {
			for _, on := range []wire.Form{wire.FormChat, wire.FormResponses, wire.FormMessages} {
				tr := newTrial(t, rejecting(`"message":%q,"type":"invalid_request_error"`, message))
				f := wantFault(t, tr.send(formCall(t, client, on, false)), upstream.ContextLengthExceeded)
				want := message
				if client == wire.FormMessages {
					want = forMessages
				}
				if f.Message() != want {
					t.Errorf("%s on %s: message %q; want %q", client, on, f.Message(), want)
				}
			}
		}
	}
}

// thinker returns a function that makes calls of a reasoning model on a line of the responses form.
func thinker(t testing.TB, client wire.Form) func(body string) AcceptedRequest {
	t.Helper()
	c := formCall(t, client, wire.FormResponses, false)
	model := *c.Model
	model.Reasoning = true
	c.Model = &model
	return func(body string) AcceptedRequest {
		t.Helper()
		c := c
		if body != "" {
			c.Body = checked(t, wire.FormMessages, body)
		}
		return c
	}
}

// TestRejectedFieldsAreRemembered checks that a request is repeated without encryption or summary of
// the reasoning after a line refused either, unnoticed by the client, and that later requests omit
// both at once.
func TestRejectedFieldsAreRemembered(t *testing.T) {
	t.Parallel()
	const shown = `{"model":"swift-1","max_tokens":100,"thinking":{"type":"adaptive"},"messages":[{"role":"user","content":"hi"}]}`
	include, summary := [2]string{"include", "encrypted_content"}, [2]string{"reasoning.summary", `"summary":"auto"`}
	for name, c := range map[string]struct {
		client  wire.Form
		body    string // of the messages form; by default a body without reasoning
		refused [][2]string
		again   bool
	}{
		"chat, summary":           {wire.FormChat, "", [][2]string{summary}, true},
		"chat, include":           {wire.FormChat, "", [][2]string{include}, true},
		"responses, include":      {wire.FormResponses, "", [][2]string{include}, true},
		"messages, include":       {wire.FormMessages, shown, [][2]string{include}, true},
		"messages, summary":       {wire.FormMessages, shown, [][2]string{summary}, true},
		"messages, both":          {wire.FormMessages, shown, [][2]string{summary, include}, true},
		"responses, summary":      {wire.FormResponses, "", [][2]string{summary}, false},
		"chat, another field":     {wire.FormChat, "", [][2]string{{"input", "input"}}, false},
		"messages, nothing shown": {wire.FormMessages, "", [][2]string{summary}, false},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			var replies []reply
			for _, field := range c.refused {
				replies = append(replies, rejecting(`"message":"No.","type":"invalid_request_error","param":%q,"code":"unsupported_value"`, field[0]))
			}
			good := good(wire.FormResponses, false)
			tr := newTrial(t, append(replies, good, good)...)
			call := thinker(t, c.client)
			out := tr.send(call(c.body))
			if !c.again {
				if out.err == nil || len(tr.provider.calls) != 1 {
					t.Errorf("%d calls, %v", len(tr.provider.calls), out.err)
				}
				return
			}
			if out.err != nil {
				t.Fatal(out.err)
			}
			tr.want(ledger.Billed, costGood, 200, "")
			later := newTrial(t)
			later.provider, later.lines = tr.provider, tr.lines
			later.mustSend(call(c.body))
			calls := tr.provider.calls
			if len(calls) != len(c.refused)+2 {
				t.Fatalf("%d calls", len(calls))
			}
			ids := map[string]bool{}
			for i, call := range calls {
				ids[call.IdempotencyKey] = true
				for n, field := range c.refused {
					if strings.Contains(string(call.Body.Bytes()), field[1]) != (i <= n) {
						t.Errorf("call %d, %s: %s", i, field[0], call.Body)
					}
				}
			}
			if len(ids) < len(c.refused)+1 {
				t.Errorf("ids of calls: %v", ids)
			}
		})
	}
}

// TestForeignReasoningIsLeftOut checks that a request is repeated without the encrypted reasoning
// of a conversation if the line cannot read it, and that the next conversation is not affected.
func TestForeignReasoningIsLeftOut(t *testing.T) {
	t.Parallel()
	const encrypted = "gAAAsecret"
	call := thinker(t, wire.FormMessages)
	first := newTrial(t, reply{pieces: []string{fakeprovider.ResponsesObject("completed", `{"input_tokens":5,"output_tokens":2}`,
		`{"type":"reasoning","id":"rs_1","summary":[{"type":"summary_text","text":"Hm."}],"encrypted_content":"`+encrypted+`"}`,
		fakeprovider.ResponsesMessage("hello"))}})
	first.mustSend(call(`{"model":"swift-1","max_tokens":2000,"thinking":{"type":"adaptive"},"messages":[{"role":"user","content":"hi"}]}`))
	var answer struct{ Content []struct{ Signature string } }
	if err := json.Unmarshal([]byte(first.client.body()), &answer); err != nil || len(answer.Content) == 0 {
		t.Fatal(err, first.client.body())
	}
	body := fmt.Sprintf(`{"model":"swift-1","max_tokens":100,"messages":[{"role":"user","content":"hi"},{"role":"assistant","content":[
		{"type":"thinking","thinking":"Hm.","signature":%q},{"type":"text","text":"hello"}]},{"role":"user","content":"again"}]}`,
		answer.Content[0].Signature)
	good := good(wire.FormResponses, false)
	tr := newTrial(t, rejecting(`"message":"No.","type":"invalid_request_error","code":"invalid_encrypted_content"`), good, good)
	tr.mustSend(call(body))
	later := newTrial(t)
	later.provider, later.lines = tr.provider, tr.lines
	later.mustSend(call(body))
	for i, has := range []bool{true, false, true} {
		if sent := string(tr.provider.calls[i].Body.Bytes()); strings.Contains(sent, encrypted) != has || !strings.Contains(sent, `"include"`) {
			t.Errorf("call %d: %s", i, sent)
		}
	}
}

// TestForcedToolsOfModelsThatThink checks that thinking is disabled for a model that rejects forced
// tools. If the model rejects the disabling too, this and later requests omit it, and the client
// gets the rejection of the tool.
func TestForcedToolsOfModelsThatThink(t *testing.T) {
	t.Parallel()
	s := snapshotOf(t, `
models: [{id: swift-1, kind: chat, reasoning: true, context_window: 100000, max_output_tokens: 1000, price: {input: 1, output: 10}}]
lines: [{id: only, provider: script, base_url: "https://api.moonshot.ai/v1", models: {swift-1: kimi}}]`, wire.FormChat)
	const body = `{"model":"swift-1","messages":[{"role":"user","content":"hi"}],"tools":[{"type":"function","function":{"name":"f"}}],` +
		`"tool_choice":"required"}`
	refuses := func(message string) reply { return rejecting(`"message":%q,"type":"invalid_request_error"`, message) }
	good := good(wire.FormChat, false)
	never, tool := refuses("unsupported parameter `thinking`"), refuses("Thinking mode does not support this tool_choice")
	for name, c := range map[string]struct {
		replies []reply
		calm    []bool // whether the calls of two requests disable thinking
		refused string
	}{
		"taken":                   {[]reply{good, good}, []bool{true, true}, ""},
		"refused":                 {[]reply{never, tool, tool}, []bool{true, false, false}, "Thinking mode"},
		"refused, the tool taken": {[]reply{never, good, good}, []bool{true, false, false}, ""},
		"the tool refused":        {[]reply{tool, tool}, []bool{true, true}, "Thinking mode"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			tr := newTrial(t, c.replies...)
			for range 2 {
				next := newTrial(t)
				next.provider, next.lines = tr.provider, tr.lines
				out := next.send(chatCall(t, s, body))
				tr.lines = next.lines
				if c.refused == "" && out.err != nil || c.refused != "" && (out.err == nil || !strings.Contains(out.err.Error(), c.refused)) {
					t.Errorf("%v, want %q", out.err, c.refused)
				}
			}
			if len(tr.provider.calls) != len(c.calm) {
				t.Fatalf("%d calls", len(tr.provider.calls))
			}
			for i, sent := range tr.provider.calls {
				if strings.Contains(string(sent.Body.Bytes()), `"thinking":{"type":"disabled"}`) != c.calm[i] {
					t.Errorf("call %d: %s", i, sent.Body)
				}
			}
		})
	}
}

// TestStopsOfModelsWithoutThem checks that the gateway ends the answers of a chat line whose model rejects stop
// sequences, for clients of other forms, and that later requests do not send them.
func TestStopsOfModelsWithoutThem(t *testing.T) {
	t.Parallel()
	const body = `{"model":"swift-1","max_tokens":100,"stop_sequences":[" is"],"messages":[{"role":"user","content":"hi"}]}`
	good := good(wire.FormChat, false)
	rejected := rejecting(`"message":"Unsupported parameter: 'stop' is not supported with this model.","type":"invalid_request_error",` +
		`"param":"stop","code":"unsupported_parameter"`)
	tr := newTrial(t, rejected, good, good)
	call := formCall(t, wire.FormMessages, wire.FormChat, false)
	call.Body = checked(t, wire.FormMessages, body)
	for range 2 {
		next := newTrial(t)
		next.provider, next.lines = tr.provider, tr.lines
		next.mustSend(call)
		tr.lines = next.lines
		if got := next.client.body(); !strings.Contains(got, `"text":"all"`) || !strings.Contains(got, `"stop_sequence":" is"`) {
			t.Errorf("the client got %s", got)
		}
	}
	for i, has := range []bool{true, false, false} {
		if sent := string(tr.provider.calls[i].Body.Bytes()); strings.Contains(sent, `"stop":[" is"]`) != has {
			t.Errorf("call %d: %s", i, sent)
		}
	}
	own := newTrial(t, rejected)
	call = formCall(t, wire.FormChat, wire.FormChat, false)
	call.Body = checked(t, wire.FormChat, `{"model":"swift-1","stop":"lo","messages":[{"role":"user","content":"hi"}]}`)
	if f := wantFault(t, own.send(call), "unsupported_parameter"); f.Param != "stop" {
		t.Errorf("a chat client got %v about %q", f, f.Param)
	}
}

// TestRejectedReasoning checks that a request is repeated without the reasoning of its history after a chat line
// refused the field, and not after the line demanded it.
func TestRejectedReasoning(t *testing.T) {
	t.Parallel()
	const body = `{"model":"swift-1","max_tokens":100,"messages":[{"role":"user","content":"hi"},{"role":"assistant","content":[` +
		`{"type":"thinking","thinking":"Hm.","signature":""},{"type":"tool_use","id":"a","name":"f","input":{}}]},` +
		`{"role":"user","content":[{"type":"tool_result","tool_use_id":"a","content":"r"}]}]}`
	for message, calls := range map[string]int{
		"'messages.1': property 'reasoning_content' is unsupported":                  2,
		"Extra inputs are not permitted, field: 'messages[1].reasoning_content'":     2,
		"The reasoning_content in the thinking mode must be passed back to the API.": 1,
	} {
		refusal := rejecting(`"message":%q,"type":"invalid_request_error","param":null,"code":null`, message)
		tr := newTrial(t, refusal, good(wire.FormChat, false))
		c := formCall(t, wire.FormMessages, wire.FormChat, false)
		model := *c.Model
		model.Reasoning = true
		c.Model, c.Body = &model, checked(t, wire.FormMessages, body)
		out := tr.send(c)
		sent := tr.provider.calls
		if len(sent) != calls || (out.err == nil) != (calls == 2) {
			t.Errorf("%s: got %d calls, %v, want %d", message, len(sent), out.err, calls)
			continue
		}
		for i, call := range sent {
			if strings.Contains(string(call.Body.Bytes()), "reasoning_content") != (i == 0) {
				t.Errorf("%s: call %d has the body %s", message, i, call.Body)
			}
		}
	}
}
