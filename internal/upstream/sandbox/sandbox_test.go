package sandbox_test

import (
	"context"
	"encoding/json"
	"errors"
	"io"
	"maps"
	"slices"
	"strings"
	"testing"
	"testing/synctest"

	"github.com/tidwall/gjson"
	"go.uber.org/goleak"

	"tollgate/internal/upstream"
	"tollgate/internal/upstream/chatcall"
	"tollgate/internal/upstream/sandbox"
	"tollgate/internal/wire"
	"tollgate/internal/wire/kind/registry"
	"tollgate/internal/wire/rawjson"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

func open(t *testing.T, options map[string]any) *sandbox.Adapter {
	t.Helper()
	if err := sandbox.Info().CheckOptions(options); err != nil {
		t.Fatal(err)
	}
	a, err := sandbox.New(upstream.Target{Line: "sandbox", Provider: sandbox.Provider, Options: options})
	if err != nil {
		t.Fatal(err)
	}
	return a
}

func chat(ctx context.Context, a *sandbox.Adapter, stream bool, body string) (*chatcall.Response, error) {
	return call(ctx, a, wire.FormChat, stream, body)
}

func call(ctx context.Context, a *sandbox.Adapter, form wire.Form, stream bool, body string) (*chatcall.Response, error) {
	return a.Chat(ctx, chatcall.Call{Form: form, Stream: stream, Body: rawjson.Pieces{[]byte(body)}, IdempotencyKey: "att_1"})
}

// read returns the whole answer to a request of the chat form.
func read(t *testing.T, options map[string]any, stream bool, body string) string {
	t.Helper()
	return readForm(t, wire.FormChat, options, stream, body)
}

// readForm returns the whole answer to a request of any form.
func readForm(t *testing.T, form wire.Form, options map[string]any, stream bool, body string) string {
	t.Helper()
	answer, err := call(t.Context(), open(t, options), form, stream, body)
	if err != nil {
		t.Fatal(err)
	}
	defer answer.Body.Close()
	out, err := io.ReadAll(answer.Body)
	if err != nil {
		t.Fatal(err)
	}
	return string(out)
}

// frames splits a stream into the data of its events and checks its form.
func frames(t *testing.T, stream string) []gjson.Result {
	t.Helper()
	var out []gjson.Result
	events := strings.Split(strings.TrimSuffix(stream, "\n\n"), "\n\n")
	for i, e := range events {
		data, ok := strings.CutPrefix(e, "data: ")
		if !ok || strings.Contains(data, "\n") {
			t.Fatalf("event %d: %q", i, e)
		}
		if i == len(events)-1 {
			if data != "[DONE]" {
				t.Fatalf("the stream ends with %q", data)
			}
			break
		}
		if !json.Valid([]byte(data)) {
			t.Fatalf("event %d is not JSON: %s", i, data)
		}
		out = append(out, gjson.Parse(data))
	}
	return out
}

// joinedChoice is a choice of a stream, put together from its frames.
type joinedChoice struct {
	content, reasoning, tool, arguments, finish string
}

// join puts the choices of a stream together by index, as a client does.
func join(t *testing.T, frames []gjson.Result) (choices []joinedChoice, usage gjson.Result) {
	t.Helper()
	opened := map[int64]bool{}
	for _, f := range frames {
		if f.Get("object").Str != "chat.completion.chunk" || f.Get("id").Str != frames[0].Get("id").Str ||
			f.Get("created").Int() != frames[0].Get("created").Int() || !f.Get("choices").IsArray() {
			t.Fatalf("frame %s", f.Raw)
		}
		if u := f.Get("usage"); u.Exists() {
			usage = u
		}
		for _, c := range f.Get("choices").Array() {
			i := c.Get("index").Int()
			for int(i) >= len(choices) {
				choices = append(choices, joinedChoice{})
			}
			if c.Get("delta.role").Str == "assistant" {
				opened[i] = true
			}
			if !opened[i] {
				t.Fatalf("choice %d does not begin with its role", i)
			}
			choice := &choices[i]
			if choice.finish != "" {
				t.Fatalf("choice %d continues after its finish reason", i)
			}
			choice.content += c.Get("delta.content").Str
			choice.reasoning += c.Get("delta.reasoning_content").Str
			choice.tool += c.Get("delta.tool_calls.0.function.name").Str
			choice.arguments += c.Get("delta.tool_calls.0.function.arguments").Str
			choice.finish = c.Get("finish_reason").Str
		}
	}
	return choices, usage
}

const hello = `{"model":"small","messages":[{"role":"user","content":"hello there"}]}`

// forms lists the chat forms, each with a request for the same answer.
var forms = []struct {
	form  wire.Form
	hello string
}{
	{wire.FormChat, hello},
	{wire.FormResponses, `{"model":"small","input":"hello there"}`},
	{wire.FormMessages, `{"model":"small","max_tokens":1000,"messages":[{"role":"user","content":"hello there"}]}`},
}

// TestPlainAndStreamedAgree checks answers in the chat form beyond those of TestFormsAgree, with
// and without streaming.
func TestPlainAndStreamedAgree(t *testing.T) {
	t.Parallel()
	weather := `"tools":[{"type":"function","function":{"name":"get_weather","parameters":{"type":"object",
		"properties":{"city":{"type":"string"},"days":{"type":"integer","minimum":3},"unit":{"enum":["C","F"]}},` +
		`"required":["city","days","unit"]}}}]`
	long := strings.Repeat("word ", 3000)
	for _, tt := range []struct {
		name, body string
		options    map[string]any
		check      func(t *testing.T, a gjson.Result)
	}{
		{"parts and image", `"messages":[{"role":"user","content":[{"type":"text","text":"what is this"},` +
			`{"type":"image_url","image_url":{"url":"data:,x"}}]}]`, nil,
			func(t *testing.T, a gjson.Result) {
				if a.Get("usage.prompt_tokens").Int() < 85 || !strings.Contains(a.Get("choices.0.message.content").Str, "what is this") {
					t.Errorf("%s", a.Raw)
				}
			}},
		{"smaller limit wins", `"messages":[{"role":"user","content":"hello"}],"max_tokens":9,"max_completion_tokens":2`, nil,
			func(t *testing.T, a gjson.Result) {
				want(t, a, "usage.completion_tokens", "2")
			}},
		{"stop", `"messages":[{"role":"user","content":"one STOP two"}],"stop":["STOP"]`, nil, func(t *testing.T, a gjson.Result) {
			want(t, a, "choices.0.finish_reason", "stop")
			if c := a.Get("choices.0.message.content").Str; !strings.HasSuffix(c, "one ") {
				t.Errorf("content %q", c)
			}
		}},
		{"n", `"messages":[{"role":"user","content":"hello"}],"n":3`, nil, func(t *testing.T, a gjson.Result) {
			want(t, a, "choices.#", "3")
			want(t, a, "choices.2.index", "2")
		}},
		{"tool required", `"messages":[{"role":"user","content":"hello"}],"tool_choice":"required",` + weather, nil, checkCall},
		{"json object", `"messages":[{"role":"user","content":"say \"hi\""}],"response_format":{"type":"json_object"}`, nil,
			func(t *testing.T, a gjson.Result) {
				if c := a.Get("choices.0.message.content").Str; !json.Valid([]byte(c)) || gjson.Get(c, "answer").Str != `say "hi"` {
					t.Errorf("content %s", c)
				}
			}},
		{"json schema", `"messages":[{"role":"user","content":"hi"}],"response_format":{"type":"json_schema","json_schema":{"name":"x",` +
			`"schema":{"type":"object",
			"$defs":{"point":{"type":"object","properties":{"x":{"type":"number"}},"required":["x"]}},
			"properties":{"at":{"$ref":"#/$defs/point"},"tags":{"type":"array","minItems":2,"items":{"type":"string"}},` +
			`"ok":{"type":["boolean","null"]}},
			"required":["at","tags","ok"]}}}`, nil, func(t *testing.T, a gjson.Result) {
			want(t, a, "choices.0.message.content", `{"at":{"x":1},"ok":true,"tags":["example","example"]}`)
		}},
		{"reasoning by name", `"model":"small-reasoner","messages":[{"role":"user","content":"hello"}]`, nil, checkReasoning},
		{"conversation is cached",
			`"messages":[{"role":"user","content":"` + long + `"},{"role":"assistant","content":"ok"},{"role":"user","content":"more"}]`, nil,
			func(t *testing.T, a gjson.Result) {
				cached, prompt := a.Get("usage.prompt_tokens_details.cached_tokens").Int(), a.Get("usage.prompt_tokens").Int()
				if cached < 1024 || cached >= prompt || cached%128 != 0 {
					t.Errorf("cached %d of %d", cached, prompt)
				}
			}},
		{"given length", `"messages":[{"role":"user","content":"hello"}]`, map[string]any{"tokens": int64(500)},
			func(t *testing.T, a gjson.Result) {
				want(t, a, "usage.completion_tokens", "500")
			}},
		{"service tier", `"messages":[{"role":"user","content":"hello"}],"service_tier":"flex"`, nil, func(t *testing.T, a gjson.Result) {
			want(t, a, "service_tier", "flex")
		}},
	} {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			body := tt.body
			if !strings.Contains(body, `"model"`) {
				body = `"model":"small",` + body
			}
			raw := read(t, tt.options, false, "{"+body+"}")
			if f := upstream.Classify(200, "application/json", []byte(raw), nil); f != nil || !json.Valid([]byte(raw)) {
				t.Fatalf("not a good answer (%v): %s", f, raw)
			}
			a := gjson.Parse(raw)
			want(t, a, "object", "chat.completion")
			u := a.Get("usage")
			if u.Get("total_tokens").Int() != u.Get("prompt_tokens").Int()+u.Get("completion_tokens").Int() || u.Get("prompt_tokens").Int() <= 0 {
				t.Errorf("usage %s", u.Raw)
			}
			tt.check(t, a)

			choices, usage := join(t, frames(t, read(t, tt.options, true, `{"stream":true,"stream_options":{"include_usage":true},`+body+"}")))
			if usage.Raw != u.Raw {
				t.Errorf("streamed usage %s, plain %s", usage.Raw, u.Raw)
			}
			for i, c := range a.Get("choices").Array() {
				plain := joinedChoice{
					content: c.Get("message.content").Str, reasoning: c.Get("message.reasoning_content").Str,
					tool: c.Get("message.tool_calls.0.function.name").Str, arguments: c.Get("message.tool_calls.0.function.arguments").Str,
					finish: c.Get("finish_reason").Str,
				}
				if i >= len(choices) || choices[i] != plain {
					t.Errorf("choice %d: streamed %+v\nplain %+v", i, choices, plain)
				}
			}
		})
	}
}

func want(t *testing.T, a gjson.Result, path, value string) {
	t.Helper()
	if got := a.Get(path); !got.Exists() || got.String() != value {
		t.Errorf("%s = %q, want %q", path, got.String(), value)
	}
}

func checkCall(t *testing.T, a gjson.Result) {
	t.Helper()
	want(t, a, "choices.0.finish_reason", "tool_calls")
	call := a.Get("choices.0.message.tool_calls.0")
	want(t, call, "type", "function")
	want(t, call, "function.name", "get_weather")
	want(t, call, "function.arguments", `{"city":"example","days":3,"unit":"C"}`)
	if call.Get("id").Str == "" || a.Get("choices.0.message.content").Type != gjson.Null {
		t.Errorf("%s", a.Raw)
	}
}

func checkReasoning(t *testing.T, a gjson.Result) {
	t.Helper()
	reasoning := a.Get("usage.completion_tokens_details.reasoning_tokens").Int()
	if reasoning <= 0 || reasoning >= a.Get("usage.completion_tokens").Int() ||
		a.Get("choices.0.message.reasoning_content").Str == "" || a.Get("choices.0.message.content").Str == "" {
		t.Errorf("%s", a.Raw)
	}
}

func TestUsageOnlyWhenAsked(t *testing.T) {
	t.Parallel()
	if s := read(t, nil, true, hello); strings.Contains(s, "usage") {
		t.Errorf("usage without include_usage: %s", s)
	}
	for _, f := range forms {
		for _, stream := range []bool{false, true} {
			s := readForm(t, f.form, map[string]any{"usage": false}, stream, f.hello)
			if s = strings.ReplaceAll(s, `"usage":null`, ""); strings.Contains(s, "usage") {
				t.Errorf("%s: usage although the option switches it off: %s", f.form, s)
			}
		}
	}
}

func TestSameRequestSameAnswer(t *testing.T) {
	t.Parallel()
	for _, f := range forms {
		for _, stream := range []bool{false, true} {
			synctest.Test(t, func(t *testing.T) {
				if a, b := readForm(t, f.form, nil, stream, f.hello), readForm(t, f.form, nil, stream, f.hello); a != b {
					t.Errorf("%s\n%s", a, b)
				}
			})
		}
	}
}

func TestOptions(t *testing.T) {
	t.Parallel()
	check := sandbox.Info().CheckOptions
	for _, good := range []map[string]any{
		nil,
		{"delay": "1s", "chunk_delay": "0s", "tokens": 3.0, "usage": true, "reasoning": false, "fail": "busy", "fail_rate": int64(1),
			"break_after": uint64(0), "stall_after": 2},
	} {
		if err := check(good); err != nil {
			t.Errorf("%v: %v", good, err)
		}
	}
	for _, bad := range []map[string]any{
		{"speed": 1}, {"delay": 5}, {"delay": "-1s"}, {"delay": "2h"}, {"chunk_delay": "soon"}, {"tokens": 0}, {"tokens": 1.5},
		{"tokens": 1e9}, {"tokens": "3"}, {"usage": "yes"}, {"reasoning": 1}, {"fail": "often"}, {"fail": true},
		{"fail_rate": 1.1}, {"fail_rate": -0.1}, {"fail_rate": "1"}, {"break_after": -1}, {"stall_after": nil},
		{"async": "yes"}, {"poll_wait": 3}, {"fail": "well"}, {"fail_on": "(", "fail": "busy"}, {"fail_on": "word"}, {"fail_on": ""},
		{"fail_on": 1}, {"fail_on": strings.Repeat("x", 501), "fail": "busy"},
	} {
		err := check(bad)
		if err == nil {
			t.Errorf("%v was accepted", bad)
			continue
		}
		named := func(name string) bool { return strings.HasPrefix(err.Error(), name+": ") }
		if !slices.ContainsFunc(slices.Collect(maps.Keys(bad)), named) {
			t.Errorf("%v: the error does not begin with the option: %v", bad, err)
		}
		if _, err := sandbox.New(upstream.Target{Line: "main", Options: bad}); err == nil {
			t.Errorf("New accepts %v", bad)
		}
	}
	if err := check(map[string]any{"fail": "x"}); !strings.Contains(err.Error(), "prompt_filter") {
		t.Errorf("the error does not list the kinds of failures: %v", err)
	}
}

// FuzzRequest checks that any body gets a well-formed answer or a rejection in every form.
func FuzzRequest(f *testing.F) {
	for i, body := range []string{hello, `{"messages":[{"content":[{"type":"text"}]}],"n":1e99,"stop":"","max_tokens":-1}`,
		`{"messages":[1],"tools":[{"function":{"name":"a","parameters":{"type":"array","minItems":9e9,"items":{"$ref":"#"}}}}],` +
			`"tool_choice":"required"}`,
		`{"messages":[0],"response_format":{"type":"json_schema","json_schema":{"schema":{"type":"number",` +
			`"minimum":1e308,"multipleOf":1e-308}}}}`,
		`{"input":[0,{"type":"function_call_output","output":[{"type":"input_text"}]}],"tools":{"a":1},"reasoning":{"summary":"auto"},` +
			`"max_output_tokens":1e99,"include":"reasoning.encrypted_content"}`,
		`{"input":"f","model":"think","tools":[{"type":"function","name":"f"}],"text":{"format":[]},"metadata":0}`,
		`{"max_tokens":9,"messages":[{"role":"user","content":[{"type":"tool_result","content":[{"type":"document","source":{"type":"content",` +
			`"content":[0]}}]}]}]}`,
		`{"max_tokens":9,"thinking":{"type":"adaptive","display":"omitted"},"cache_control":{},` +
			`"system":[[]],"messages":[0],"tools":[{"name":"f","input_schema":0}]}`,
	} {
		f.Add([]byte(body), uint8(i), true)
		f.Add([]byte(body), uint8(i), false)
		for _, form := range []uint8{1, 2} {
			f.Add([]byte(body), form, true)
		}
	}
	f.Fuzz(func(t *testing.T, body []byte, formNumber uint8, stream bool) {
		a, err := sandbox.New(upstream.Target{})
		if err != nil {
			t.Fatal(err)
		}
		form := forms[int(formNumber)%len(forms)].form
		var failure *upstream.Failure
		c := chatcall.Call{Form: wire.FormMessages, Body: rawjson.Pieces{body}}
		if _, err := a.CountTokens(t.Context(), c); err != nil && !errors.As(err, &failure) {
			t.Fatalf("%T", err)
		}
		answer, err := call(t.Context(), a, form, stream, string(body))
		if err != nil {
			if !errors.As(err, &failure) {
				t.Fatalf("%T", err)
			}
			return
		}
		defer answer.Body.Close()
		out, err := io.ReadAll(answer.Body)
		if err != nil {
			t.Fatal(err)
		}
		if !stream {
			parseBody(t, form, string(out))
		} else {
			parseStream(t, form, string(out))
		}
	})
}

func TestInfo(t *testing.T) {
	t.Parallel()
	info := sandbox.Info()
	if info.NeedsKey || info.NeedsBaseURL || !slices.Equal(info.Kinds, append([]string{"chat", "image", "video"}, registry.Names()...)) ||
		!slices.Equal(info.Forms, []wire.Form{wire.FormChat, wire.FormResponses, wire.FormMessages}) {
		t.Errorf("%+v", info)
	}
}
