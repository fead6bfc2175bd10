package clients

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"net/http"
	"strings"
	"testing"

	"github.com/openai/openai-go/v3"
	"github.com/openai/openai-go/v3/option"
)

// TestOpenAIForGo tests one gateway with the official Go client.
func TestOpenAIForGo(t *testing.T) {
	g := start(t)
	account := g.account(t, "10")
	client := g.client(g.key(t, account, nil))

	t.Run("lists models except retired ones", func(t *testing.T) {
		page, err := client.Models.List(context.Background())
		if err != nil {
			t.Fatal(err)
		}
		owners := map[string]string{}
		for _, m := range page.Data {
			owners[m.ID] = m.OwnedBy
			if m.Object != "model" || m.Created == 0 {
				t.Errorf("%s: object %q, created %d", m.ID, m.Object, m.Created)
			}
		}
		if owners["swift-1"] != "example" || owners["ponder-1"] != "tollgate" || owners["soon-1"] == "" || owners["resting-1"] == "" {
			t.Errorf("models and owners: %v", owners)
		}
		if _, listed := owners["gone-1"]; listed {
			t.Error("a retired model is listed")
		}
	})

	t.Run("answers and charges to the nano-dollar", func(t *testing.T) {
		ownAccount := g.account(t, "1")
		client := g.client(g.key(t, ownAccount, nil))
		var res *http.Response
		answer, err := client.Chat.Completions.New(context.Background(), ask("swift-1", "Good morning"), option.WithResponseInto(&res))
		if err != nil {
			t.Fatal(err)
		}
		if len(answer.Choices) != 1 || !strings.Contains(answer.Choices[0].Message.Content, "Good morning") ||
			answer.Choices[0].FinishReason != "stop" {
			t.Errorf("choices: %+v", answer.Choices)
		}
		if answer.Model != "swift-1" || answer.Object != "chat.completion" || answer.ID == "" {
			t.Errorf("model %q, object %q, id %q", answer.Model, answer.Object, answer.ID)
		}
		checkRequestIDs(t, res)
		if answer.Usage.PromptTokens == 0 || answer.Usage.CompletionTokens == 0 {
			t.Fatalf("usage: %+v", answer.Usage)
		}
		// 0.25 and 2 USD a million are 250 and 2000 nano-dollars a token.
		want := answer.Usage.PromptTokens*250 + answer.Usage.CompletionTokens*2000
		usage := g.usage(t, client)
		if got := nano(t, usage.Total.CostUSD); got != want {
			t.Errorf("charged %d nano-dollars, want %d", got, want)
		}
		if got := nano(t, usage.Balance.USD); got != 1_000_000_000-want {
			t.Errorf("balance %s USD after a charge of %d nano-dollars", usage.Balance.USD, want)
		}
		if usage.Total.Requests != 1 || usage.Total.Billed != 1 || usage.Total.Failed != 0 || usage.Today != usage.Total {
			t.Errorf("totals: %+v, today %+v", usage.Total, usage.Today)
		}
		var grants struct {
			Available json.Number `json:"total_available"`
		}
		if err := client.Get(context.Background(), "dashboard/billing/credit_grants", nil, &grants); err != nil {
			t.Fatal(err)
		}
		if got := nano(t, grants.Available); got != 1_000_000_000-want {
			t.Errorf("total_available %s", grants.Available)
		}
	})

	t.Run("streams", func(t *testing.T) {
		chunks, text := collect(t, client, ask("swift-1", "Tell me more"))
		if !strings.Contains(text, "Tell me more") {
			t.Errorf("text: %q", text)
		}
		last := chunks[len(chunks)-1]
		if len(last.Choices) != 1 || last.Choices[0].FinishReason != "stop" {
			t.Errorf("last chunk: %s", last.RawJSON())
		}
		for _, c := range chunks {
			if c.ID != chunks[0].ID || c.Model != "swift-1" || c.Object != "chat.completion.chunk" || len(c.Choices) == 0 {
				t.Errorf("chunk: %s", c.RawJSON())
			}
			if c.JSON.Usage.Valid() {
				t.Errorf("usage that the request does not ask for: %s", c.RawJSON())
			}
		}
	})

	t.Run("streams usage on request", func(t *testing.T) {
		params := ask("swift-1", "And the bill?")
		params.StreamOptions = openai.ChatCompletionStreamOptionsParam{IncludeUsage: openai.Bool(true)}
		chunks, _ := collect(t, client, params)
		last := chunks[len(chunks)-1]
		if len(last.Choices) != 0 || last.Usage.PromptTokens == 0 || last.Usage.CompletionTokens == 0 ||
			last.Usage.TotalTokens != last.Usage.PromptTokens+last.Usage.CompletionTokens {
			t.Errorf("last chunk: %s", last.RawJSON())
		}
	})

	t.Run("thinks before it answers", func(t *testing.T) {
		answer, err := client.Chat.Completions.New(context.Background(), ask("ponder-1", "Why?"))
		if err != nil {
			t.Fatal(err)
		}
		if answer.Usage.CompletionTokensDetails.ReasoningTokens == 0 || answer.Choices[0].Message.Content == "" {
			t.Errorf("answer: %s", answer.RawJSON())
		}
	})

	for _, model := range []string{"swift-1", "on-messages"} {
		t.Run("calls tools of "+model, func(t *testing.T) { testTools(t, client, model) })
		t.Run("answers with a schema of "+model, func(t *testing.T) {
			params := ask(model, "Who are you?")
			params.ResponseFormat.OfJSONSchema = &openai.ResponseFormatJSONSchemaParam{JSONSchema: openai.ResponseFormatJSONSchemaJSONSchemaParam{
				Name: "person", Strict: openai.Bool(true), Schema: map[string]any{
					"type":                 "object",
					"properties":           map[string]any{"name": map[string]any{"type": "string"}},
					"required":             []string{"name"},
					"additionalProperties": false,
				},
			}}
			answer, err := client.Chat.Completions.New(context.Background(), params)
			if err != nil {
				t.Fatal(err)
			}
			var person struct{ Name *string }
			if err := json.Unmarshal([]byte(answer.Choices[0].Message.Content), &person); err != nil || person.Name == nil {
				t.Errorf("answer: %s", answer.RawJSON())
			}
		})
	}
	t.Run("reports an error in the middle of a stream", func(t *testing.T) {
		stream := client.Chat.Completions.NewStreaming(context.Background(), ask("cut-1", "Hello"))
		defer func() { _ = stream.Close() }() // same error as stream.Err
		text, finished := "", false
		for stream.Next() {
			for _, c := range stream.Current().Choices {
				text += c.Delta.Content
				finished = finished || c.FinishReason != ""
			}
		}
		if stream.Err() == nil || finished || text == "" {
			t.Errorf("text %q, finished %v, error %v", text, finished, stream.Err())
		}
	})
	t.Run("rejects", func(t *testing.T) { testRefusals(t, g, client, account) })
}

// testTools runs a tool call: the model calls, the caller returns the result, the model uses it.
// Then it repeats the call as a stream.
func testTools(t *testing.T, client openai.Client, model string) {
	params := ask(model, "Please get weather for Oslo")
	params.Tools = []openai.ChatCompletionToolUnionParam{openai.ChatCompletionFunctionTool(openai.FunctionDefinitionParam{
		Name:        "get_weather",
		Description: openai.String("The weather of a city"),
		Parameters: openai.FunctionParameters{
			"type":       "object",
			"properties": map[string]any{"city": map[string]any{"type": "string"}},
			"required":   []string{"city"},
		},
	})}
	answer, err := client.Chat.Completions.New(context.Background(), params)
	if err != nil {
		t.Fatal(err)
	}
	if answer.Choices[0].FinishReason != "tool_calls" || len(answer.Choices[0].Message.ToolCalls) != 1 {
		t.Fatalf("answer: %s", answer.RawJSON())
	}
	call := answer.Choices[0].Message.ToolCalls[0]
	var arguments map[string]any
	if err := json.Unmarshal([]byte(call.Function.Arguments), &arguments); err != nil || arguments["city"] == nil ||
		call.Function.Name != "get_weather" || call.ID == "" {
		t.Fatalf("call: %+v (%v)", call, err)
	}

	_, streamed := collect(t, client, params)
	if streamed != call.Function.Arguments {
		t.Errorf("streamed arguments %q, want %q", streamed, call.Function.Arguments)
	}

	params.Messages = append(params.Messages, answer.Choices[0].Message.ToParam(), openai.ToolMessage("Rain, 4 degrees", call.ID))
	answer, err = client.Chat.Completions.New(context.Background(), params)
	if err != nil {
		t.Fatal(err)
	}
	if !strings.Contains(answer.Choices[0].Message.Content, "Rain, 4 degrees") {
		t.Errorf("answer: %s", answer.RawJSON())
	}
}

// testRefusals provokes every class of error and checks the client's error: status, code, type,
// param, message, headers.
func testRefusals(t *testing.T, g *gateway, client openai.Client, account string) {
	poor, hasty := g.key(t, g.account(t, "0"), nil), g.key(t, account, map[string]any{"rpm": 1})
	hastyClient := g.client(hasty)
	if _, err := hastyClient.Chat.Completions.New(context.Background(), ask("swift-1", "First")); err != nil {
		t.Fatal(err)
	}
	if _, err := client.Chat.Completions.New(context.Background(), ask("free-1", "First")); err != nil {
		t.Fatal(err)
	}
	noMessages := ask("swift-1", "x")
	noMessages.Messages = []openai.ChatCompletionMessageParamUnion{}
	noTokens := ask("swift-1", "x")
	noTokens.MaxTokens = openai.Int(0)
	thinksOnly := ask("ponder-1", "x")
	thinksOnly.MaxTokens = openai.Int(2)

	for _, tt := range []struct {
		name              string
		key               string                          // by default, a key that is allowed everything
		model             string                          // by default, swift-1
		params            *openai.ChatCompletionNewParams // by default, a question to model
		option            option.RequestOption            // may be nil
		status            int
		code, kind, param string
		header            [2]string // name and value; an empty value means that the header must be absent
	}{
		{name: "no messages", params: &noMessages, status: 400, code: "invalid_messages", kind: "invalid_request_error", param: "messages"},
		{name: "unknown role", option: option.WithJSONSet("messages.0.role", "wizard"),
			status: 400, code: "invalid_role", kind: "invalid_request_error", param: "messages[0].role"},
		{name: "no tokens", params: &noTokens, status: 400, code: "invalid_max_tokens", kind: "invalid_request_error", param: "max_tokens"},
		{name: "body is not JSON", option: option.WithRequestBody("application/json", []byte("{")),
			status: 400, code: "invalid_json", kind: "invalid_request_error"},
		{name: "body is not an object", option: option.WithRequestBody("application/json", []byte("[]")),
			status: 400, code: "invalid_request", kind: "invalid_request_error"},
		{name: "body is not UTF-8", option: option.WithRequestBody("application/json", []byte("{\"a\":\"\xff\"}")),
			status: 400, code: "invalid_encoding", kind: "invalid_request_error"},
		{name: "stream is not a boolean", option: option.WithJSONSet("stream", "yes"),
			status: 400, code: "invalid_request", kind: "invalid_request_error", param: "stream"},
		{name: "tier without a price", option: option.WithJSONSet("service_tier", "priority"),
			status: 400, code: "invalid_request", kind: "invalid_request_error", param: "service_tier"},
		{name: "unknown model", model: "nothing-1", status: 400, code: "model_not_found", kind: "invalid_request_error", param: "model"},
		{name: "retired model", model: "gone-1", status: 400, code: "model_disabled", kind: "invalid_request_error", param: "model"},
		{name: "announced model", model: "soon-1", status: 400, code: "model_coming_soon", kind: "invalid_request_error", param: "model"},
		{name: "only thinking fits", params: &thinksOnly,
			status: 400, code: "max_tokens_too_small", kind: "invalid_request_error", param: "max_tokens"},
		{name: "provider rejects", model: "strict-1",
			status: 400, code: "context_length_exceeded", kind: "invalid_request_error", param: "messages"},
		{name: "provider filters", model: "filter-1", status: 400, code: "content_filter", kind: "invalid_request_error"},
		{name: "no key", option: option.WithHeaderDel("Authorization"), status: 401, code: "missing_api_key", kind: "authentication_error"},
		{name: "unknown key", key: "tg-nobody", status: 401, code: "invalid_api_key", kind: "authentication_error"},
		{name: "no balance", key: poor,
			status: 402, code: "insufficient_quota", kind: "insufficient_quota", header: [2]string{"x-should-retry", "false"}},
		{name: "dearer than the balance", model: "dear-1",
			status: 402, code: "insufficient_quota", kind: "insufficient_quota", header: [2]string{"x-should-retry", "false"}},
		{name: "daily budget", key: g.key(t, account, map[string]any{"daily_budget_usd": "0.000001"}),
			status: 402, code: "insufficient_quota", kind: "insufficient_quota", header: [2]string{"x-should-retry", "false"}},
		{name: "model allowlist", key: g.key(t, account, map[string]any{"allowed_models": []string{"ponder-1"}}),
			status: 403, code: "permission_denied", kind: "permission_error", param: "model"},
		{name: "address allowlist", key: g.key(t, account, map[string]any{"allowed_ips": []string{"203.0.113.7"}}),
			status: 403, code: "permission_denied", kind: "permission_error"},
		{name: "requests per minute", key: hasty,
			status: 429, code: "rate_limit_exceeded", kind: "rate_limit_error", header: [2]string{"Retry-After", ""}},
		{name: "free daily requests", model: "free-1",
			status: 429, code: "rate_limit_exceeded", kind: "rate_limit_error", header: [2]string{"x-should-retry", "false"}},
		{name: "provider is busy", model: "busy-1", status: 502, code: "upstream_busy", kind: "upstream_error"},
		{name: "provider breaks", model: "broken-1", status: 502, code: "upstream_connection_error", kind: "upstream_error"},
		{name: "provider is down", model: "down-1", status: 502, code: "upstream_unavailable", kind: "upstream_error"},
		{name: "provider is slow", model: "slow-1", status: 502, code: "upstream_timeout", kind: "upstream_error"},
		{name: "provider says nothing", model: "empty-1", status: 502, code: "empty_completion", kind: "upstream_error"},
		{name: "model under maintenance", model: "resting-1",
			status: 503, code: "model_maintenance", kind: "service_unavailable", param: "model"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			client, params, options := client, ask(cmp.Or(tt.model, "swift-1"), "x"), []option.RequestOption(nil)
			if tt.key != "" {
				client = g.client(tt.key)
			}
			if tt.params != nil {
				params = *tt.params
			}
			if tt.option != nil {
				options = append(options, tt.option)
			}
			_, err := client.Chat.Completions.New(context.Background(), params, options...)
			header := checkFault(t, err, tt.status, tt.code, tt.kind, tt.param)
			if got := header.Get(tt.header[0]); got != tt.header[1] {
				t.Errorf("%s: %q, want %q", tt.header[0], got, tt.header[1])
			}
		})
	}
	t.Run("unknown path", func(t *testing.T) {
		err := client.Get(context.Background(), "nowhere", nil, &struct{}{})
		checkFault(t, err, 404, "not_found", "not_found_error", "")
	})
}

// checkFault checks an error as the client reports it, and returns the answer's headers. The error
// has all four members and both request ids.
func checkFault(t *testing.T, err error, status int, code, kind, param string) http.Header {
	t.Helper()
	var fault *openai.Error
	if !errors.As(err, &fault) {
		t.Fatalf("error: %v", err)
	}
	if fault.StatusCode != status || fault.Code != code || fault.Type != kind || fault.Param != param {
		t.Errorf("%d %s %s %q, want %d %s %s %q (%s)", fault.StatusCode, fault.Code, fault.Type, fault.Param, status, code, kind, param,
			fault.RawJSON())
	}
	if fault.Message == "" {
		t.Error("no message")
	}
	if got := fault.Response.Header.Get("Content-Type"); got != "application/json" {
		t.Errorf("Content-Type %q", got)
	}
	var members map[string]any
	if err := json.Unmarshal([]byte(fault.RawJSON()), &members); err != nil {
		t.Error(err)
	} else if _, ok := members["param"]; !ok {
		t.Errorf("no param: %s", fault.RawJSON())
	}
	checkRequestIDs(t, fault.Response)
	return fault.Response.Header
}

// checkRequestIDs checks that both headers have the same id.
func checkRequestIDs(t *testing.T, res *http.Response) {
	t.Helper()
	if id := res.Header.Get("x-request-id"); !strings.HasPrefix(id, "req_") || res.Header.Get("request-id") != id {
		t.Errorf("x-request-id %q, request-id %q", id, res.Header.Get("request-id"))
	}
}

// client returns the official client. Its retries are off, so that tests see each answer.
func (g *gateway) client(key string) openai.Client {
	return openai.NewClient(option.WithBaseURL(g.url+"/v1/"), option.WithAPIKey(key), option.WithMaxRetries(0))
}

// ask returns a request with one user message.
func ask(model, text string) openai.ChatCompletionNewParams {
	return openai.ChatCompletionNewParams{
		Model:    model,
		Messages: []openai.ChatCompletionMessageParamUnion{openai.UserMessage(text)},
	}
}

// collect streams a request to its end and returns the chunks and the joined
// text or tool arguments.
func collect(t *testing.T, client openai.Client, params openai.ChatCompletionNewParams) ([]openai.ChatCompletionChunk, string) {
	t.Helper()
	stream := client.Chat.Completions.NewStreaming(context.Background(), params)
	defer func() { _ = stream.Close() }() // same error as stream.Err
	var chunks []openai.ChatCompletionChunk
	var text strings.Builder
	for stream.Next() {
		chunk := stream.Current()
		chunks = append(chunks, chunk)
		for _, choice := range chunk.Choices {
			text.WriteString(choice.Delta.Content)
			for _, call := range choice.Delta.ToolCalls {
				text.WriteString(call.Function.Arguments)
			}
		}
	}
	if err := stream.Err(); err != nil {
		t.Fatal(err)
	}
	if len(chunks) < 2 {
		t.Fatalf("%d chunks", len(chunks))
	}
	return chunks, text.String()
}

// usage is the answer of /v1/usage, with numbers as sent.
type usage struct {
	Balance struct {
		USD     json.Number `json:"usd"`
		Credits json.Number `json:"credits"`
	} `json:"balance"`
	Total totals `json:"total"`
	Today totals `json:"today"`
}

// totals is one sum of usage.
type totals struct {
	CostUSD  json.Number `json:"cost_usd"`
	Requests int         `json:"requests"`
	Billed   int         `json:"billed_requests"`
	Failed   int         `json:"failed_requests"`
}

// usage asks for the account's usage.
func (g *gateway) usage(t *testing.T, client openai.Client) usage {
	t.Helper()
	var raw []byte
	if err := client.Get(context.Background(), "usage", nil, &raw); err != nil {
		t.Fatal(err)
	}
	var u usage
	if err := json.Unmarshal(raw, &u); err != nil {
		t.Fatalf("%v: %s", err, raw)
	}
	return u
}

// nano converts a decimal number of dollars to nano-dollars, exactly.
func nano(t *testing.T, n json.Number) int64 {
	t.Helper()
	whole, part, _ := strings.Cut(n.String(), ".")
	if len(part) > 9 {
		t.Fatalf("%s has more than nine decimals", n)
	}
	v, err := json.Number(whole + part + strings.Repeat("0", 9-len(part))).Int64()
	if err != nil {
		t.Fatalf("%s: %v", n, err)
	}
	return v
}
