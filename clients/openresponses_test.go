package clients

import (
	"bufio"
	"bytes"
	"encoding/json"
	"fmt"
	"math"
	"net/http"
	"slices"
	"strings"
	"testing"
)

// TestOpenResponses runs the public compliance cases of Open Responses on a responses line and on a
// translated line. It checks each response and each event.
func TestOpenResponses(t *testing.T) {
	g := start(t)
	key := g.key(t, g.account(t, "10"), nil)
	weather := map[string]any{
		"type": "function", "name": "get_weather", "description": "The weather of a city",
		"parameters": map[string]any{
			"type":       "object",
			"properties": map[string]any{"city": map[string]any{"type": "string"}},
			"required":   []string{"city"},
		},
	}
	message := func(role string, content any) map[string]any {
		return map[string]any{"type": "message", "role": role, "content": content}
	}
	for _, tt := range []struct {
		name  string
		input []any
		tools []any
		kind  string // type of the expected item
		text  string // expected part of the output
	}{
		{name: "text", input: []any{message("user", "Greet me in three words.")}, kind: "message", text: "Greet me"},
		{name: "system prompt", input: []any{message("system", "Talk like a sailor."), message("user", "Greet me.")}, kind: "message",
			text: "Greet me"},
		{name: "tool call", input: []any{message("user", "Please get weather for Oslo.")}, tools: []any{weather}, kind: "function_call"},
		{name: "image", input: []any{message("user", []any{
			map[string]any{"type": "input_text", "text": "What does this show?"},
			map[string]any{"type": "input_image", "image_url": "data:image/png;base64," + redDot},
		})}, kind: "message", text: "What does this show?"},
		{name: "several turns", input: []any{
			message("user", "I am Ada."), message("assistant", "Good to meet you, Ada."), message("user", "Who am I?"),
		}, kind: "message", text: "Who am I?"},
	} {
		for _, line := range []string{"chat", "responses"} {
			t.Run(tt.name+" on "+line, func(t *testing.T) {
				body := map[string]any{"model": "on-" + line, "input": tt.input}
				if tt.tools != nil {
					body["tools"] = tt.tools
				}
				var whole map[string]any
				if err := json.NewDecoder(g.post(t, key, body, "application/json")).Decode(&whole); err != nil {
					t.Fatal(err)
				}
				body["stream"] = true
				streamed := readEvents(t, g.post(t, key, body, "text/event-stream"), tt.kind)
				for _, response := range []map[string]any{whole, streamed} {
					for _, complaint := range checkResponse(response) {
						t.Error(complaint)
					}
					if response["status"] != "completed" || response["model"] != "on-"+line {
						t.Errorf("status %v, model %v", response["status"], response["model"])
					}
					items := list(response["output"])
					if !slices.ContainsFunc(items, func(i map[string]any) bool { return i["type"] == tt.kind }) {
						t.Errorf("no %s: %v", tt.kind, items)
					}
					if output := fmt.Sprint(items); !strings.Contains(output, tt.text) {
						t.Errorf("%q is not in %s", tt.text, output)
					}
				}
			})
		}
	}
}

// post sends a request to /v1/responses, expects success with the media type contentType, and
// returns the body.
func (g *gateway) post(t *testing.T, key string, body any, contentType string) *bytes.Buffer {
	t.Helper()
	raw, err := json.Marshal(body)
	if err != nil {
		t.Fatal(err)
	}
	req, err := http.NewRequestWithContext(t.Context(), http.MethodPost, g.url+"/v1/responses", bytes.NewReader(raw))
	if err != nil {
		t.Fatal(err)
	}
	req.Header.Set("Authorization", "Bearer "+key)
	req.Header.Set("Content-Type", "application/json")
	res, err := http.DefaultClient.Do(req)
	if err != nil {
		t.Fatal(err)
	}
	defer res.Body.Close()
	var answer bytes.Buffer
	if _, err := answer.ReadFrom(res.Body); err != nil {
		t.Fatal(err)
	}
	if got := res.Header.Get("Content-Type"); res.StatusCode != http.StatusOK || !strings.HasPrefix(got, contentType) {
		t.Fatalf("%s, %s: %s", res.Status, got, &answer)
	}
	return &answer
}

// readEvents checks each event of a stream and returns the response of the last event. The stream
// must build an item of type kind.
func readEvents(t *testing.T, stream *bytes.Buffer, kind string) map[string]any {
	t.Helper()
	var names []string
	var last map[string]any
	name := ""
	lines := bufio.NewScanner(stream)
	lines.Buffer(nil, 1<<20)
	for lines.Scan() {
		if value, ok := strings.CutPrefix(lines.Text(), "event: "); ok {
			name = value
		}
		data, ok := strings.CutPrefix(lines.Text(), "data: ")
		if !ok {
			continue
		}
		var event map[string]any
		if err := json.Unmarshal([]byte(data), &event); err != nil {
			t.Fatalf("%v: %s", err, data)
		}
		if event["type"] != name || event["sequence_number"] != float64(len(names)) {
			t.Errorf("event %d has the name %s, but another type or number: %s", len(names), name, data)
		}
		for _, complaint := range checkEvent(name, event) {
			t.Error(complaint)
		}
		item, _ := event["item"].(map[string]any)
		if itemType, ok := item["type"].(string); ok {
			name += " " + itemType
		}
		names = append(names, name)
		last, _ = event["response"].(map[string]any)
	}
	steps := []string{"response.created", "response.in_progress", "response.output_item.added " + kind}
	if kind == "function_call" {
		steps = append(steps, "response.function_call_arguments.delta", "response.function_call_arguments.done")
	} else {
		steps = append(steps, "response.content_part.added", "response.output_text.delta", "response.output_text.done",
			"response.content_part.done")
	}
	for _, step := range append(steps, "response.output_item.done "+kind, "response.completed") {
		at := slices.Index(names, step)
		if at < 0 {
			t.Fatalf("%s is missing in the remaining events %v", step, names)
		}
		names = names[at+1:]
	}
	if len(names) > 0 {
		t.Errorf("unexpected events after response.completed: %v", names)
	}
	return last
}

// shape maps each required key of an object to the JSON type of its value. A type with a ? at its
// end may be null.
type shape map[string]string

// responseShape has the required keys of a response.
var responseShape = shape{
	"id": "string", "object": "string", "created_at": "integer", "completed_at": "integer?", "status": "string",
	"incomplete_details": "object?", "model": "string", "previous_response_id": "string?", "instructions": "string?",
	"output": "array", "error": "object?", "tools": "array", "tool_choice": "any", "truncation": "string",
	"parallel_tool_calls": "boolean", "text": "object", "top_p": "number", "presence_penalty": "number",
	"frequency_penalty": "number", "top_logprobs": "integer", "temperature": "number", "reasoning": "object?",
	"usage": "object?", "max_output_tokens": "integer?", "max_tool_calls": "integer?", "store": "boolean",
	"background": "boolean", "service_tier": "string", "metadata": "any", "safety_identifier": "string?",
	"prompt_cache_key": "string?",
}

// itemShapes has the required keys of each type of output item.
var itemShapes = map[string]shape{
	"message":       {"id": "string", "status": "string", "role": "string", "content": "array"},
	"function_call": {"id": "string", "call_id": "string", "name": "string", "arguments": "string", "status": "string"},
	"reasoning":     {"id": "string", "summary": "array"},
}

// partShapes has the required keys of each type of content part.
var partShapes = map[string]shape{
	"output_text":    {"text": "string", "annotations": "array"},
	"refusal":        {"refusal": "string"},
	"summary_text":   {"text": "string"},
	"reasoning_text": {"text": "string"},
}

// eventShapes has the required keys of each type of event, besides type and sequence_number.
var eventShapes = map[string]shape{
	"response.created":                       {"response": "object"},
	"response.in_progress":                   {"response": "object"},
	"response.completed":                     {"response": "object"},
	"response.output_item.added":             {"output_index": "integer", "item": "object"},
	"response.output_item.done":              {"output_index": "integer", "item": "object"},
	"response.content_part.added":            {"item_id": "string", "output_index": "integer", "content_index": "integer", "part": "object"},
	"response.content_part.done":             {"item_id": "string", "output_index": "integer", "content_index": "integer", "part": "object"},
	"response.output_text.delta":             {"item_id": "string", "output_index": "integer", "content_index": "integer", "delta": "string"},
	"response.output_text.done":              {"item_id": "string", "output_index": "integer", "content_index": "integer", "text": "string"},
	"response.function_call_arguments.delta": {"item_id": "string", "output_index": "integer", "delta": "string"},
	"response.function_call_arguments.done":  {"item_id": "string", "output_index": "integer", "arguments": "string"},
}

// check returns the differences between an object and its shape.
func (s shape) check(where string, object map[string]any) (complaints []string) {
	for key, want := range s {
		value, present := object[key]
		want, nullable := strings.CutSuffix(want, "?")
		number, isNumber := value.(float64)
		ok := want == "any"
		switch value.(type) {
		case nil:
			ok = ok || nullable
		case string:
			ok = ok || want == "string"
		case bool:
			ok = ok || want == "boolean"
		case []any:
			ok = ok || want == "array"
		case map[string]any:
			ok = ok || want == "object"
		}
		if isNumber {
			ok = ok || want == "number" || want == "integer" && number == math.Trunc(number)
		}
		if !present || !ok {
			complaints = append(complaints, fmt.Sprintf("%s.%s is %v, want %s", where, key, value, s[key]))
		}
	}
	return complaints
}

// checkResponse returns everything wrong with a response.
func checkResponse(r map[string]any) []string {
	complaints := responseShape.check("response", r)
	if r["object"] != "response" {
		complaints = append(complaints, fmt.Sprintf("response.object is %v", r["object"]))
	}
	for _, item := range list(r["output"]) {
		complaints = append(complaints, checkItem(item)...)
	}
	for _, tool := range list(r["tools"]) {
		complaints = append(complaints, shape{
			"type": "string", "name": "string", "description": "string?", "parameters": "object?", "strict": "boolean?",
		}.check("tool", tool)...)
	}
	if text, ok := r["text"].(map[string]any); ok {
		complaints = append(complaints, shape{"format": "object"}.check("text", text)...)
	}
	if reasoning, ok := r["reasoning"].(map[string]any); ok {
		complaints = append(complaints, shape{"effort": "string?", "summary": "string?"}.check("reasoning", reasoning)...)
	}
	usage, ok := r["usage"].(map[string]any)
	if !ok {
		if r["status"] == "completed" {
			complaints = append(complaints, "a completed response without usage")
		}
		return complaints
	}
	complaints = append(complaints, shape{
		"input_tokens": "integer", "output_tokens": "integer", "total_tokens": "integer",
		"input_tokens_details": "object", "output_tokens_details": "object",
	}.check("usage", usage)...)
	in, _ := usage["input_tokens_details"].(map[string]any)
	out, _ := usage["output_tokens_details"].(map[string]any)
	complaints = append(complaints, shape{"cached_tokens": "integer"}.check("input_tokens_details", in)...)
	return append(complaints, shape{"reasoning_tokens": "integer"}.check("output_tokens_details", out)...)
}

// checkItem returns everything wrong with an output item.
func checkItem(item map[string]any) []string {
	kind := fmt.Sprint(item["type"])
	want, known := itemShapes[kind]
	if !known {
		return []string{"unknown item type " + kind}
	}
	complaints := want.check(kind, item)
	for _, part := range slices.Concat(list(item["content"]), list(item["summary"])) {
		complaints = append(complaints, checkPart(part)...)
	}
	return complaints
}

// checkPart returns everything wrong with a content part.
func checkPart(part map[string]any) []string {
	kind := fmt.Sprint(part["type"])
	want, known := partShapes[kind]
	if !known {
		return []string{"unknown part type " + kind}
	}
	return want.check(kind, part)
}

// checkEvent returns everything wrong with an event.
func checkEvent(name string, event map[string]any) []string {
	want, known := eventShapes[name]
	if !known {
		return []string{"unknown event type " + name}
	}
	complaints := want.check(name, event)
	if response, ok := event["response"].(map[string]any); ok {
		complaints = append(complaints, checkResponse(response)...)
	}
	if item, ok := event["item"].(map[string]any); ok {
		complaints = append(complaints, checkItem(item)...)
	}
	if part, ok := event["part"].(map[string]any); ok {
		complaints = append(complaints, checkPart(part)...)
	}
	return complaints
}

// list returns the objects of an array.
func list(value any) (objects []map[string]any) {
	array, _ := value.([]any)
	for _, element := range array {
		object, _ := element.(map[string]any)
		objects = append(objects, object)
	}
	return objects
}
