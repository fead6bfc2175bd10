package messages

import (
	"bytes"
	"errors"
	"flag"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"tollgate/internal/fault"
	"tollgate/internal/wire"
	"tollgate/internal/wire/internal/wiretest"
	"tollgate/internal/wire/rawjson"
	"tollgate/internal/wire/sse"

	"golang.org/x/tools/txtar"
)

var update = flag.Bool("update", false, "write what the scenarios of testdata come to anew")

// TestMessagesScenarios compares the client's bytes and the meter's results with golden files for a
// provider's streams. -update rewrites the files.
func TestMessagesScenarios(t *testing.T) {
	t.Parallel()
	files, err := filepath.Glob(filepath.Join("testdata", "*.txtar"))
	if err != nil || len(files) == 0 {
		t.Fatal(files, err)
	}
	for _, file := range files {
		t.Run(strings.TrimSuffix(filepath.Base(file), ".txtar"), func(t *testing.T) {
			t.Parallel()
			archive, err := txtar.ParseFile(file)
			if err != nil {
				t.Fatal(err)
			}
			given := archive.Files[0]
			var got map[string]string
			switch given.Name {
			case "upstream":
				got = playMessages(t, given.Data)
			case "answer":
				got = readMessages(t, given.Data)
			case "request":
				got = askMessages(t, given.Data)
			default:
				t.Fatalf("a scenario begins with %q", given.Name)
			}
			for i, p := range archive.Files[1:] {
				if now := got[p.Name]; now != string(p.Data) && !*update {
					t.Errorf("%s\n%s\nwant\n%s", p.Name, now, p.Data)
				}
				archive.Files[1+i].Data = []byte(got[p.Name])
			}
			if *update {
				if err := os.WriteFile(file, txtar.Format(archive), 0o644); err != nil {
					t.Fatal(err)
				}
			}
		})
	}
}

// playMessages passes a stream on. The marks of the meter: t token, f finish, F finished, u usage,
// d done, e error, . nothing.
func playMessages(t *testing.T, upstream []byte) map[string]string {
	t.Helper()
	r, m, edit := sse.NewReader(bytes.NewReader(upstream), 1<<20), new(meter), newEditor(wire.Identity{Model: "opal-1"})
	var client []byte
	var marks strings.Builder
	for {
		e, err := r.Next()
		if errors.Is(err, io.EOF) {
			u, _ := m.Usage()
			client = edit.End(client, u)
			break
		}
		if err != nil {
			t.Fatal(err)
		}
		f, err := m.Read(e)
		if err != nil {
			t.Fatalf("%s: %v", e.Raw, err)
		}
		mark(&marks, f)
		if f.Err != nil {
			client = edit.Fail(client, fault.New(fault.UpstreamBusy, "Busy."))
			break
		}
		client = edit.Append(client, e, f)
	}
	u, known := m.Usage()
	return map[string]string{
		"client": string(client),
		"meter": fmt.Sprintf("marks %s\n%scomplete %t filtered %t limited %t\ntext %q\n",
			strings.TrimSpace(marks.String()), showUsage(u, known), m.Complete(), m.Filtered(), m.Limited(), m.Text()),
	}
}

func mark(marks *strings.Builder, f wire.Frame) {
	text := ""
	for _, m := range []struct {
		set  bool
		mark string
	}{{f.Token, "t"}, {f.Finish, "f"}, {f.Finished, "F"}, {f.Usage, "u"}, {f.Done, "d"}, {f.Err != nil, "e"}} {
		if m.set {
			text += m.mark
		}
	}
	marks.WriteString(max(text, ".") + " ")
}

func showUsage(u wire.Usage, known bool) string {
	return fmt.Sprintf("known %t prompt %d cached %d write %d write1h %d completion %d reasoning %d\ntier %q calls %v\n",
		known, u.Prompt, u.Cached, u.CacheWrite, u.CacheWrite1h, u.Completion, u.Reasoning, u.ServiceTier, u.ToolCalls)
}

// readMessages reads an answer that was not streamed.
func readMessages(t *testing.T, body []byte) map[string]string {
	t.Helper()
	a, err := ReadAnswer(body)
	if err != nil {
		t.Fatal(err)
	}
	pieces, _ := direct{id: wire.Identity{Model: "opal-1"}}.Render(a, body, wire.Usage{})
	u, known := a.Usage()
	return map[string]string{
		"client": string(bytes.Join(pieces[:], nil)),
		"reading": fmt.Sprintf("content %t reasoning %t ended %t limited %t filtered %t error %v\n%stext %q\n",
			a.Summary().Content, a.Summary().Reasoning, a.Summary().Ended, a.Summary().Limited, a.Summary().Filtered,
			a.Summary().Err != nil, showUsage(u, known), a.Text()),
	}
}

// askMessages returns a request for a line.
func askMessages(t *testing.T, body []byte) map[string]string {
	t.Helper()
	r := openMessages(t, string(body))
	asked := r.Parameters
	asked.Conversation = 0
	return map[string]string{
		"sent":  string(r.Body(wire.Edits{Model: "vendor-model"}).Bytes()),
		"asked": strings.ReplaceAll(fmt.Sprintf("%+v", asked), " ", "\n") + "\n",
	}
}

// messagesDelta returns the event of a text delta.
func messagesDelta(kind, name, text string) string {
	return `{"type":"content_block_delta","index":0,"delta":{"type":"` + kind + `","` + name + `":` + text + `}}`
}

func TestMessagesMeterRefusesWhatIsNoJSON(t *testing.T) {
	t.Parallel()
	for _, data := range []string{"hello", "[1]", `{"type":"ping"`, `{"type":}`, `"x"`} {
		if _, err := new(meter).Read(sse.Event{Data: []byte(data)}); !errors.Is(err, wire.ErrMalformed) {
			t.Errorf("%s: %v", data, err)
		}
	}
	for _, body := range []string{"", "hello", "[]", `{"a":1`} {
		if _, err := ReadAnswer([]byte(body)); !errors.Is(err, wire.ErrMalformed) {
			t.Errorf("%s: %v", body, err)
		}
	}
}

// TestMessagesMeterErrors checks that an error of any shape has a body to classify.
func TestMessagesMeterErrors(t *testing.T) {
	t.Parallel()
	for _, e := range []sse.Event{
		{Name: "error", Data: []byte(`{"type":"error","error":{"type":"overloaded_error","message":"x"}}`)},
		{Name: "error", Data: []byte(`{"message":"x"}`)},
		{Name: "error", Data: []byte(`gateway gone`)},
		{Data: []byte(`{"type":"error","error":{"type":"overloaded_error","message":"x"}}`)},
		{Data: []byte(`{"error":{"message":"x"}}`)},
	} {
		for _, begun := range []bool{false, true} {
			m := new(meter)
			if begun {
				if f, err := m.Read(sse.Event{Data: []byte(messagesDelta("text_delta", "text", `"x"`))}); err != nil || !f.Token {
					t.Fatal(f, err)
				}
			}
			f, err := m.Read(e)
			if err != nil || f.Err == nil || string(f.Err.Body) != string(e.Data) {
				t.Errorf("%s: %+v, %v", e.Data, f, err)
			}
		}
	}
	if f, err := new(meter).Read(sse.Event{Data: []byte(`{"type":"message_delta","delta":{"stop_reason":"network_error"}}`)}); err != nil ||
		f.Err == nil || f.Err.Reason != "network_error" {
		t.Errorf("a failing stop_reason: %+v, %v", f, err)
	}
}

// TestMessagesUsageMerges checks that the counts of several events form one usage.
func TestMessagesUsageMerges(t *testing.T) {
	t.Parallel()
	for name, test := range map[string]struct {
		objects []string
		want    wire.Usage
	}{
		"null says nothing": {[]string{`{"input_tokens":9,"cache_read_input_tokens":5,"output_tokens":1}`,
			`{"input_tokens":null,"cache_read_input_tokens":null,"output_tokens":3}`},
			wire.Usage{Prompt: 14, Cached: 5, Completion: 3}},
		"zero takes nothing back": {[]string{`{"input_tokens":9,"output_tokens":1}`,
			`{"input_tokens":0,"output_tokens":3}`}, wire.Usage{Prompt: 9, Completion: 3}},
		"no split": {[]string{`{"input_tokens":1,"cache_creation_input_tokens":10,"output_tokens":1}`},
			wire.Usage{Prompt: 11, CacheWrite: 10, Completion: 1}},
		"split alone": {[]string{
			`{"input_tokens":1,"cache_creation":{"ephemeral_5m_input_tokens":4,"ephemeral_1h_input_tokens":6},"output_tokens":1}`},
			wire.Usage{Prompt: 11, CacheWrite: 4, CacheWrite1h: 6, CacheSplit: true, Completion: 1}},
		"more was written": {[]string{`{"input_tokens":1,"cache_creation_input_tokens":10,"cache_creation":{"ephemeral_1h_input_tokens":6}}`,
			`{"cache_creation_input_tokens":12}`}, wire.Usage{Prompt: 13, CacheWrite: 6, CacheWrite1h: 6}},
		"split above the whole": {[]string{`{"input_tokens":1,"cache_creation_input_tokens":3,"cache_creation":{"ephemeral_1h_input_tokens":6}}`},
			wire.Usage{Prompt: 4, CacheWrite1h: 3, CacheSplit: true}},
		"odd values": {[]string{
			`{"input_tokens":"9","cache_read_input_tokens":-4,"output_tokens":1e99,"output_tokens_details":7,"server_tool_use":[1]}`},
			wire.Usage{Completion: rawjson.MaxCount}},
		"negative says nothing": {
			[]string{`{"input_tokens":9,"cache_read_input_tokens":5,"cache_creation_input_tokens":4,"output_tokens":3,` +
				`"output_tokens_details":{"thinking_tokens":2},"server_tool_use":{"web_search_requests":1}}`,
				`{"input_tokens":-9,"cache_read_input_tokens":-5,"cache_creation_input_tokens":-4,"cache_creation":{"ephemeral_5m_input_tokens":-4,` +
					`"ephemeral_1h_input_tokens":-4},"output_tokens":-3,"output_tokens_details":{"thinking_tokens":-2},` +
					`"server_tool_use":{"web_search_requests":-1}}`},
			wire.Usage{Prompt: 18, Cached: 5, CacheWrite: 4, Completion: 3, Reasoning: 2, ToolCalls: map[string]int64{"web_search": 1}}},
		"parts of no prompt": {[]string{`{"input_tokens":-9,"cache_read_input_tokens":5,"cache_creation_input_tokens":4,"output_tokens":3}`},
			wire.Usage{Completion: 3}},
		"thinking above all": {[]string{`{"input_tokens":1,"output_tokens":3,"output_tokens_details":{"thinking_tokens":9}}`},
			wire.Usage{Prompt: 1, Completion: 3, Reasoning: 3}},
		"no bounds": {[]string{
			`{"input_tokens":1099511627776,"cache_read_input_tokens":1099511627776,"cache_creation_input_tokens":1099511627776}`},
			wire.Usage{Prompt: rawjson.MaxCount, Cached: rawjson.MaxCount}},
	} {
		var m usageSum
		for _, object := range test.objects {
			m.merge([]byte(object), true)
		}
		if got := m.result(nil); fmt.Sprint(got) != fmt.Sprint(test.want) {
			t.Errorf("%s: %+v, want %+v", name, got, test.want)
		}
	}
}

// TestMessagesCalls checks that the calls of hosted tools shown by a stream are charged unless the
// final usage has other counts.
func TestMessagesCalls(t *testing.T) {
	t.Parallel()
	const (
		none, one, two = `{"web_search_requests":0}`, `{"web_search_requests":1}`, `{"web_search_requests":2}`
		start          = `{"type":"message_start","message":{"usage":{"input_tokens":9,"output_tokens":1,"server_tool_use":%s}}}`
		search         = `{"type":"content_block_start","index":0,"content_block":{"type":"server_tool_use","name":"web_search","input":{}}}`
		end            = `{"type":"message_delta","delta":{"stop_reason":"end_turn"},"usage":{"output_tokens":3,"server_tool_use":%s}}`
	)
	for name, test := range map[string]struct {
		events []string
		calls  int64
	}{
		"left, zero at first":       {[]string{fmt.Sprintf(start, none), search, search}, 2},
		"left, one counted":         {[]string{fmt.Sprintf(start, one), search, search}, 2},
		"left, more than is shown":  {[]string{fmt.Sprintf(start, two), search}, 2},
		"zero at first, none later": {[]string{fmt.Sprintf(start, none), search, fmt.Sprintf(end, "null")}, 1},
		"zero at the end":           {[]string{fmt.Sprintf(start, none), search, fmt.Sprintf(end, none)}, 0},
		"two at the end":            {[]string{fmt.Sprintf(start, none), search, fmt.Sprintf(end, two)}, 2},
		"two, then zero":            {[]string{fmt.Sprintf(start, two), search, fmt.Sprintf(end, none)}, 2},
		"two, then negative":        {[]string{fmt.Sprintf(start, two), search, fmt.Sprintf(end, `{"web_search_requests":-2}`)}, 2},
	} {
		m := new(meter)
		for _, event := range test.events {
			if _, err := m.Read(sse.Event{Data: []byte(event)}); err != nil {
				t.Fatal(err)
			}
		}
		if u, _ := m.Usage(); u.ToolCalls["web_search"] != test.calls {
			t.Errorf("%s: %+v; want %d calls", name, u, test.calls)
		}
	}
}

// TestMessagesEditorKeepsEvents checks that the model is replaced anywhere in the first event, also
// if its data has several lines.
func TestMessagesEditorKeepsEvents(t *testing.T) {
	t.Parallel()
	for in, want := range map[string]string{
		"event: message_start\ndata: {\"type\":\"message_start\",\ndata: \"message\":{\"model\":\"v\"," +
			"\"x\":1}}\n\n": "event: message_start\ndata: {\"type\":\"message_start\",\ndata: \"message\":{\"model\":\"m\\\"<\",\"x\":1}}\n\n",
		"id: 7\ndata:  {\"message\" : {\"x\":{\"model\":\"a\"}," +
			" \"model\" : null}}\r\nevent: message_start\n\n": "id: 7\ndata:  {\"message\" : {\"x\":{\"model\":\"a\"}," +
			" \"model\" : \"m\\\"<\"}}\r\nevent: message_start\n\n",
		"event: message_start\ndata: {\"type\":\"message_start\"," +
			"\"message\":{}}\n\n": "event: message_start\ndata: {\"type\":\"message_start\",\"message\":{}}\n\n",
		": ping\n\nevent: ping\ndata: {\"type\":\"ping\"," +
			"\"model\":\"v\"}\n\n": ": ping\n\nevent: ping\ndata: {\"type\":\"ping\",\"model\":\"v\"}\n\n",
		"data: {\"message\":{\"model\":\"v\"}}\n\ndata: {\"delta\":1,\"message\":{\"model\":\"said by the " +
			"model\"}}\n\n": "data: {\"message\":{\"model\":\"m\\\"<\"}}\n\ndata: {\"delta\":1,\"message\":{\"model\":\"said by the model\"}}\n\n",
	} {
		r, edit := sse.NewReader(strings.NewReader(in), 1<<20), newEditor(wire.Identity{Model: `m"<`})
		var out []byte
		for {
			e, err := r.Next()
			if err != nil {
				break
			}
			out = edit.Append(out, e, wire.Frame{})
		}
		if string(out) != want {
			t.Errorf("got  %q\nwant %q", out, want)
		}
	}
}

func TestMessagesMeterDoesNotAllocatePerEvent(t *testing.T) {
	events := []sse.Event{
		{Data: []byte(messagesDelta("text_delta", "text", `"w\n"`) + "   ")},
		{Data: []byte(messagesDelta("input_json_delta", "partial_json", `"{\"a"`))},
		{Data: []byte(messagesDelta("thinking_delta", "thinking", `"w"`))},
		{Data: []byte(messagesDelta("signature_delta", "signature", `"w"`))},
		{Data: []byte(`{"type": "ping"}`)},
		{Data: []byte(`{"type":"content_block_stop","index":0}`)},
		{},
	}
	m, edit := new(meter), newEditor(wire.Identity{Model: "m"})
	out := edit.Append(make([]byte, 0, 4096), sse.Event{Data: []byte(`{"message":{"model":"v"}}`), Offset: -1}, wire.Frame{})
	for range 70_000 { // the retained text is limited
		if _, err := m.Read(events[0]); err != nil {
			t.Fatal(err)
		}
	}
	for _, e := range events {
		if n := testing.AllocsPerRun(100, func() {
			f, _ := m.Read(e)
			out = edit.Append(out[:0], e, f)
		}); n != 0 {
			t.Errorf("%s: %v allocations", e.Data, n)
		}
	}
}

// FuzzMessagesMeter checks that no bytes cause a panic, and that edited events are events.
func FuzzMessagesMeter(f *testing.F) {
	for _, seed := range []string{
		messagesDelta("text_delta", "text", `"a\u00e9\n"`), messagesDelta("citations_delta", "citation", `{"a":1}`),
		messagesDelta("novelty_delta", "content", `["x"]`),
		`{"type":"message_start","message":{"model":"v","usage":{"input_tokens":1e99,"cache_creation":{"ephemeral_1h_input_tokens":5}}}}`,
		`{"type":"message_delta","delta":{"stop_reason":"refusal"},"usage":{"output_tokens":3,"server_tool_use":{"web_search_requests":2}}}`,
		`{"type":"content_block_start","content_block":{"type":"server_tool_use","name":"web_search","input":{"q":1}}}`,
		`{"content":[{"type":"tool_use","name":"f","input":{}}],"usage":{"input_tokens":1,"output_tokens":2},` +
			`"stop_reason":"end_turn","model":"v"}`,
		`{"delta":[`, `{"type":"content_block_delta","delta":{"text":"`,
	} {
		f.Add([]byte(seed), []byte("{}"))
	}
	f.Fuzz(func(t *testing.T, first, second []byte) {
		m, edit := new(meter), newEditor(wire.Identity{Model: "x"})
		if _, err := m.Read(sse.Event{Data: []byte(messagesDelta("text_delta", "text", `"a"`))}); err != nil {
			t.Fatal(err)
		}
		for _, data := range [][]byte{first, second, first} {
			raw := append(append([]byte("data: "), bytes.ReplaceAll(bytes.ReplaceAll(data, []byte("\n"), nil), []byte("\r"), nil)...), "\n\n"...)
			e, err := sse.NewReader(bytes.NewReader(raw), len(raw)).Next()
			if err != nil {
				t.Fatal(err)
			}
			frame, _ := m.Read(e)
			if out := edit.Append(nil, e, frame); len(out) > 0 && (!bytes.HasPrefix(out, []byte("data:")) || !bytes.HasSuffix(out, []byte("\n\n"))) {
				t.Fatalf("edited %q to %q", raw, out)
			}
		}
		edit.End(nil, wire.Usage{})
		wiretest.CheckUsage(t, first, m.usage.result(m.Tools))
		if a, err := ReadAnswer(first); err == nil {
			u, _ := a.Usage()
			wiretest.CheckUsage(t, first, u)
			pieces, _ := direct{id: wire.Identity{Model: "x"}}.Render(a, first, wire.Usage{})
			if edited := bytes.Join(pieces[:], nil); !rawjson.IsValid(edited) {
				t.Fatalf("edited %s to %s", first, edited)
			}
		}
	})
}

// FuzzMessagesAlike compares deltas read by readSimilar with decoded deltas.
func FuzzMessagesAlike(f *testing.F) {
	f.Add("Hello", " world\n", "  ", byte(0))
	f.Add("", "\"", `,"x":"y"`, byte(1))
	f.Add("a", "}}", `,"type":"ping"`, byte(2))
	f.Fuzz(func(t *testing.T, first, second, tail string, kind byte) {
		kinds := [][2]string{{"text_delta", "text"}, {"thinking_delta", "thinking"}, {"input_json_delta", "partial_json"}}
		event := func(text, tail string) []byte {
			k := kinds[int(kind)%len(kinds)]
			return []byte(strings.TrimSuffix(messagesDelta(k[0], k[1], string(rawjson.Quote(text))), "}") + tail + "}")
		}
		if !rawjson.IsValid(event(first, tail)) || !rawjson.IsValid(event(second, tail)) {
			return
		}
		fast, slow := new(meter), new(meter)
		for _, data := range [][]byte{event("x", ""), event(first, ""), event(second, ""), event(first, tail), event(second,
			tail), event(first, "")} {
			slow.head = nil
			a, errA := fast.Read(sse.Event{Data: data})
			b, errB := slow.Read(sse.Event{Data: data})
			if a.Token != b.Token || a.Done != b.Done || a.Usage != b.Usage || (errA == nil) != (errB == nil) {
				t.Fatalf("%s: %+v, %v by likeness; %+v, %v decoded", data, a, errA, b, errB)
			}
		}
		if !bytes.Equal(fast.Text(), slow.Text()) {
			t.Fatalf("%q by likeness, %q decoded", fast.Text(), slow.Text())
		}
	})
}

func BenchmarkMessagesStreamOf64Events(b *testing.B) {
	stream := []byte(strings.Repeat("event: content_block_delta\ndata: "+messagesDelta("text_delta", "text", `" word"`)+"\n\n", 64))
	var out []byte
	src := bytes.NewReader(nil)
	b.ReportAllocs()
	for b.Loop() {
		src.Reset(stream)
		r, m, edit := sse.NewReader(src, 1<<20), new(meter), newEditor(wire.Identity{Model: "opal-1"})
		edit.started = true
		out = out[:0]
		for {
			e, err := r.Next()
			if err != nil {
				break
			}
			f, err := m.Read(e)
			if err != nil {
				b.Fatal(err)
			}
			out = edit.Append(out, e, f)
		}
	}
}
