package responses

import (
	"fmt"
	"strings"
	"testing"

	"tollgate/internal/wire/internal/wiretest"
)

// TestItemsWithoutContent checks that an item with an id is rejected if it lacks the member with its
// content: the provider would look the id up among the stored items of all users.
func TestItemsWithoutContent(t *testing.T) {
	t.Parallel()
	for kind, content := range map[string]string{
		"image_generation_call": `"result":"AAAA"`, "web_search_call": `"action":{"type":"search"}`, "file_search_call": `"queries":["q"]`,
		"code_interpreter_call": `"code":"1"`, "computer_call": `"actions":[]`, "compaction": `"encrypted_content":"A"`, "mcp_call": `"name":"f"`,
		"mcp_list_tools": `"tools":[]`, "mcp_approval_request": `"name":"f"`, "local_shell_call": `"action":{}`, "shell_call": `"action":{}`,
		"apply_patch_call": `"operation":{}`, "tool_search_call": `"arguments":{}`, "brand_new": `"text":"x"`,
		"computer_call_output": `"output":{}`,
		"shell_call_output":    `"output":[]`, "tool_search_output": `"tools":[]`, "additional_tools": `"tools":[]`, "program": `"code":"1"`,
	} {
		for _, more := range []string{``, `,"status":"completed"`, `,"status":"completed","x":null`, `,"result":""`, `,"x":1`} {
			if kind == "brand_new" && strings.HasSuffix(more, `1`) {
				continue // perhaps its content
			}
			item := fmt.Sprintf(`{"type":%q,"id":"i_1"%s`, kind, more)
			r, err := Open([]byte(`{"input":[` + item + `}]}`))
			if err == nil {
				err = r.Check()
			}
			if _, param := wiretest.CodeOf(t, err); param != "input[0].id" {
				t.Errorf("%s}: %v, param %q", item, err, param)
			}
			if strings.Contains(more, "result") {
				continue
			}
			openRequest(t, `{"input":[`+item+`,`+content+`}]}`)
		}
		openRequest(t, fmt.Sprintf(`{"input":[{"type":%q,%s}]}`, kind, content))
	}
	openRequest(t, `{"input":[{"type":"function_call","id":"fc_1"},{"type":"reasoning","id":"rs_1"}]}`) // sent without ids
}
