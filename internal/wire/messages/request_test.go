package messages

import (
	"bytes"
	"reflect"
	"strings"
	"testing"

	"tollgate/internal/fault"
	"tollgate/internal/wire"
	"tollgate/internal/wire/internal/wiretest"
)

// native returns a messages body with further members.
func native(more string) string {
	if more != "" {
		more = "," + more
	}
	return `{"model":"m","max_tokens":9,"messages":[{"role":"user","content":"hi"}]` + more + `}`
}

// blocks returns a messages body with the given blocks in its second message.
func blocks(content string) string {
	return `{"model":"m","max_tokens":9,"messages":[{"role":"system","content":"x"},{"role":"user","content":[` + content + `]}]}`
}

// openMessages opens and checks a valid body.
func openMessages(t *testing.T, body string) *Request {
	t.Helper()
	r, err := Open([]byte(body))
	if err != nil {
		t.Fatalf("%s: %v", body, err)
	}
	for range 2 { // a second check has the same result
		if err := r.Check(); err != nil {
			t.Fatalf("%s: %v", body, err)
		}
	}
	return r
}

func TestMessagesModel(t *testing.T) {
	t.Parallel()
	for body, want := range map[string]string{
		`{"model":"opal-1"}`: "opal-1", `{"model":null}`: "", `{}`: "", `{"model":""}`: "", `{"model":7}`: "",
	} {
		r, err := Open([]byte(body))
		if err != nil {
			t.Fatal(err)
		}
		got, err := r.Model()
		code, param := wiretest.CodeOf(t, err)
		if got != want || (want == "") != (code == fault.InvalidRequest && param == "model") {
			t.Errorf("%s: %q, %v", body, got, err)
		}
	}
}

func TestOpenMessagesRejects(t *testing.T) {
	t.Parallel()
	for body, want := range map[string]fault.Code{
		"\xff":               fault.InvalidEncoding,
		`{"model":"m"`:       fault.InvalidJSON,
		`[]`:                 fault.InvalidRequest,
		`{"a":1,"\u0061":2}`: fault.InvalidJSON,
		`{"messages":[{"role":"user","role":"assistant"}]}`:                   fault.InvalidJSON,
		`{"tools":[{"type":"custom","type":"web_search_20250305"}]}`:          fault.InvalidJSON,
		`{"metadata":{"a":1,"a":2},"messages":[{"content":[{"a":1,"a":2}]}]}`: fault.InvalidJSON,
	} {
		_, err := Open([]byte(body))
		if code, _ := wiretest.CodeOf(t, err); code != want {
			t.Errorf("%s: %v, want %q", body, err, want)
		}
	}
}

func TestMessagesCheckRejects(t *testing.T) {
	t.Parallel()
	const list = `"messages":[{"role":"user","content":"hi"}]`
	for body, want := range map[string]struct {
		code  fault.Code
		param string
	}{
		`{"max_tokens":9}`:                                  {fault.InvalidMessages, "messages"},
		`{"max_tokens":9,"messages":null}`:                  {fault.InvalidMessages, "messages"},
		`{"max_tokens":9,"messages":[]}`:                    {fault.InvalidMessages, "messages"},
		`{"max_tokens":9,"messages":"hi"}`:                  {fault.InvalidMessages, "messages"},
		`{"max_tokens":9,"messages":["hi"]}`:                {fault.InvalidMessages, "messages[0]"},
		`{` + list + `}`:                                    {fault.InvalidMaxTokens, "max_tokens"},
		`{"max_tokens":null,` + list + `}`:                  {fault.InvalidMaxTokens, "max_tokens"},
		`{"max_tokens":0,` + list + `}`:                     {fault.InvalidMaxTokens, "max_tokens"},
		`{"max_tokens":-1,` + list + `}`:                    {fault.InvalidMaxTokens, "max_tokens"},
		`{"max_tokens":1.5,` + list + `}`:                   {fault.InvalidMaxTokens, "max_tokens"},
		`{"max_tokens":"9",` + list + `}`:                   {fault.InvalidMaxTokens, "max_tokens"},
		`{"max_tokens":1e3,` + list + `}`:                   {fault.InvalidMaxTokens, "max_tokens"},
		native(`"stream":"yes"`):                            {fault.InvalidRequest, "stream"},
		native(`"service_tier":1`):                          {fault.InvalidRequest, "service_tier"},
		native(`"speed":true`):                              {fault.InvalidRequest, "speed"},
		native(`"container":"c"`):                           {fault.InvalidRequest, "container"},
		native(`"container":{"skills":[]}`):                 {fault.InvalidRequest, "container"},
		native(`"thread":{"id":"t"}`):                       {fault.InvalidRequest, "thread"},
		blocks(`{"type":"container_upload","file_id":"f"}`): {fault.InvalidRequest, "messages[1].content[0].file_id"},
		blocks(`{"type":"text","text":"x"},{"type":"image","source":{"type":"file","file_id":"f"}}`): {fault.InvalidRequest,
			"messages[1].content[1].source.file_id"},
		blocks(`{"type":"document","source":{"type":"file","f\u0069le_id":"f"}}`): {fault.InvalidRequest,
			"messages[1].content[0].source.file_id"},
		blocks(`{"type":"document","source":{"type":"content","content":[{"type":"image","source":{"type":"file","file_id":"f"}}]}}`): {
			fault.InvalidRequest,
			"messages[1].content[0].source.content[0].source.file_id"},
		blocks(`{"type":"tool_result","tool_use_id":"t","content":[{"type":"text","text":"x"},{"type":"document","source":{"file_id":"f"}}]}`): {
			fault.InvalidRequest,
			"messages[1].content[0].content[1].source.file_id"},
		blocks(`{"type":"code_execution_tool_result","content":{"type":"code_execution_result","content":[{"type":"output","file_id":"f"}]}}`): {
			fault.InvalidRequest,
			"messages[1].content[0].content.content[0].file_id"},
		blocks(`{"type":"novelty","deep":[{"file_ids":["f"]}]}`): {fault.InvalidRequest,
			"messages[1].content[0].deep[0].file_ids"},
		native(`"system":[{"type":"document","source":{"type":"file","file_id":"f"}}]`): {fault.InvalidRequest,
			"system[0].source.file_id"},
		native(`"tools":[{"name":"f","input_schema":{"file_id":1}},{"type":"code_execution_20250825","name":"c","files":[{"file_id":"f"}]}]`): {
			fault.InvalidRequest,
			"tools[1].files[0].file_id"},
	} {
		r, err := Open([]byte(body))
		if err != nil {
			t.Fatalf("%s: %v", body, err)
		}
		if code, param := wiretest.CodeOf(t, r.Check()); code != want.code || param != want.param {
			t.Errorf("%s: %s at %q, want %s at %q", body, code, param, want.code, want.param)
		}
	}
}

// TestMessagesCheckPasses tests requests that Check accepts and leaves to the provider.
func TestMessagesCheckPasses(t *testing.T) {
	t.Parallel()
	for _, body := range []string{
		native(``),
		native(`"thinking":{"type":"adaptive"},"context_management":{"edits":[]},"output_config":{"effort":"high"},"metadata":{"user_id":"u"},` +
			`"novelty":[1]`),
		native(`"system":[{"type":"text","text":"x","cache_control":{"type":"ephemeral","ttl":"1h"}}],"temperature":1,"stream":false`),
		native(`"container":null,"service_tier":null,"stream":null`),
		`{"model":"m","max_tokens":9,"messages":[{"role":"critic","content":7},{"content":null},{"role":"user","content":[1,"x",null]}]}`,
		blocks(`{"type":"tool_use","id":"t","name":"f","input":{"file_id":"mine"}},{"type":"tool_result","tool_use_id":"t","content":"file_id"}`),
		native(`"tools":[{"name":"f","input_schema":{"properties":{"file_id":{}}}},{"type":"bash_20250124","name":"bash"}]`),
	} {
		openMessages(t, body)
	}
}

func TestMessagesParameters(t *testing.T) {
	t.Parallel()
	png := strings.Repeat("A", 1000)
	image := `{"type":"image","source":{"type":"base64","media_type":"image/png","data":"` + png + `"}}`
	inline := func(body string, images int64) wire.PromptBound {
		return wire.PromptBound{TextBytes: int64(len(body)) - images*int64(len(png)+2), Images: images}
	}
	open := func(body string) wire.PromptBound {
		return wire.PromptBound{TextBytes: int64(len(body)), Unbounded: true}
	}
	plain := func(body string) wire.PromptBound { return wire.PromptBound{TextBytes: int64(len(body))} }
	search := func(uses int64) []wire.PricedField {
		return []wire.PricedField{{Param: "tools[1].type", Name: "web_search", MaxCalls: uses}}
	}
	for name, test := range map[string]struct {
		body    string
		bound   func(string) wire.PromptBound
		options []wire.PricedField
		tools   []wire.PricedField
		tier    string
	}{
		"text":         {body: native(`"system":"x"`), bound: plain},
		"inline image": {body: blocks(image), bound: func(b string) wire.PromptBound { return inline(b, 1) }},
		"image in results": {body: blocks(`{"type":"tool_result","content":[` + image + `,` + image + `]}`),
			bound: func(b string) wire.PromptBound { return inline(b, 2) }},
		"image by address": {body: blocks(`{"type":"image","source":{"type":"url","url":"https://h/x.png"}}`),
			bound: func(b string) wire.PromptBound { return wire.PromptBound{TextBytes: int64(len(b)), Images: 1} }},
		"no image": {body: blocks(strings.ReplaceAll(image, "image/png", "application/pdf")), bound: open},
		"PDF": {body: blocks(`{"type":"document","source":{"type":"base64","media_type":"application/pdf","data":"AA"}}`),
			bound: open},
		"PDF by address": {body: blocks(`{"type":"document","source":{"type":"url","url":"https://h/x.pdf"}}`), bound: open},
		"text document":  {body: blocks(`{"type":"document","source":{"type":"text","media_type":"text/plain","data":"x"}}`), bound: plain},
		"document of parts": {
			body:  blocks(`{"type":"document","source":{"type":"content","content":[{"type":"text","text":"x"},` + image + `]}}`),
			bound: func(b string) wire.PromptBound { return inline(b, 1) }},
		"fetched PDF": {body: blocks(
			`{"type":"web_fetch_tool_result","content":{"type":"web_fetch_result","content":{"type":"document","source":{"type":"base64",` +
				`"media_type":"application/pdf","data":"AA"}}}}`),
			bound: open},
		"searched": {body: blocks(
			`{"type":"server_tool_use","name":"web_search","input":{}},{"type":"web_search_tool_result","content":[{"type":"web_search_result",` +
				`"encrypted_content":"A"}]}`),
			bound: plain},
		"thoughts": {body: blocks(`{"type":"thinking","thinking":"x","signature":"s"},{"type":"redacted_thinking","data":"A"}`), bound: plain},
		"novelty":  {body: blocks(`{"type":"novelty"}`), bound: open},
		"search":   {body: native(`"tools":[{"name":"f"},{"type":"web_search_20260318","name":"web_search"}]`), bound: open, tools: search(0)},
		"few searches": {body: native(`"tools":[{"name":"f"},{"type":"web_search_20260318","name":"web_search","max_uses":3}]`), bound: open,
			tools: search(3)},
		"other hosted tools": {
			body:  native(`"tools":[{"type":"web_fetch_20250910"},{"type":"code_execution_20250825"},{"type":"memory_20250818"}]`),
			bound: open,
			tools: []wire.PricedField{{Param: "tools[0].type", Name: "web_fetch"}, {Param: "tools[1].type", Name: "code_execution"}}},
		"toolset": {body: native(`"tools":[{"type":"computer_toolset_20260801"}]`), bound: open,
			tools: []wire.PricedField{{Param: "tools[0].type", Name: "computer_toolset"}}},
		"mcp servers": {body: native(`"mcp_servers":[{"url":"https://h"}]`), bound: open,
			tools: []wire.PricedField{{Param: "mcp_servers", Name: "mcp"}}},
		"standard": {body: native(`"service_tier":"standard_only","speed":"standard"`), bound: plain},
		"options": {body: native(`"service_tier":"priority","speed":"fast","inference_geo":"us"`), bound: plain, tier: "priority",
			options: []wire.PricedField{{Param: "service_tier", Name: "priority"}, {Param: "speed", Name: "fast"},
				{Param: "inference_geo", Name: "us"}}},
		"billing": {body: native(`"billing_policy":"x"`), bound: plain, options: []wire.PricedField{{Param: "billing_policy", Name: "x"}}},
		"a vendor's search": {body: native(`"enable_search":true`), bound: open,
			tools: []wire.PricedField{{Param: "enable_search", Name: "web_search"}}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			r := openMessages(t, test.body)
			if want := test.bound(test.body); r.Bound != want {
				t.Errorf("bound %+v, want %+v", r.Bound, want)
			}
			if !reflect.DeepEqual(r.Options, test.options) || !reflect.DeepEqual(r.Tools, test.tools) || r.ServiceTier != test.tier {
				t.Errorf("options %+v, tools %+v, tier %q", r.Options, r.Tools, r.ServiceTier)
			}
			if r.Limit != 9 || r.LimitParam != "max_tokens" || r.N != 1 || r.Stream {
				t.Errorf("parameters %+v", r.Parameters)
			}
		})
	}
}

func TestMessagesCheckCount(t *testing.T) {
	t.Parallel()
	for body, want := range map[string]fault.Code{
		`{"model":"m","messages":[{"role":"user","content":"hi"}]}`:                 "",
		`{"model":"m","max_tokens":0,"messages":[{"role":"user","content":"hi"}]}`:  "",
		`{"model":"m","messages":[]}`:                                               fault.InvalidMessages,
		`{"model":"m","container":"c","messages":[{"role":"user","content":"hi"}]}`: fault.InvalidRequest,
	} {
		r, err := Open([]byte(body))
		if err != nil {
			t.Fatal(err)
		}
		err = r.CheckCount()
		if code, _ := wiretest.CodeOf(t, err); code != want {
			t.Errorf("%s: %v", body, err)
		}
		if r.Limit != 0 {
			t.Errorf("%s: limit %d", body, r.Limit)
		}
	}
}

// TestMessagesConversation checks that the conversation depends neither on cache marks, which
// clients move, nor on anything after the first user message.
func TestMessagesConversation(t *testing.T) {
	t.Parallel()
	number := func(members string) uint64 {
		return openMessages(t, `{"max_tokens":9,`+members+`}`).Conversation
	}
	first := number(`"system":"be brief","messages":[{"role":"user","content":"hello"}]`)
	for name, same := range map[string]string{
		"marked": `"system":[{"type":"text","text":"be brief","cache_control":{"type":"ephemeral"}}],` +
			`"messages":[{"role":"user","content":[{"type":"text","text":"hello","cache_control":{}}]}]`,
		"next turn": `"messages":[{"role":"user","content":[{"type":"text","text":"hello"}]},{"role":"assistant","content":"hi"},` +
			`{"role":"user","content":"more"}],"system":"be brief"`,
		"user id": `"metadata":{"user_id":"u"},"system":"be brief","messages":[{"role":"user","content":"hello"}]`,
	} {
		if number(same) != first {
			t.Errorf("%s: got another conversation's number", name)
		}
	}
	for name, other := range map[string]string{
		"other system": `"system":"be long","messages":[{"role":"user","content":"hello"}]`,
		"other text":   `"system":"be brief","messages":[{"role":"user","content":"hallo"}]`,
		"no system":    `"messages":[{"role":"user","content":"hello"}]`,
	} {
		if number(other) == first {
			t.Errorf("%s: got the same conversation's number", name)
		}
	}
}

func TestMessagesPrompt(t *testing.T) {
	t.Parallel()
	var c wire.Counter
	base := openMessages(t, native(``)).Prompt(&c, 100)
	for name, more := range map[string]string{
		"system":   native(`"system":"one two three four"`),
		"tools":    native(`"tools":[{"name":"weather","input_schema":{}}]`),
		"document": blocks(`{"type":"document","source":{"type":"text","data":"one two three four five six"}}`),
		"result":   blocks(`{"type":"tool_result","content":[{"type":"text","text":"one two three four five six"}]}`),
	} {
		if n := openMessages(t, more).Prompt(&c, 100); n <= base || n > base+40 {
			t.Errorf("%s: %d tokens, %d without", name, n, base)
		}
	}
	image := openMessages(t,
		blocks(`{"type":"image","source":{"type":"base64","media_type":"image/png","data":"`+strings.Repeat("A", 4000)+`"}}`))
	if n := image.Prompt(&c, 100); n < 100 || n > 130 {
		t.Errorf("the prompt with an image of 100 tokens has %d tokens", n)
	}
	if n := image.Estimate(); n > 200 {
		t.Errorf("estimate %d", n)
	}
}

func TestMessagesBody(t *testing.T) {
	t.Parallel()
	const list = `"max_tokens":9,"messages":[{"role":"user","content":"model"}]`
	for in, want := range map[string]string{
		` { "z" : 1.50 , "model" : "m" , ` + list + `, "x":null } `: ` { "z" : 1.50 , "model" : "v\"<" , ` + list + `, "x":null } `,
		`{` + list + `,"model":"v\"<"}`:                             `{` + list + `,"model":"v\"<"}`,
		`{` + list + `}`:                                            `{` + list + `,"model":"v\"<"}`,
	} {
		body := []byte(in)
		r := openMessages(t, in)
		r.Doc.Body = body
		if got := string(r.Body(wire.Edits{Model: `v"<`, Limit: 5, LimitField: "max_tokens", AskUsage: true}).Bytes()); got != want {
			t.Errorf("got  %s\nwant %s", got, want)
		}
		if string(body) != in {
			t.Error("the client's body was written to")
		}
	}
}

// FuzzMessagesBody checks that an edited body passes Check again and that only the model differs.
func FuzzMessagesBody(f *testing.F) {
	for _, seed := range []string{
		native(`"stream":true,"tools":[{"type":"web_search_20250305","max_uses":2}]`),
		native(`"system":[{"type":"text","text":"x"}],"speed":"fast"`),
		blocks(`{"type":"tool_result","content":[{"type":"image","source":{"type":"base64","media_type":"image/png","data":"AA"}}]}`),
		blocks(`{"type":"document","source":{"type":"content","content":[{"type":"document","source":{"type":"url"}}]}}`),
		` { "max_tokens" : 1 , "messages" : [ { "role" : "user" } ] } `,
	} {
		f.Add([]byte(seed))
	}
	f.Fuzz(func(t *testing.T, body []byte) {
		r, err := Open(body)
		if err != nil || r.Check() != nil {
			return
		}
		if r.Bound.TextBytes < 0 || r.Bound.TextBytes > int64(len(body)) || r.Bound.Images < 0 || r.N != 1 || r.Limit < 1 {
			t.Fatalf("parameters out of range: %+v", r)
		}
		r.Prompt(&wire.Counter{}, 5)
		edits := wire.Edits{Model: "vendor \"1\""}
		edited := r.Body(edits).Bytes()
		again, err := Open(edited)
		if err != nil {
			t.Fatalf("edited body %s: %v", edited, err)
		}
		if err := again.Check(); err != nil {
			t.Fatalf("edited body %s: %v", edited, err)
		}
		if model, _ := again.Model(); model != edits.Model || again.Limit != r.Limit {
			t.Fatalf("no new model or another limit in %s", edited)
		}
		if twice := again.Body(edits).Bytes(); !bytes.Equal(twice, edited) {
			t.Fatalf("editing twice gives %s, once %s", twice, edited)
		}
		before, after := wiretest.OtherMembers(t, body), wiretest.OtherMembers(t, edited)
		if !reflect.DeepEqual(before, after) {
			t.Fatalf("other fields changed: %s to %s", before, after)
		}
	})
}

// TestMessagesCountBody checks that the body of a count request has only the accepted members, and
// their bytes are unchanged.
func TestMessagesCountBody(t *testing.T) {
	t.Parallel()
	for body, want := range map[string]string{
		`{"model":"a","messages":[1]}`: `{"model":"b","messages":[1]}`,
		`{"max_tokens":1,"model":"a",` +
			`"messages":[1]}`: `{"model":"b","messages":[1]}`,
		"{ \"stream\" : true ,\n\"max_tokens\":1 , \"model\":\"a\" , " +
			"\"x\":{\"stream\":1}}": "{ \"model\":\"b\" , \"x\":{\"stream\":1}}",
		"{\"model\":\"a\",\"messages\":[1]," +
			"\"metadata\":{\"user_id\":\"u\"}}\n": "{\"model\":\"b\",\"messages\":[1]}\n",
		`{"temperature":1,"top_p":1,"top_k":1,"stop_sequences":[],"service_tier":"auto","inference_geo":"x","model":"b"}`: `{"model":"b"}`,
		`{"model":"b","max\u005ftokens":null,"tools":[],` +
			`"thinking":{}}`: `{"model":"b","tools":[],"thinking":{}}`,
	} {
		r, err := Open([]byte(body))
		if err != nil {
			t.Fatal(err)
		}
		if got := string(r.CountBody(wire.Edits{Model: "b"}).Bytes()); got != want {
			t.Errorf("%s\nbecomes %s\nwant    %s", body, got, want)
		}
	}
}

// TestEndUserAddressIsHashed checks that an e-mail address in user_id is hashed, and nothing else
// changes.
func TestEndUserAddressIsHashed(t *testing.T) {
	t.Parallel()
	const hash = "71d4f55f72fa128dfb468a1a3901507c804b74316488744d769d7f4b16696476"
	for metadata, want := range map[string]string{
		`{ "user_id" : "ann@example.com", "a":1 }`: `{ "user_id" : "` + hash + `", "a":1 }`,
		`{"user_id":"\u0061nn@example.com"}`:       `{"user_id":"` + hash + `"}`,
		`{"user_id":"user_1@device"}`:              ``,
		`{"user_id":7}`:                            ``, `{"user_id":null}`: ``, `null`: ``, `{"other":"ann@example.com"}`: ``,
		`["user_id","ann@example.com"]`: ``,
	} {
		if want == "" {
			want = metadata
		}
		r, err := Open([]byte(`{"model":"m", "metadata":` + metadata + ` ,"max_tokens":5}`))
		if err != nil {
			t.Fatal(err)
		}
		if got := string(r.Body(wire.Edits{Model: "v"}).Bytes()); got != `{"model":"v", "metadata":`+want+` ,"max_tokens":5}` {
			t.Errorf("%s: %s", metadata, got)
		}
	}
}

// FuzzMessagesCountBody checks that the body of a count request is JSON with the new model, without
// the members that a count request rejects, and otherwise unchanged.
func FuzzMessagesCountBody(f *testing.F) {
	for _, seed := range []string{
		`{}`, `{"model":"a"}`, "{ \"stream\" : true ,\n\"max_tokens\":1 , \"model\":\"a\" , \"b,c\":{\"stream\":1}}\n",
		`{"top_k":1,"top_p":2}`, `{"x,\"":1,"metadata":{},"model":null}`,
	} {
		f.Add([]byte(seed))
	}
	f.Fuzz(func(t *testing.T, body []byte) {
		r, err := Open(bytes.Clone(body))
		if err != nil {
			return
		}
		got, err := Open(r.CountBody(wire.Edits{Model: "b"}).Bytes())
		if err != nil {
			t.Fatalf("%s: %v", body, err)
		}
		want := 0
		for _, m := range r.Doc.Members {
			if isRejectedByCount(string(m.Name)) {
				continue
			}
			want++
			value := string(body[m.From:m.To])
			if string(m.Name) == "model" {
				value = `"b"`
			}
			if found := got.Doc.Find(string(m.Name)); found == nil || string(got.Doc.Body[found.From:found.To]) != value {
				t.Errorf("%q of %s became %s", m.Name, body, got.Doc.Body)
			}
		}
		if len(got.Doc.Members) != want {
			t.Errorf("%s became %s", body, got.Doc.Body)
		}
	})
}
