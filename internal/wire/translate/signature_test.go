package translate

import (
	"bytes"
	"encoding/json"
	"strings"
	"testing"

	"tollgate/internal/wire"
	"tollgate/internal/wire/internal/wiretest"
	"tollgate/internal/wire/translate/internal/pairtest"
)

// TestSignaturesOfThoughtsComeBack checks that Gemini's signature of a call reaches clients of
// messages and responses sealed, whole and streamed, and returns with the call to the same provider
// only.
func TestSignaturesOfThoughtsComeBack(t *testing.T) {
	t.Parallel()
	const signature = `c2lnbmVk/+A==`
	const answer = `{"candidates":[{"content":{"role":"model","parts":[{"text":"Look.","thought":true},` +
		`{"functionCall":{"name":"f","args":{"a":1}},` +
		`"thoughtSignature":"` + signature + `"},{"functionCall":{"name":"f","args":{"a":2}}}]},"finishReason":"STOP"}],` +
		`"usageMetadata":{"promptTokenCount":3,"candidatesTokenCount":4}}`
	here, elsewhere := pairtest.Identity(), pairtest.Identity()
	here.Origin, elsewhere.Origin = "gemini\na\nkey", "gemini\nb\nkey"
	ask := map[wire.Form]func(history string) wire.Request{
		wire.FormMessages: func(history string) wire.Request {
			return openMessages(t, `{"model":"m","max_tokens":99,"messages":[{"role":"user","content":"x"}`+history+
				`],"tools":[{"name":"f","input_schema":{"type":"object"}}]}`)
		},
		wire.FormResponses: func(history string) wire.Request {
			return pairtest.Responses(t, `{"model":"m","input":[{"role":"user","content":"x"}`+history+
				`],"tools":[{"type":"function","name":"f","parameters":{"type":"object"}}]}`)
		},
	}
	type signedAnswer struct {
		Content, Output []json.RawMessage
	}
	// history returns the client's next request after an answer, with the results of its tools
	history := func(client wire.Form, raw []byte) string {
		t.Helper()
		var a signedAnswer
		if err := json.Unmarshal(raw, &a); err != nil {
			t.Fatalf("%s: %v", raw, err)
		}
		var out, results []string
		for _, item := range append(a.Content, a.Output...) {
			out = append(out, string(item))
			var call struct {
				ID     string
				CallID string `json:"call_id"`
				Type   string
			}
			_ = json.Unmarshal(item, &call)
			switch call.Type {
			case "tool_use":
				results = append(results, `{"type":"tool_result","tool_use_id":"`+call.ID+`","content":"done"}`)
			case "function_call":
				results = append(results, `{"type":"function_call_output","call_id":"`+call.CallID+`","output":"done"}`)
			}
		}
		if client == wire.FormMessages {
			return `,{"role":"assistant","content":[` + strings.Join(out, ",") + `]},` +
				`{"role":"user","content":[` + strings.Join(results, ",") + `]}`
		}
		return "," + strings.Join(append(out, results...), ",")
	}
	for client, request := range ask {
		pair := New(request(""), wire.FormGemini, here)
		read, err := pair.Read([]byte(answer))
		if err != nil {
			t.Fatal(err)
		}
		pieces, err := pair.Render(read, []byte(answer), wire.Usage{Prompt: 3, Completion: 4})
		if err != nil {
			t.Fatal(err)
		}
		whole := bytes.Join(pieces[:], nil)
		meter, writer := pair.Events()
		stream := pairtest.Flow([]byte("data: "+answer+"\n\n"), writer, meter, wire.Usage{Prompt: 3, Completion: 4})
		streamed := wholeOf(t, client, stream)
		for what, raw := range map[string][]byte{"whole": whole, "streamed": streamed} {
			if strings.Contains(string(raw), `"`+signature) {
				t.Errorf("%s, %s: the signature has no seal: %s", client, what, raw)
			}
			for line, want := range map[string]struct {
				form wire.Form
				id   wire.Identity
				has  bool
			}{
				"here":      {wire.FormGemini, here, true},
				"elsewhere": {wire.FormGemini, elsewhere, false},
				"messages":  {wire.FormMessages, here, false},
				"responses": {wire.FormResponses, elsewhere, false},
				"chat":      {wire.FormChat, elsewhere, false},
			} {
				next := request(history(client, raw))
				body, err := pairtest.Body(New(next, want.form, want.id), wire.Translation{Edits: wire.Edits{Model: "gemini-3-pro"}, MaxOutput: 99,
					Reasoning: true})
				if err != nil || !json.Valid(body) {
					t.Fatalf("%s, %s, %s: %s, %v", client, what, line, body, err)
				}
				if strings.Contains(string(body), signature) != want.has || strings.Contains(string(body), wire.SealMark) {
					t.Errorf("%s, %s, %s: %s", client, what, line, body)
				}
				if want.has && !strings.Contains(string(body), `"args":{"a":1}},"thoughtSignature":"`+signature+`"}`) {
					t.Errorf("%s, %s: the signature is not with its call: %s", client, what, body)
				}
			}
		}
	}
}

// wholeOf returns a stream of messages or responses as a whole answer.
func wholeOf(t *testing.T, client wire.Form, stream []byte) []byte {
	t.Helper()
	var content []map[string]any
	var last json.RawMessage
	for data := range strings.SplitSeq(string(stream), "\n") {
		data, found := strings.CutPrefix(data, "data: ")
		if !found {
			continue
		}
		var e struct {
			Response json.RawMessage
			Block    map[string]any `json:"content_block"`
			Delta    map[string]string
		}
		_ = json.Unmarshal([]byte(data), &e) // other deltas are not needed
		if e.Response != nil {
			last = e.Response
		}
		if e.Block != nil {
			content = append(content, e.Block)
		}
		switch e.Delta["type"] {
		case "input_json_delta":
			block := content[len(content)-1]
			text, _ := block["json"].(string)
			block["json"] = text + e.Delta["partial_json"]
		case "thinking_delta":
			block := content[len(content)-1]
			block["thinking"] = block["thinking"].(string) + e.Delta["thinking"]
		}
	}
	if client == wire.FormResponses {
		return last
	}
	if err := wiretest.CheckMessages(stream); err != nil {
		t.Errorf("%s: %v", stream, err)
	}
	for _, block := range content {
		if text, ok := block["json"].(string); ok {
			block["input"] = json.RawMessage(text)
			delete(block, "json")
		}
	}
	raw, err := json.Marshal(map[string]any{"content": content})
	if err != nil {
		t.Fatal(err)
	}
	return raw
}
