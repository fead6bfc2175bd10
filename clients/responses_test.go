package clients

import (
	"context"
	"encoding/json"
	"net/http"
	"slices"
	"strings"
	"testing"

	"github.com/openai/openai-go/v3"
	"github.com/openai/openai-go/v3/option"
	"github.com/openai/openai-go/v3/responses"
	"github.com/openai/openai-go/v3/shared"
)

// TestResponsesForGo tests the official Go client's responses methods on a responses line and on
// lines of other forms.
func TestResponsesForGo(t *testing.T) {
	g := start(t)
	account := g.account(t, "10")
	client := g.client(g.key(t, account, nil))

	for _, line := range []string{"responses", "chat", "messages"} {
		t.Run("on "+line, func(t *testing.T) {
			t.Run("answers", func(t *testing.T) { testResponse(t, client, "on-"+line) })
			t.Run("streams", func(t *testing.T) { testResponseStream(t, client, "on-"+line) })
			t.Run("calls functions", func(t *testing.T) { testFunctions(t, client, "on-"+line) })
			t.Run("answers in a JSON schema", func(t *testing.T) { testJSONSchema(t, client, "on-"+line) })
			t.Run("thinks", func(t *testing.T) { testReasoning(t, client, "thinks-on-"+line) })
			t.Run("reports an error in the middle of a stream", func(t *testing.T) { testBrokenStream(t, client, "cut-on-"+line) })
		})
	}
	t.Run("rejects", func(t *testing.T) { testResponseRefusals(t, g, client, account) })
}

// testResponse asks for a whole answer.
func testResponse(t *testing.T, client openai.Client, model string) {
	var res *http.Response
	params := input(model, "Good morning")
	params.Instructions = openai.String("Be brief.")
	answer, err := client.Responses.New(context.Background(), params, option.WithResponseInto(&res))
	if err != nil {
		t.Fatal(err)
	}
	if answer.Model != model || answer.Object != "response" || answer.ID == "" || answer.Status != responses.ResponseStatusCompleted {
		t.Errorf("response: %s", answer.RawJSON())
	}
	if !strings.Contains(answer.OutputText(), "Good morning") {
		t.Errorf("text: %q", answer.OutputText())
	}
	if answer.Usage.InputTokens == 0 || answer.Usage.OutputTokens == 0 ||
		answer.Usage.TotalTokens != answer.Usage.InputTokens+answer.Usage.OutputTokens {
		t.Errorf("usage: %s", answer.Usage.RawJSON())
	}
	checkRequestIDs(t, res)

	params.MaxOutputTokens = openai.Int(2)
	answer, err = client.Responses.New(context.Background(), params)
	if err != nil || answer.Status != responses.ResponseStatusIncomplete || answer.IncompleteDetails.Reason != "max_output_tokens" {
		t.Errorf("a short answer: %v, %v", answer, err)
	}
}

// testResponseStream reads a stream: numbered events, the parts of the text, and the whole response
// at the end.
func testResponseStream(t *testing.T, client openai.Client, model string) {
	events := stream(t, client, input(model, "Tell me more"))
	text, done := "", ""
	for _, e := range events {
		switch e.Type {
		case "response.output_text.delta":
			text += e.Delta
		case "response.output_text.done":
			done += e.Text
		}
	}
	if events[0].Type != "response.created" || events[0].Response.Status != responses.ResponseStatusInProgress {
		t.Errorf("first event: %s", events[0].RawJSON())
	}
	last := events[len(events)-1]
	if last.Type != "response.completed" || last.Response.ID != events[0].Response.ID || last.Response.Model != model ||
		last.Response.Usage.OutputTokens == 0 {
		t.Errorf("last event: %s", last.RawJSON())
	}
	if !strings.Contains(text, "Tell me more") || text != done || text != last.Response.OutputText() {
		t.Errorf("deltas %q, text %q, whole %q", text, done, last.Response.OutputText())
	}
}

// testFunctions streams a call, and sends the result back with the items of the response.
func testFunctions(t *testing.T, client openai.Client, model string) {
	params := input(model, "Please get weather for Oslo")
	params.Tools = []responses.ToolUnionParam{responses.ToolParamOfFunction("get_weather", map[string]any{
		"type":                 "object",
		"properties":           map[string]any{"city": map[string]any{"type": "string"}},
		"required":             []string{"city"},
		"additionalProperties": false,
	}, true)}
	events := stream(t, client, params)
	arguments := ""
	for _, e := range events {
		if e.Type == "response.function_call_arguments.delta" {
			arguments += e.Delta
		}
	}
	answer := events[len(events)-1].Response
	i := slices.IndexFunc(answer.Output, func(o responses.ResponseOutputItemUnion) bool { return o.Type == "function_call" })
	if i < 0 {
		t.Fatalf("no call: %s", answer.RawJSON())
	}
	call := answer.Output[i].AsFunctionCall()
	var input map[string]any
	if err := json.Unmarshal([]byte(call.Arguments), &input); err != nil || input["city"] == nil || call.Name != "get_weather" ||
		call.CallID == "" || call.Arguments != arguments {
		t.Fatalf("call: %s (%v), deltas %q", call.RawJSON(), err, arguments)
	}
	turns := responses.ResponseInputParam{
		responses.ResponseInputItemParamOfMessage("Please get weather for Oslo", responses.EasyInputMessageRoleUser),
		responses.ResponseInputItemParamOfFunctionCall(call.Arguments, call.CallID, call.Name),
		output(call.CallID, "Rain, 4 degrees"),
	}
	params.Input = responses.ResponseNewParamsInputUnion{OfInputItemList: turns}
	end, err := client.Responses.New(context.Background(), params)
	if err != nil {
		t.Fatal(err)
	}
	if !strings.Contains(end.OutputText(), "Rain, 4 degrees") {
		t.Errorf("answer: %s", end.RawJSON())
	}
}

// output returns the item with a function's result.
func output(callID, text string) responses.ResponseInputItemUnionParam {
	item := responses.ResponseInputItemParamOfFunctionCallOutput(text)
	item.OfFunctionCallOutput.CallID = openai.String(callID)
	return item
}

// testJSONSchema requests JSON with a schema.
func testJSONSchema(t *testing.T, client openai.Client, model string) {
	params := input(model, "Who are you?")
	params.Text = responses.ResponseTextConfigParam{Format: responses.ResponseFormatTextConfigParamOfJSONSchema("person", map[string]any{
		"type":                 "object",
		"properties":           map[string]any{"name": map[string]any{"type": "string"}, "age": map[string]any{"type": "integer"}},
		"required":             []string{"name", "age"},
		"additionalProperties": false,
	})}
	answer, err := client.Responses.New(context.Background(), params)
	if err != nil {
		t.Fatal(err)
	}
	var person struct {
		Name *string
		Age  *int
	}
	if err := json.Unmarshal([]byte(answer.OutputText()), &person); err != nil || person.Name == nil || person.Age == nil {
		t.Errorf("text: %q (%v)", answer.OutputText(), err)
	}
	if answer.Text.Format.Type != "json_schema" || answer.Text.Format.Name != "person" {
		t.Errorf("format: %s", answer.Text.RawJSON())
	}
}

// testReasoning expects a reasoning item before the message, and sends it back.
func testReasoning(t *testing.T, client openai.Client, model string) {
	params := input(model, "Why?")
	params.Reasoning = shared.ReasoningParam{Effort: shared.ReasoningEffortLow, Summary: shared.ReasoningSummaryAuto}
	params.Include = []responses.ResponseIncludable{responses.ResponseIncludableReasoningEncryptedContent}
	events := stream(t, client, params)
	answer := events[len(events)-1].Response
	var kinds []string
	for _, item := range answer.Output {
		kinds = append(kinds, item.Type)
	}
	if !slices.Equal(kinds, []string{"reasoning", "message"}) || len(answer.Output[0].Summary) == 0 || answer.Output[0].Summary[0].Text == "" {
		t.Fatalf("items: %s", answer.RawJSON())
	}
	reasoning := answer.Output[0].AsReasoning().ToParam()
	message := answer.Output[1].AsMessage().ToParam()
	params.Input = responses.ResponseNewParamsInputUnion{OfInputItemList: responses.ResponseInputParam{
		responses.ResponseInputItemParamOfMessage("Why?", responses.EasyInputMessageRoleUser),
		{OfReasoning: &reasoning}, {OfOutputMessage: &message},
		responses.ResponseInputItemParamOfMessage("And then?", responses.EasyInputMessageRoleUser),
	}}
	next, err := client.Responses.New(context.Background(), params)
	if err != nil || !strings.Contains(next.OutputText(), "And then?") {
		t.Errorf("the next turn: %v, %v", next, err)
	}
}

// testBrokenStream expects response.failed if a stream breaks off.
func testBrokenStream(t *testing.T, client openai.Client, model string) {
	s := client.Responses.NewStreaming(context.Background(), input(model, "Hello"))
	defer func() { _ = s.Close() }() // same error as s.Err
	text, failed := "", false
	for s.Next() {
		switch e := s.Current(); e.Type {
		case "response.output_text.delta":
			text += e.Delta
		case "response.failed":
			failed = true
			if e.Response.Status != responses.ResponseStatusFailed || e.Response.Error.Code == "" || e.Response.Error.Message == "" {
				t.Errorf("event: %s", e.RawJSON())
			}
		case "response.completed", "response.incomplete":
			t.Errorf("a broken stream ended with %s", e.RawJSON())
		}
	}
	if !failed || text == "" {
		t.Errorf("text %q, failed %v, error %v", text, failed, s.Err())
	}
}

// testResponseRefusals provokes every class of error.
func testResponseRefusals(t *testing.T, g *gateway, client openai.Client, account string) {
	poor := g.client(g.key(t, g.account(t, "0"), nil))
	hasty := g.client(g.key(t, account, map[string]any{"rpm": 1}))
	if _, err := hasty.Responses.New(context.Background(), input("on-responses", "First")); err != nil {
		t.Fatal(err)
	}
	noTokens := input("on-responses", "x")
	noTokens.MaxOutputTokens = openai.Int(0)
	stored := input("on-responses", "x")
	stored.PreviousResponseID = openai.String("resp_1")
	background := input("on-responses", "x")
	background.Background = openai.Bool(true)
	search := input("on-responses", "x")
	search.Tools = []responses.ToolUnionParam{responses.ToolParamOfWebSearch(responses.WebSearchToolTypeWebSearch)}
	for _, tt := range []struct {
		name              string
		client            openai.Client
		params            responses.ResponseNewParams
		status            int
		code, kind, param string
	}{
		{"no input", client, responses.ResponseNewParams{Model: "on-responses"}, 400, "invalid_request", "invalid_request_error", "input"},
		{"no tokens", client, noTokens, 400, "invalid_max_tokens", "invalid_request_error", "max_output_tokens"},
		{"a stored response", client, stored, 400, "invalid_request", "invalid_request_error", "previous_response_id"},
		{"in the background", client, background, 400, "invalid_request", "invalid_request_error", "background"},
		{"a tool without a price", client, search, 400, "invalid_request", "invalid_request_error", "tools[0].type"},
		{"unknown model", client, input("nothing-1", "x"), 400, "model_not_found", "invalid_request_error", "model"},
		{"model of another form", client, input("swift-1", "x"), 400, "model_not_found", "invalid_request_error", "model"},
		{"retired model", client, input("gone-1", "x"), 400, "model_disabled", "invalid_request_error", "model"},
		{"provider rejects", client, input("strict-1", "x"), 400, "context_length_exceeded", "invalid_request_error", "input"},
		{"unknown key", g.client("sk-nobody"), input("on-responses", "x"), 401, "invalid_api_key", "authentication_error", ""},
		{"no balance", poor, input("on-responses", "x"), 402, "insufficient_quota", "insufficient_quota", ""},
		{"model allowlist", g.client(g.key(t, account, map[string]any{"allowed_models": []string{"on-chat"}})), input("on-responses", "x"), 403,
			"permission_denied", "permission_error", "model"},
		{"over the requests per minute", hasty, input("on-responses", "x"), 429, "rate_limit_exceeded", "rate_limit_error", ""},
		{"provider is busy", client, input("busy-1", "x"), 502, "upstream_busy", "upstream_error", ""},
		{"provider breaks", client, input("broken-1", "x"), 502, "upstream_connection_error", "upstream_error", ""},
		{"model under maintenance", client, input("resting-1", "x"), 503, "model_maintenance", "service_unavailable", "model"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			_, err := tt.client.Responses.New(context.Background(), tt.params)
			checkFault(t, err, tt.status, tt.code, tt.kind, tt.param)
		})
	}
	t.Run("no line for a moment", func(t *testing.T) {
		_, err := client.Responses.New(context.Background(), input("busy-1", "x")) // The line is cooling now.
		header := checkFault(t, err, 503, "service_unavailable", "service_unavailable", "")
		if header.Get("Retry-After") == "" {
			t.Error("no Retry-After")
		}
	})
}

// input returns a request with a text.
func input(model, text string) responses.ResponseNewParams {
	return responses.ResponseNewParams{Model: model, Input: responses.ResponseNewParamsInputUnion{OfString: openai.String(text)}}
}

// stream reads a stream to its end. Event numbers begin at 0.
func stream(t *testing.T, client openai.Client, params responses.ResponseNewParams) []responses.ResponseStreamEventUnion {
	t.Helper()
	s := client.Responses.NewStreaming(context.Background(), params)
	defer func() { _ = s.Close() }() // same error as s.Err
	var events []responses.ResponseStreamEventUnion
	for s.Next() {
		e := s.Current()
		if e.SequenceNumber != int64(len(events)) {
			t.Errorf("event %d has the number %d", len(events), e.SequenceNumber)
		}
		events = append(events, e)
	}
	if err := s.Err(); err != nil {
		t.Fatal(err)
	}
	if len(events) < 4 {
		t.Fatalf("%d events", len(events))
	}
	return events
}
