package responses

import (
	"bytes"
	"errors"
	"io"
	"reflect"
	"strings"
	"testing"

	"tollgate/internal/fault"
	"tollgate/internal/wire"
	"tollgate/internal/wire/internal/wiretest"
	"tollgate/internal/wire/rawjson"
	"tollgate/internal/wire/sse"
)

// keptBytes is the limit of the retained text.
const keptBytes = 64 << 10

// identity is the identity of all answers in tests.
var identity = wire.Identity{Request: "req_01TEST", Model: "swift-1", Created: 1795262002}

// openRequest opens and checks a valid request.
func openRequest(t testing.TB, body string) *Request {
	t.Helper()
	r, err := Open([]byte(body))
	if err != nil {
		t.Fatal(err)
	}
	if err := r.Check(); err != nil {
		t.Fatal(err)
	}
	return r
}

// namedEvents returns a stream of events with the given data. Each event's name is its type.
func namedEvents(events ...string) string {
	var b strings.Builder
	for _, data := range events {
		b.WriteString("event: " + rawjson.Unquote(rawjson.Field([]byte(data), "type")) + "\ndata: " + data + "\n\n")
	}
	return b.String()
}

// result is the result of the meter for a stream.
type result struct {
	marks                       string // as in package completions
	usage                       wire.Usage
	known                       bool
	complete, limited, filtered bool
	text                        string
	err                         string // reported by the provider
}

// runStream reads a stream with meter and editor. It returns the meter's result, the editor, and the
// stream for the client.
func runStream(t testing.TB, stream string) (result, *editor, string) {
	t.Helper()
	r, m := sse.NewReader(strings.NewReader(stream), 1<<20), new(meter)
	w := newEditor(identity, openRequest(t, `{"model":"swift-1","input":"x"}`))
	var got result
	var out []byte
	for {
		e, err := r.Next()
		if errors.Is(err, io.EOF) {
			break
		}
		if err != nil {
			t.Fatal(err)
		}
		f, err := m.Read(e)
		if err != nil {
			t.Fatalf("%s: %v", e.Raw, err)
		}
		marks := ""
		for _, mark := range []struct {
			set  bool
			mark string
		}{{f.Token, "t"}, {f.Finish && f.Finished, "F"}, {f.Usage, "u"}, {f.Err != nil, "e"}, {f.Done, "d"}} {
			if mark.set {
				marks += mark.mark
			}
		}
		if marks == "" {
			marks = "."
		}
		got.marks += marks + " "
		if f.Err != nil {
			got.err = string(f.Err.Body) + f.Err.Reason
			continue
		}
		out = w.Append(out, e, f)
	}
	got.marks = strings.TrimSpace(got.marks)
	got.usage, got.known = m.Usage()
	got.complete, got.limited, got.filtered = m.Complete(), m.Limited(), m.Filtered()
	got.text = string(m.Text())
	return got, w, string(out)
}

// Data of a provider's events, and the member usage of its terminal event.
const (
	createdData = `{"type":"response.created","sequence_number":0,"response":{"id":"resp_p","object":"response",` +
		`"created_at":7,"status":"in_progress","model":"vendor-1","output":[],"store":false,"usage":null}}`
	addedData = `{"type":"response.output_item.added","sequence_number":1,"output_index":0,"item":{"id":"msg_p","type":"message",` +
		`"status":"in_progress","role":"assistant","content":[]}}`
	deltaData = `{"type":"response.output_text.delta","sequence_number":2,"item_id":"msg_p",` +
		`"output_index":0,"content_index":0,"delta":"He\u006clo","logprobs":[],"obfuscation":"x"}`
	itemDoneData = `{"type":"response.output_item.done","sequence_number":3,"output_index":0,"item":{"id":"msg_p","type":"message",` +
		`"status":"completed","role":"assistant","content":[{"type":"output_text","text":"Hello","annotations":[]}]}}`
	usageMember = `"usage":{"input_tokens":12,"input_tokens_details":{"cached_tokens":4,"cache_write_tokens":6,` +
		`"cache_write_tokens_details":{"ttl_30m_tokens":4,"ttl_12h_tokens":2}},` +
		`"output_tokens":5,"output_tokens_details":{"reasoning_tokens":2},"total_tokens":17}`
)

// endData returns the data of the terminal event of a kind, with further members in its response.
func endData(kind, members string) string {
	return `{"type":"response.` + kind + `","sequence_number":4,"response":{"id":"resp_p","object":"response","created_at":7,"status":"` +
		kind + `","model":"vendor-1","store":true,` + members + `}}`
}

func TestResponsesMeter(t *testing.T) {
	t.Parallel()
	counted := wire.Usage{Prompt: 12, Cached: 4, CacheWrite: 4, CacheWrite1h: 2, CacheSplit: true, Completion: 5, Reasoning: 2}
	tiered := counted
	tiered.ServiceTier, tiered.ToolCalls = "flex", map[string]int64{"web_search": 1, "image_generation": 1}
	begin := namedEvents(createdData, addedData, deltaData)
	for name, test := range map[string]struct {
		stream string
		want   result
	}{
		"text": {namedEvents(createdData, addedData, deltaData, itemDoneData, endData("completed",
			`"output":[],`+usageMember)), result{marks: ". . t . Fud", usage: counted, known: true, complete: true, text: "Hello"}},
		"no usage": {begin + namedEvents(endData("completed", `"output":[]`)), result{marks: ". . t Fd", complete: true, text: "Hello"}},
		"with DONE": {begin + namedEvents(endData("completed", `"output":[]`)) + "data: [DONE]\n\n",
			result{marks: ". . t Fd d", complete: true, text: "Hello"}},
		"cut": {begin, result{marks: ". . t", text: "Hello"}},
		"incomplete": {begin + namedEvents(endData("incomplete",
			`"incomplete_details":{"reason":"max_output_tokens"},`+usageMember)), result{marks: ". . t Fud", usage: counted,
			known: true, complete: true, limited: true, text: "Hello"}},
		"filtered": {namedEvents(createdData, endData("incomplete",
			`"incomplete_details":{"reason":"content_filter"},`+usageMember)), result{marks: ". Fud", usage: counted,
			known: true, complete: true, filtered: true}},
		"failed": {begin + namedEvents(endData("failed",
			`"error":{"code":"server_error","message":"m"},`+usageMember)), result{marks: ". . t ue", usage: counted,
			known: true, text: "Hello", err: `{"error":{"code":"server_error","message":"m"}}`}},
		"failed without an error": {begin + namedEvents(endData("failed", `"error":null`)),
			result{marks: ". . t e", text: "Hello", err: "failed"}},
		"cancelled": {begin + namedEvents(endData("cancelled", `"error":null`)),
			result{marks: ". . t e", text: "Hello", err: "cancelled"}},
		"completed but failed": {
			begin + namedEvents(`{"type":"response.completed","response":{"status":"failed","error":{"code":"rate_limit_exceeded","message":"m"}}}`),
			result{marks: ". . t e", text: "Hello", err: `{"error":{"code":"rate_limit_exceeded","message":"m"}}`}},
		"error": {begin + namedEvents(`{"type":"error","code":"server_error","message":"m","param":null,"sequence_number":3}`),
			result{marks: ". . t e", text: "Hello", err: `{"error":{"code":"server_error","message":"m","param":null}}`}},
		"nested error": {begin + namedEvents(`{"type":"error","sequence_number":3,"error":{"type":"server_error","code":"x","message":"m"}}`),
			result{marks: ". . t e", text: "Hello", err: `{"error":{"type":"server_error","code":"x","message":"m"}}`}},
		"error of a relay": {wiretest.Frames(`{"error":{"message":"m"}}`), result{marks: "e", err: `{"error":{"message":"m"}}`}},
		"named error":      {"event: error\ndata: no JSON\n\n", result{marks: "e", err: "no JSON"}},
		"no names": {wiretest.Frames(createdData, deltaData, endData("completed", usageMember)),
			result{marks: ". t Fud", usage: counted, known: true, complete: true, text: "Hello"}},
		"event names only": {"event: response.completed\ndata: {\"response\":{\"status\":\"completed\"}}\n\n",
			result{marks: "Fd", complete: true}},
		"comments": {": ping\n\n" + begin, result{marks: ". . . t", text: "Hello"}},
		"all in the end": {namedEvents(createdData, endData("completed",
			`"output":[{"type":"message","content":[{"type":"output_text","text":"Hello"}]}],`+usageMember)),
			result{marks: ". tFud", usage: counted, known: true, complete: true, text: "Hello"}},
		"no deltas":   {namedEvents(createdData, addedData, itemDoneData), result{marks: ". . t", text: "Hello"}},
		"refusal":     {namedEvents(`{"type":"response.refusal.delta","delta":"no"}`), result{marks: "t", text: "no"}},
		"empty delta": {namedEvents(`{"type":"response.output_text.delta","delta":""}`), result{marks: "."}},
		"reasoning": {namedEvents(`{"type":"response.reasoning_summary_text.delta","delta":"a"}`,
			`{"type":"response.reasoning_text.delta","delta":"b"}`,
			`{"type":"response.reasoning_summary_text.done","text":"a"}`), result{marks: "t t .", text: "ab"}},
		"call": {namedEvents(`{"type":"response.output_item.added","item":{"type":"function_call","name":"f","arguments":""}}`,
			`{"type":"response.function_call_arguments.delta","delta":"{}"}`,
			`{"type":"response.output_item.done","item":{"type":"function_call","name":"f","arguments":"{}"}}`),
			result{marks: "t t .", text: "f{}"}},
		"custom call": {namedEvents(`{"type":"response.output_item.added","item":{"type":"custom_tool_call","name":"f"}}`,
			`{"type":"response.custom_tool_call_input.delta","delta":"x"}`), result{marks: "t t", text: "fx"}},
		"hosted": {namedEvents(createdData, `{"type":"response.output_item.added","item":{"type":"web_search_call"}}`,
			`{"type":"response.output_item.done","item":{"type":"web_search_call","action":{"type":"search"}}}`,
			`{"type":"response.output_item.done","item":{"type":"web_search_call","action":{"type":"open_page"}}}`,
			`{"type":"response.image_generation_call.partial_image","partial_image_b64":"AAAA"}`,
			`{"type":"response.output_item.done","item":{"type":"image_generation_call","result":"AAAA"}}`,
			endData("completed", `"service_tier":"flex","output":[],`+usageMember)),
			result{marks: ". . . . t . Fud", usage: tiered, known: true, complete: true}},
		"hosted in the end": {namedEvents(createdData, `{"type":"response.output_item.done","item":{"type":"web_search_call"}}`,
			endData("completed",
				`"service_tier":"flex","output":[{"type":"web_search_call"},{"type":"image_generation_call","result":"A"}],`+usageMember)),
			result{marks: ". . tFud", usage: tiered, known: true, complete: true}},
		"unknown event": {namedEvents(`{"type":"response.brand_new","error":{"a":1}}`), result{marks: "."}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			if got, _, _ := runStream(t, test.stream); !reflect.DeepEqual(got, test.want) {
				t.Errorf("got  %+v\nwant %+v", got, test.want)
			}
		})
	}
}

func TestResponsesMeterRejectsInvalidJSON(t *testing.T) {
	t.Parallel()
	for _, data := range []string{"hello", "{", `{"type":}`, "[1]", `{"a":1} x`, `{"type":"response.output_text.delta","delta":"x"]}`} {
		if _, err := new(meter).Read(sse.Event{Data: []byte(data)}); !errors.Is(err, wire.ErrMalformed) {
			t.Errorf("%s: %v", data, err)
		}
	}
}

func TestReadResponsesAnswer(t *testing.T) {
	t.Parallel()
	body := func(status, members string) string {
		return "\n" + `{"id":"resp_p","object":"response","status":"` + status + `","model":"vendor-1","error":null,` + members + `}`
	}
	const message = `{"type":"message","content":[{"type":"output_text","text":"Hello"}]}`
	for name, test := range map[string]struct {
		body  string
		want  wire.AnswerSummary
		ended bool
		text  string
	}{
		"text": {body("completed", `"output":[`+message+`]`), wire.AnswerSummary{Content: true}, true, "Hello"},
		"refusal": {body("completed", `"output":[{"type":"message","content":[{"type":"refusal","refusal":"no"}]}]`),
			wire.AnswerSummary{Content: true}, true, "no"},
		"call": {body("completed", `"output":[{"type":"function_call","call_id":"c","name":"f","arguments":"{}"}]`),
			wire.AnswerSummary{Content: true}, true, "f{}"},
		"reasoning": {body("incomplete",
			`"incomplete_details":{"reason":"max_output_tokens"},"output":[{"type":"reasoning","summary":[{"type":"summary_text","text":"a"}]}]`),
			wire.AnswerSummary{Reasoning: true, Limited: true}, true, "a"},
		"hidden": {body("completed",
			`"output":[{"type":"reasoning","summary":[],"encrypted_content":"A"},`+message+`]`), wire.AnswerSummary{Content: true,
			Reasoning: true}, true, "Hello"},
		"search alone": {body("completed", `"output":[{"type":"web_search_call","action":{"query":"q"}}]`), wire.AnswerSummary{}, true, ""},
		"image": {body("completed", `"output":[{"type":"image_generation_call","result":"AAAA"}]`), wire.AnswerSummary{Content: true}, true,
			""},
		"empty": {body("completed", `"output":[]`), wire.AnswerSummary{}, true, ""},
		"filtered": {body("incomplete", `"incomplete_details":{"reason":"content_filter"},"output":[]`),
			wire.AnswerSummary{Filtered: true}, true, ""},
		"unfinished": {body("queued", `"output":[]`), wire.AnswerSummary{}, false, ""},
		"no status":  {`{"output":[` + message + `]}`, wire.AnswerSummary{Content: true}, false, "Hello"},
		"failed": {`{"status":"failed","error":{"code":"invalid_prompt","message":"m"}}`,
			wire.AnswerSummary{Err: &wire.ProviderError{Body: []byte(`{"error":{"code":"invalid_prompt","message":"m"}}`)}}, false, ""},
		"cancelled": {body("cancelled", `"output":[]`), wire.AnswerSummary{Err: &wire.ProviderError{Reason: "cancelled"}}, false, ""},
		"error":     {`{"error":"m"}`, wire.AnswerSummary{Err: &wire.ProviderError{Body: []byte(`{"error":"m"}`)}}, false, ""},
		"code": {`{"code":"Throttling","message":"m"}`,
			wire.AnswerSummary{Err: &wire.ProviderError{Body: []byte(`{"code":"Throttling","message":"m"}`)}}, false, ""},
	} {
		a, err := ReadAnswer([]byte(test.body))
		if err != nil {
			t.Errorf("%s: %v", name, err)
			continue
		}
		test.want.Ended = test.ended
		if !reflect.DeepEqual(*a.Summary(), test.want) || string(a.Text()) != test.text {
			t.Errorf("%s: %+v, text %q; want %+v, %q", name, *a.Summary(), a.Text(), test.want, test.text)
		}
	}
	for _, body := range []string{"", "[]", "{", "<html>", `{"a":1}x`} {
		if _, err := ReadAnswer([]byte(body)); !errors.Is(err, wire.ErrMalformed) {
			t.Errorf("%q: %v", body, err)
		}
	}
}

func TestResponsesPieces(t *testing.T) {
	t.Parallel()
	for body, want := range map[string]string{
		"\n{ \"id\":\"r\", \"model\" : \"vendor-1\"," +
			"\"store\":false,\"x\":{\"model\":\"y\"}}": "\n{ \"id\":\"r\", \"model\" : \"swift-1\",\"store\":false,\"x\":{\"model\":\"y\"}}",
		` {"model":"vendor-1","store" : true}`: ` {"model":"swift-1","store" : false}`,
		`{"model":"swift-1","store":null}`:     `{"model":"swift-1","store":null}`,
		`{"id":"r"}`:                           `{"id":"r"}`,
	} {
		edited := pieces([]byte(body), new(Request), wire.Identity{Model: "swift-1"})
		if got := string(bytes.Join(edited[:], nil)); got != want {
			t.Errorf("got  %s\nwant %s", got, want)
		}
	}
}

// TestResponsesEditor checks that the editor changes only model and store.
func TestResponsesEditor(t *testing.T) {
	t.Parallel()
	end := endData("completed", `"output":[{"type":"message","model":"vendor-1"}],`+usageMember)
	stream := ": ping\n\n" + namedEvents(createdData, addedData, deltaData,
		`{"type":"response.brand_new","model":"vendor-1","response":"x"}`, end) +
		"event: response.completed\r\ndata:   {\"type\":\"response.completed\"," +
		"\r\ndata: \"response\":{\"model\":\"vendor-1\"}}\r\n\r\ndata: [DONE]\n\n"
	want := strings.NewReplacer(`"model":"vendor-1","output":[],`, `"model":"swift-1","output":[],`,
		`"model":"vendor-1","store":true`, `"model":"swift-1","store":false`).Replace(
		stream[:strings.LastIndex(stream, "event:")]) +
		"event: response.completed\ndata:   {\"type\":\"response.completed\",\ndata: \"response\":{\"model\":\"swift-1\"}}\n\n"
	_, w, got := runStream(t, stream)
	if got != want {
		t.Errorf("got\n%s\nwant\n%s", got, want)
	}
	if rest := w.End(nil, wire.Usage{}); rest != nil {
		t.Errorf("End adds %q", rest)
	}
}

// TestResponsesEditorFails checks that the error event continues the provider's sequence numbers.
func TestResponsesEditorFails(t *testing.T) {
	t.Parallel()
	for name, test := range map[string]struct{ stream, id, number string }{
		"numbered": {namedEvents(createdData, addedData, deltaData), `"id":"resp_p","object":"response","created_at":7,`, `"sequence_number":3,`},
		"counted": {wiretest.Frames(`{"type":"response.created","response":{"id":7,"created_at":"x"}}`, `{"type":"a"}`),
			`"id":"resp_01TEST","object":"response","created_at":1795262002,`, `"sequence_number":2,`},
		"unsettled": {namedEvents(createdData, addedData, deltaData, itemDoneData, endData("completed", `"output":[]`)),
			`"id":"resp_p","object":"response","created_at":7,`, `"sequence_number":4,`},
		"nothing": {"", `"id":"resp_01TEST","object":"response","created_at":1795262002,`, `"sequence_number":0,`},
	} {
		_, w, _ := runStream(t, test.stream)
		last := string(w.Fail(nil, fault.New(fault.UpstreamTimeout, "Too \"slow\".")))
		for _, part := range []string{test.id, test.number, `"status":"failed"`,
			`"error":{"code":"upstream_timeout","message":"Too \"slow\"."}`, `"model":"swift-1"`, `"usage":null`} {
			if !strings.Contains(last, part) {
				t.Errorf("%s: no %s in %s", name, part, last)
			}
		}
		if !strings.HasPrefix(last, "event: response.failed\ndata: {") || !strings.HasSuffix(last, "}\n\n") {
			t.Errorf("%s: %q", name, last)
		}
	}
}

// FuzzResponsesStream checks that no stream causes a panic in meter or editor, and that the client
// gets as many events as the editor wrote.
func FuzzResponsesStream(f *testing.F) {
	f.Add([]byte(namedEvents(createdData, addedData, deltaData, itemDoneData, endData("completed", usageMember))))
	f.Add([]byte(namedEvents(endData("failed", `"error":{"code":"x"}`), `{"type":"error","message":"m"}`)))
	f.Add([]byte("data: {\"type\":\"response.completed\",\ndata: \"response\":{\"model\":1,\"store\":[]}}\n\n"))
	f.Fuzz(func(t *testing.T, stream []byte) {
		r, m := sse.NewReader(bytes.NewReader(stream), 1<<20), new(meter)
		w := newEditor(identity, openRequest(t, `{"input":"x"}`))
		var before, after int
		var out []byte
		for {
			e, err := r.Next()
			if err != nil {
				break
			}
			f, err := m.Read(e)
			if err != nil || f.Err != nil {
				break
			}
			size := len(out)
			if out = w.Append(out, e, f); len(out) > size {
				before++
			}
		}
		m.Usage()
		again := sse.NewReader(bytes.NewReader(out), 4<<20)
		for {
			if _, err := again.Next(); err != nil {
				break
			}
			after++
		}
		if before != after {
			t.Fatalf("%d events became %d:\n%q", before, after, out)
		}
		if last := w.Fail(nil, fault.New(fault.UpstreamBusy, "m")); !rawjson.IsValid(bytes.TrimSpace(last[bytes.Index(last,
			[]byte("data: "))+6:])) {
			t.Fatalf("%s", last)
		}
		if _, err := ReadAnswer(stream); err == nil {
			edited := pieces(stream, new(Request), wire.Identity{Model: "swift-1"})
			if !rawjson.IsValid(bytes.Join(edited[:], nil)) {
				t.Fatal("the answer is broken")
			}
		}
	})
}

// BenchmarkResponsesPass measures meter and editor with an ordinary event.
func BenchmarkResponsesPass(b *testing.B) {
	r := openRequest(b, `{"input":"x"}`)
	m, w := new(meter), newEditor(identity, r)
	e, err := sse.NewReader(strings.NewReader(namedEvents(deltaData)), 1<<20).Next()
	if err != nil {
		b.Fatal(err)
	}
	out := make([]byte, 0, 4<<10)
	b.SetBytes(int64(len(e.Raw)))
	b.ReportAllocs()
	for b.Loop() {
		f, err := m.Read(e)
		if err != nil || !f.Token {
			b.Fatal(err)
		}
		out = w.Append(out[:0], e, f)
	}
}

// TestOrdinaryEventAllocatesNothing checks that an ordinary event of a stream costs no allocation.
func TestOrdinaryEventAllocatesNothing(t *testing.T) {
	m, w := new(meter), newEditor(identity, openRequest(t, `{"input":"x"}`))
	e, err := sse.NewReader(strings.NewReader(namedEvents(deltaData)), 1<<20).Next()
	if err != nil {
		t.Fatal(err)
	}
	out := make([]byte, 0, 4<<10)
	m.Buffer = make([]byte, 0, keptBytes+len(deltaData))
	if allocs := testing.AllocsPerRun(100, func() {
		f, _ := m.Read(e)
		out = w.Append(out[:0], e, f)
	}); allocs > 0 {
		t.Errorf("%.0f allocations an event", allocs)
	}
}
