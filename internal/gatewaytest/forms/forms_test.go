// Package forms owns tests of all wire forms of clients and lines: the answers, byte by byte if they are
// forwarded, and the charges.
package forms

import (
	"fmt"
	"net/http"
	"testing"

	"tollgate/internal/gatewaytest/fakeprovider"
	"tollgate/internal/gatewaytest/scene"
	"tollgate/internal/store/storetest"
)

// lineForms returns all forms of lines.
func lineForms() []string { return []string{"chat", "responses", "messages", "gemini"} }

// playForms plays scenarios on both databases, each in a process with settings.
func playForms(t *testing.T, binary string, settings map[string]string, build func(t testing.TB) []scene.Scenario) {
	t.Helper()
	t.Parallel()
	storetest.EachURL(t, func(t *testing.T, database string) {
		g := scene.Open(t, binary, database, settings)
		g.Client.Transport = &http.Transport{MaxIdleConnsPerHost: 64, DisableCompression: true}
		scene.Play(t, g, build(t))
	})
}

// weatherTool returns the tools of a request with a function.
func weatherTool(in scene.Form) map[string]any {
	schema := map[string]any{"type": "object", "properties": map[string]any{"city": map[string]any{"type": "string"}},
		"required": []string{"city"}}
	var tool map[string]any
	switch in {
	case scene.Responses:
		tool = map[string]any{"type": "function", "name": "weather", "parameters": schema}
	case scene.Messages:
		tool = map[string]any{"name": "weather", "input_schema": schema}
	default:
		tool = map[string]any{"type": "function", "function": map[string]any{"name": "weather", "parameters": schema}}
	}
	return map[string]any{"tools": []any{tool}}
}

// The answers of healthy lines in all forms, with 1000 prompt and 500 completion tokens.
const (
	goodText = "all is well"
	goodCall = `weather({"city":"Oslo"})`
)

// goodReply returns an answer with goodText or goodCall.
func goodReply(form string, stream, tools bool) fakeprovider.Reply {
	if tools {
		return callReply(form, stream)
	}
	return fakeprovider.Good(form, stream)
}

// callReply returns an answer with goodCall.
func callReply(form string, stream bool) fakeprovider.Reply {
	switch form {
	case "responses":
		item := func(status, arguments string) string {
			return fmt.Sprintf(`{"id":"fc_fake","type":"function_call","call_id":"call_1","name":"weather","status":%q,"arguments":%q}`,
				status, arguments)
		}
		done := item("completed", `{"city":"Oslo"}`)
		if !stream {
			return fakeprovider.Reply{Body: fakeprovider.ResponsesObject("completed", fakeprovider.ResponsesUsage(1000, 500), done)}
		}
		piece := func(text string) string {
			return fakeprovider.ResponsesEvent("response.function_call_arguments.delta",
				fmt.Sprintf(`"item_id":"fc_fake","output_index":0,"delta":%q`, text))
		}
		return fakeprovider.ResponsesEvents(append(fakeprovider.ResponsesBegin()[:2],
			fakeprovider.ResponsesEvent("response.output_item.added", `"output_index":0,"item":`+item("in_progress", "")),
			piece(`{"city":`), piece(`"Oslo"}`),
			fakeprovider.ResponsesEvent("response.function_call_arguments.done",
				`"item_id":"fc_fake","output_index":0,"arguments":"{\"city\":\"Oslo\"}"`),
			fakeprovider.ResponsesEvent("response.output_item.done", `"output_index":0,"item":`+done),
			fakeprovider.ResponsesEnd("completed", fakeprovider.ResponsesUsage(1000, 500), done))...)
	case "messages":
		if !stream {
			return fakeprovider.Reply{Body: `{"id":"msg_fake","type":"message","role":"assistant","model":"vendor-model",` +
				`"content":[{"type":"tool_use","id":"toolu_1","name":"weather","input":{"city":"Oslo"}}],` +
				`"stop_reason":"tool_use","stop_sequence":null,` +
				`"usage":{"input_tokens":1000,"output_tokens":500}}`}
		}
		piece := func(text string) string {
			return fakeprovider.NativeEvent("content_block_delta",
				fmt.Sprintf(`"index":0,"delta":{"type":"input_json_delta","partial_json":%q}`, text))
		}
		return fakeprovider.NativeEvents(fakeprovider.NativeStart(1000),
			fakeprovider.NativeEvent("content_block_start",
				`"index":0,"content_block":{"type":"tool_use","id":"toolu_1","name":"weather","input":{}}`),
			piece(""), piece(`{"city":`), piece(`"Oslo"}`), fakeprovider.NativeEvent("content_block_stop", `"index":0`),
			fakeprovider.NativeEnd("tool_use", 500), fakeprovider.NativeStop())
	case "gemini":
		call := fakeprovider.GeminiEvent("STOP", 1000, 500, fakeprovider.GeminiCall("weather", `{"city":"Oslo"}`))
		if stream {
			return fakeprovider.Reply{Events: []string{call}}
		}
		return fakeprovider.Reply{Body: call}
	}
	if !stream {
		return fakeprovider.JSON(200,
			`{"id":"chatcmpl-fake","object":"chat.completion","created":1700000000,"model":"vendor-model","choices":[{"index":0,"message":`+
				`{"role":"assistant","content":null,"tool_calls":[{"id":"call_1","type":"function","function":{"name":"weather",`+
				`"arguments":"{\"city\":\"Oslo\"}"}}]},`+
				`"finish_reason":"tool_calls"}],"usage":{"prompt_tokens":1000,"completion_tokens":500,"total_tokens":1500}}`)
	}
	return *fakeprovider.Events(
		fakeprovider.RawFrame(
			`{"role":"assistant","content":null,"tool_calls":[{"index":0,"id":"call_1","type":"function","function":{"name":"weather",`+
				`"arguments":""}}]}`, `null`),
		fakeprovider.RawFrame(`{"tool_calls":[{"index":0,"function":{"arguments":"{\"city\":"}}]}`, `null`),
		fakeprovider.RawFrame(`{"tool_calls":[{"index":0,"function":{"arguments":"\"Oslo\"}"}}]}`, `null`),
		fakeprovider.RawFrame(`{}`, `"tool_calls"`), fakeprovider.UsageFrame(1000, 500), "[DONE]")
}
