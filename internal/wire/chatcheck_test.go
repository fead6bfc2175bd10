package wire

import (
	"errors"
	"fmt"
	"math"
	"slices"
	"strings"
	"testing"

	"tollgate/internal/fault"
)

// codeOf returns the code and field of a client-visible error.
func codeOf(t *testing.T, err error) (fault.Code, string) {
	t.Helper()
	if err == nil {
		return "", ""
	}
	var f *fault.Error
	if !errors.As(err, &f) {
		t.Fatalf("error %v (%T) is no *fault.Error", err, err)
	}
	if f.Message == "" {
		t.Errorf("%s has no message", f.Code)
	}
	return f.Code, f.Param
}

// asking makes a request body with further members.
func asking(more string) string {
	if more != "" {
		more = "," + more
	}
	return `{"model":"m","messages":[{"role":"user","content":"hi"}]` + more + `}`
}

// parts makes a request body whose second message has the given content parts.
func parts(content string) string {
	return `{"model":"m","messages":[{"role":"system","content":"x"},{"role":"user","content":[` + content + `]}]}`
}

// messages makes a request body with the given messages.
func messages(list string) string { return `{"model":"m","messages":` + list + `}` }

func TestModel(t *testing.T) {
	t.Parallel()
	for body, want := range map[string]string{
		`{"model":"swift-1"}`:           "swift-1",
		`{"model":"sw\u0069ft\/\"1\""}`: `swift/"1"`,
		`{"model":null}`:                "",
		`{}`:                            "",
		`{"model":""}`:                  "",
		`{"model":7}`:                   "",
		`{"model":["m"]}`:               "",
	} {
		r, err := OpenChat([]byte(body))
		if err != nil {
			t.Fatal(err)
		}
		got, err := r.Model()
		code, param := codeOf(t, err)
		if got != want || (want == "") != (code == fault.ModelNotFound && param == "model") {
			t.Errorf("%s: %q, %v", body, got, err)
		}
	}
}

func TestCheckRefuses(t *testing.T) {
	t.Parallel()
	for body, want := range map[string]struct {
		code  fault.Code
		param string
	}{
		`{"model":"m"}`:  {fault.InvalidMessages, "messages"},
		messages(`null`): {fault.InvalidMessages, "messages"},
		messages(`[]`):   {fault.InvalidMessages, "messages"},
		messages(`"hi"`): {fault.InvalidMessages, "messages"},
		messages(`{}`):   {fault.InvalidMessages, "messages"},
		messages(`[{"role":"user","content":""},"hi"]`): {fault.InvalidMessages, "messages[1]"},
		messages(`[null]`):                                           {fault.InvalidMessages, "messages[0]"},
		messages(`[{"content":"hi"}]`):                               {fault.InvalidMessages, "messages[0].role"},
		messages(`[{"role":null,"content":"hi"}]`):                   {fault.InvalidMessages, "messages[0].role"},
		messages(`[{"role":"user","content":7}]`):                    {fault.InvalidMessages, "messages[0].content"},
		messages(`[{"role":"user","content":{"text":"x"}}]`):         {fault.InvalidMessages, "messages[0].content"},
		messages(`[{"role":"user","content":true}]`):                 {fault.InvalidMessages, "messages[0].content"},
		messages(`[{"role":"user"},{"role":"a"},{"role":"b"}]`):      {fault.InvalidRole, "messages[1].role"},
		messages(`[{"role":7,"content":"hi"}]`):                      {fault.InvalidRole, "messages[0].role"},
		messages(`[{"role":"","content":"hi"}]`):                     {fault.InvalidRole, "messages[0].role"},
		messages(`[{"role":"User","content":"hi"}]`):                 {fault.InvalidRole, "messages[0].role"},
		asking(`"max_tokens":0`):                                     {fault.InvalidMaxTokens, "max_tokens"},
		asking(`"max_tokens":-1`):                                    {fault.InvalidMaxTokens, "max_tokens"},
		asking(`"max_tokens":1.5`):                                   {fault.InvalidMaxTokens, "max_tokens"},
		asking(`"max_tokens":"9"`):                                   {fault.InvalidMaxTokens, "max_tokens"},
		asking(`"max_tokens":true`):                                  {fault.InvalidMaxTokens, "max_tokens"},
		asking(`"max_tokens":[]`):                                    {fault.InvalidMaxTokens, "max_tokens"},
		asking(`"max_tokens":9,"max_completion_tokens":0`):           {fault.InvalidMaxTokens, "max_completion_tokens"},
		asking(`"stream":"true"`):                                    {fault.InvalidRequest, "stream"},
		asking(`"stream":1`):                                         {fault.InvalidRequest, "stream"},
		asking(`"n":0`):                                              {fault.InvalidRequest, "n"},
		asking(`"n":129`):                                            {fault.InvalidRequest, "n"},
		asking(`"n":1.5`):                                            {fault.InvalidRequest, "n"},
		asking(`"n":"2"`):                                            {fault.InvalidRequest, "n"},
		asking(`"stream":true,"stream_options":[]`):                  {fault.InvalidRequest, "stream_options"},
		asking(`"stream":true,"stream_options":{"include_usage":1}`): {fault.InvalidRequest, "stream_options.include_usage"},
		asking(`"previous_response_id":"resp_1"`):                    {fault.InvalidRequest, "previous_response_id"},
		asking(`"conversation":{"id":"c"}`):                          {fault.InvalidRequest, "conversation"},
		asking(`"container":"c"`):                                    {fault.InvalidRequest, "container"},
		asking(`"vector_store_ids":["v"]`):                           {fault.InvalidRequest, "vector_store_ids"},
		asking(`"file_id":"f"`):                                      {fault.InvalidRequest, "file_id"},
		asking(`"prompt":{"id":"p"}`):                                {fault.InvalidRequest, "prompt.id"},
		asking(`"background":true`):                                  {fault.InvalidRequest, "background"},
		asking(`"modalities":["text","audio"]`):                      {fault.InvalidRequest, "modalities"},
		asking(`"audio":{"voice":"alloy","format":"mp3"}`):           {fault.InvalidRequest, "audio"},
		asking(`"service_tier":1`):                                   {fault.InvalidRequest, "service_tier"},
		asking(`"tools":[{"type":"function"},{"type":"file_search","vector_store_ids":["v"]}]`):      {fault.InvalidRequest, "tools[1].vector_store_ids"},
		asking(`"tools":[{"type":"code_interpreter","container":"c"}]`):                              {fault.InvalidRequest, "tools[0].container"},
		asking(`"tools":[{"type":"code_interpreter","container":{"type":"auto","file_ids":["f"]}}]`): {fault.InvalidRequest, "tools[0].container.file_ids"},
		parts(`{"type":"text","text":"x"},{"type":"file","file":{"file_id":"f"}}`):                   {fault.InvalidRequest, "messages[1].content[1].file.file_id"},
		parts(`{"type":"file","file":{"f\u0069le_id":"f"}}`):                                         {fault.InvalidRequest, "messages[1].content[0].file.file_id"},
		parts(`{"type":"image_url","image_url":{"url":"https://x/y.png"},"x":[1,{"file_id":"f"}]}`):  {fault.InvalidRequest, "messages[1].content[0].x[1].file_id"},
		parts(`{"type":"input_audio","input_audio":{"data":"AA","format":"wav"}}`):                   {fault.InvalidRequest, "messages[1].content[0].input_audio"},
		messages(`[{"role":"assistant","audio":{"id":"a"}}]`):                                        {fault.InvalidRequest, "messages[0].audio"},
	} {
		r, err := OpenChat([]byte(body))
		if err != nil {
			t.Fatalf("%s: %v", body, err)
		}
		if code, param := codeOf(t, r.Check()); code != want.code || param != want.param {
			t.Errorf("%s: %q at %q, want %q at %q", body, code, param, want.code, want.param)
		}
	}
}

func TestCheckReads(t *testing.T) {
	t.Parallel()
	inline := `data:image/png;base64,` + strings.Repeat("A", 1000)
	escaped := `data:image\/png;base64,` + strings.Repeat("A", 1000)
	size := func(body string) PromptBound { return PromptBound{TextBytes: int64(len(body))} }
	for name, test := range map[string]struct {
		body string
		want func(*ChatRequest, string)
	}{
		"plain":     {asking(``), func(*ChatRequest, string) {}},
		"all roles": {messages(`[{"role":"system"},{"role":"developer","content":null},{"role":"us\u0065r","content":""},{"role":"assistant","tool_calls":[]},{"role":"tool","content":[]},{"role":"function","content":["x"]}]`), func(*ChatRequest, string) {}},
		"nulls": {asking(`"max_tokens":null,"n":null,"stream":null,"stream_options":null,"service_tier":null,"audio":null,"modalities":null,"tools":null,"background":null,"previous_response_id":null,"prompt":null`),
			func(*ChatRequest, string) {}},
		"harmless values": {asking(`"background":false,"modalities":["text"],"service_tier":"auto","prompt":{"variables":{}},"store":true,"stream_options":"x"`),
			func(*ChatRequest, string) {}},
		"stream":           {asking(`"stream":true`), func(r *ChatRequest, _ string) { r.Stream = true }},
		"stream and usage": {asking(`"stream":true,"stream_options":{"include_usage":true}`), func(r *ChatRequest, _ string) { r.Stream, r.IncludeUsage = true, true }},
		"stream, no usage": {asking(`"stream":true,"stream_options":{"include_usage":null}`), func(r *ChatRequest, _ string) { r.Stream = true }},
		"smaller limit":    {asking(`"max_tokens":30,"max_completion_tokens":20,"n":128`), func(r *ChatRequest, _ string) { r.Limit, r.LimitParam, r.N = 20, "max_completion_tokens", 128 }},
		"huge limit":       {asking(`"max_tokens":99999999999999999999`), func(r *ChatRequest, _ string) { r.Limit, r.LimitParam = math.MaxInt64, "max_tokens" }},
		"tier": {asking(`"service_tier":"flex"`), func(r *ChatRequest, _ string) {
			r.ServiceTier, r.Options = "flex", []Priced{{"service_tier", "flex", 0}}
		}},
		"options": {asking(`"speed":"fast","inference_geo":"us","models":["a","b"]`), func(r *ChatRequest, _ string) {
			r.Options = []Priced{{"speed", "fast", 0}, {"inference_geo", "us", 0}}
			r.Routing = []string{"models"}
		}},
		"own tools": {asking(`"tools":[{"type":"function","function":{"name":"web_search","parameters":{"properties":{"file_id":{"type":"string"},"container":{}}}}},{"type":"custom","custom":{"name":"x"}},{"type":"new_thing"},{}]`),
			func(*ChatRequest, string) {}},
		"web search": {asking(`"web_search_options":{}`), func(r *ChatRequest, _ string) {
			r.Tools, r.Bound.Unbounded = []Priced{{"web_search_options", "web_search", 0}}, true
		}},
		"hosted tools": {asking(`"tools":[{"type":"function"},{"type":"web_search_preview_2025_03_11","max_uses":3},{"type":"openrouter:web_search"},{"type":"code_interpreter"},{"type":"builtin_function","function":{"name":"$web_search"}}],"max_tool_calls":5`),
			func(r *ChatRequest, _ string) {
				r.Bound.Unbounded = true
				r.Tools = []Priced{{"tools[1].type", "web_search", 3}, {"tools[2].type", "web_search", 5}, {"tools[3].type", "code_interpreter", 5}, {"tools[4].type", "web_search", 5}}
			}},
		"vendors' tools": {asking(`"enable_search":true,"search_parameters":{"mode":"auto"},"plugins":[{"id":"web"},{"id":"file-parser"}]`),
			func(r *ChatRequest, _ string) {
				r.Bound.Unbounded = true
				r.Tools = []Priced{{"enable_search", "web_search", 0}, {"search_parameters", "web_search", 0}, {"plugins[0].id", "web_search", 0}, {"plugins[1].id", "file-parser", 0}}
			}},
		"image output": {asking(`"modalities":["text","image"]`),
			func(r *ChatRequest, _ string) { r.Options = []Priced{{"modalities", "image", 0}} }},
		"vendors' tools off": {asking(`"enable_search":false,"search_parameters":{"mode":"off"},"plugins":[]`), func(*ChatRequest, string) {}},
		"mcp":                {asking(`"tools":[{"type":"mcp"}]`), func(r *ChatRequest, _ string) { r.Bound.Unbounded = true }},
		"image by address":   {parts(`{"type":"image_url","image_url":{"url":"https://x/y.png"}}`), func(r *ChatRequest, _ string) { r.Bound.Images = 1 }},
		"image as a string":  {parts(`{"type":"image_url","image_url":"https://x/y.png"}`), func(r *ChatRequest, _ string) { r.Bound.Images = 1 }},
		"inline images": {parts(fmt.Sprintf(`{"type":"image_url","image_url":{"detail":"low","url":"%s"}},{"type":"text","text":"x"},{"type":"image_url","image_url":{"url":"%s"}}`, inline, escaped)),
			func(r *ChatRequest, body string) {
				r.Bound = PromptBound{TextBytes: int64(len(body) - len(inline) - len(escaped) - 4), Images: 2}
			}},
		"document as image": {parts(`{"type":"image_url","image_url":{"url":"data:application/pdf;base64,AAAA"}}`), func(r *ChatRequest, _ string) { r.Bound.Images, r.Bound.Unbounded = 1, true }},
		"file":              {parts(`{"type":"file","file":{"file_data":"AAAA","file_id":null}}`), func(r *ChatRequest, _ string) { r.Bound.Unbounded = true }},
		"unknown part":      {parts(`{"type":"video_url","video_url":{"url":"https://x"}}`), func(r *ChatRequest, _ string) { r.Bound.Unbounded = true }},
		"known parts":       {parts(`{"type":"text","text":"file_id"},{"type":"refusal","refusal":"no"},"x",7`), func(*ChatRequest, string) {}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			got, err := OpenChat([]byte(test.body))
			if err != nil {
				t.Fatal(err)
			}
			if err := got.Check(); err != nil {
				t.Fatal(err)
			}
			want := &ChatRequest{request{Asked: Asked{N: 1, Bound: size(test.body)}}}
			test.want(want, test.body)
			if got.Stream != want.Stream || got.IncludeUsage != want.IncludeUsage || got.Limit != want.Limit || got.LimitParam != want.LimitParam || got.N != want.N ||
				got.Bound != want.Bound || got.ServiceTier != want.ServiceTier || !slices.Equal(got.Options, want.Options) || !slices.Equal(got.Tools, want.Tools) {
				t.Errorf("got  %+v\nwant %+v", *got, *want)
			}
		})
	}
}
