package completions

import (
	"bytes"
	"errors"
	"io"
	"maps"
	"reflect"
	"strings"
	"testing"

	"tollgate/internal/wire"
	"tollgate/internal/wire/internal/wiretest"
	"tollgate/internal/wire/rawjson"
	"tollgate/internal/wire/sse"
)

// meterResult is the result of a meter for a whole stream.
type meterResult struct {
	marks    string // a letter for each frame: t token, f finish, F finished, u usage, U usage only, e error, d done, . nothing
	usage    wire.Usage
	known    bool
	complete bool
	text     string
}

func meterAll(t *testing.T, stream string, n int64) (meterResult, *meter) {
	t.Helper()
	r, m := sse.NewReader(strings.NewReader(stream), 1<<20), newMeter(n)
	var out meterResult
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
		}{{f.Token, "t"}, {f.Finish, "f"}, {f.Finish && f.Finished, "F"}, {f.Usage && !f.UsageOnly, "u"}, {f.UsageOnly,
			"U"}, {f.Err != nil, "e"}, {f.Done, "d"}} {
			if mark.set {
				marks += mark.mark
			}
		}
		if marks == "" {
			marks = "."
		}
		out.marks += marks + " "
	}
	out.marks = strings.TrimSpace(out.marks)
	out.usage, out.known = m.Usage()
	out.complete, out.text = m.Complete(), string(m.Text())
	return out, m
}

func TestChatMeter(t *testing.T) {
	t.Parallel()
	const null, stop = "null", `"stop"`
	role := wiretest.Delta(`{"role":"assistant","content":"","refusal":null}`, null)
	end := wiretest.Delta(`{}`, stop)
	const done = "[DONE]"
	const usage = `{"id":"c1","choices":[],"usage":{"prompt_tokens":5,"completion_tokens":2,"total_tokens":7}}`
	const zeros = `{"id":"c1","choices":[],"usage":{"prompt_tokens":0,"completion_tokens":0,"total_tokens":0}}`
	counted := wire.Usage{Prompt: 5, Completion: 2}
	for name, test := range map[string]struct {
		stream string
		n      int64
		want   meterResult
	}{
		"ordinary": {wiretest.Frames(role, wiretest.Delta(`{"content":"Hel"}`, null),
			wiretest.Delta(`{"content":"lo\n\"\u00e9\ud83d\ude00"}`, null), end, usage, done), 1,
			meterResult{". t t fF U d", counted, true, true, "Hello\n\"é😀"}},
		"no usage": {wiretest.Frames(role, wiretest.Delta(`{"content":"x"}`, null), end, done), 1, meterResult{". t fF d",
			wire.Usage{}, false, true, "x"}},
		"cut":       {wiretest.Frames(role, wiretest.Delta(`{"content":"x"}`, null)), 1, meterResult{". t", wire.Usage{}, false, false, "x"}},
		"only done": {wiretest.Frames(done), 1, meterResult{"d", wire.Usage{}, false, false, ""}},
		"comments": {": OPENROUTER PROCESSING\n\n\n" + wiretest.Frames(wiretest.Delta(`{"content":"x"}`, null)), 1,
			meterResult{". . t", wire.Usage{}, false, false, "x"}},
		"finish empty": {wiretest.Frames(wiretest.Delta(`{"content":"x"}`, `""`), wiretest.Delta(`{"content":"y"}`,
			`"null"`), end), 1, meterResult{"t t fF", wire.Usage{}, false, true, "xy"}},
		"spaced JSON": {wiretest.Frames(`{"choices": [ {"index": 0, "delta" : {"content": "a"}, "finish_reason": null} ], "usage": null}`,
			`{"choices": [ {"index": 0, "delta" : {"content": "b"}, "finish_reason" : null} ], "usage" : null}`), 1,
			meterResult{"t t", wire.Usage{}, false, false, "ab"}},
		"usage in the last frame": {wiretest.Frames(wiretest.Delta(`{"content":"x"}`, null),
			`{"choices":[{"index":0,"delta":{"content":""},"finish_reason":"stop"}],"usage":{"prompt_tokens":5,"completion_tokens":2}}`, done), 1,
			meterResult{"t fFu d", counted, true, true, "x"}},
		"usage in every frame": {
			wiretest.Frames(`{"choices":[{"index":0,"delta":{"content":"x"}}],"usage":{"prompt_tokens":5,"completion_tokens":1}}`,
				`{"choices":[{"index":0,"delta":{"content":"y"}}],"usage":{"prompt_tokens":5,"completion_tokens":2}}`), 1,
			meterResult{"tu tu", counted, false, false, "xy"}},
		"usage before the finish": {
			wiretest.Frames(`{"choices":[{"index":0,"delta":{"content":"x"}}],"usage":{"prompt_tokens":5,"completion_tokens":2}}`,
				end, done), 1,
			meterResult{"tu fF d", counted, false, true, "x"}},
		"usage, then zeros": {wiretest.Frames(wiretest.Delta(`{"content":"x"}`, stop), usage, zeros), 1,
			meterResult{"tfF U U", counted, true, true, "x"}},
		"usage early, then zeros": {wiretest.Frames(wiretest.Delta(`{"content":"x"}`, null), usage, end, zeros), 1,
			meterResult{"t U fF U", counted, false, true, "x"}},
		"zeros, then usage": {wiretest.Frames(wiretest.Delta(`{"content":"x"}`, stop), zeros, usage), 1,
			meterResult{"tfF U U", counted, true, true, "x"}},
		"usage, then more of the answer": {wiretest.Frames(wiretest.Delta(`{"content":"x"}`, stop), usage,
			wiretest.Delta(`{"content":"y"}`, null)), 2, meterResult{"tf U t", counted, false, true, "xy"}},
		"usage, then another choice": {wiretest.Frames(wiretest.Delta(`{"content":"x"}`, stop), usage,
			`{"choices":[{"index":1,"delta":{"content":"y","annotations":[]}}]}`), 2,
			meterResult{"tf U t", counted, false, false, "xy"}},
		"usage before the choice's finish in its frame": {wiretest.Frames(wiretest.Delta(`{"content":"x"}`, null),
			`{"usage":{"prompt_tokens":5,"completion_tokens":2},"choices":[{"index":0,"delta":{},"finish_reason":"stop"}]}`), 1,
			meterResult{"t fFu", counted, true, true, "x"}},
		"calls counted too early": {
			wiretest.Frames(`{"choices":[{"delta":{"annotations":[{"type":"url_citation"}],"executed_tools":[{"type":"python"},` +
				`{"type":"python"}]}}],"usage":{"prompt_tokens":5,"completion_tokens":2,"server_tool_use":{"code_interpreter_requests":1}}}`),
			1,
			meterResult{"u", wire.Usage{Prompt: 5, Completion: 2, ToolCalls: map[string]int64{"code_interpreter": 2,
				"web_search": 1}}, false, false, ""}},
		"usage in the choice": {wiretest.Frames(wiretest.Delta(`{"content":"x"}`, null),
			`{"choices":[{"index":0,"delta":{},"finish_reason":"stop","usage":{"prompt_tokens":5,"completion_tokens":2}}]}`), 1,
			meterResult{"t fF", counted, true, true, "x"}},
		"usage in x_groq": {wiretest.Frames(`{"x_groq":{"id":"r"},"choices":[{"delta":{"content":"x"}}]}`,
			`{"choices":[{"delta":{},"finish_reason":"stop"}],"x_groq":{"usage":{"prompt_tokens":5,"completion_tokens":2}}}`), 1,
			meterResult{"t fF", counted, true, true, "x"}},
		"usage of zero": {wiretest.Frames(wiretest.Delta(`{"content":"x"}`, stop),
			`{"choices":[],"usage":{"prompt_tokens":0,"completion_tokens":0}}`), 1, meterResult{"tfF U", wire.Usage{}, true, true, "x"}},
		"empty usage": {wiretest.Frames(wiretest.Delta(`{"content":"x"}`, stop), `{"choices":[],"usage":{}}`),
			1, meterResult{"tfF .", wire.Usage{}, false, true, "x"}},
		"later usage says nothing": {wiretest.Frames(end, usage, `{"choices":[],"usage":{"total_tokens":9}}`), 1,
			meterResult{"fF U .", counted, true, true, ""}},
		"two choices": {wiretest.Frames(`{"choices":[{"index":0,"delta":{"content":"x"}}]}`,
			`{"choices":[{"index":1,"delta":{"content":"y"}}]}`, end,
			`{"choices":[{"index":1,"delta":{},"finish_reason":"length"}]}`), 2, meterResult{"t t f fF", wire.Usage{}, false, true, "xy"}},
		"two in one frame": {wiretest.Frames(role, wiretest.Delta(`{"content":"1"}`, null),
			`{"choices":[{"index":0,"delta":{"content":"x"}},{"index":1,"delta":{"content":"y"}}]}`), 2, meterResult{". t t",
			wire.Usage{}, false, false, "1xy"}},
		"one of two left open": {
			wiretest.Frames(`{"choices":[{"index":0,"delta":{"content":"x"},"finish_reason":null},{"index":1,"delta":{"content":"y"},` +
				`"finish_reason":"stop"}]}`),
			2, meterResult{"tf", wire.Usage{}, false, false, "xy"}},
		"another choice left open": {
			wiretest.Frames(wiretest.Delta(`{"content":"x"}`, null), `{"choices":[{"index":1,"delta":{"content":"y"}}]}`,
				`{"choices":[{"index":1,"delta":{"content":"z"}}]}`, end, usage, done), 2,
			meterResult{"t t t f U d", counted, false, false, "xyz"}},
		"another choice left open, its index behind": {
			wiretest.Frames(`{"choices":[{"delta":{"content":"x"},"index":0}]}`, `{"choices":[{"delta":{"content":"y"},"index":0}]}`,
				`{"choices":[{"delta":{"content":"z"},"index":1}]}`, end, usage, done), 2,
			meterResult{"t t t f U d", counted, false, false, "xyz"}},
		"choices in turn, the index behind": {
			wiretest.Frames(`{"choices":[{"delta":{"content":"x"},"index":0}]}`, `{"choices":[{"delta":{"content":"y"},"index":1}]}`,
				`{"choices":[{"delta":{"content":"z"},"index":0}]}`, end, usage,
				`{"choices":[{"index":1,"delta":{},"finish_reason":"stop"}]}`, usage), 2,
			meterResult{"t t t f U fF U", counted, true, true, "xyz"}},
		"fewer choices than asked": {wiretest.Frames(wiretest.Delta(`{"content":"x"}`, stop), done), 3, meterResult{"tf d",
			wire.Usage{}, false, true, "x"}},
		"same choice ends twice": {wiretest.Frames(wiretest.Delta(`{"content":"x"}`, stop), end), 2, meterResult{"tf f",
			wire.Usage{}, false, true, "x"}},
		"reasoning": {wiretest.Frames(wiretest.Delta(`{"reasoning_content":"a"}`, null),
			wiretest.Delta(`{"reasoning":"b"}`, null), wiretest.Delta(`{"reasoning_content":""}`, null),
			wiretest.Delta(`{"thinking":"c"}`, null)), 1, meterResult{"t t . t", wire.Usage{}, false, false, "abc"}},
		"reasoning twice": {
			wiretest.Frames(wiretest.Delta(`{"reasoning":"b","reasoning_details":[{"type":"reasoning.text","text":"b","signature":"s"}]}`,
				null), wiretest.Delta(`{"reasoning_details":[{"type":"reasoning.encrypted","data":"AAAA"}]}`, null)), 1,
			meterResult{"t t", wire.Usage{}, false, false, "b"}},
		"thinking parts": {wiretest.Frames(
			wiretest.Delta(`{"content":[{"type":"thinking","thinking":[{"type":"text","text":"a"}]},{"type":"text","text":"b"}]}`,
				null)), 1, meterResult{"t", wire.Usage{}, false, false, "ab"}},
		"refusal": {wiretest.Frames(wiretest.Delta(`{"refusal":"no"}`, null)), 1, meterResult{"t",
			wire.Usage{}, false, false, "no"}},
		"tool call": {wiretest.Frames(role,
			wiretest.Delta(`{"tool_calls":[{"index":0,"id":"call","type":"function","function":{"name":"f","arguments":""}}]}`,
				null), wiretest.Delta(`{"tool_calls":[{"index":0,"function":{"arguments":"{\"a\":1}"}}]}`, null),
			wiretest.Delta(`{}`, `"tool_calls"`)), 1, meterResult{". t t fF", wire.Usage{}, false, true, `f{"a":1}`}},
		"arguments as an object": {wiretest.Frames(wiretest.Delta(`{"tool_calls":[{"function":{"name":"f","arguments":{"a":1}}}],"content":null}`,
			null)), 1, meterResult{"t", wire.Usage{}, false, false, `f{"a":1}`}},
		"function call": {wiretest.Frames(wiretest.Delta(`{"function_call":{"name":"f","arguments":"{}"}}`,
			null), wiretest.Delta(`{"tool_calls":[]}`, null)), 1, meterResult{"t .", wire.Usage{}, false, false, "f{}"}},
		"words in the text": {wiretest.Frames(role, wiretest.Delta(`{"content":"x"}`, null),
			wiretest.Delta(`{"content":"\"usage\":{\"error\":1,\"delta\":{\"content\":\"no\"}}"}`, null)), 1, meterResult{". t t",
			wire.Usage{}, false, false, `x"usage":{"error":1,"delta":{"content":"no"}}`}},
		"error": {wiretest.Frames(wiretest.Delta(`{"content":"x"}`, null),
			`{"error":{"message":"overloaded","code":503}}`), 1, meterResult{"t e", wire.Usage{}, false, false, "x"}},
		"no error": {wiretest.Frames(`{"error":null,"choices":[{"delta":{"content":"x"}}]}`,
			`{"error":null,"choices":[{"delta":{"content":"y"}}]}`), 1, meterResult{"t t", wire.Usage{}, false, false, "xy"}},
		"error in x_groq": {wiretest.Frames(wiretest.Delta(`{"content":"x"}`, null),
			`{"choices":[{"delta":{}}],"x_groq":{"error":"stopped"}}`), 1, meterResult{"t e", wire.Usage{}, false, false, "x"}},
		"error in the choice": {wiretest.Frames(`{"choices":[{"delta":{},"error":{"code":502}}]}`), 1, meterResult{"e",
			wire.Usage{}, false, false, ""}},
		"named error": {"event: error\n" + wiretest.Frames(`{"message":"x"}`), 1, meterResult{"e", wire.Usage{}, false, false, ""}},
		"status of a vendor": {wiretest.Frames(wiretest.Delta(`{"content":"x"}`, null),
			`{"choices":null,"base_resp":{"status_code":1002,"status_msg":"limit"}}`,
			`{"choices":[],"base_resp":{"status_code":0}}`), 1, meterResult{"t e .", wire.Usage{}, false, false, "x"}},
		"code and message": {wiretest.Frames(`{"code":"Throttling","message":"slow down"}`), 1, meterResult{"e",
			wire.Usage{}, false, false, ""}},
		"code and message later": {wiretest.Frames(wiretest.Delta(`{"content":"x"}`, null),
			`{"code":"Throttling","message":"slow down"}`), 1, meterResult{"t e", wire.Usage{}, false, false, "x"}},
		"failed finish": {wiretest.Frames(wiretest.Delta(`{"content":"x"}`, null), wiretest.Delta(`{}`,
			`"network_error"`)), 1, meterResult{"t e", wire.Usage{}, false, false, "x"}},
		"failed finish of Gemini": {wiretest.Frames(role, wiretest.Delta(`{}`, `"MALFORMED_FUNCTION_CALL"`)), 1,
			meterResult{". e", wire.Usage{}, false, false, ""}},
		"blocked prompt": {wiretest.Frames(`{"promptFeedback":{"blockReason":"SAFETY"}}`), 1, meterResult{"e",
			wire.Usage{}, false, false, ""}},
		"prompt not blocked": {wiretest.Frames(`{"promptFeedback":{"safetyRatings":[]},"choices":[]}`), 1,
			meterResult{".", wire.Usage{}, false, false, ""}},
		"first frame of the filter": {wiretest.Frames(`{"choices":[],"prompt_filter_results":[]}`), 1, meterResult{".",
			wire.Usage{}, false, false, ""}},
		"tier and search": {wiretest.Frames(role, wiretest.Delta(`{"content":"x"}`, null),
			wiretest.Delta(`{"annotations":[{"type":"url_citation"}]}`, null),
			wiretest.Delta(`{"annotations":[{"type":"url_citation"}]}`, stop),
			`{"choices":[],"service_tier":"flex","usage":{"prompt_tokens":5,"completion_tokens":2}}`), 1,
			meterResult{". t . fF U", wire.Usage{Prompt: 5, Completion: 2, ServiceTier: "flex",
				ToolCalls: map[string]int64{"web_search": 1}}, true, true, "x"}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			if got, _ := meterAll(t, test.stream, test.n); !reflect.DeepEqual(got, test.want) {
				t.Errorf("got  %+v\nwant %+v", got, test.want)
			}
		})
	}
}

func TestChatMeterRefusesWhatIsNoJSON(t *testing.T) {
	t.Parallel()
	for _, data := range []string{"hello", "{", `{"choices":[}`, "[1]", `{"a":1} x`, "<html>"} {
		if _, err := newMeter(1).Read(sse.Event{Data: []byte(data)}); !errors.Is(err, wire.ErrMalformed) {
			t.Errorf("%s: %v", data, err)
		}
	}
}

func TestChatMeterKeepsSomeOfALongText(t *testing.T) {
	t.Parallel()
	long := strings.Repeat("word ", keptBytes/5)
	_, m := meterAll(t, wiretest.Frames(wiretest.Delta(`{"content":"`+long+`"}`, "null"),
		wiretest.Delta(`{"content":"`+long+`"}`, "null"), wiretest.Delta(`{"content":"`+long+`"}`, "null")), 1)
	if len(m.Text()) > keptBytes {
		t.Errorf("%d bytes kept", len(m.Text()))
	}
	words := int64(3 * keptBytes / 5)
	if got := m.Completion(&wire.Counter{}); got < words*9/10 || got > words*11/10 {
		t.Errorf("estimate %d for %d words", got, words)
	}
}

func TestChatMeterDoesNotAllocatePerFrame(t *testing.T) {
	e := sse.Event{Data: []byte(wiretest.Delta(`{"content":"w\n"}`, "null"))}
	m := newMeter(1)
	for range 70_000 { // the retained text is limited
		if _, err := m.Read(e); err != nil {
			t.Fatal(err)
		}
	}
	if n := testing.AllocsPerRun(100, func() { _, _ = m.Read(e) }); n != 0 {
		t.Errorf("%v allocations a frame", n)
	}
}

// FuzzChatMeter checks that no bytes cause a panic, and that editing the model leaves the rest of
// the event.
func FuzzChatMeter(f *testing.F) {
	for _, seed := range []string{
		wiretest.Delta(`{"content":"a\u00e9\n"}`, `"stop"`),
		wiretest.Delta(`{"tool_calls":[{"function":{"arguments":{}}}]}`, "null"), `{"error":{}}`,
		`{"delta":[`,
		`{"choices":[{"index":127,"delta":{"content":[{"text":"\ud800\u12"}]}}],"usage":{"prompt_tokens":1e99,"completion_tokens":-1}}`,
	} {
		f.Add([]byte(seed), []byte("{}"))
	}
	f.Fuzz(func(t *testing.T, first, second []byte) {
		m, edit := newMeter(2), newFrameEditor("x")
		start := sse.Event{Data: []byte(wiretest.Delta(`{"content":"a"}`, "null"))}
		if _, err := m.Read(start); err != nil {
			t.Fatal(err)
		}
		for _, data := range [][]byte{first, second, first} {
			raw := append(append([]byte("data: "), bytes.ReplaceAll(bytes.ReplaceAll(data, []byte("\n"), nil), []byte("\r"), nil)...), "\n\n"...)
			e, err := sse.NewReader(bytes.NewReader(raw), len(raw)).Next()
			if err != nil {
				t.Fatal(err)
			}
			_, _ = m.Read(e)
			if out := edit.Append(nil, e); !bytes.HasPrefix(out, []byte("data:")) || !bytes.HasSuffix(out, []byte("\n\n")) {
				t.Fatalf("edited %q to %q", raw, out)
			}
		}
		u, _ := m.Usage()
		if u.Prompt < 0 || u.Cached+u.CacheWrite > u.Prompt || u.Reasoning > u.Completion || u.Prompt > rawjson.MaxCount ||
			u.Completion > rawjson.MaxCount {
			t.Fatalf("usage %+v", u)
		}
		if a, err := ReadAnswer(first); err == nil {
			_, _ = a.Usage()
			pieces, _ := direct{id: wire.Identity{Model: "x"}}.Render(a, first, wire.Usage{})
			if edited := bytes.Join(pieces[:], nil); !rawjson.IsValid(edited) {
				t.Fatalf("edited %s to %s", first, edited)
			}
		}
	})
}

// FuzzLikeness compares frames read by framePattern with decoded frames.
func FuzzLikeness(f *testing.F) {
	f.Add("Hello", " world\n", `,"obfuscation":"abc"`, byte(0))
	f.Add("", "\"", `,"usage":null`, byte(1))
	f.Add("a", "b", `,"usage":{"prompt_tokens":1,"completion_tokens":1}`, byte(2))
	f.Fuzz(func(t *testing.T, first, second, tail string, kind byte) {
		keys := []string{"content", "reasoning_content", "refusal"}
		frame := func(text, tail string) []byte {
			return []byte(`{"id":"c","choices":[{"index":0,"delta":{"` + keys[int(kind)%len(keys)] + `":` + string(rawjson.Quote(text)) +
				`},"finish_reason":null}]` + tail + `}`)
		}
		if !rawjson.IsValid(frame(first, tail)) || !rawjson.IsValid(frame(second, tail)) || strings.Contains(tail,
			"delta") || strings.Contains(tail, `\u`) || strings.Contains(tail, "choices") {
			return
		}
		fast, slow := newMeter(1), newMeter(1)
		for _, data := range [][]byte{frame("x", ""), frame(first, ""), frame(second, ""), frame(first, tail), frame(second,
			tail), frame(first, "")} {
			got, err := fast.Read(sse.Event{Data: data})
			if err != nil {
				t.Fatal(err)
			}
			slow.hasToken = false
			want, err := slow.Read(sse.Event{Data: data})
			if err != nil {
				t.Fatal(err)
			}
			if !reflect.DeepEqual(got, want) {
				t.Fatalf("%s: %+v, decoded %+v", data, got, want)
			}
		}
		if !bytes.Equal(fast.Text(), slow.Text()) || fast.Bytes != slow.Bytes || fast.Content != slow.Content {
			t.Fatalf("text %q, decoded %q", fast.Text(), slow.Text())
		}
	})
}

func TestFrameEditor(t *testing.T) {
	t.Parallel()
	for name, test := range map[string]struct{ in, want string }{
		"one place": {
			wiretest.Frames(`{"id":"c","model":"v","x":"\"model\":\"v\""}`, `{"id":"c","model":"v","y":2}`, "[DONE]"),
			wiretest.Frames(`{"id":"c","model":"swift \"1\"","x":"\"model\":\"v\""}`, `{"id":"c","model":"swift \"1\"","y":2}`, "[DONE]"),
		},
		"other places": {
			wiretest.Frames(`{"model":"v","id":"1"}`, `{"id":"2","model" : "w"}`, `{"model":"v","id":"3"}`, `{"id":"4"}`),
			wiretest.Frames(`{"model":"swift \"1\"","id":"1"}`, `{"id":"2","model" : "swift \"1\""}`,
				`{"model":"swift \"1\"","id":"3"}`, `{"id":"4"}`),
		},
		"inner model": {wiretest.Frames(`{"choices":[{"model":"v"}]}`), wiretest.Frames(`{"choices":[{"model":"v"}]}`)},
		"comments":    {": hi\n\n: there\r\n\r\n", ": hi\n\n: there\r\n\r\n"},
		"as it came": {"event: x\r\ndata:{\"model\":\"v\"}\r\nid: 7\r\n\r\n",
			"event: x\r\ndata:{\"model\":\"swift \\\"1\\\"\"}\r\nid: 7\r\n\r\n"},
		"several lines": {"event: x\ndata: {\"a\":1,\ndata: \"model\":\"v\",\ndata: \"b\":2}\n\n",
			"event: x\ndata: {\"a\":1,\ndata: \"model\":\"swift \\\"1\\\"\",\ndata: \"b\":2}\n\n"},
		"no JSON": {wiretest.Frames(`{"a":`, `model`, ``), wiretest.Frames(`{"a":`, `model`, ``)},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			r, edit := sse.NewReader(strings.NewReader(test.in), 1<<10), newFrameEditor(`swift "1"`)
			var out []byte
			for {
				e, err := r.Next()
				if err != nil {
					break
				}
				out = edit.Append(out, e)
			}
			if string(out) != test.want {
				t.Errorf("got  %q\nwant %q", out, test.want)
			}
		})
	}
}

func TestUsageEvent(t *testing.T) {
	t.Parallel()
	_, m := meterAll(t, wiretest.Frames(wiretest.Delta(`{"content":"x"}`, "null")), 1)
	edit := newEditor(wire.Identity{Model: "swift-1"}, true, m)
	got, whole := strings.CutSuffix(string(edit.End(nil, wire.Usage{Prompt: 5, Cached: 1, Completion: 3, Reasoning: 2})), sse.Done)
	if !whole {
		t.Errorf("no [DONE] behind %s", got)
	}
	want := wiretest.Frames(
		`{"id":"c1","object":"chat.completion.chunk","created":7,"model":"swift-1","choices":[],` +
			`"usage":{"prompt_tokens":5,"completion_tokens":3,"total_tokens":8,"prompt_tokens_details":{"cached_tokens":1},` +
			`"completion_tokens_details":{"reasoning_tokens":2}}}`)
	if got != want {
		t.Errorf("got  %s\nwant %s", got, want)
	}
	if got := string(AppendUsage(nil, wire.Usage{Prompt: 5, PromptImage: 1, PromptAudio: 2, Completion: 9, CompletionImage: 3,
		CompletionAudio: 4})); got != `{"prompt_tokens":5,"completion_tokens":9,"total_tokens":14,"prompt_tokens_details":{"cached_tokens":0,`+
		`"image_tokens":1,"audio_tokens":2},"completion_tokens_details":{"reasoning_tokens":0,"image_tokens":3,"audio_tokens":4}}` {
		t.Error(got)
	}
	again, _ := meterAll(t, got, 1)
	if again.usage.Prompt != 5 || again.usage.Reasoning != 2 || again.marks != "U" {
		t.Errorf("read back as %+v", again)
	}
	if got := string(ErrorEvent([]byte(`{"code":"x"}`))); got != "data: {\"error\":{\"code\":\"x\"}}\n\n" {
		t.Error(got)
	}
}

func TestReadChatAnswer(t *testing.T) {
	t.Parallel()
	type summary struct {
		content, reasoning, limited, filtered, failed bool
		text                                          string
	}
	answer := func(message, finish string) string {
		return `{"id":"c","model":"v","choices":[{"index":0,"message":` + message + `,"finish_reason":"` + finish + `"}]}`
	}
	for name, test := range map[string]struct {
		body string
		want summary
	}{
		"text":              {answer(`{"role":"assistant","content":"hi"}`, "stop"), summary{content: true, text: "hi"}},
		"after empty lines": {"\n\n" + answer(`{"content":"hi"}`, "stop") + "\n", summary{content: true, text: "hi"}},
		"empty":             {answer(`{"role":"assistant","content":""}`, "stop"), summary{}},
		"null":              {answer(`{"role":"assistant","content":null}`, "stop"), summary{}},
		"no message":        {`{"choices":[{"message":null,"finish_reason":"stop"}]}`, summary{}},
		"no choices":        {`{"choices":[]}`, summary{}},
		"tools": {answer(`{"content":null,"tool_calls":[{"id":"c","function":{"name":"f","arguments":"{}"}}]}`,
			"tool_calls"), summary{content: true, text: "f{}"}},
		"refusal": {answer(`{"content":null,"refusal":"no"}`, "stop"), summary{content: true, text: "no"}},
		"images": {answer(`{"content":"","images":[{"type":"image_url","image_url":{"url":"data:image/png;base64,AA"}}]}`,
			"stop"), summary{content: true}},
		"only reasoning":   {answer(`{"content":"","reasoning_content":"hm"}`, "length"), summary{reasoning: true, limited: true, text: "hm"}},
		"filtered":         {answer(`{"content":""}`, "content_filter"), summary{filtered: true}},
		"sensitive":        {answer(`{"content":""}`, "sensitive"), summary{filtered: true}},
		"safety":           {answer(`{"content":""}`, "SAFETY"), summary{filtered: true}},
		"refused":          {answer(`{"content":""}`, "refusal"), summary{filtered: true}},
		"unexpected call":  {answer(`{"content":""}`, "UNEXPECTED_TOOL_CALL"), summary{failed: true}},
		"blocked prompt":   {`{"promptFeedback":{"blockReason":"SAFETY"}}`, summary{failed: true}},
		"part filtered":    {answer(`{"content":"a"}`, "content_filter"), summary{content: true, filtered: true, text: "a"}},
		"output sensitive": {`{"choices":null,"output_sensitive":true}`, summary{filtered: true}},
		"error":            {`{"error":{"message":"x","code":429}}`, summary{failed: true}},
		"error text":       {`{"error":"x"}`, summary{failed: true}},
		"error beside": {`{"error":{"message":"x"},"choices":[{"message":{"content":"a"}}]}`, summary{content: true,
			failed: true, text: "a"}},
		"null error":      {`{"error":null,"choices":[{"message":{"content":"a"}}]}`, summary{content: true, text: "a"}},
		"vendor status":   {`{"choices":null,"base_resp":{"status_code":1004,"status_msg":"login fail"}}`, summary{failed: true}},
		"vendor status 0": {`{"choices":[{"message":{"content":"a"}}],"base_resp":{"status_code":0}}`, summary{content: true, text: "a"}},
		"code and msg":    {`{"code":500,"msg":"busy"}`, summary{failed: true}},
		"failed finish":   {answer(`{"content":""}`, "insufficient_system_resource"), summary{failed: true}},
		"failed later":    {answer(`{"content":"a"}`, "network_error"), summary{content: true, failed: true, text: "a"}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			a, err := ReadAnswer([]byte(test.body))
			if err != nil {
				t.Fatal(err)
			}
			got := summary{a.Summary().Content, a.Summary().Reasoning, a.Summary().Limited, a.Summary().Filtered,
				a.Summary().Err != nil, string(a.Text())}
			if got != test.want {
				t.Errorf("got  %+v\nwant %+v", got, test.want)
			}
		})
	}
	for _, body := range []string{"", "null", "[]", `"x"`, "<html>", `{"a":`, `{} {}`} {
		if _, err := ReadAnswer([]byte(body)); !errors.Is(err, wire.ErrMalformed) {
			t.Errorf("%s: %v", body, err)
		}
	}
}

func TestChatAnswerUsageAndModel(t *testing.T) {
	t.Parallel()
	const body = ` {"id":"c", "model" : "v","choices":[{"message":{"content":"x","annotations":[{"type":"url_citation"},` +
		`{"type":"url_citation"}],"executed_tools":[{"type":"python"},{"type":"python"}]},"finish_reason":"stop"}],
		"usage":{"prompt_tokens":5,"completion_tokens":2},"service_tier":"flex","unknown":{"model":"v"}}`
	a, err := ReadAnswer([]byte(body))
	if err != nil {
		t.Fatal(err)
	}
	u, ok := a.Usage()
	if !ok || u.Prompt != 5 || u.Completion != 2 || u.ServiceTier != "flex" || !maps.Equal(u.ToolCalls,
		map[string]int64{"web_search": 1, "code_interpreter": 2}) {
		t.Errorf("usage %+v, %v", u, ok)
	}
	pieces, _ := direct{id: wire.Identity{Model: "swift-1"}}.Render(a, []byte(body), wire.Usage{})
	if got, want := string(bytes.Join(pieces[:], nil)), strings.Replace(body, `"v"`, `"swift-1"`, 1); got != want {
		t.Errorf("got %s", got)
	}
}

func TestCounter(t *testing.T) {
	t.Parallel()
	var c wire.Counter
	text := []byte("The quick brown fox jumps over the lazy dog.")
	if got := c.Count(text, int64(len(text))); got != 10 {
		t.Errorf("%d tokens, want 10", got)
	}
	if got := c.Count(nil, 0); got != 0 {
		t.Errorf("%d tokens in nothing", got)
	}
	if got := c.Count(text, 1<<60); got <= 0 || got > rawjson.MaxCount {
		t.Errorf("%d tokens in a huge text", got)
	}
	r, err := Open([]byte(wiretest.ChatParts(
		`{"type":"text","text":"The quick brown fox"},{"type":"image_url","image_url":{"url":"data:image/png;base64,` + strings.Repeat("A",
			10_000) + `"}}`)))
	if err != nil {
		t.Fatal(err)
	}
	if err := r.Check(); err != nil {
		t.Fatal(err)
	}
	// 3 for the prompt, 4 for each of two messages, 5 for the text, 100 for the image.
	if got := r.Prompt(&c, 100); got != 116 {
		t.Errorf("%d tokens, want 116", got)
	}
}

func BenchmarkStreamOf64Frames(b *testing.B) {
	frame := `{"id":"chatcmpl-aa331686-f58a-449a-9105-aa37cd2def51","object":"chat.completion.chunk",` +
		`"created":1755137752,"model":"gpt-4o-mini","service_tier":"default","system_fingerprint":"",` +
		`"choices":[{"index":0,"delta":{"content":" word"},"finish_reason":null}],"obfuscation":"yju6ubcSiysu"}`
	stream := []byte(strings.Repeat("data: "+frame+"\n\n", 64))
	var out []byte
	b.ReportAllocs()
	for b.Loop() {
		r, m, edit := sse.NewReader(bytes.NewReader(stream), 1<<20), newMeter(1), newFrameEditor("swift-1")
		out = out[:0]
		for {
			e, err := r.Next()
			if err != nil {
				break
			}
			if _, err := m.Read(e); err != nil {
				b.Fatal(err)
			}
			out = edit.Append(out, e)
		}
	}
}

// keptBytes is the limit of the retained text.
const keptBytes = 64 << 10
