package sandbox_test

import (
	"errors"
	"flag"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
	"testing/synctest"

	"github.com/tidwall/gjson"
	"golang.org/x/tools/txtar"

	"tollgate/internal/fault"
	"tollgate/internal/upstream"
	"tollgate/internal/upstream/chatcall"
	"tollgate/internal/upstream/sandbox"
	"tollgate/internal/wire"
	"tollgate/internal/wire/rawjson"
)

var update = flag.Bool("update", false, "write the answers of testdata anew")

// TestAnswers compares answers with those of testdata, byte by byte: the whole
// one, the streamed one, and the count of the prompt where the form has one.
// -update writes them anew.
func TestAnswers(t *testing.T) {
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
			form := wire.Form(strings.TrimSpace(string(archive.Files[0].Name)))
			body := strings.TrimSpace(string(archive.Files[0].Data))
			for i, p := range archive.Files[1:] {
				var now string
				synctest.Test(t, func(t *testing.T) { now = answerTo(t, form, p.Name, body) })
				if now != string(p.Data) && !*update {
					t.Errorf("%s\n%s\nwant\n%s", p.Name, now, p.Data)
				}
				archive.Files[1+i].Data = []byte(now)
			}
			if *update {
				if err := os.WriteFile(file, txtar.Format(archive), 0o644); err != nil {
					t.Fatal(err)
				}
			}
		})
	}
}

// answerTo returns one of the answers to a request.
func answerTo(t *testing.T, form wire.Form, name, body string) string {
	t.Helper()
	switch name {
	case "tokens":
		n, err := open(t, nil).CountTokens(t.Context(), chatcall.Call{Form: form, Body: rawjson.Pieces{[]byte(body)}})
		if err != nil {
			t.Fatal(err)
		}
		return strconv.FormatInt(n, 10) + "\n"
	case "stream":
		out := readForm(t, form, nil, true, body)
		parseStream(t, form, out)
		return strings.TrimSuffix(out, "\n")
	case "whole":
		out := readForm(t, form, nil, false, body)
		parseBody(t, form, out)
		return out + "\n"
	}
	t.Fatalf("unknown part %q", name)
	return ""
}

const (
	weatherSchema = `{"type":"object","properties":{"city":{"type":"string"},"days":{"type":"integer","minimum":3}},` +
		`"required":["city","days"]}`
	chatWeather  = `"tools":[{"type":"function","function":{"name":"get_weather","parameters":` + weatherSchema + `}}]`
	flatWeather  = `"tools":[{"type":"web_search"},{"type":"function","name":"get_weather","parameters":` + weatherSchema + `}]`
	claimWeather = `"tools":[{"type":"web_search_20250305","name":"web_search"},{"name":"get_weather","input_schema":` + weatherSchema + `}]`
)

// TestFormsAgree checks that the same request gets the same answer in all forms, plain and streamed.
// It does not compare prompt tokens, because the forms add different texts to the prompt.
func TestFormsAgree(t *testing.T) {
	t.Parallel()
	calls := parsedAnswer{tool: "get_weather", arguments: `{"city":"example","days":3}`, finish: "call"}
	echoed := "This is the sandbox model, which needs no network. You said: "
	for _, tt := range []struct {
		name                      string
		chat, responses, messages string
		options                   map[string]any
		want                      parsedAnswer
	}{
		{"hello",
			`"messages":[{"role":"user","content":"hello"}]`, `"input":"hello"`, `"messages":[{"role":"user","content":"hello"}]`,
			nil, parsedAnswer{content: echoed + "hello", finish: "stop"}},
		{"parts",
			`"messages":[{"role":"system","content":"be brief"},{"role":"user","content":[{"type":"text","text":"what is this"},` +
				`{"type":"image_url","image_url":{"url":"data:,x"}}]}]`,
			`"instructions":"be brief","input":[{"role":"user","content":[{"type":"input_text","text":"what is this"},` +
				`{"type":"input_image","image_url":"data:,x"}]}]`,
			`"system":[{"type":"text","text":"be brief"}],"messages":[{"role":"user","content":[{"type":"text","text":"what is this"},` +
				`{"type":"image","source":{}}]}]`,
			nil, parsedAnswer{content: echoed + "what is this", finish: "stop"}},
		{"limit",
			`"messages":[{"role":"user","content":"hello"}],"max_tokens":2`, `"input":"hello","max_output_tokens":2`,
			`"messages":[{"role":"user","content":"hello"}],"max_tokens":2`,
			nil, parsedAnswer{content: "This is", finish: "length"}},
		{"tool demanded",
			`"messages":[{"role":"user","content":"hello"}],"tool_choice":"required",` + chatWeather,
			`"input":"hello","tool_choice":"required",` + flatWeather,
			`"messages":[{"role":"user","content":"hello"}],"tool_choice":{"type":"any"},` + claimWeather,
			nil, calls},
		{"tool named by the choice",
			`"messages":[{"role":"user","content":"hello"}],"tool_choice":{"type":"function","function":{"name":"get_weather"}},` + chatWeather,
			`"input":"hello","tool_choice":{"type":"function","name":"get_weather"},` + flatWeather,
			`"messages":[{"role":"user","content":"hello"}],"tool_choice":{"type":"tool","name":"get_weather"},` + claimWeather,
			nil, calls},
		{"tool named by the user",
			`"messages":[{"role":"user","content":"Get Weather"}],` + chatWeather,
			`"input":[{"type":"message","role":"user","content":"Get Weather"}],` + flatWeather,
			`"messages":[{"role":"user","content":"Get Weather"}],` + claimWeather,
			nil, calls},
		{"tool not wanted",
			`"messages":[{"role":"user","content":"get_weather"}],"tool_choice":"none",` + chatWeather,
			`"input":"get_weather","tool_choice":"none",` + flatWeather,
			`"messages":[{"role":"user","content":"get_weather"}],"tool_choice":{"type":"none"},` + claimWeather,
			nil, parsedAnswer{content: echoed + "get_weather", finish: "stop"}},
		{"tool answered",
			`"messages":[{"role":"user","content":"get_weather"},{"role":"assistant","tool_calls":[]},{"role":"tool","content":"12 degrees"}],` +
				chatWeather,
			`"input":[{"role":"user","content":"get_weather"},{"type":"reasoning","summary":[]},` +
				`{"type":"function_call","name":"get_weather","arguments":"{}","call_id":"call_1"},` +
				`{"type":"function_call_output","call_id":"call_1","output":[{"type":"input_text","text":"12 degrees"}]}],` + flatWeather,
			`"messages":[{"role":"user","content":"get_weather"},{"role":"assistant","content":[{"type":"thinking","thinking":"x",` +
				`"signature":"y"},{"type":"tool_use","id":"toolu_1","name":"get_weather","input":{}}]},` +
				`{"role":"user","content":[{"type":"tool_result","tool_use_id":"toolu_1","content":[{"type":"text","text":"12 degrees"}]}]}],` +
				claimWeather,
			nil, parsedAnswer{content: "The tool answered: 12 degrees", finish: "stop"}},
		{"tool answered nothing",
			`"messages":[{"role":"user","content":"get_weather"},{"role":"assistant","tool_calls":[]},{"role":"tool","content":""}],` + chatWeather,
			`"input":[{"role":"user","content":"get_weather"},{"type":"function_call_output","call_id":"call_1","output":""}],` + flatWeather,
			`"messages":[{"role":"user","content":"get_weather"},{"role":"assistant","content":[]},` +
				`{"role":"user","content":[{"type":"tool_result","tool_use_id":"toolu_1"}]}],` + claimWeather,
			nil, parsedAnswer{content: "The tool answered: ", finish: "stop"}},
		{"tool cut off",
			`"messages":[{"role":"user","content":"hello"}],"max_tokens":2,"tool_choice":"required",` + chatWeather,
			`"input":"hello","max_output_tokens":2,"tool_choice":"required",` + flatWeather,
			`"messages":[{"role":"user","content":"hello"}],"max_tokens":2,"tool_choice":{"type":"any"},` + claimWeather,
			nil, parsedAnswer{tool: "get_weather", arguments: `{"city":"example`, finish: "length"}},
		{"schema",
			`"messages":[{"role":"user","content":"hello"}],"response_format":{"type":"json_schema","json_schema":{"name":"x","schema":` +
				weatherSchema + `}}`,
			`"input":"hello","text":{"format":{"type":"json_schema","name":"x","schema":` + weatherSchema + `}}`,
			`"messages":[{"role":"user","content":"hello"}],"output_config":{"format":{"type":"json_schema","schema":` + weatherSchema + `}}`,
			nil, parsedAnswer{content: `{"city":"example","days":3}`, finish: "stop"}},
		{"reasoning by name",
			`"model":"reasoner","messages":[{"role":"user","content":"hello"}]`,
			`"model":"reasoner","input":"hello","reasoning":{"summary":"auto"}`,
			`"model":"reasoner","messages":[{"role":"user","content":"hello"}]`,
			nil, parsedAnswer{reasoning: "The user said: hello A short answer will do.", content: echoed + "hello", finish: "stop"}},
		{"reasoning switched off",
			`"model":"reasoner","reasoning_effort":"none","messages":[{"role":"user","content":"hello"}]`,
			`"model":"reasoner","input":"hello","reasoning":{"effort":"none"}`,
			`"model":"reasoner","thinking":{"type":"disabled"},"messages":[{"role":"user","content":"hello"}]`,
			nil, parsedAnswer{content: echoed + "hello", finish: "stop"}},
		{"reasoning before a tool",
			`"messages":[{"role":"user","content":"hello"}],"tool_choice":"required",` + chatWeather,
			`"input":"hello","tool_choice":"required","reasoning":{"summary":"auto"},` + flatWeather,
			`"messages":[{"role":"user","content":"hello"}],"tool_choice":{"type":"any"},` + claimWeather,
			map[string]any{"reasoning": true},
			parsedAnswer{reasoning: "The user said: hello A short answer will do.", tool: calls.tool, arguments: calls.arguments, finish: "call"}},
		{"reasoning eats the limit",
			`"messages":[{"role":"user","content":"hello"}],"max_tokens":2`,
			`"input":"hello","max_output_tokens":2,"reasoning":{"summary":"auto"}`,
			`"messages":[{"role":"user","content":"hello"}],"max_tokens":2`,
			map[string]any{"reasoning": true}, parsedAnswer{reasoning: "The user", finish: "length"}},
		{"given length",
			`"messages":[{"role":"user","content":"hello"}]`, `"input":"hello"`, `"messages":[{"role":"user","content":"hello"}]`,
			map[string]any{"tokens": 4}, parsedAnswer{content: "This is the sandbox", finish: "stop"}},
		{"empty",
			`"messages":[{"role":"user","content":"hello"}]`, `"input":"hello"`, `"messages":[{"role":"user","content":"hello"}]`,
			map[string]any{"fail": "empty"}, parsedAnswer{finish: "stop"}},
		{"filter",
			`"messages":[{"role":"user","content":"hello"}]`, `"input":"hello"`, `"messages":[{"role":"user","content":"hello"}]`,
			map[string]any{"fail": "filter"}, parsedAnswer{finish: "filter"}},
		{"sentence",
			`"messages":[{"role":"user","content":"hello"}]`, `"input":"hello"`, `"messages":[{"role":"user","content":"hello"}]`,
			map[string]any{"fail": "sentence"}, parsedAnswer{content: "service overloaded, please try again later", finish: "stop"}},
		{"thinking only",
			`"messages":[{"role":"user","content":"hello"}]`, `"input":"hello","reasoning":{"summary":"auto"}`,
			`"messages":[{"role":"user","content":"hello"}]`,
			map[string]any{"fail": "thinking_only"}, parsedAnswer{reasoning: "The user said: hello A short answer will do.", finish: "length"}},
	} {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			var first parsedAnswer // in the chat form
			for _, asked := range []struct {
				form wire.Form
				body string
			}{{wire.FormChat, tt.chat}, {wire.FormResponses, tt.responses}, {wire.FormMessages, tt.messages}} {
				body := asked.body + `}`
				if !strings.Contains(body, `"model"`) {
					body = `"model":"small",` + body
				}
				if asked.form == wire.FormMessages && !strings.Contains(body, `"max_tokens"`) {
					body = `"max_tokens":4096,` + body
				}
				raw := readForm(t, asked.form, tt.options, false, "{"+body)
				if f := upstream.Classify(200, "application/json", []byte(raw), nil); f != nil {
					t.Fatalf("not a good answer (%v): %s", f, raw)
				}
				plain := parseBody(t, asked.form, raw)
				stream := parseStream(t, asked.form,
					readForm(t, asked.form, tt.options, true, `{"stream":true,"stream_options":{"include_usage":true},`+body))
				if tt.name == "tool cut off" && asked.form == wire.FormMessages {
					if plain.arguments != "{}" {
						t.Errorf("arguments %s", plain.arguments)
					}
					plain.arguments = stream.arguments
				}
				if plain != stream {
					t.Errorf("%s: streamed %+v\nplain %+v", asked.form, stream, plain)
				}
				got := parsedAnswer{reasoning: plain.reasoning, content: plain.content, tool: plain.tool, arguments: plain.arguments,
					finish: plain.finish}
				if got != tt.want {
					t.Errorf("%s: %+v\nwant %+v", asked.form, got, tt.want)
				}
				if first == (parsedAnswer{}) {
					first = plain
				}
				if plain.prompt <= 0 || plain.completion != first.completion || plain.thinking != first.thinking {
					t.Errorf("%s: usage %+v, in the chat form %+v", asked.form, plain, first)
				}
			}
		})
	}
}

// TestHiddenThinking checks that hidden thinking counts as output tokens too.
func TestHiddenThinking(t *testing.T) {
	t.Parallel()
	for form, body := range map[wire.Form]string{
		wire.FormResponses: `{"model":"reasoner","input":"hello"}`,
		wire.FormMessages: `{"model":"small","max_tokens":4096,"thinking":{"type":"adaptive","display":"omitted"},` +
			`"messages":[{"role":"user","content":"hello"}]}`,
	} {
		plain, stream := readForm(t, form, nil, false, body), readForm(t, form, nil, true, body)
		a := parseBody(t, form, plain)
		if a != parseStream(t, form, stream) || a.reasoning != "" || a.thinking <= 0 || a.thinking >= a.completion {
			t.Errorf("%s: %+v", form, a)
		}
		for _, raw := range []string{plain, stream} {
			if !strings.Contains(raw, `"type":"reasoning"`) && !strings.Contains(raw, `"type":"thinking"`) {
				t.Errorf("%s: no sign of thinking: %s", form, raw)
			}
		}
	}
}

// TestStopSequence checks that the messages form reports which stop sequence ended the answer.
func TestStopSequence(t *testing.T) {
	t.Parallel()
	body := `{"model":"small","max_tokens":4096,"stop_sequences":["END","STOP"],"messages":[{"role":"user","content":"one STOP two END"}]}`
	a := gjson.Parse(readForm(t, wire.FormMessages, nil, false, body))
	want(t, a, "stop_reason", "stop_sequence")
	want(t, a, "stop_sequence", "STOP")
	if text := a.Get("content.0.text").Str; !strings.HasSuffix(text, "one ") {
		t.Errorf("text %q", text)
	}
}

// TestCache checks that the marked part of a messages request is first written to the cache, and
// read from the cache when the conversation continues.
func TestCache(t *testing.T) {
	t.Parallel()
	const mark, hour = `,"cache_control":{"type":"ephemeral"}`, `,"cache_control":{"type":"ephemeral","ttl":"1h"}`
	long := strings.TrimSpace(strings.Repeat("word ", 2000))
	system := func(mark string) string { return `"system":[{"type":"text","text":"` + long + `"` + mark + `}],` }
	first := func(mark string) string {
		return `{"role":"user","content":[{"type":"text","text":"` + long + `"` + mark + `}]}`
	}
	const more = `,{"role":"assistant","content":"ok"},{"role":"user","content":"and now"}`
	for name, tt := range map[string]struct {
		body                          string
		prompt, read, written5, hours int64
	}{
		"no mark":               {system("") + `"messages":[` + first("") + `]`, 4008, 0, 0, 0},
		"too short":             {`"system":[{"type":"text","text":"be brief"` + mark + `}],"messages":[` + first("") + `]`, 2010, 0, 0, 0},
		"first":                 {system(mark) + `"messages":[` + first("") + `]`, 4008, 0, 2004, 0},
		"first, both":           {system(hour) + `"messages":[` + first(mark) + `]`, 4008, 0, 2004, 2004},
		"going on":              {system(hour) + `"messages":[` + first(mark) + more + `]`, 4019, 4008, 0, 0},
		"going on, system only": {system(hour) + `"messages":[` + first("") + more + `]`, 4019, 2004, 0, 0},
		"at the top":            {`"cache_control":{"type":"ephemeral"},"messages":[` + first("") + more + `]`, 2015, 2004, 11, 0},
		"tools": {`"tools":[{"name":"a","description":"` + long + `","input_schema":{}` + hour + `}],"messages":[` + first("") +
			`]`, 4016, 0, 0, 2012},
	} {
		body := `{"model":"small","max_tokens":9,` + tt.body + `}`
		raw := readForm(t, wire.FormMessages, nil, false, body)
		a := parseBody(t, wire.FormMessages, raw)
		u := gjson.Get(raw, "usage")
		if a.prompt != tt.prompt || a.cached != tt.read || u.Get("cache_creation.ephemeral_5m_input_tokens").Int() != tt.written5 ||
			u.Get("cache_creation.ephemeral_1h_input_tokens").Int() != tt.hours || a.written != tt.written5+tt.hours {
			t.Errorf("%s: %s", name, u.Raw)
		}
		if b := parseStream(t, wire.FormMessages, readForm(t, wire.FormMessages, nil, true, body)); a != b {
			t.Errorf("%s: streamed %+v\nplain %+v", name, b, a)
		}
		n, err := open(t, nil).CountTokens(t.Context(), chatcall.Call{Form: wire.FormMessages, Body: rawjson.Pieces{[]byte(body)}})
		if err != nil || n != tt.prompt {
			t.Errorf("%s: counted %d, %v", name, n, err)
		}
	}
}

// TestCountTokens checks that counting needs no token limit and accepts only the messages form.
func TestCountTokens(t *testing.T) {
	t.Parallel()
	var counter chatcall.TokenCounter = open(t, nil)
	for body, want := range map[string]int64{
		`{"messages":[{"role":"user","content":"hello there"}]}`:                                                     6,
		`{"system":"be brief","messages":[{"role":"user","content":[{"type":"image"},{"type":"text","text":"x"}]}]}`: 96,
	} {
		c := chatcall.Call{Form: wire.FormMessages, Body: rawjson.Pieces{[]byte(body)}}
		if n, err := counter.CountTokens(t.Context(), c); err != nil || n != want {
			t.Errorf("%s: %d, %v", body, n, err)
		}
	}
	for _, c := range []struct {
		form   wire.Form
		body   string
		status int
	}{
		{wire.FormMessages, `{"messages":[]}`, 400},
		{wire.FormMessages, `{`, 400},
		{wire.FormChat, hello, 0},
	} {
		_, err := counter.CountTokens(t.Context(), chatcall.Call{Form: c.form, Body: rawjson.Pieces{[]byte(c.body)}})
		var f *upstream.Failure
		switch {
		case !errors.As(err, &f):
			t.Errorf("%+v: %v", c, err)
		case c.status != 0 && (f.Rejection == nil || f.Rejection.Status() != c.status):
			t.Errorf("%+v: %v", c, err)
		case c.status == 0 && f.Code != fault.UpstreamUnavailable:
			t.Errorf("%+v: %v", c, err)
		}
	}
}

// TestFailRateCountsEveryForm checks that fail_rate is the share of failed calls over all forms and
// token counts together.
func TestFailRateCountsEveryForm(t *testing.T) {
	t.Parallel()
	a, err := sandbox.New(upstream.Target{Options: map[string]any{"fail": "unavailable", "fail_rate": 0.5}})
	if err != nil {
		t.Fatal(err)
	}
	failed := 0
	for range 10 {
		for _, f := range forms {
			if answer, err := call(t.Context(), a, f.form, true, f.hello); err != nil {
				failed++
			} else {
				answer.Body.Close()
			}
		}
		if _, err := a.CountTokens(t.Context(), chatcall.Call{Form: wire.FormMessages, Body: rawjson.Pieces{[]byte(hello)}}); err != nil {
			failed++
		}
	}
	if failed != 20 {
		t.Errorf("%d of 40 failed", failed)
	}
}
