package translate

import (
	"encoding/json"
	"slices"
	"strings"
	"testing"

	"tollgate/internal/fault"
	"tollgate/internal/wire"
	"tollgate/internal/wire/internal/wiretest"
	"tollgate/internal/wire/responses"
	"tollgate/internal/wire/sse"
	"tollgate/internal/wire/translate/internal/pairtest"
)

// TestChain translates a stream of the messages form into one of the responses form.
func TestChain(t *testing.T) {
	t.Parallel()
	r := pairtest.Responses(t, `{"model":"m","input":"hi","stream":true}`)
	stream := strings.Join([]string{
		`event: message_start` + "\n" +
			`data: {"type":"message_start","message":{"id":"msg_1","type":"message","role":"assistant","model":"v","content":[],` +
			`"stop_reason":null,"usage":{"input_tokens":9,"output_tokens":1}}}`,
		`event: ping` + "\n" + `data: {"type":"ping"}`,
		`event: content_block_start` + "\n" + `data: {"type":"content_block_start","index":0,"content_block":{"type":"text","text":""}}`,
		`event: content_block_delta` + "\n" + `data: {"type":"content_block_delta","index":0,"delta":{"type":"text_delta","text":"Hello"}}`,
		`event: content_block_delta` + "\n" + `data: {"type":"content_block_delta","index":0,"delta":{"type":"text_delta","text":" there"}}`,
		`event: content_block_stop` + "\n" + `data: {"type":"content_block_stop","index":0}`,
		`event: content_block_start` + "\n" +
			`data: {"type":"content_block_start","index":1,"content_block":{"type":"tool_use","id":"toolu_1","name":"look","input":{}}}`,
		`event: content_block_delta` + "\n" +
			`data: {"type":"content_block_delta","index":1,"delta":{"type":"input_json_delta","partial_json":"{\"x\":1}"}}`,
		`event: content_block_stop` + "\n" + `data: {"type":"content_block_stop","index":1}`,
		`event: message_delta` + "\n" +
			`data: {"type":"message_delta","delta":{"stop_reason":"tool_use","stop_sequence":null},"usage":{"output_tokens":7}}`,
		`event: message_stop` + "\n" + `data: {"type":"message_stop"}`,
	}, "\n\n") + "\n\n"
	id := wire.Identity{Request: "req_1", Model: "m", Created: 1}
	m, w := New(r, wire.FormMessages, id).Events()
	reader := sse.NewReader(strings.NewReader(stream), 1<<20)
	var out []byte
	for {
		e, err := reader.Next()
		if err != nil {
			break
		}
		f, err := m.Read(e)
		if err != nil {
			t.Fatal(err)
		}
		out = w.Append(out, e, f)
	}
	u, known := m.Usage()
	if !known || !m.Complete() {
		t.Fatalf("usage %+v, known %t", u, known)
	}
	out = w.End(out, u)
	var kinds []string
	var last map[string]any
	for e := range sse.Each(out) {
		if e.Data == nil { // the comment for a ping
			continue
		}
		kinds = append(kinds, e.Name)
		last = nil
		if err := json.Unmarshal(e.Data, &last); err != nil {
			t.Fatal(err)
		}
	}
	text, _ := json.Marshal(last)
	if !slices.Contains(kinds, "response.output_text.delta") || !slices.Contains(kinds, "response.function_call_arguments.done") ||
		kinds[0] != "response.created" || kinds[len(kinds)-1] != "response.completed" ||
		!strings.Contains(string(text), `"input_tokens":9`) || !strings.Contains(string(text),
		`Hello there`) || !strings.Contains(string(text), `"call_id":"toolu_1"`) {
		t.Errorf("%v\n%s", kinds, text)
	}
	_, w = New(r, wire.FormMessages, id).Events()
	if failed := string(w.Fail(nil, fault.New(fault.UpstreamTimeout, "Gone."))); !strings.Contains(failed, "response.failed") {
		t.Errorf("%s", failed)
	}
}

// TestChainUnsettled checks that an event with several translations, with the finish after a text, is
// dropped as a whole if the settlement fails.
func TestChainUnsettled(t *testing.T) {
	t.Parallel()
	event := func(text, finish string) string {
		return `{"candidates":[{"content":{"parts":[{"text":"` + text + `"}],"role":"model"}` + finish +
			`}],"usageMetadata":{"promptTokenCount":3,"candidatesTokenCount":2,"totalTokenCount":5}}`
	}
	stream := wiretest.Frames(event("Hel", ""), event("lo", `,"finishReason":"STOP"`))
	m, w := New(pairtest.Responses(t, `{"input":"x","stream":true}`), wire.FormGemini, identity).Events()
	out, held := pairtest.StreamWithoutEnd(t, stream, w, m)
	wiretest.MustCheckResponses(t, w.End(slices.Clone(out), wire.Usage{}))
	wiretest.MustCheckResponses(t, w.Fail(out[:held:held], fault.New(fault.ServiceUnavailable, "Not settled.")))
}

// identity is the identity of all answers in tests.
var identity = wire.Identity{Request: "req_01TEST", Model: "swift-1", Created: 1795262002}

// TestChainNamesClientsField checks that Param and message of an error name the field of the client's
// request exactly.
func TestChainNamesClientsField(t *testing.T) {
	t.Parallel()
	for body, want := range map[string]string{
		`{"input":"hi","reasoning":{"effort":"huge"}}`:                       "reasoning.effort",
		`{"input":"hi","text":{"format":{"type":"json_schema","name":"n"}}}`: "text.format.schema",
		`{"input":[{"role":"user","content":[{"type":"input_image",` +
			`"image_url":"data:image/tiff;base64,AAAA"}]}]}`: "input[0].content[0].image_url",
	} {
		r, err := responses.Open([]byte(body))
		if err == nil {
			err = r.Check()
		}
		if err == nil {
			_, err = New(r, wire.FormMessages, wire.Identity{}).Body(wire.Translation{})
		}
		f := fault.Of(err)
		if f == nil || f.Param != want || !strings.Contains(f.Message(), "`"+want+"`") {
			t.Errorf("%s: %+v", body, f)
		}
	}
}
