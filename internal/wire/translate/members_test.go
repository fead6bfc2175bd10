package translate

import (
	"errors"
	"fmt"
	"strings"
	"testing"

	"tollgate/internal/fault"
	"tollgate/internal/wire/internal/wiretest"
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

// TestForeignMembersOfFunctions checks that members which could be hosted tools are rejected in the older
// member functions and in the definition of a function, and that ordinary ones are accepted.
func TestForeignMembersOfFunctions(t *testing.T) {
	t.Parallel()
	for members, want := range map[string]string{
		`"functions":[{"name":"f","description":"d","parameters":{"web_search":true},"strict":true}]`: "",
		`"functions":[{"name":"f","nobody_knows":null}]`:                                              "",
		`"functions":[]`: "",
		`"functions":[{"name":"f"},{"name":"g","nobody_knows":{}}]`: "functions[1].nobody_knows",
		`"functions":[{"name":"f","web_search":true}]`:              "functions[0].web_search",
		`"functions":["web_search"]`:                                "functions[0]",
		`"functions":{"name":"f"}`:                                  "functions",
		`"tools":[{"type":"function","function":{"name":"f","parameters":{"web_search":1},"nobody_knows":1}}]`:  "",
		`"tools":[{"type":"function","function":{"name":"f","web_search":{}}}]`:                                 "tools[0].function.web_search",
		`"tools":[{"type":"function","function":{"name":"f"}},{"type":"function","function":{"googleMaps":1}}]`: "tools[1].function.googleMaps",
	} {
		checkParam(t, "chat", members, want)
	}
}

// TestChoiceOfAHostedToolNeedsTheTool checks that tool_choice cannot name a hosted tool that is not
// in tools.
func TestChoiceOfAHostedToolNeedsTheTool(t *testing.T) {
	t.Parallel()
	for form, cases := range map[string]map[string]string{
		"chat": {
			`"tool_choice":{"type":"new_thing"}`: "tool_choice.type",
			`"tools":[{"type":"function","function":{"name":"f"}}],"tool_choice":{"type":"function","function":{"name":"f"}}`: "",
			`"tool_choice":"auto"`:                "",
			`"tool_choice":"required"`:            "",
			`"tool_choice":{"type":"web_search"}`: "tool_choice.type",
			`"tool_choice":"web_search"`:          "tool_choice",
			`"tool_choice":"Web-Search"`:          "tool_choice",
			`"tool_choice":{"type":"allowed_tools","allowed_tools":{"mode":"auto","tools":[{"type":"function"},` +
				`{"type":"x_search"}]}}`: "tool_choice.allowed_tools.tools[1].type",
			`"tools":[{"type":"web_search"}],"tool_choice":{"type":"web_search_preview"}`: "",
			`"web_search_options":{},"tool_choice":{"type":"web_search"}`:                 "",
		},
		"messages": {
			`"tool_choice":{"type":"some"}`:            "tool_choice.type",
			`"tool_choice":{"type":"any"}`:             "",
			`"tool_choice":{"type":"tool","name":"f"}`: "",
			`"tool_choice":{"type":"code_execution"}`:  "tool_choice.type",
		},
		"responses": {
			`"tool_choice":"none"`:                                                            "",
			`"tool_choice":{"type":"custom","name":"c"}`:                                      "",
			`"tool_choice":{"type":"image_generation"}`:                                       "tool_choice.type",
			`"tool_choice":{"type":"mcp","server_label":"a"}`:                                 "tool_choice.type",
			`"tools":[{"type":"image_generation"}],"tool_choice":{"type":"image_generation"}`: "",
			`"tools":[{"type":"local_shell"}],"tool_choice":{"type":"local_shell"}`:           "",
			`"tools":[{"type":"computer"}],"tool_choice":{"type":"computer"}`:                 "",
			`"tool_choice":{"type":"allowed_tools","mode":"auto",` +
				`"tools":[{"type":"file_search"}]}`: "tool_choice.tools[0].type",
			`"tools":[{"type":"web_search_preview"}],"tool_choice":{"type":"allowed_tools","tools":[{"type":"web_search"}]}`: "",
		},
	} {
		for members, want := range cases {
			checkParam(t, form, members, want)
		}
	}
}

// checkParam checks a plain body with further members: it is accepted if want is empty, and otherwise
// rejected with want as its param.
func checkParam(t *testing.T, form, members, want string) {
	t.Helper()
	_, err := checkedParams(form, fmt.Sprintf(plain[form], ","+members))
	got := ""
	if err != nil {
		_, got = wiretest.CodeOf(t, err)
	}
	if got != want {
		t.Errorf("%s: %s: %v, param %q, want %q", form, members, err, got, want)
	}
}
