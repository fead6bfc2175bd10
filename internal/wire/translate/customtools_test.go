package translate

import (
	"bytes"
	"encoding/json"
	"fmt"
	"strings"
	"testing"

	"tollgate/internal/wire"
	"tollgate/internal/wire/internal/wiretest"
	"tollgate/internal/wire/translate/internal/pairtest"
)

// withCustomTool is a request with a custom tool and a function, after a call of each.
const withCustomTool = `{"model":"m","stream":true,"stream_options":{"include_usage":true},"messages":[{"role":"user","content":"x"},` +
	`{"role":"assistant","content":null,"tool_calls":[{"id":"c1","type":"custom","custom":{"name":"patch","input":"a \"b\"\n"}},` +
	`{"id":"c2","type":"function","function":{"name":"f","arguments":"{}"}}]},` +
	`{"role":"tool","tool_call_id":"c1","content":"done"},{"role":"tool","tool_call_id":"c2","content":"done"}],` +
	`"tools":[{"type":"custom","custom":{"name":"patch","description":"Patches.","format":{"type":"grammar","grammar":{"syntax":"lark",` +
	`"definition":"start: X"}}}},{"type":"function","function":{"name":"f","parameters":{"type":"object","properties":{}}}}],` +
	`"tool_choice":{"type":"custom","custom":{"name":"patch"}}}`

// clientCall is a call as seen by the client.
type clientCall struct {
	Type     string
	Custom   struct{ Name, Input string }
	Function struct{ Name, Arguments string }
}

// checkCalls checks for a call of the tool, and one of the function.
func checkCalls(t *testing.T, what string, calls []clientCall) {
	t.Helper()
	if len(calls) != 2 || calls[0].Type != "custom" || calls[0].Custom.Name != "patch" || calls[0].Custom.Input != "say \"hé\"\n\\" ||
		calls[0].Function.Name != "" || calls[1].Function.Name != "f" || calls[1].Custom.Name != "" ||
		strings.ReplaceAll(calls[1].Function.Arguments, " ", "") != `{"input":"k"}` {
		t.Errorf("%s: %+v", what, calls)
	}
}

// lineAnswers are answers with both calls in each form of lines, whole and streamed.
func lineAnswers() map[wire.Form][2]string {
	const arguments = `{"input": "say \"hé\"\n\\"}`
	text := func(s string) string { raw, _ := json.Marshal(s); return string(raw) }
	chunk := func(delta, finish string) string {
		return fmt.Sprintf(`data: {"id":"x","object":"chat.completion.chunk","created":1,"model":"v","choices":[{"index":0,"delta":%s,`+
			`"finish_reason":%s}]}`+"\r\n\r\n", delta, finish)
	}
	var pieces strings.Builder
	for _, piece := range []string{arguments[:4], arguments[4:18], arguments[18:]} { // cut inside escapes and inside words
		fmt.Fprint(&pieces, chunk(`{"tool_calls":[{"index":0,"function":{"arguments":`+text(piece)+`}}]}`, "null"))
	}
	var native strings.Builder
	event := func(name, data string) {
		fmt.Fprintf(&native, "event: %s\ndata: {\"type\":%q,%s}\n\n", name, name, data)
	}
	event("message_start", `"message":{"id":"m","role":"assistant","content":[],"usage":{"input_tokens":3,"output_tokens":1}}`)
	for i, call := range [][2]string{{"patch", arguments}, {"f", `{"input":"k"}`}} {
		event("content_block_start", fmt.Sprintf(`"index":%d,"content_block":{"type":"tool_use","id":"n%d","name":%q,"input":{}}`, i, i, call[0]))
		event("content_block_delta", fmt.Sprintf(`"index":%d,"delta":{"type":"input_json_delta","partial_json":%s}`, i, text(call[1][:5])))
		event("content_block_delta", fmt.Sprintf(`"index":%d,"delta":{"type":"input_json_delta","partial_json":%s}`, i, text(call[1][5:])))
		event("content_block_stop", fmt.Sprintf(`"index":%d`, i))
	}
	event("message_delta", `"delta":{"stop_reason":"tool_use"},"usage":{"output_tokens":4}`)
	event("message_stop", `"x":1`)
	google := `{"candidates":[{"content":{"role":"model","parts":[{"functionCall":{"name":"patch","args":` + arguments + `}},` +
		`{"functionCall":{"name":"f","args":{"input":"k"}}}]},"finishReason":"STOP"}],` +
		`"usageMetadata":{"promptTokenCount":3,"candidatesTokenCount":4}}`
	items := `{"type":"function_call","id":"i1","call_id":"a","name":"patch","arguments":` + text(arguments) + `},` +
		`{"type":"function_call","id":"i2","call_id":"b","name":"f","arguments":"{\"input\":\"k\"}"}`
	response := `{"id":"r","object":"response","status":"completed","output":[` + items + `],"usage":{"input_tokens":3,"output_tokens":4}}`
	return map[wire.Form][2]string{
		wire.FormChat: {`{"id":"x","object":"chat.completion","created":1,"model":"v","choices":[{"index":0,"message":{"role":"assistant",` +
			`"content":null,"tool_calls":[{"id":"a","type":"function","function":{"name":"patch","arguments":` + text(arguments) + `}},` +
			`{"id":"b","type":"function","function":{"name":"f","arguments":"{\"input\":\"k\"}"}}]},"finish_reason":"tool_calls"}],` +
			`"usage":{"prompt_tokens":3,"completion_tokens":4,"total_tokens":7}}`,
			chunk(`{"role":"assistant","tool_calls":[{"index":0,"id":"a","type":"function","function":{"name":"patch","arguments":""}}]}`, "null") +
				pieces.String() + chunk(`{"tool_calls":[{"index":1,"id":"b","type":"function","function":{"name":"f",`+
				`"arguments":"{\"input\":\"k\"}"}}]}`, "null") + chunk(`{}`, `"tool_calls"`) +
				`data: {"id":"x","object":"chat.completion.chunk","created":1,"model":"v",` +
				`"choices":[],` +
				`"usage":{"prompt_tokens":3,"completion_tokens":4,"total_tokens":7}}` + "\r\n\r\ndata: [DONE]\r\n\r\n"},
		wire.FormMessages: {`{"id":"m","type":"message","role":"assistant","content":[{"type":"tool_use","id":"n0","name":"patch","input":` +
			arguments + `},{"type":"tool_use","id":"n1","name":"f","input":{"input":"k"}}],"stop_reason":"tool_use",` +
			`"usage":{"input_tokens":3,"output_tokens":4}}`, native.String()},
		wire.FormGemini: {google, "data: " + google + "\n\n"},
		wire.FormResponses: {response, "event: response.created\ndata: {\"type\":\"response.created\"," +
			"\"response\":{\"id\":\"r\",\"status\":\"in_progress\"}}\n\n" +
			"event: response.completed\ndata: {\"type\":\"response.completed\",\"response\":" + response + "}\n\n"},
	}
}

// TestCustomToolsAreFunctionsElsewhere checks that lines without custom tools get functions, and
// their calls become calls of the tool, whole and streamed.
func TestCustomToolsAreFunctionsElsewhere(t *testing.T) {
	t.Parallel()
	for line, answers := range lineAnswers() {
		t.Run(string(line), func(t *testing.T) {
			t.Parallel()
			body, err := pairtest.Body(New(pairtest.Chat(t, withCustomTool), line, pairtest.Identity()),
				wire.Translation{Edits: wire.Edits{Model: "v"}, MaxOutput: 99})
			if err != nil || !json.Valid(body) {
				t.Fatalf("%s: %v", body, err)
			}
			for _, part := range []string{`Patches.\n\nThe input must follow this lark grammar:\nstart: X`, "The input of the tool, as it is."} {
				if !strings.Contains(string(body), part) || strings.Contains(string(body), `"custom"`) {
					t.Errorf("the line gets %s", body)
				}
			}
			if sent := string(body); !strings.Contains(sent, `"a \"b\"\n"`) && !strings.Contains(sent, `\"a \\\"b\\\"\\n\"`) {
				t.Errorf("the call before is lost: %s", body) // as an object, or as its text
			}
			pair := New(pairtest.Chat(t, withCustomTool), line, pairtest.Identity())
			answer, err := pair.Read([]byte(answers[0]))
			if err != nil {
				t.Fatal(err)
			}
			pieces, err := pair.Render(answer, []byte(answers[0]), wire.Usage{Prompt: 3, Completion: 4})
			if err != nil {
				t.Fatal(err)
			}
			var whole struct {
				Choices []struct {
					Message struct {
						Calls []clientCall `json:"tool_calls"`
					}
				}
			}
			raw := bytes.Join(pieces[:], nil)
			if err := json.Unmarshal(raw, &whole); err != nil || len(whole.Choices) != 1 {
				t.Fatalf("%s: %v", raw, err)
			}
			checkCalls(t, string(raw), whole.Choices[0].Message.Calls)
			meter, writer := pair.Events()
			stream := pairtest.Flow([]byte(answers[1]), writer, meter, wire.Usage{Prompt: 3, Completion: 4})
			if err := wiretest.CheckChat(stream); err != nil {
				t.Errorf("%s: %v", stream, err)
			}
			checkCalls(t, string(stream), callsOf(t, stream))
		})
	}
}

// callsOf returns the calls of a chat stream.
func callsOf(t *testing.T, stream []byte) []clientCall {
	t.Helper()
	var calls []clientCall
	ended := false
	for data := range strings.SplitSeq(strings.ReplaceAll(string(stream), "\r\n", "\n"), "\n\n") {
		data = strings.TrimPrefix(data, "data: ")
		if data == "" || data == "[DONE]" {
			continue
		}
		var chunk struct {
			Choices []struct {
				Delta struct {
					Calls []struct {
						Index int
						clientCall
					} `json:"tool_calls"`
				}
				Finish *string `json:"finish_reason"`
			}
		}
		if err := json.Unmarshal([]byte(data), &chunk); err != nil {
			t.Fatalf("%s: %v", data, err)
		}
		for _, choice := range chunk.Choices {
			for _, call := range choice.Delta.Calls {
				if ended {
					t.Errorf("behind the finish: %s", data)
				}
				if call.Index == len(calls) {
					calls = append(calls, clientCall{Type: call.Type})
				}
				seen := &calls[call.Index]
				seen.Custom.Name += call.Custom.Name
				seen.Custom.Input += call.Custom.Input
				seen.Function.Name += call.Function.Name
				seen.Function.Arguments += call.Function.Arguments
			}
			ended = ended || choice.Finish != nil
		}
	}
	return calls
}

// TestCustomToolsOfHostsThatHaveThem checks that OpenAI's hosts get custom tools unchanged, and
// answer with their calls.
func TestCustomToolsOfHostsThatHaveThem(t *testing.T) {
	t.Parallel()
	pair := New(pairtest.Chat(t, withCustomTool), wire.FormChat, pairtest.Identity())
	body, err := pairtest.Body(pair, wire.Translation{Edits: wire.Edits{Model: "m"}, OpenAI: true})
	if err != nil || strings.Contains(string(body), "The input of the tool") || !strings.Contains(string(body), `"type":"custom"`) {
		t.Fatalf("%s: %v", body, err)
	}
	const answer = `{"id":"x","object":"chat.completion","created":1,"model":"v","choices":[{"index":0,"message":{"role":"assistant",` +
		`"content":null,"tool_calls":[{"id":"a","type":"custom","custom":{"name":"patch","input":"{\"input\":1}"}}]},` +
		`"finish_reason":"tool_calls"}]}`
	read, err := pair.Read([]byte(answer))
	if err != nil {
		t.Fatal(err)
	}
	pieces, err := pair.Render(read, []byte(answer), wire.Usage{})
	if raw := bytes.Join(pieces[:], nil); err != nil || !strings.Contains(string(raw), `"input":"{\"input\":1}"`) {
		t.Errorf("%s: %v", raw, err)
	}
	body, err = pairtest.Body(New(pairtest.Chat(t, withCustomTool), wire.FormResponses, pairtest.Identity()),
		wire.Translation{Edits: wire.Edits{Model: "m"}, OpenAI: true})
	if err != nil || !strings.Contains(string(body), `"type":"custom"`) || !strings.Contains(string(body), "custom_tool_call") {
		t.Errorf("%s: %v", body, err)
	}
}

// TestChoicesOfCustomTools expects a choice among tools to name functions too.
func TestChoicesOfCustomTools(t *testing.T) {
	t.Parallel()
	for choice, want := range map[string]string{
		`"auto"`: `"tool_choice":"auto"`,
		`{"type":"allowed_tools","allowed_tools":{"mode":"required","tools":[{"type":"custom","custom":{"name":"patch"}},` +
			`{"type":"function","function":{"name":"f"}}]}}`: `"tool_choice":{"type":"allowed_tools","allowed_tools":{"mode":"required","tools":[` +
			`{"type":"function","function":{"name":"patch"}},{"type":"function","function":{"name":"f"}}]}}`,
	} {
		asked := strings.Replace(withCustomTool, `{"type":"custom","custom":{"name":"patch"}}}`, choice+"}", 1)
		body, err := pairtest.Body(New(pairtest.Chat(t, asked), wire.FormChat, pairtest.Identity()), wire.Translation{})
		if err != nil || !strings.Contains(string(body), want) {
			t.Errorf("%s: %v", body, err)
		}
	}
}

// FuzzCustomTools expects a well-formed stream for a request with custom tools, whatever a
// chat line sends.
func FuzzCustomTools(f *testing.F) {
	for _, answers := range lineAnswers() {
		f.Add([]byte(answers[1]))
	}
	plain := strings.Replace(strings.Replace(withCustomTool, `"tools":[{"type":"custom"`, `"tools":[{"type":"other"`, 1),
		`"tool_choice":{"type":"custom","custom":{"name":"patch"}}`, `"tool_choice":"auto"`, 1)
	f.Fuzz(func(t *testing.T, raw []byte) {
		var out [2][]byte
		for i, asked := range []string{plain, withCustomTool} {
			meter, writer := New(pairtest.Chat(t, asked), wire.FormChat, pairtest.Identity()).Events()
			out[i] = pairtest.Flow(raw, writer, meter, wire.Usage{Prompt: 1, Completion: 1})
		}
		if wiretest.CheckChat(out[0]) == nil {
			if err := wiretest.CheckChat(out[1]); err != nil {
				t.Errorf("%s\nbecame\n%s: %v", out[0], out[1], err)
			}
		}
	})
}
