package translate

import (
	"encoding/json"
	"fmt"
	"strings"
	"testing"

	"tollgate/internal/wire"
	"tollgate/internal/wire/sse"
	"tollgate/internal/wire/translate/internal/pairtest"
)

// statefulAnswers are answers of a provider with state of its account (`OF-A`), whole and streamed, and the
// history of the next request with `%s` for the state as the client has it.
var statefulAnswers = map[string]struct {
	form           wire.Form
	whole          string
	events         []string
	request        string
	state          int      // the number of places with state
	without, other []string // what a line of another account gets
}{
	"encrypted reasoning": {
		form: wire.FormResponses,
		whole: `{"id":"r","status":"completed","output":[{"type":"reasoning","id":"rs_A","summary":[],"encrypted_content":"OF-A"},` +
			`{"type":"function_call","call_id":"c","name":"f","arguments":"{\"encrypted_content\":\"mine\"}"}]}`,
		events: []string{
			`{"type":"response.output_item.done","output_index":0,"item":{"type":"reasoning","id":"rs_A","summary":[],"encrypted_content":"OF-A"}}`,
			`{"type":"response.completed","response":{"status":"completed","output":[{"type":"reasoning","summary":[],"encrypted_content":"OF-A"},` +
				`{"type":"message","role":"assistant","content":[{"type":"output_text","text":"encrypted_content"}]}]}}`},
		request: `{"model":"m","input":[{"role":"user","content":"x"},{"type":"reasoning","id":"rs_A","summary":[],"encrypted_content":"%s"},` +
			`{"type":"function_call","call_id":"c","name":"f","arguments":"{}"},{"type":"function_call_output","call_id":"c","output":"r"}]}`,
		without: []string{`"call_id":"c"`, `"output":"r"`},
	},
	"a compaction": {
		form:  wire.FormResponses,
		whole: `{"id":"r","status":"completed","output":[{"type":"compaction","encrypted_content":"OF-A"}]}`,
		events: []string{`{"type":"response.completed","response":{"status":"completed",` +
			`"output":[{"type":"compaction","encrypted_content":"OF-A"}]}}`},
		request: `{"model":"m","input":[{"type":"compaction","encrypted_content":"%s"},{"role":"user","content":"x"}]}`,
		without: []string{`"content":"x"`},
	},
	"a signature": {
		form: wire.FormMessages,
		whole: `{"type":"message","content":[{"type":"thinking","thinking":"Hm.","signature":"OF-A"},` +
			`{"type":"redacted_thinking","data":"OF-A"},{"type":"tool_use","id":"t","name":"f","input":{"signature":"mine","data":"mine"}}],` +
			`"stop_reason":"tool_use"}`,
		events: []string{
			`{"type":"message_start","message":{"content":[],"usage":{"input_tokens":3}}}`,
			`{"type":"content_block_start","index":0,"content_block":{"type":"thinking","thinking":"","signature":""}}`,
			`{"type":"content_block_delta","index":0,"delta":{"type":"signature_delta","signature":"OF"}}`,
			`{"type":"content_block_delta","index":0,"delta":{"type":"signature_delta","signature":"-A"}}`,
			`{"type":"content_block_start","index":1,"content_block":{"type":"redacted_thinking","data":"OF-A"}}`,
			`{"type":"content_block_start","index":2,"content_block":{"type":"thinking","thinking":"","signature":""}}`,
			`{"type":"content_block_delta","index":2,"delta":{"type":"signature_delta","signature":"OF-A"}}`,
			`{"type":"content_block_delta","index":3,"delta":{"type":"input_json_delta","partial_json":"{\"signature\":\"mine\"}"}}`,
			`{"type":"message_delta","delta":{"stop_reason":"end_turn"}}`, `{"type":"message_stop"}`},
		request: `{"model":"m","max_tokens":9,"messages":[{"role":"user","content":"x"},{"role":"assistant","content":[` +
			`{"type":"thinking","thinking":"Hm.","signature":"%[1]s"},{"type":"redacted_thinking","data":"%[1]s"},` +
			`{"type":"tool_use","id":"t","name":"f","input":{"signature":"mine"}}]},` +
			`{"role":"user","content":[{"type":"tool_result","tool_use_id":"t","content":"r"}]}]}`,
		without: []string{`"signature":"mine"`, `"content":"r"`},
	},
	"details of chat": {
		form: wire.FormChat,
		whole: `{"choices":[{"index":0,"message":{"role":"assistant","content":"a","reasoning_details":[{"type":"reasoning.text","text":"Hm.",` +
			`"signature":"OF-A"},{"type":"reasoning.encrypted","data":"OF-A"}],"tool_calls":[{"id":"c","function":{"name":"f",` +
			`"arguments":"{\"signature\":\"mine\"}"},"extra_content":{"google":{"thought_signature":"OF-A"}}}]},"finish_reason":"tool_calls"}]}`,
		events: []string{
			`{"choices":[{"index":0,"delta":{"role":"assistant","reasoning_details":[{"type":"reasoning.encrypted","index":0,"data":"OF"}]}}]}`,
			`{"choices":[{"index":0,"delta":{"reasoning_details":[{"type":"reasoning.encrypted","index":0,"data":"-A"}]}}]}`,
			`{"choices":[{"index":0,"delta":{"reasoning_details":[{"type":"reasoning.text","index":1,"text":"Hm.","signature":"OF-A"}]}}]}`,
			`{"choices":[{"index":0,"delta":{"tool_calls":[{"index":0,"id":"c","function":{"name":"f","arguments":"{}"},` +
				`"extra_content":{"google":{"thought_signature":"OF-A"}}}]}}]}`,
			`{"choices":[{"index":0,"delta":{},"finish_reason":"tool_calls"}]}`, `[DONE]`},
		request: `{"model":"m","messages":[{"role":"developer","content":"d"},{"role":"assistant","content":null,"reasoning_details":[` +
			`{"type":"reasoning.encrypted","data":"%[1]s"}],"tool_calls":[{"id":"c","type":"function","function":{"name":"f","arguments":"{}"},` +
			`"extra_content":{"google":{"thought_signature":"%[1]s"}}}]},{"role":"tool","tool_call_id":"c","content":"r"}]}`,
		without: []string{`"tool_call_id":"c"`, `"role":"system"`},
	},
}

// TestStateOfAnAccount expects the state of an account in answers of the client's own form under a seal if
// the model has lines of several accounts: the same account gets it back, another one does not.
func TestStateOfAnAccount(t *testing.T) {
	t.Parallel()
	here, elsewhere := pairtest.Identity(), pairtest.Identity()
	here.Origin, here.Seals, elsewhere.Origin, elsewhere.Seals = "a", true, "b", true
	seal := string(wire.SealOf("a"))
	for name, c := range statefulAnswers {
		ask := strings.ReplaceAll(strings.ReplaceAll(c.request, "%[1]s", "%s"), "%s", "")
		for _, sealed := range []bool{true, false} {
			id := here
			id.Seals = sealed
			pair := New(request(t, c.form, ask), c.form, id)
			read, err := pair.Read([]byte(c.whole))
			if err != nil {
				t.Fatal(err)
			}
			pieces, err := pair.Render(read, []byte(c.whole), wire.Usage{})
			if err != nil {
				t.Fatal(err)
			}
			whole := string(pieces[0]) + string(pieces[1]) + string(pieces[2])
			meter, writer := pair.Events()
			stream := string(pairtest.Flow([]byte("data: "+strings.Join(c.events, "\n\ndata: ")+"\n\n"), writer, meter, wire.Usage{}))
			wantWhole, wantStream := strings.ReplaceAll(c.whole, `"OF-A"`, `"`+seal+`OF-A"`), strings.Join(c.events, "")
			wantStream = strings.ReplaceAll(wantStream, `"OF`, `"`+seal+`OF`)
			if !sealed {
				wantWhole, wantStream = c.whole, strings.Join(c.events, "")
			}
			if strings.Count(whole, seal) != strings.Count(wantWhole, seal) || strings.Count(whole, `"mine`) != strings.Count(c.whole, `"mine`) ||
				!json.Valid([]byte(whole)) || strings.Count(whole, `"`+seal+`OF-A"`) != strings.Count(wantWhole, `"`+seal+`OF-A"`) {
				t.Errorf("%s, sealed %v: got %s, want %s", name, sealed, whole, wantWhole)
			}
			if got := dataOf(stream); strings.ReplaceAll(got, `,"model":"swift-1"`, "") != wantStream && c.form != wire.FormResponses ||
				strings.Count(got, seal) != strings.Count(wantStream, seal) {
				t.Errorf("%s, sealed %v: got the stream %s, want %s", name, sealed, got, wantStream)
			}
		}
		history := request(t, c.form, strings.NewReplacer("%[1]s", seal+"OF-A", "%s", seal+"OF-A").Replace(c.request))
		for _, id := range []wire.Identity{here, elsewhere} {
			in := wire.Translation{Edits: wire.Edits{Model: "v", Origin: id.Origin, SystemOnly: true}, Reasoning: true}
			body, err := pairtest.Body(New(history, c.form, id), in)
			has := strings.Contains(string(body), `"OF-A"`)
			if err != nil || !json.Valid(body) || has != (id == here) || strings.Contains(string(body), "tg1") {
				t.Errorf("%s: the line of %s got %s, %v", name, id.Origin, body, err)
			}
			for _, want := range c.without {
				if !strings.Contains(string(body), want) {
					t.Errorf("%s: the line of %s got %s, want %s", name, id.Origin, body, want)
				}
			}
		}
	}
}

// dataOf returns the data of a stream's events, without the closing event of chat completions.
func dataOf(stream string) string {
	var all strings.Builder
	for e := range sse.Each([]byte(stream)) {
		fmt.Fprintf(&all, "%s", e.Data)
	}
	return all.String()
}

// TestSignaturesRequired expects no thinking without a signature on a line that requires signatures, by the
// name of the model or by the host.
func TestSignaturesRequired(t *testing.T) {
	t.Parallel()
	for block, removed := range map[string]bool{
		`{"type":"thinking","thinking":"Hm.","signature":""}`:       true,
		`{"type":"thinking","thinking":"Hm.","signature":null}`:     true,
		`{"type":"thinking","thinking":"Hm."}`:                      true,
		`{"type":"thinking","thinking":"Hm.","signature":" \n"}`:    true,
		`{"type":"redacted_thinking","data":""}`:                    true,
		`{"type":"redacted_thinking"}`:                              true,
		`{"type":"thinking","thinking":"Hm.","signature":"c2ln"}`:   false,
		`{"type":"redacted_thinking","data":"c2ln"}`:                false,
		`{"type":"tool_use","id":"t","name":"thinking","input":{}}`: false,
	} {
		r := pairtest.Messages(t, `{"model":"m","max_tokens":9,"messages":[{"role":"user","content":"x"},{"role":"assistant","content":[`+block+
			`,{"type":"text","text":"Yes."}]},{"role":"user","content":"y"}]}`)
		for _, line := range []struct {
			edits    wire.Edits
			requires bool
		}{
			{wire.Edits{Model: "claude-opus-4-7"}, true}, {wire.Edits{Model: "deployment", Signs: true}, true},
			{wire.Edits{Model: "deepseek"}, false},
		} {
			body, err := pairtest.Body(New(r, wire.FormMessages, pairtest.Identity()), wire.Translation{Edits: line.edits})
			if err != nil || !json.Valid(body) || strings.Contains(string(body), block) == (removed && line.requires) {
				t.Errorf("%s on %s: the line got %s, %v; want the block removed: %v", block, line.edits.Model, body, err, removed && line.requires)
			}
		}
	}
}
