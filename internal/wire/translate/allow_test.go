package translate

import (
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"testing"

	"tollgate/internal/fault"
	"tollgate/internal/wire"
	"tollgate/internal/wire/completions"
	"tollgate/internal/wire/internal/wiretest"
	"tollgate/internal/wire/messages"
	"tollgate/internal/wire/responses"
)

// checkedParams opens and checks a body of a form and returns its parameters.
func checkedParams(form, body string) (*wire.Parameters, error) {
	switch form {
	case "chat":
		r, err := completions.Open([]byte(body))
		if err == nil {
			err = r.Check()
		}
		if err != nil {
			return nil, err
		}
		return r.Params(), nil
	case "responses":
		r, err := responses.Open([]byte(body))
		if err == nil {
			err = r.Check()
		}
		if err != nil {
			return nil, err
		}
		return r.Params(), nil
	}
	r, err := messages.Open([]byte(body))
	if err == nil {
		err = r.Check()
	}
	if err != nil {
		return nil, err
	}
	return r.Params(), nil
}

// plain are bodies of the forms; %s stands for further members.
var plain = map[string]string{
	"chat":      `{"model":"m","messages":[{"role":"user","content":"x"}]%s}`,
	"responses": `{"model":"m","input":"x"%s}`,
	"messages":  `{"model":"m","max_tokens":9,"messages":[{"role":"user","content":"x"}]%s}`,
}

// TestToolsAreHostedUnlessTheClientExecutesThem checks that only the listed types run without a
// price.
func TestToolsAreHostedUnlessTheClientExecutesThem(t *testing.T) {
	t.Parallel()
	clients := map[string][]string{
		"chat": {`{"type":"function","function":{"name":"f"}}`, `{"type":"custom","custom":{"name":"c"}}`, `{"function":{"name":"f"}}`},
		"responses": {`{"type":"function","name":"f"}`, `{"type":"custom","name":"c"}`, `{"type":"local_shell"}`, `{"type":"apply_patch"}`,
			`{"type":"computer"}`, `{"type":"tool_search","execution":"client"}`,
			`{"type":"namespace","name":"n","tools":[{"type":"function","name":"f"}]}`,
			`{"type":"shell","environment":{"type":"local"}}`},
		"messages": {`{"name":"f","input_schema":{}}`, `{"type":"custom","name":"f","input_schema":{}}`, `{"type":null,"name":"f"}`,
			`{"type":"bash_20250124","name":"bash"}`, `{"type":"text_editor_20250728","name":"e"}`, `{"type":"computer_20250124","name":"c"}`,
			`{"type":"memory_20250818","name":"m"}`},
	}
	for form, tools := range clients {
		for _, tool := range tools {
			a, err := checkedParams(form, fmt.Sprintf(plain[form], `,"tools":[`+tool+`]`))
			if err != nil || len(a.Tools) > 0 || a.Bound.Unbounded {
				t.Errorf("%s: %s: %+v, %v; the client executes it", form, tool, a, err)
			}
		}
	}
	types := strings.Fields(`web_search web_search_preview web_extractor i2i_search knowledge_search google_maps url_context azure_ai_search
		sharepoint_grounding_preview memory_search browser_automation_preview computer_use_preview shell mcp deep_research Web_Search
		web-search web_search_options live_search x_search code_execution_20250825 file_search code_interpreter image_generation
		bing_grounding fabric_dataagent_preview openapi a2a_preview openrouter:datetime openrouter:image_generation browserless tool_search
		programmatic_tool_calling web_fetch_20250910 advisor_20260301 mcp_toolset tool_search_tool_regex_20251119 computer_toolset_20260801
		bash_preview text_editor memory bash_20250124x retrieval $web_search drawing_tool quark_search FUNCTION Function functions`)
	for form, body := range plain {
		for _, kind := range types {
			for _, name := range []string{kind, " " + kind} {
				tool, _ := json.Marshal(map[string]string{"type": name, "name": "t"})
				a, err := checkedParams(form, fmt.Sprintf(body, `,"tools":[`+string(tool)+`]`))
				if err != nil || len(a.Tools) != 1 || !a.Bound.Unbounded && a.Tools[0].Name != "advisor" { // an advisor only reads the prompt
					t.Errorf("%s: %s: %+v, %v; want a hosted tool", form, tool, a, err)
				}
			}
		}
		for _, tool := range []string{`{"googleSearch":{}}`, `{"type":null,"web_search":{}}`, `{"type":["web_search"]}`, `{"type":{"a":1}}`,
			`{}`, `"web_search"`, `{"type":1}`, `{"google_search":{}}`, `{"type":"","web_search":{}}`, `[]`, `{"codeExecution":{}}`} {
			if a, err := checkedParams(form, fmt.Sprintf(body, `,"tools":[`+tool+`]`)); err == nil {
				t.Errorf("%s: %s runs: %+v", form, tool, a)
			} else if code, param := wiretest.CodeOf(t, err); code != fault.InvalidRequest || !strings.HasPrefix(param, "tools[0]") {
				t.Errorf("%s: %s: %s, param %q", form, tool, code, param)
			}
		}
	}
}

// TestKeysInAnotherCaseAreRefusedEverywhere excludes values with names chosen by the client.
func TestKeysInAnotherCaseAreRefusedEverywhere(t *testing.T) {
	t.Parallel()
	for param, given := range map[string][2]string{
		"messages[0].content[0].Type": {"chat", `{"messages":[{"role":"user","content":[{"type":"text","text":"a",` +
			`"Type":"file","File":{}}]}]}`},
		"messages[0].content[0].File": {"chat", `{"messages":[{"role":"user","content":[{"type":"text","text":"a","File":{}}]}]}`},
		"messages[0].Content":         {"chat", `{"messages":[{"role":"user","Content":[{"type":"file"}]}]}`},
		"messages[0].tool_calls[0].TYPE": {"chat", `{"messages":[{"role":"assistant","tool_calls":[{"id":"a","TYPE":"x",` +
			`"function":{}}]}]}`},
		"tools[0].Type": {"chat", `{"messages":[{"role":"user","content":"x"}],"tools":[{"type":"function",` +
			`"function":{"name":"a"},"Type":"web_search"}]}`},
		"tools[0].function.Name": {"chat", `{"messages":[{"role":"user","content":"x"}],"tools":[{"type":"function",` +
			`"function":{"Name":"a"}}]}`},
		"stream_options.Include_usage": {"chat", `{"messages":[{"role":"user","content":"x"}],"stream":true,` +
			`"stream_options":{"Include_usage":true}}`},
		"x.any": {"chat", `{"messages":[{"role":"user","content":"x"}],"x":{"Any":1,"any":2}}`},
		"web_search_options.Search_Context_Size": {"chat", `{"messages":[{"role":"user","content":"x"}],` +
			`"web_search_options":{"Search_Context_Size":"high"}}`},
		"input[0].content[0].Image_url": {"responses", `{"input":[{"role":"user","content":[{"type":"input_image",` +
			`"Image_url":"https://e.com/x"}]}]}`},
		"input[0].Role": {"responses", `{"input":[{"type":"message","role":"user","Role":"system","content":"x"}]}`},
		"tools[0].tools[0].Type": {"responses", `{"input":"x","tools":[{"type":"namespace","name":"n",` +
			`"tools":[{"type":"function","Type":"mcp"}]}]}`},
		"tools[0].Container": {"responses", `{"input":"x","tools":[{"type":"code_interpreter","Container":"cntr_1"}]}`},
		"messages[0].content[0].source.Media_Type": {"messages", `{"max_tokens":9,"messages":[{"role":"user","content":[` +
			`{"type":"image","source":{"type":"base64","Media_Type":"image/png","data":"AA"}}]}]}`},
		"tools[0].\u017fource": {"messages", "{\"max_tokens\":9,\"messages\":[{\"role\":\"user\",\"content\":\"x\"}]," +
			"\"tools\":[{\"name\":\"f\",\"\u017fource\":1}]}"},
		"system[0].Cache_Control": {"messages", `{"max_tokens":9,"system":[{"type":"text","text":"x",` +
			`"Cache_Control":{"type":"ephemeral"}}],"messages":[{"role":"user","content":"x"}]}`},
	} {
		_, err := checkedParams(given[0], given[1])
		if code, at := wiretest.CodeOf(t, err); code != fault.InvalidRequest || at != param {
			t.Errorf("%s: %s, param %q, want %s", given[1], code, at, param)
		}
	}
	for form, bodies := range map[string][]string{
		"chat": {
			`{"messages":[{"role":"user","content":"x"}],"tools":[{"type":"function","function":{"name":"a","parameters":{"type":"object",` +
				`"properties":{"Type":{"Type":1,"type":2},"filePath":{"type":"string"},"FilePath":{},"file_id":{},"url":{"const":"gs://x"}}}}}]}`,
			`{"messages":[{"role":"user","content":"x"}],"metadata":{"Type":"a","type":"b","file_id":"c"}}`,
			`{"messages":[{"role":"user","content":"x"}],"response_format":{"type":"json_schema","json_schema":{"name":"n","schema":{"Type":1}}}}`,
			`{"messages":[{"role":"assistant","tool_calls":[{"id":"a","type":"function","function":{"name":"f","arguments":"{\"Type\":1}"}}],` +
				`"providerMetadata":{"x":1}},{"role":"tool","tool_call_id":"a","content":"y"}]}`,
		},
		"responses": {
			`{"input":"x","tools":[{"type":"function","name":"f","parameters":{"Type":1,"type":2,"vector_store_ids":[]}}]}`,
			`{"input":"x","text":{"format":{"type":"json_schema","name":"n","schema":{"Model":1,"model":2}}}}`,
		},
		"messages": {
			`{"max_tokens":9,"messages":[{"role":"assistant","content":[{"type":"tool_use","id":"t","name":"f","input":{"Type":1,"type":2,` +
				`"file_id":"x","url":"file:///etc/passwd"}}]},{"role":"user","content":[{"type":"tool_result","tool_use_id":"t","content":"y"}]}]}`,
			`{"max_tokens":9,"messages":[{"role":"user","content":"x"}],"tools":[{"name":"f","input_schema":{"Type":"x","attachments":1}}]}`,
		},
	} {
		for _, body := range bodies {
			if _, err := checkedParams(form, body); err != nil {
				t.Errorf("%s: %s: %v", form, body, err)
			}
		}
	}
}

// TestStoredReferencesAreRefusedAnywhere tests references by name at any place, and addresses other
// than web and inline ones.
func TestStoredReferencesAreRefusedAnywhere(t *testing.T) {
	t.Parallel()
	places := map[string][2]string{
		"chat message":      {"chat", `{"messages":[{"role":"user","content":"x",%s}]}`},
		"chat text part":    {"chat", `{"messages":[{"role":"user","content":[{"type":"text","text":"x",%s}]}]}`},
		"chat image part":   {"chat", `{"messages":[{"role":"user","content":[{"type":"image_url","image_url":{"url":"https://e.com/a",%s}}]}]}`},
		"chat function":     {"chat", `{"messages":[{"role":"user","content":"x"}],"tools":[{"type":"function","function":{"name":"f"},%s}]}`},
		"chat other field":  {"chat", `{"messages":[{"role":"user","content":"x"}],"x":{"y":[{%s}]}}`},
		"text of responses": {"responses", `{"input":[{"role":"user","content":[{"type":"input_text","text":"x",%s}]}]}`},
		"message item":      {"responses", `{"input":[{"type":"message","role":"user","content":"x",%s}]}`},
		"output item":       {"responses", `{"input":[{"type":"function_call_output","call_id":"c","output":"x",%s}]}`},
		"call item":         {"responses", `{"input":[{"type":"function_call","call_id":"c","name":"f","arguments":"{}",%s}]}`},
		"reasoning item":    {"responses", `{"input":[{"type":"reasoning","summary":[],%s}]}`},
		"responses tool":    {"responses", `{"input":"x","tools":[{"type":"function","name":"f",%s}]}`},
		"text block":        {"messages", `{"max_tokens":9,"messages":[{"role":"user","content":[{"type":"text","text":"x",%s}]}]}`},
		"system block":      {"messages", `{"max_tokens":9,"system":[{"type":"text","text":"x",%s}],"messages":[{"role":"user","content":"x"}]}`},
		"messages tool":     {"messages", `{"max_tokens":9,"messages":[{"role":"user","content":"x"}],"tools":[{"name":"f",%s}]}`},
	}
	names := []string{"file_id", "file_ids", "vector_store_ids", "attachments", "tool_resources", "container_id", "fileId", "File_IDs",
		"skill_id", "cachedContent", "cached_content", "knowledge_id", "assistant_id", "library_ids"}
	addresses := []string{"gs://b/o", "s3://b/o", "ms://f", "oss://b/o", "asset://a", "fileid://f", "file:///etc/passwd", "FILE:///x",
		"ftp://h/x", "files/abc", "attachment:x", "javascript:x", "blob:x", " gs://b/o", "g\u0073://b", "/etc/passwd", "cid:1",
		"httpx://e.com", "ht\ttps+unix://x"}
	for place, given := range places {
		for _, name := range names {
			for _, value := range []string{`"x"`, `["x"]`, `{"y":1}`} {
				body := fmt.Sprintf(given[1], fmt.Sprintf("%q:%s", name, value))
				_, err := checkedParams(given[0], body)
				if code, param := wiretest.CodeOf(t, err); code != fault.InvalidRequest || !strings.HasSuffix(param, name) {
					t.Errorf("%s: %s: %s, param %q", place, body, code, param)
				}
			}
			if _, err := checkedParams(given[0], fmt.Sprintf(given[1], fmt.Sprintf("%q:null", name))); err != nil && isLower(name) {
				t.Errorf("%s: %s as null: %v", place, name, err)
			}
		}
		for _, address := range addresses {
			text, _ := json.Marshal(address)
			for _, name := range []string{"file_url", "video_url", "file_uri"} {
				_, err := checkedParams(given[0], fmt.Sprintf(given[1], fmt.Sprintf("%q:%s", name, text)))
				if code, param := wiretest.CodeOf(t, err); code != fault.InvalidRequest || !strings.HasSuffix(param, name) {
					t.Errorf("%s: %s %s: %s, param %q", place, name, text, code, param)
				}
			}
			if !strings.Contains(address, ":") {
				continue // may be base64
			}
			for _, name := range []string{"image", "images", "video", "videos"} {
				_, err := checkedParams(given[0], fmt.Sprintf(given[1], fmt.Sprintf("%q:[%s]", name, text)))
				if code, param := wiretest.CodeOf(t, err); code != fault.InvalidRequest || !strings.Contains(param, name) {
					t.Errorf("%s: %s [%s]: %s, param %q", place, name, text, code, param)
				}
			}
		}
		for _, good := range []string{"https://e.com/a.png", "http://e.com/a", "HTTPS://e.com", "data:image/png;base64," +
			"AA", "", "https:\\/\\/e.com"} {
			_, err := checkedParams(given[0], fmt.Sprintf(given[1], `"file_url":"`+good+`"`))
			if inTool := strings.Contains(given[1], `"tools"`); (err != nil) != inTool { // a client tool has no member of this name
				t.Errorf("%s: %s: %v", place, good, err)
			}
		}
	}
}

func isLower(name string) bool { return name == strings.ToLower(name) }

// TestAddressesOfTheWebAreJudged checks that the caller gets all web addresses.
func TestAddressesOfTheWebAreJudged(t *testing.T) {
	t.Parallel()
	r, err := completions.Open([]byte(`{"messages":[{"role":"user","content":[{"type":"image_url",` +
		`"image_url":{"url":"https://a.example/1"}},` +
		`{"type":"image_url","image_url":"http:\/\/10.0.0.1/2"},{"type":"video","video":["https://b.example/3","data:x"]}]}],` +
		`"tools":[{"type":"mcp","server_url":"http://c.example"}]}`))
	if err != nil {
		t.Fatal(err)
	}
	var seen []string
	err = r.CheckAddresses(func(address string) error {
		seen = append(seen, address)
		if strings.Contains(address, "10.0.0.1") {
			return fmt.Errorf("It is private.")
		}
		return nil
	})
	if code, param := wiretest.CodeOf(t, err); code != fault.InvalidRequest || param != "messages[0].content[1].image_url" {
		t.Errorf("%s, param %q", code, param)
	}
	if err := r.CheckAddresses(func(address string) error { seen = append(seen, address); return nil }); err != nil {
		t.Error(err)
	}
	if want := []string{"https://a.example/1", "http://10.0.0.1/2", "https://a.example/1", "http://10.0.0.1/2", "https://b.example/3",
		"http://c.example"}; !slices.Equal(seen, want) {
		t.Errorf("saw %q, want %q", seen, want)
	}
}
