package clients

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"slices"
	"strings"
	"testing"

	"github.com/anthropics/anthropic-sdk-go"
	"github.com/anthropics/anthropic-sdk-go/option"
	"github.com/anthropics/anthropic-sdk-go/packages/param"
)

// TestAnthropicForGo tests the official Go client of the messages form on a messages line and on a
// chat line.
func TestAnthropicForGo(t *testing.T) {
	g := start(t)
	account := g.account(t, "10")
	client := g.native(g.key(t, account, nil))

	for _, line := range []string{"messages", "chat"} {
		t.Run("on "+line, func(t *testing.T) {
			t.Run("answers", func(t *testing.T) { testMessage(t, client, "on-"+line) })
			t.Run("streams", func(t *testing.T) { testMessageStream(t, client, "on-"+line) })
			t.Run("calls tools", func(t *testing.T) { testMessageTools(t, client, "on-"+line) })
			t.Run("thinks", func(t *testing.T) { testThinking(t, client, "thinks-on-"+line) })
			t.Run("sees images", func(t *testing.T) {
				params := say("on-"+line, "What is this?")
				params.Messages[0].Content = append(params.Messages[0].Content, anthropic.NewImageBlockBase64("image/png", redDot))
				message, err := client.Messages.New(context.Background(), params)
				if err != nil || !strings.Contains(textOf(*message), "What is this?") {
					t.Errorf("%v, %v", message, err)
				}
			})
			t.Run("reports an error in the middle of a stream", func(t *testing.T) {
				message, err := accumulate(client.Messages.NewStreaming(context.Background(), say("cut-on-"+line, "Hello")))
				if err == nil || message.StopReason != "" || textOf(message) == "" {
					t.Errorf("text %q, stop reason %q, error %v", textOf(message), message.StopReason, err)
				}
			})
		})
	}

	t.Run("counts tokens", func(t *testing.T) {
		for _, model := range []string{"on-messages", "on-chat"} {
			count, err := client.Messages.CountTokens(context.Background(), anthropic.MessageCountTokensParams{
				Model: anthropic.Model(model), Messages: say(model, "How long is this?").Messages,
				System: anthropic.MessageCountTokensParamsSystemUnion{OfString: param.NewOpt("Be brief.")},
			})
			if err != nil || count.InputTokens < 5 || count.InputTokens > 50 {
				t.Errorf("%s: %+v, %v", model, count, err)
			}
		}
	})
	t.Run("lists the models of the form, page by page", func(t *testing.T) { testNativeModels(t, client) })
	t.Run("rejects", func(t *testing.T) { testNativeRefusals(t, g, client, account) })
}

// redDot is a PNG of one pixel, as base64.
const redDot = "iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mP8z8DwHwAFBQIAX8jx0gAAAABJRU5ErkJggg=="

// testMessage asks for a whole answer.
func testMessage(t *testing.T, client anthropic.Client, model string) {
	var res *http.Response
	params := say(model, "Good morning")
	params.System = []anthropic.TextBlockParam{{Text: "Be brief.", CacheControl: anthropic.NewCacheControlEphemeralParam()}}
	message, err := client.Messages.New(context.Background(), params, option.WithResponseInto(&res))
	if err != nil {
		t.Fatal(err)
	}
	if string(message.Model) != model || message.Type != "message" || message.Role != "assistant" || message.ID == "" {
		t.Errorf("message: %s", message.RawJSON())
	}
	if !strings.Contains(textOf(*message), "Good morning") || message.StopReason != anthropic.StopReasonEndTurn {
		t.Errorf("message: %s", message.RawJSON())
	}
	if message.Usage.InputTokens == 0 || message.Usage.OutputTokens == 0 {
		t.Errorf("usage: %s", message.Usage.RawJSON())
	}
	checkRequestIDs(t, res)

	params.MaxTokens = 2
	message, err = client.Messages.New(context.Background(), params)
	if err != nil || message.StopReason != anthropic.StopReasonMaxTokens || message.Usage.OutputTokens != 2 {
		t.Errorf("a short answer: %v, %v", message, err)
	}
}

// testMessageStream checks a stream, accumulated by the client library, against a whole answer.
func testMessageStream(t *testing.T, client anthropic.Client, model string) {
	message, err := accumulate(client.Messages.NewStreaming(context.Background(), say(model, "Tell me more")))
	if err != nil {
		t.Fatal(err)
	}
	if string(message.Model) != model || message.ID == "" || !strings.Contains(textOf(message), "Tell me more") ||
		message.StopReason != anthropic.StopReasonEndTurn {
		t.Errorf("message: %+v", message)
	}
	full, err := client.Messages.New(context.Background(), say(model, "Tell me more"))
	if err != nil {
		t.Fatal(err)
	}
	if textOf(*full) != textOf(message) || full.Usage.OutputTokens != message.Usage.OutputTokens {
		t.Errorf("streamed %q (%d tokens), whole %q (%d)", textOf(message), message.Usage.OutputTokens, textOf(*full), full.Usage.OutputTokens)
	}
}

// testMessageTools streams a tool call, and sends the result back with the call.
func testMessageTools(t *testing.T, client anthropic.Client, model string) {
	params := say(model, "Please get weather for Oslo")
	params.Tools = []anthropic.ToolUnionParam{anthropic.ToolUnionParamOfTool(anthropic.ToolInputSchemaParam{
		Properties: map[string]any{"city": map[string]any{"type": "string"}},
		Required:   []string{"city"},
	}, "get_weather")}
	message, err := accumulate(client.Messages.NewStreaming(context.Background(), params))
	if err != nil {
		t.Fatal(err)
	}
	if message.StopReason != anthropic.StopReasonToolUse {
		t.Fatalf("message: %+v", message)
	}
	params.Messages = append(params.Messages, message.ToParam())
	calls := 0
	for _, block := range message.Content {
		if block.Type != "tool_use" {
			continue
		}
		calls++
		var input map[string]any
		if err := json.Unmarshal(block.Input, &input); err != nil || input["city"] == nil || block.Name != "get_weather" || block.ID == "" {
			t.Fatalf("call: %+v (%v)", block, err)
		}
		params.Messages = append(params.Messages, anthropic.NewUserMessage(anthropic.NewToolResultBlock(block.ID, "Rain, 4 degrees", false)))
	}
	if calls != 1 {
		t.Fatalf("%d calls", calls)
	}
	answer, err := client.Messages.New(context.Background(), params)
	if err != nil {
		t.Fatal(err)
	}
	if !strings.Contains(textOf(*answer), "Rain, 4 degrees") {
		t.Errorf("answer: %s", answer.RawJSON())
	}
}

// testThinking expects thinking blocks before the text.
func testThinking(t *testing.T, client anthropic.Client, model string) {
	params := say(model, "Why?")
	params.MaxTokens = 4096
	params.Thinking = anthropic.ThinkingConfigParamOfEnabled(1024)
	message, err := accumulate(client.Messages.NewStreaming(context.Background(), params))
	if err != nil {
		t.Fatal(err)
	}
	var kinds []string
	for _, block := range message.Content {
		kinds = append(kinds, block.Type)
	}
	if !slices.Equal(kinds, []string{"thinking", "text"}) || message.Content[0].Thinking == "" {
		t.Errorf("blocks: %v", kinds)
	}
	params.Messages = append(params.Messages, message.ToParam(), anthropic.NewUserMessage(anthropic.NewTextBlock("And then?")))
	if _, err := client.Messages.New(context.Background(), params); err != nil {
		t.Errorf("a request with the earlier thinking: %v", err)
	}
}

// testNativeModels pages through the list three models at a time.
func testNativeModels(t *testing.T, client anthropic.Client) {
	pager := client.Models.ListAutoPaging(context.Background(), anthropic.ModelListParams{Limit: param.NewOpt[int64](3)})
	var ids []string
	for pager.Next() {
		m := pager.Current()
		ids = append(ids, m.ID)
		if m.DisplayName == "" || m.CreatedAt.IsZero() || m.Type != "model" {
			t.Errorf("model: %s", m.RawJSON())
		}
	}
	if err := pager.Err(); err != nil {
		t.Fatal(err)
	}
	if len(ids) < 7 || !slices.Contains(ids, "on-messages") || !slices.Contains(ids, "soon-1") {
		t.Errorf("models: %v", ids)
	}
	if slices.Contains(ids, "swift-1") || slices.Contains(ids, "gone-1") {
		t.Errorf("models of another form, or retired: %v", ids)
	}
	if sorted := slices.Compact(slices.Sorted(slices.Values(ids))); len(sorted) != len(ids) {
		t.Errorf("models listed twice: %v", ids)
	}
	page, err := client.Models.List(context.Background(), anthropic.ModelListParams{Limit: param.NewOpt[int64](2),
		BeforeID: param.NewOpt(ids[3])})
	if err != nil || len(page.Data) != 2 || page.Data[0].ID != ids[1] || page.Data[1].ID != ids[2] || !page.HasMore {
		t.Errorf("the page before %s: %v, %v", ids[3], page, err)
	}
}

// testNativeRefusals provokes every class of error.
func testNativeRefusals(t *testing.T, g *gateway, client anthropic.Client, account string) {
	poor := g.native(g.key(t, g.account(t, "0"), nil))
	hasty := g.native(g.key(t, account, map[string]any{"rpm": 1}))
	for _, c := range []struct {
		client anthropic.Client
		model  string
	}{{hasty, "on-messages"}, {client, "free-1"}} {
		if _, err := c.client.Messages.New(context.Background(), say(c.model, "First")); err != nil {
			t.Fatal(err)
		}
	}
	noTokens := say("on-messages", "x")
	noTokens.MaxTokens = 0
	for _, tt := range []struct {
		name   string
		client anthropic.Client
		params anthropic.MessageNewParams
		status int
		kind   anthropic.ErrorType
	}{
		{"no tokens", client, noTokens, 400, anthropic.ErrorTypeInvalidRequestError},
		{"retired model", client, say("gone-1", "x"), 400, anthropic.ErrorTypeInvalidRequestError},
		{"model not open yet", client, say("soon-1", "x"), 400, anthropic.ErrorTypeInvalidRequestError},
		{"provider rejects", client, say("strict-1", "x"), 400, anthropic.ErrorTypeInvalidRequestError},
		{"unknown key", g.native("sk-nobody"), say("on-messages", "x"), 401, anthropic.ErrorTypeAuthenticationError},
		{"no balance", poor, say("on-messages", "x"), 402, anthropic.ErrorTypeBillingError},
		{"model allowlist", g.native(g.key(t, account, map[string]any{"allowed_models": []string{"on-chat"}})), say("on-messages", "x"), 403,
			anthropic.ErrorTypePermissionError},
		{"address allowlist", g.native(g.key(t, account, map[string]any{"allowed_ips": []string{"192.0.2.1"}})), say("on-messages", "x"), 403,
			anthropic.ErrorTypePermissionError},
		{"unknown model", client, say("nothing-1", "x"), 404, anthropic.ErrorTypeNotFoundError},
		{"model of another form", client, say("swift-1", "x"), 404, anthropic.ErrorTypeNotFoundError},
		{"over the requests per minute", hasty, say("on-messages", "x"), 429, anthropic.ErrorTypeRateLimitError},
		{"free requests used up", client, say("free-1", "x"), 429, anthropic.ErrorTypeRateLimitError},
		{"provider is busy", client, say("busy-1", "x"), 502, anthropic.ErrorTypeAPIError},
		{"provider breaks", client, say("broken-1", "x"), 502, anthropic.ErrorTypeAPIError},
		{"provider is down", client, say("down-1", "x"), 502, anthropic.ErrorTypeAPIError},
		{"model under maintenance", client, say("resting-1", "x"), 503, anthropic.ErrorTypeAPIError},
	} {
		t.Run(tt.name, func(t *testing.T) {
			_, err := tt.client.Messages.New(context.Background(), tt.params)
			checkNativeFault(t, err, tt.status, tt.kind)
			if tt.status >= 500 {
				return // The line is cooling after the failure.
			}
			_, err = accumulate(tt.client.Messages.NewStreaming(context.Background(), tt.params))
			checkNativeFault(t, err, tt.status, tt.kind)
		})
	}
	t.Run("unknown path", func(t *testing.T) {
		checkNativeFault(t, client.Get(context.Background(), "v1/nowhere", nil, &struct{}{}), 404, anthropic.ErrorTypeNotFoundError)
	})
	t.Run("a page after an unknown model", func(t *testing.T) {
		_, err := client.Models.List(context.Background(), anthropic.ModelListParams{AfterID: param.NewOpt("nothing-1")})
		checkNativeFault(t, err, 400, anthropic.ErrorTypeInvalidRequestError)
	})
}

// checkNativeFault checks an error as the client reports it.
func checkNativeFault(t *testing.T, err error, status int, kind anthropic.ErrorType) {
	t.Helper()
	var fault *anthropic.Error
	if !errors.As(err, &fault) {
		t.Fatalf("error: %v", err)
	}
	if fault.StatusCode != status || fault.Type() != kind {
		t.Errorf("%d %s, want %d %s (%s)", fault.StatusCode, fault.Type(), status, kind, fault.RawJSON())
	}
	var body struct {
		Type  string
		Error struct{ Message string }
	}
	if err := json.Unmarshal([]byte(fault.RawJSON()), &body); err != nil || body.Type != "error" || body.Error.Message == "" {
		t.Errorf("body: %s (%v)", fault.RawJSON(), err)
	}
	if got := fault.Response.Header; got.Get("Content-Type") != "application/json" || got.Get("Retry-After") != "" {
		t.Errorf("headers: %v", got)
	}
	if !strings.HasPrefix(fault.RequestID, "req_") {
		t.Errorf("request id %q", fault.RequestID)
	}
	checkRequestIDs(t, fault.Response)
}

// TestOnGemini runs a tool call on a Gemini line for clients of other forms.
func TestOnGemini(t *testing.T) {
	p := newProvider(t, func(r providerRequest) turn {
		if bytes.Contains(r.body, []byte("functionResponse")) && bytes.Contains(r.body, []byte("Rain, 4 degrees")) {
			return turn{text: "Rain, 4 degrees."}
		}
		return turn{calls: []call{{"get_weather", `{"city":"Oslo"}`}}}
	})
	g := startOn(t, p.onlyLine("gemini", "worker", false))
	key := g.key(t, g.account(t, "1"), nil)
	t.Run("messages", func(t *testing.T) { testMessageTools(t, g.native(key), "worker") })
	t.Run("responses", func(t *testing.T) { testFunctions(t, g.client(key), "worker") })
	t.Run("chat", func(t *testing.T) { testTools(t, g.client(key), "worker") })
}

// TestAnthropicBetas checks that beta flags reach lines of the messages form only.
func TestAnthropicBetas(t *testing.T) {
	p := newProvider(t, func(providerRequest) turn { return turn{text: "Hello."} })
	g := startOn(t, fmt.Sprintf(`
models:
  - {id: own, kind: chat, state: open, forms: [messages], context_window: 1000000, max_output_tokens: 1000, price: {input: 1, output: 1}}
  - {id: other, kind: chat, state: open, forms: [messages], context_window: 8000, max_output_tokens: 1000, price: {input: 1, output: 1}}
lines:
  - {id: messages, provider: anthropic, base_url: "%[1]s", api_key: "${FAKE_KEY}", models: {own: vendor}}
  - {id: chat, provider: openai, base_url: "%[1]s/v1", api_key: "${FAKE_KEY}", forms: [chat], models: {other: vendor}}
`, p.url))
	client := g.native(g.key(t, g.account(t, "1"), nil))
	for _, model := range []anthropic.Model{"own", "other"} {
		message, err := client.Beta.Messages.New(context.Background(), anthropic.BetaMessageNewParams{
			Model: model, MaxTokens: 100,
			Messages: []anthropic.BetaMessageParam{anthropic.NewBetaUserMessage(anthropic.NewBetaTextBlock("Hello"))},
			Betas:    []anthropic.AnthropicBeta{"context-1m-2025-08-07", "some-flag-2026-01-01"},
		})
		if err != nil || len(message.Content) != 1 || message.Content[0].Text != "Hello." || message.Model != model {
			t.Fatalf("%v, %v", message, err)
		}
	}
	requests := p.recordedRequests()
	if len(requests) != 2 || requests[0].path != "/v1/messages" || requests[1].path != "/v1/chat/completions" {
		t.Fatalf("requests: %v", requests)
	}
	own, other := requests[0].header, requests[1].header
	if got := strings.Join(own.Values("Anthropic-Beta"), ","); got != "context-1m-2025-08-07,some-flag-2026-01-01" {
		t.Errorf("anthropic-beta: %q", got)
	}
	if own.Get("Anthropic-Version") == "" || own.Get("X-Api-Key") != "line-key" {
		t.Errorf("headers: %v", own)
	}
	for name := range own {
		if strings.HasPrefix(name, "X-Stainless") {
			t.Errorf("the client's own header reached the provider: %s", name)
		}
	}
	if other.Get("Anthropic-Beta") != "" || other.Get("Authorization") != "Bearer line-key" {
		t.Errorf("headers: %v", other)
	}
}

// native returns the official client of the messages form. Its retries are off, so that tests see
// each answer.
func (g *gateway) native(key string) anthropic.Client {
	return anthropic.NewClient(option.WithBaseURL(g.url+"/native"), option.WithAPIKey(key), option.WithMaxRetries(0))
}

// say returns a request with one user message.
func say(model, text string) anthropic.MessageNewParams {
	return anthropic.MessageNewParams{
		Model: anthropic.Model(model), MaxTokens: 1000,
		Messages: []anthropic.MessageParam{anthropic.NewUserMessage(anthropic.NewTextBlock(text))},
	}
}

// textOf joins the text of a message.
func textOf(m anthropic.Message) string {
	var text strings.Builder
	for _, block := range m.Content {
		text.WriteString(block.Text)
	}
	return text.String()
}

// messageStream is the client's stream of a message.
type messageStream interface {
	Next() bool
	Current() anthropic.MessageStreamEventUnion
	Err() error
	Close() error
}

// accumulate reads a stream to its end and returns the whole message.
func accumulate(stream messageStream) (anthropic.Message, error) {
	defer func() { _ = stream.Close() }() // same error as stream.Err
	var message anthropic.Message
	for stream.Next() {
		if err := message.Accumulate(stream.Current()); err != nil {
			return message, err
		}
	}
	return message, stream.Err()
}
