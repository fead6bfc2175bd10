package translate

import (
	"encoding/json"
	"strings"
	"testing"

	"tollgate/internal/wire"
	"tollgate/internal/wire/internal/wiretest"
	"tollgate/internal/wire/messages"
	"tollgate/internal/wire/sse"
	"tollgate/internal/wire/translate/internal/pairtest"
)

// The tests below are named after known traps of the two forms.

func TestTrapResultsStandFirstAndDirectlyBehindTheCall(t *testing.T) {
	t.Parallel()
	const calls = `{"role":"assistant","content":"t","tool_calls":[{"id":"a","function":{"name":"f","arguments":"{}"}},` +
		`{"id":"b","function":{"name":"g","arguments":"{}"}}]}`
	got := asMessages(t,
		wiretest.ChatMessages(
			`[{"role":"user","content":"u"},`+calls+
				`,{"role":"user","content":"wait"},{"role":"tool","tool_call_id":"b","content":"r"},{"role":"assistant","content":"x"},`+calls+`]`),
		translation("vendor", false), "messages")
	want := `[{"role":"user","content":[{"type":"text","text":"u"}]},` +
		`{"role":"assistant","content":[{"type":"text","text":"t"},{"type":"tool_use","id":"a","name":"f","input":{}},` +
		`{"type":"tool_use","id":"b","name":"g","input":{}}]},` +
		`{"role":"user","content":[{"type":"tool_result","tool_use_id":"b","content":[{"type":"text","text":"r"}]},` +
		`{"type":"tool_result","tool_use_id":"a","content":[{"type":"text","text":"(no result)"}],"is_error":true},` +
		`{"type":"text","text":"wait"}]},` +
		`{"role":"assistant","content":[{"type":"text","text":"x"},{"type":"text","text":"t"},` +
		`{"type":"tool_use","id":"a_2","name":"f","input":{}},{"type":"tool_use","id":"b_2","name":"g","input":{}}]},` +
		`{"role":"user","content":[{"type":"tool_result","tool_use_id":"a_2","content":[{"type":"text","text":"(no result)"}],` +
		`"is_error":true},{"type":"tool_result","tool_use_id":"b_2","content":[{"type":"text","text":"(no result)"}],"is_error":true}]}]`
	if got != want {
		t.Errorf("got  %s\nwant %s", got, want)
	}
	got = asChat(t,
		nativeAsk(`[{"role":"user","content":"u"},{"role":"assistant","content":[{"type":"tool_use","id":"a","name":"f","input":{}},`+
			`{"type":"tool_use","id":"b","name":"g","input":{}}]},`+
			`{"role":"user","content":"wait"},{"role":"user","content":[{"type":"tool_result","tool_use_id":"b","content":"r"}]},`+
			`{"role":"assistant","content":[{"type":"tool_use","id":"c","name":"f","input":{}}]}]`,
			``),
		wire.Translation{Edits: wire.Edits{Model: "v"}}, "messages")
	want = `[{"role":"user","content":"u"},` +
		`{"role":"assistant","content":null,"tool_calls":[{"id":"a","type":"function","function":{"name":"f","arguments":"{}"}},` +
		`{"id":"b","type":"function","function":{"name":"g","arguments":"{}"}}]},` +
		`{"role":"tool","tool_call_id":"b","content":"r"},{"role":"tool","tool_call_id":"a","content":"(no result)"},` +
		`{"role":"user","content":"wait"},` +
		`{"role":"assistant","content":null,"tool_calls":[{"id":"c","type":"function","function":{"name":"f","arguments":"{}"}}]},` +
		`{"role":"tool","tool_call_id":"c","content":"(no result)"}]`
	if got != want {
		t.Errorf("got  %s\nwant %s", got, want)
	}
}

func TestTrapConsecutiveRolesAreMerged(t *testing.T) {
	t.Parallel()
	got := asMessages(t,
		wiretest.ChatMessages(
			`[{"role":"user","content":"a"},{"role":"user","content":"b"},{"role":"assistant","content":"c"},{"role":"assistant","content":"d"},`+
				`{"role":"user","content":"e"}]`),
		translation("v", false), "messages")
	if want := `[{"role":"user","content":[{"type":"text","text":"a"},{"type":"text","text":"b"}]},` +
		`{"role":"assistant","content":[{"type":"text","text":"c"},{"type":"text","text":"d"}]},` +
		`{"role":"user","content":[{"type":"text","text":"e"}]}]`; got != want {
		t.Errorf("got  %s\nwant %s", got, want)
	}
	got = asChat(t,
		nativeAsk(`[{"role":"user","content":"a"},{"role":"user","content":"b"},{"role":"assistant","content":"c"},`+
			`{"role":"assistant","content":"d"},{"role":"user","content":"e"}]`,
			``), wire.Translation{}, "messages")
	if want := `[{"role":"user","content":"a\n\nb"},{"role":"assistant","content":"c\n\nd"},{"role":"user","content":"e"}]`; got != want {
		t.Errorf("got  %s\nwant %s", got, want)
	}
}

func TestTrapEmptyContentIsDropped(t *testing.T) {
	t.Parallel()
	got := asMessages(t,
		wiretest.ChatMessages(
			`[{"role":"system","content":""},{"role":"user","content":[{"type":"text","text":""},{"type":"text","text":"\t\n \u00a0"}]},`+
				`{"role":"user","content":"a"},{"role":"assistant","content":""},{"role":"user","content":"b"},{"role":"assistant","content":null}]`),
		translation("v", false), "system", "messages")
	if want := "\n" + `[{"role":"user","content":[{"type":"text","text":"a"},{"type":"text","text":"b"}]}]`; got != want {
		t.Errorf("got  %s\nwant %s", got, want)
	}
	got = asChat(t,
		nativeAsk(`[{"role":"user","content":[{"type":"text","text":""}]},{"role":"user","content":"a"},{"role":"assistant","content":[]}]`,
			``), wire.Translation{}, "messages")
	if want := `[{"role":"user","content":"a"}]`; got != want {
		t.Errorf("got  %s\nwant %s", got, want)
	}
}

func TestTrapSchemasPassUnchanged(t *testing.T) {
	t.Parallel()
	const schema = `{"type":"object","$defs":{"a":{"const":1.0}},"properties":{"x":{"$ref":"#/$defs/a"},` +
		`"y":{"oneOf":[{"type":["string","null"]}]}}}`
	if got := asMessages(t,
		wiretest.ChatBody(`"tools":[{"type":"function","function":{"name":"f","parameters":`+schema+`}}]`), translation("v",
			false), "tools"); !strings.Contains(got, schema) {
		t.Error(got)
	}
	if got := asChat(t, nativeAsk(`[{"role":"user","content":"u"}]`,
		`,"tools":[{"name":"f","input_schema":`+schema+`}]`), wire.Translation{}, "tools"); !strings.Contains(got, schema) {
		t.Error(got)
	}
}

func TestTrapSignaturesDoNotMoveToAnotherLine(t *testing.T) {
	t.Parallel()
	got := asMessages(t,
		wiretest.ChatMessages(
			`[{"role":"user","content":"u"},{"role":"assistant","content":"a","reasoning_content":"secret",`+
				`"reasoning_details":[{"type":"reasoning.text","text":"secret","signature":"S"}]},{"role":"user","content":"v"}]`),
		translation("v", true), "messages")
	if strings.Contains(got, "secret") || strings.Contains(got, "thinking") {
		t.Error(got)
	}
	got = asChat(t,
		nativeAsk(`[{"role":"user","content":"u"},{"role":"assistant","content":[{"type":"thinking","thinking":"secret","signature":"S"},`+
			`{"type":"redacted_thinking","data":"D"},{"type":"tool_use","id":"a","name":"f","input":{}}]},`+
			`{"role":"user","content":[{"type":"tool_result","tool_use_id":"a","content":"r"}]}]`,
			``), wire.Translation{Reasoning: true}, "messages")
	if strings.Contains(got, "secret") || strings.Contains(got, "reasoning") {
		t.Error(got)
	}
}

func TestTrapIndexesOfCallsAreNotThoseOfBlocks(t *testing.T) {
	t.Parallel()
	stream := wiretest.Frames(
		`{"type":"message_start","message":{}}`,
		`{"type":"content_block_start","index":0,"content_block":{"type":"thinking","thinking":""}}`, `{"type":"content_block_stop","index":0}`,
		`{"type":"content_block_start","index":1,"content_block":{"type":"text","text":"t"}}`, `{"type":"content_block_stop","index":1}`,
		`{"type":"content_block_start","index":2,"content_block":{"type":"tool_use","id":"a","name":"f","input":{}}}`,
		`{"type":"content_block_stop","index":2}`,
		`{"type":"content_block_start","index":3,"content_block":{"type":"server_tool_use","id":"s","name":"web_search","input":{}}}`,
		`{"type":"content_block_stop","index":3}`,
		`{"type":"content_block_start","index":4,"content_block":{"type":"tool_use","id":"b","name":"g","input":{}}}`,
		`{"type":"content_block_delta","index":4,"delta":{"type":"input_json_delta","partial_json":"{\"x\":1}"}}`,
		`{"type":"content_block_stop","index":4}`,
		`{"type":"message_delta","delta":{"stop_reason":"tool_use"},"usage":{"output_tokens":1}}`, `{"type":"message_stop"}`)
	out := pairtest.Flow([]byte(stream), chatWriter(pairtest.Identity(), false), messages.NewMeter(), pairtest.Usage())
	if err := wiretest.CheckChat(out); err != nil {
		t.Fatalf("%v in %s", err, out)
	}
	for _, want := range []string{`{"index":0,"id":"a"`, `{"index":1,"id":"b"`,
		`{"index":0,"function":{"arguments":"{}"}}`, `{"index":1,"function":{"arguments":"{\"x\":1}"}}`} {
		if !strings.Contains(string(out), want) {
			t.Errorf("no %s in %s", want, out)
		}
	}
}

func TestTrapArgumentsAreNotWrittenAnew(t *testing.T) {
	t.Parallel()
	const odd = `{ "b" : 1.500, "a":1E2,"big":123456789012345678901234567890,"e":"\u00e9\/" }`
	text, err := json.Marshal(odd)
	if err != nil {
		t.Fatal(err)
	}
	got := asMessages(t,
		wiretest.ChatMessages(`[{"role":"user","content":"u"},{"role":"assistant","tool_calls":[{"id":"a","function":{"name":"f","arguments":`+
			string(text)+`}}]}]`),
		translation("v", false), "messages")
	if !strings.Contains(got, `"input":`+odd) {
		t.Errorf("messages: %s", got)
	}
	got = asChat(t,
		nativeAsk(`[{"role":"user","content":"u"},{"role":"assistant","content":[{"type":"tool_use","id":"a","name":"f","input":`+odd+`}]}]`,
			``), wire.Translation{}, "messages")
	if !strings.Contains(got, `"arguments":`+string(text)) {
		t.Errorf("chat: %s", got)
	}
}

func TestTrapLimitsAreSentAsTheyAre(t *testing.T) {
	t.Parallel()
	// A limit too low for a reasoning model is the client's choice: the finish reason reports it.
	if got := asMessages(t, wiretest.ChatBody(`"max_tokens":1,"reasoning_effort":"high"`), translation("claude-opus-5",
		true), "max_tokens"); got != "1" {
		t.Error(got)
	}
	if got := asChat(t, `{"model":"m","max_tokens":1,"messages":[{"role":"user","content":"u"}]}`,
		wire.Translation{Reasoning: true}, "max_tokens"); got != "1" {
		t.Error(got)
	}
}

func TestTrapNumbersKeepTheirDigits(t *testing.T) {
	t.Parallel()
	const input = `{"id":12345678901234567890123,"x":0.10000000000000000001}`
	out, err := chatWhole([]byte(`{"content":[{"type":"tool_use","id":"a","name":"f","input":`+input+`}],"stop_reason":"tool_use"}`),
		pairtest.Identity(), wire.Usage{})
	if err != nil {
		t.Fatal(err)
	}
	var whole struct {
		Choices []struct {
			Message struct {
				ToolCalls []struct{ Function struct{ Arguments string } } `json:"tool_calls"`
			}
		}
	}
	if err := json.Unmarshal(out, &whole); err != nil || whole.Choices[0].Message.ToolCalls[0].Function.Arguments != input {
		t.Errorf("%v: %s", err, out)
	}
	text, _ := json.Marshal(input)
	out, err = messagesWhole([]byte(`{"choices":[{"message":{"tool_calls":[{"id":"a","function":{"name":"f","arguments":`+string(text)+
		`}}]},"finish_reason":"tool_calls"}]}`),
		pairtest.Identity(), wire.Usage{})
	if err != nil || !strings.Contains(string(out), `"input":`+input+`}`) {
		t.Errorf("%v: %s", err, out)
	}
}

func TestTrapNoChatLineTellsWhichStopSequenceMatched(t *testing.T) {
	t.Parallel()
	out, err := messagesWhole([]byte(`{"choices":[{"message":{"content":"x"},"finish_reason":"stop"}]}`), pairtest.Identity(), wire.Usage{})
	if err != nil || !strings.Contains(string(out), `"stop_reason":"end_turn","stop_sequence":null`) {
		t.Errorf("%v: %s", err, out)
	}
	out, err = chatWhole([]byte(`{"content":[],"stop_reason":"stop_sequence","stop_sequence":"END"}`), pairtest.Identity(), wire.Usage{})
	if err != nil || !strings.Contains(string(out), `"finish_reason":"stop"`) {
		t.Errorf("%v: %s", err, out)
	}
}

func TestTrapImageAddressesPassAsTheyAre(t *testing.T) {
	t.Parallel()
	const address = `"https:\/\/e.com/a.png?x=\u0026"`
	if got := asMessages(t, wiretest.ChatParts(`{"type":"image_url","image_url":{"url":`+address+`}}`),
		translation("v", false), "messages"); !strings.Contains(got, `{"type":"url","url":`+address+`}`) {
		t.Error(got)
	}
	if got := asChat(t,
		nativeAsk(`[{"role":"user","content":[{"type":"image","source":{"type":"url","url":`+address+`}}]}]`, ``),
		wire.Translation{}, "messages"); !strings.Contains(got, `{"url":`+address+`}`) {
		t.Error(got)
	}
}

func TestTrapWhatTheFormDoesNotKnowIsDropped(t *testing.T) {
	t.Parallel()
	got := asMessages(t,
		wiretest.ChatMessages(
			`[{"role":"developer","name":"d","content":"s"},{"role":"user","name":"ann","content":"u"},`+
				`{"role":"assistant","name":"bot","content":"a","refusal":"r","annotations":[{"type":"url_citation"}],"audio":null},`+
				`{"role":"user","content":"v"}]`),
		translation("v", false), "system", "messages")
	want := `[{"type":"text","text":"s"}]` + "\n" +
		`[{"role":"user","content":[{"type":"text","text":"u"}]},{"role":"assistant","content":[{"type":"text","text":"a"},` +
		`{"type":"text","text":"r"}]},{"role":"user","content":[{"type":"text","text":"v"}]}]`
	if got != want {
		t.Errorf("got  %s\nwant %s", got, want)
	}
}

func TestTrapCommentsAreNoTokens(t *testing.T) {
	t.Parallel()
	// The timer for the first token uses the line's frames; to the client, the translation of a
	// comment or a ping must not look like an answer.
	id := pairtest.Identity()
	for name, w := range map[string]wire.Writer{"chat": chatWriter(id, true), "messages": messagesWriter(id)} {
		for _, e := range []sse.Event{{Raw: []byte(": x\n\n"), Offset: -1}, {Raw: []byte("data:\n\n"), Data: []byte{}},
			{Data: []byte(`{"type":"ping"}`), Name: "ping"}} {
			if name == "messages" && len(e.Data) > 0 {
				continue // not an event of the chat form
			}
			if got := string(w.Append(nil, e, wire.Frame{})); got != sse.KeepAlive {
				t.Errorf("%s: %q", name, got)
			}
		}
	}
}
