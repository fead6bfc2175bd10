package completions

import (
	"fmt"
	"math"
	"reflect"
	"strings"
	"testing"

	"tollgate/internal/fault"
	"tollgate/internal/wire"
	"tollgate/internal/wire/internal/form"
	"tollgate/internal/wire/internal/wiretest"
)

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
		r, err := Open([]byte(body))
		if err != nil {
			t.Fatal(err)
		}
		got, err := r.Model()
		code, param := wiretest.CodeOf(t, err)
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
		`{"model":"m"}`: {fault.InvalidMessages,
			"messages"},
		wiretest.ChatMessages(`null`): {fault.InvalidMessages,
			"messages"},
		wiretest.ChatMessages(`[]`): {fault.InvalidMessages,
			"messages"},
		wiretest.ChatMessages(`"hi"`): {fault.InvalidMessages,
			"messages"},
		wiretest.ChatMessages(`{}`): {fault.InvalidMessages,
			"messages"},
		wiretest.ChatMessages(`[{"role":"user","content":""},"hi"]`): {fault.InvalidMessages,
			"messages[1]"},
		wiretest.ChatMessages(`[null]`): {fault.InvalidMessages,
			"messages[0]"},
		wiretest.ChatMessages(`[{"content":"hi"}]`): {fault.InvalidMessages,
			"messages[0].role"},
		wiretest.ChatMessages(`[{"role":null,"content":"hi"}]`): {fault.InvalidMessages,
			"messages[0].role"},
		wiretest.ChatMessages(`[{"role":"user","content":7}]`): {fault.InvalidMessages,
			"messages[0].content"},
		wiretest.ChatMessages(`[{"role":"user","content":{"text":"x"}}]`): {fault.InvalidMessages,
			"messages[0].content"},
		wiretest.ChatMessages(`[{"role":"user","content":true}]`): {fault.InvalidMessages,
			"messages[0].content"},
		wiretest.ChatMessages(`[{"role":"user"},{"role":"a"},{"role":"b"}]`): {fault.InvalidRole,
			"messages[1].role"},
		wiretest.ChatMessages(`[{"role":7,"content":"hi"}]`): {fault.InvalidRole,
			"messages[0].role"},
		wiretest.ChatMessages(`[{"role":"","content":"hi"}]`): {fault.InvalidRole,
			"messages[0].role"},
		wiretest.ChatMessages(`[{"role":"User","content":"hi"}]`): {fault.InvalidRole,
			"messages[0].role"},
		wiretest.ChatBody(`"max_tokens":0`): {fault.InvalidMaxTokens,
			"max_tokens"},
		wiretest.ChatBody(`"max_tokens":-1`): {fault.InvalidMaxTokens,
			"max_tokens"},
		wiretest.ChatBody(`"max_tokens":1.5`): {fault.InvalidMaxTokens,
			"max_tokens"},
		wiretest.ChatBody(`"max_tokens":"9"`): {fault.InvalidMaxTokens,
			"max_tokens"},
		wiretest.ChatBody(`"max_tokens":true`): {fault.InvalidMaxTokens,
			"max_tokens"},
		wiretest.ChatBody(`"max_tokens":[]`): {fault.InvalidMaxTokens,
			"max_tokens"},
		wiretest.ChatBody(`"max_tokens":9,"max_completion_tokens":0`): {fault.InvalidMaxTokens,
			"max_completion_tokens"},
		wiretest.ChatBody(`"stream":"true"`): {fault.InvalidRequest,
			"stream"},
		wiretest.ChatBody(`"stream":1`): {fault.InvalidRequest,
			"stream"},
		wiretest.ChatBody(`"n":0`):   {fault.InvalidRequest, "n"},
		wiretest.ChatBody(`"n":129`): {fault.InvalidRequest, "n"},
		wiretest.ChatBody(`"n":1.5`): {fault.InvalidRequest, "n"},
		wiretest.ChatBody(`"n":"2"`): {fault.InvalidRequest, "n"},
		wiretest.ChatBody(`"stream":true,"stream_options":[]`): {fault.InvalidRequest,
			"stream_options"},
		wiretest.ChatBody(`"stream":true,"stream_options":{"include_usage":1}`): {fault.InvalidRequest,
			"stream_options.include_usage"},
		wiretest.ChatBody(`"previous_response_id":"resp_1"`): {fault.InvalidRequest,
			"previous_response_id"},
		wiretest.ChatBody(`"conversation":{"id":"c"}`): {fault.InvalidRequest,
			"conversation"},
		wiretest.ChatBody(`"container":"c"`): {fault.InvalidRequest,
			"container"},
		wiretest.ChatBody(`"vector_store_ids":["v"]`): {fault.InvalidRequest,
			"vector_store_ids"},
		wiretest.ChatBody(`"file_id":"f"`): {fault.InvalidRequest,
			"file_id"},
		wiretest.ChatBody(`"prompt":{"id":"p"}`): {fault.InvalidRequest,
			"prompt.id"},
		wiretest.ChatBody(`"background":true`): {fault.InvalidRequest,
			"background"},
		wiretest.ChatBody(`"modalities":"audio"`): {fault.InvalidRequest,
			"modalities"},
		wiretest.ChatBody(`"audio":"alloy"`): {fault.InvalidRequest,
			"audio"},
		wiretest.ChatBody(`"service_tier":1`): {fault.InvalidRequest,
			"service_tier"},
		wiretest.ChatBody(`"tools":[{"type":"function"},{"type":"file_search","vector_store_ids":["v"]}]`): {fault.InvalidRequest,
			"tools[1].vector_store_ids"},
		wiretest.ChatBody(`"tools":[{"type":"code_interpreter","container":"c"}]`): {fault.InvalidRequest,
			"tools[0].container"},
		wiretest.ChatBody(`"tools":[{"type":"code_interpreter","container":{"type":"auto","file_ids":["f"]}}]`): {fault.InvalidRequest,
			"tools[0].container.file_ids"},
		wiretest.ChatParts(`{"type":"text","text":"x"},{"type":"file","file":{"file_id":"f"}}`): {fault.InvalidRequest,
			"messages[1].content[1].file.file_id"},
		wiretest.ChatParts(`{"type":"file","file":{"f\u0069le_id":"f"}}`): {fault.InvalidRequest,
			"messages[1].content[0].file.file_id"},
		wiretest.ChatParts(`{"type":"image_url","image_url":{"url":"https://x/y.png"},"x":[1,{"file_id":"f"}]}`): {fault.InvalidRequest,
			"messages[1].content[0].x[1].file_id"},
		wiretest.ChatParts(`{"type":"input_audio","input_audio":"AA"}`): {fault.InvalidRequest,
			"messages[1].content[0].input_audio"},
		wiretest.ChatParts(`{"type":"input_audio"}`): {fault.InvalidRequest,
			"messages[1].content[0].input_audio"},
		wiretest.ChatParts(`{"type":"input_audio","input_audio":{"format":"wav"}}`): {fault.InvalidRequest,
			"messages[1].content[0].input_audio.data"},
		wiretest.ChatParts(`{"type":"input_audio","input_audio":{"data":"https://x.example/a.mp3","format":"mp3"}}`): {fault.InvalidRequest,
			"messages[1].content[0].input_audio.data"},
		wiretest.ChatParts(`{"type":"input_audio","input_audio":{"data":"AA"},"url":"https://x.example/a.mp3"}`): {fault.InvalidRequest,
			"messages[1].content[0].url"},
		wiretest.ChatParts(`{"type":"audio_url","audio_url":{"url":"https://x.example/a.mp3"}}`): {fault.InvalidRequest,
			"messages[1].content[0].audio_url"},
		wiretest.ChatMessages(`[{"role":"assistant","audio":{"id":"a"}}]`): {fault.InvalidRequest,
			"messages[0].audio"},
	} {
		r, err := Open([]byte(body))
		if err != nil {
			t.Fatalf("%s: %v", body, err)
		}
		if code, param := wiretest.CodeOf(t, r.Check()); code != want.code || param != want.param {
			t.Errorf("%s: %q at %q, want %q at %q", body, code, param, want.code, want.param)
		}
	}
}

func TestCheckReads(t *testing.T) {
	t.Parallel()
	inline := `data:image/png;base64,` + strings.Repeat("A", 1000)
	escaped := `data:image\/png;base64,` + strings.Repeat("A", 1000)
	size := func(body string) wire.PromptBound { return wire.PromptBound{TextBytes: int64(len(body))} }
	for name, test := range map[string]struct {
		body string
		want func(*Request, string)
	}{
		"plain": {wiretest.ChatBody(``), func(*Request, string) {}},
		"all roles": {wiretest.ChatMessages(
			`[{"role":"system"},{"role":"developer","content":null},{"role":"us\u0065r","content":""},{"role":"assistant","tool_calls":[]},` +
				`{"role":"tool","content":[]},{"role":"function","content":["x"]}]`),
			func(*Request, string) {}},
		"nulls": {wiretest.ChatBody(
			`"max_tokens":null,"n":null,"stream":null,"stream_options":null,"service_tier":null,"audio":null,"modalities":null,"tools":null,` +
				`"background":null,"previous_response_id":null,"prompt":null`),
			func(*Request, string) {}},
		"harmless values": {wiretest.ChatBody(
			`"background":false,"modalities":["text"],"service_tier":"auto","prompt":{"variables":{}},"store":true,"stream_options":"x"`),
			func(*Request, string) {}},
		"stream": {wiretest.ChatBody(`"stream":true`), func(r *Request, _ string) { r.Stream = true }},
		"stream and usage": {wiretest.ChatBody(`"stream":true,"stream_options":{"include_usage":true}`), func(r *Request,
			_ string) {
			r.Stream, r.IncludeUsage = true, true
		}},
		"stream, no usage": {wiretest.ChatBody(`"stream":true,"stream_options":{"include_usage":null}`), func(r *Request,
			_ string) {
			r.Stream = true
		}},
		"smaller limit": {wiretest.ChatBody(`"max_tokens":30,"max_completion_tokens":20,"n":128`), func(r *Request,
			_ string) {
			r.Limit, r.LimitParam, r.N = 20, "max_completion_tokens", 128
		}},
		"huge limit": {wiretest.ChatBody(`"max_tokens":99999999999999999999`), func(r *Request, _ string) {
			r.Limit,
				r.LimitParam = math.MaxInt64, "max_tokens"
		}},
		"tier": {wiretest.ChatBody(`"service_tier":"flex"`), func(r *Request, _ string) {
			r.ServiceTier, r.Options = "flex", []wire.PricedField{{Param: "service_tier", Name: "flex", MaxCalls: 0}}
		}},
		"options": {wiretest.ChatBody(`"speed":"fast","inference_geo":"us","models":["a","b"]`), func(r *Request, _ string) {
			r.Options = []wire.PricedField{{Param: "speed", Name: "fast", MaxCalls: 0}, {Param: "inference_geo", Name: "us", MaxCalls: 0}}
			r.Routing = []string{"models"}
		}},
		"own tools": {wiretest.ChatBody(
			`"tools":[{"type":"function","function":{"name":"web_search","parameters":{"properties":{"file_id":{"type":"string"},` +
				`"container":{}}}}},{"type":"custom","custom":{"name":"x"}},{"function":{"name":"f"}}]`),
			func(*Request, string) {}},
		"web search": {wiretest.ChatBody(`"web_search_options":{}`), func(r *Request, _ string) {
			r.Tools, r.Bound.Unbounded = []wire.PricedField{{Param: "web_search_options", Name: "web_search", MaxCalls: 0}}, true
		}},
		"hosted tools": {wiretest.ChatBody(
			`"tools":[{"type":"function"},{"type":"web_search_preview_2025_03_11","max_uses":3},{"type":"openrouter:web_search"},` +
				`{"type":"code_interpreter"},{"type":"builtin_function","function":{"name":"$web_search"}}],"max_tool_calls":5`),
			func(r *Request, _ string) {
				r.Bound.Unbounded = true
				r.Tools = []wire.PricedField{{Param: "tools[1].type", Name: "web_search", MaxCalls: 3}, {Param: "tools[2].type",
					Name: "web_search", MaxCalls: 5}, {Param: "tools[3].type", Name: "code_interpreter", MaxCalls: 5},
					{Param: "tools[4].type", Name: "web_search", MaxCalls: 5}}
			}},
		"vendors' tools": {wiretest.ChatBody(
			`"enable_search":true,"search_parameters":{"mode":"auto"},"plugins":[{"id":"web"},{"id":"file-parser"}]`),
			func(r *Request, _ string) {
				r.Bound.Unbounded = true
				r.Tools = []wire.PricedField{{Param: "enable_search", Name: "web_search", MaxCalls: 0}, {Param: "search_parameters",
					Name: "web_search", MaxCalls: 0}, {Param: "plugins[0].id", Name: "web_search", MaxCalls: 0},
					{Param: "plugins[1].id", Name: "file-parser", MaxCalls: 0}}
			}},
		"images of the assistant": {wiretest.ChatMessages(
			`[{"role":"user","content":"x"},{"role":"assistant","content":"y","images":[` +
				`{"type":"image_url","image_url":{"url":"data:image/png;base64,AAAA"}},` +
				`{"type":"image_url","image_url":{"url":"https://example.com/a.png"}}]}]`),
			func(r *Request, _ string) {
				r.Bound.TextBytes -= int64(len(`"data:image/png;base64,AAAA"`))
				r.Bound.Images = 2
			}},
		"image output": {wiretest.ChatBody(`"modalities":["text","image"]`),
			func(r *Request, _ string) {
				r.Options = []wire.PricedField{{Param: "modalities", Name: "image", MaxCalls: 0}}
			}},
		"vendors' tools off": {wiretest.ChatBody(`"enable_search":false,"search_parameters":{"mode":"off"},"plugins":[]`),
			func(*Request, string) {}},
		"mcp": {wiretest.ChatBody(`"tools":[{"type":"mcp"}]`), func(r *Request, _ string) {
			r.Bound.Unbounded, r.Tools = true, []wire.PricedField{{Param: "tools[0].type", Name: "mcp"}}
		}},
		"image by address": {wiretest.ChatParts(`{"type":"image_url","image_url":{"url":"https://x/y.png"}}`),
			func(r *Request, _ string) { r.Bound.Images = 1 }},
		"image as a string": {wiretest.ChatParts(`{"type":"image_url","image_url":"https://x/y.png"}`), func(r *Request,
			_ string) {
			r.Bound.Images = 1
		}},
		"inline images": {wiretest.ChatParts(
			fmt.Sprintf(`{"type":"image_url","image_url":{"detail":"low","url":"%s"}},{"type":"text","text":"x"},`+
				`{"type":"image_url","image_url":{"url":"%s"}}`,
				inline, escaped)),
			func(r *Request, body string) {
				r.Bound = wire.PromptBound{TextBytes: int64(len(body) - len(inline) - len(escaped) - 4), Images: 2}
			}},
		"document as image": {wiretest.ChatParts(`{"type":"image_url","image_url":{"url":"data:application/pdf;base64,AAAA"}}`),
			func(r *Request, _ string) { r.Bound.Images, r.Bound.Unbounded = 1, true }},
		"file": {wiretest.ChatParts(`{"type":"file","file":{"file_data":"AAAA","file_id":null}}`),
			func(r *Request, _ string) { r.Bound.Unbounded = true }},
		"unknown part": {wiretest.ChatParts(`{"type":"video_url","video_url":{"url":"https://x"}}`), func(r *Request,
			_ string) {
			r.Bound.Unbounded = true
		}},
		"known parts": {wiretest.ChatParts(`{"type":"text","text":"file_id"},{"type":"refusal","refusal":"no"},"x",7`),
			func(*Request, string) {}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			got, err := Open([]byte(test.body))
			if err != nil {
				t.Fatal(err)
			}
			if err := got.Check(); err != nil {
				t.Fatal(err)
			}
			want := &Request{form.Request{Parameters: wire.Parameters{N: 1, Bound: size(test.body)}}}
			test.want(want, test.body)
			if got.Stream != want.Stream || got.IncludeUsage != want.IncludeUsage || got.Limit != want.Limit || got.LimitParam != want.LimitParam ||
				got.N != want.N ||
				got.Bound != want.Bound || got.ServiceTier != want.ServiceTier ||
				!reflect.DeepEqual(got.Options, want.Options) || !reflect.DeepEqual(got.Tools, want.Tools) {
				t.Errorf("got  %+v\nwant %+v", *got, *want)
			}
		})
	}
}
