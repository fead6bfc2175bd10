package translate

import (
	"errors"
	"fmt"
	"strings"
	"testing"

	"tollgate/internal/fault"
)

// clientTool are client tools; %s stands for further members.
var clientTool = map[string][]string{
	"chat":     {`{"type":"function","function":{"name":"f"}%s}`, `{"type":"custom","custom":{"name":"c"}%s}`, `{"function":{"name":"f"}%s}`},
	"messages": {`{"name":"f","input_schema":{}%s}`, `{"type":"custom","name":"f"%s}`, `{"type":"bash_20250124","name":"bash"%s}`},
	"responses": {`{"type":"function","name":"f"%s}`, `{"type":"custom","name":"c"%s}`, `{"type":"local_shell"%s}`,
		`{"type":"shell","environment":{"type":"local"}%s}`, `{"type":"namespace","name":"n","tools":[]%s}`,
		`{"type":"namespace","name":"n","tools":[{"type":"function","name":"f"%s}]}`},
}

// TestForeignMembersOfClientTools checks that unknown members of client tools are rejected, because
// a lenient server could run a hosted tool inside a client tool.
func TestForeignMembersOfClientTools(t *testing.T) {
	t.Parallel()
	foreign := []string{`"googleSearch":{}`, `"google_search":{}`, `"google_search_retrieval":{}`, `"codeExecution":{}`, `"urlContext":{}`,
		`"googleMaps":{}`, `"enterpriseWebSearch":{}`, `"retrieval":{"disableAttribution":true}`, `"web_search":{"enable":true}`,
		`"web_search":true`, `"webSearch":"on"`, `"Web-Search":1`, `"mcp":"https://a.example"`, `"code_interpreter":true`,
		`"fileSearch":"v"`, `"enable_search":true`, `"search_parameters":"on"`, `"image_generation":true`, `"googleSearch":true`,
		`"toolSpec":{"name":"f"}`, `"functionDeclarations":[{"name":"f"}]`, `"container":{"type":"auto"}`, `"plugins":[{"id":"web"}]`,
		`"nobody_knows":{}`, `"nobody_knows":[]`, `"nobody_knows":1`, `"nobody_knows":"a"`, `"deep_research":true`, `"connector_id":"c"`,
		`"server_url":"https://a.example"`, `"server_label":"a"`, `"authorization":"t"`, `"backend":"hosted"`,
		`"max_uses":9`, `"nobody_knows":""`}
	for form, tools := range clientTool {
		for _, tool := range tools {
			for _, member := range foreign {
				a, err := checkedParams(form, fmt.Sprintf(plain[form], `,"tools":[`+fmt.Sprintf(tool, ","+member)+`]`))
				var refused *fault.Error
				if errors.As(err, &refused) && refused.Code == fault.InvalidRequest && strings.HasPrefix(refused.Param, "tools[0]") {
					continue
				}
				if err != nil || len(a.Tools) == 0 {
					t.Errorf("%s: %s with %s: %v", form, tool, member, err)
				}
			}
		}
	}
}

// TestMembersOfClientTools expects documented and common members to be accepted.
func TestMembersOfClientTools(t *testing.T) {
	t.Parallel()
	for form, members := range map[string][]string{
		"chat": {`"cache_control":{"type":"ephemeral"}`, `"strict":true`, `"description":"d"`, `"name":"f"`, `"parameters":{"type":"object"}`,
			`"defer_loading":true`, `"nobody_knows":null`, `"nobody_knows":false`, `"googleSearch":null`, `"web_search":false`},
		"messages": {`"cache_control":{"type":"ephemeral"}`, `"strict":true`, `"description":"d"`, `"defer_loading":true`,
			`"allowed_callers":["direct"]`, `"input_examples":[{"a":1}]`, `"eager_input_streaming":true`, `"display_width_px":1024`,
			`"display_height_px":768`, `"display_number":1`, `"enable_zoom":true`,
			`"max_characters":10000`, `"nobody_knows":false`, `"web_search":null`},
		"responses": {`"description":"d"`, `"strict":false`, `"defer_loading":true`, `"allowed_callers":["direct"]`, `"output_schema":{}`,
			`"parameters":{}`, `"format":{"type":"text"}`, `"nobody_knows":null`, `"execution":"client"`},
	} {
		for _, tool := range clientTool[form] {
			for _, member := range members {
				a, err := checkedParams(form, fmt.Sprintf(plain[form], `,"tools":[`+fmt.Sprintf(tool, ","+member)+`]`))
				// A tool without a type has only a function.
				if strings.HasPrefix(tool, `{"function"`) {
					continue
				}
				if err != nil || len(a.Tools) > 0 {
					t.Errorf("%s: %s with %s: %v", form, tool, member, err)
				}
			}
		}
	}
}

// TestForeignMembersOfHostedTools checks that a hosted tool with a price cannot include another
// one.
func TestForeignMembersOfHostedTools(t *testing.T) {
	t.Parallel()
	for form := range plain {
		for member, passes := range map[string]bool{
			`"code_interpreter":{}`: false, `"googleMaps":{}`: false, `"image_generation":true`: false, `"mcp":"a"`: false,
			`"urlContext":{}`: false, `"web_search":{"enable":true}`: true, `"googleSearch":{}`: true, `"code_interpreter":false`: true,
			`"filters":{"allowed_domains":["a.example"]}`: true, `"user_location":{"country":"DE"}`: true, `"max_uses":3`: true,
			`"allowed_domains":["a.example"]`: true, `"mcp":null`: true,
		} {
			_, err := checkedParams(form, fmt.Sprintf(plain[form], `,"tools":[{"type":"web_search","name":"web_search",`+member+`}]`))
			if (err == nil) != passes {
				t.Errorf("%s: %s: %v", form, member, err)
			}
		}
	}
}
