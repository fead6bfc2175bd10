package form

import (
	"go/ast"
	"go/parser"
	"go/token"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"

	"tollgate/internal/wire/field"
)

// readNamesOf returns the names of members read by the code in files: the arguments of
// rawjson.Field, and the cases of a switch over string(name).
func readNamesOf(t *testing.T, files ...string) map[string]string {
	t.Helper()
	names := map[string]string{}
	add := func(in string, e ast.Expr) {
		if text, ok := e.(*ast.BasicLit); ok && text.Kind == token.STRING {
			name, err := strconv.Unquote(text.Value)
			if err != nil {
				t.Fatal(err)
			}
			names[name] = in
		}
	}
	for _, name := range files {
		file, err := parser.ParseFile(token.NewFileSet(), name, nil, 0)
		if err != nil {
			t.Fatal(err)
		}
		ast.Inspect(file, func(n ast.Node) bool {
			switch n := n.(type) {
			case *ast.CallExpr:
				if f, ok := n.Fun.(*ast.SelectorExpr); ok && f.Sel.Name == "Field" && len(n.Args) == 2 {
					add(name, n.Args[1])
				}
			case *ast.SwitchStmt:
				call, ok := n.Tag.(*ast.CallExpr)
				if !ok || len(call.Args) != 1 {
					return true
				}
				if of, ok := call.Args[0].(*ast.Ident); !ok || of.Name != "name" {
					return true
				}
				for _, c := range n.Body.List {
					for _, e := range c.(*ast.CaseClause).List {
						add(name, e)
					}
				}
			}
			return true
		})
	}
	return names
}

// TestEveryNameReadIsGuarded checks that the gate knows each name read by the checks. A server that
// ignores case would use another spelling.
func TestEveryNameReadIsGuarded(t *testing.T) {
	t.Parallel()
	files := []string{"check.go", "hosted.go", "foreign.go", "fields.go", "cachetime.go"}
	for _, pattern := range []string{"check.go", "tools.go", "modelcalls.go"} {
		found, err := filepath.Glob(filepath.Join("..", "..", "*", pattern))
		if err != nil || len(found) == 0 {
			t.Fatal(pattern, err)
		}
		for _, name := range found {
			if !strings.Contains(name, "jobrequest") && !strings.Contains(name, "gemini") { // these accept known names only
				files = append(files, name)
			}
		}
	}
	// Names in the usage of an answer, or in a member read by a single vendor whose servers respect
	// case.
	answers := strings.Fields("server_tool_use server_tool_use_details server_side_tool_usage_details tool_calls_details invocation " +
		"num_search_queries plugins search count")
	seen := readNamesOf(t, files...)
	for name, in := range seen {
		if !strings.Contains(checkedNames, " "+name+" ") && !slices.Contains(answers, name) {
			t.Errorf("%s reads `%s`, which readNames lacks", in, name)
		}
	}
	if len(seen) < 30 {
		t.Errorf("%d names", len(seen))
	}
}

// TestEveryLimitIsRead checks that every forwarded field with a number of output tokens is read as
// a limit or dropped as a minimum. The other fields about tokens are listed here.
func TestEveryLimitIsRead(t *testing.T) {
	t.Parallel()
	others := strings.Fields(`add_special_tokens allowed_token_ids diverse_first_token fallback_credit_token logprob_token_ids prediction
		preserved_tokens return_cached_tokens_details return_prompt_token_ids return_token_ids return_token_offsets return_tokens
		return_tokens_as_token_ids safe_tokenization skip_special_tokens spaces_between_special_tokens stop_token_ids t_max_predict_ms
		thinking_token_budget timings_per_token truncate_prompt_tokens`)
	for _, form := range field.Forms() {
		for _, name := range field.Form(form).Names() {
			isLimit := strings.Contains(name, "token") || strings.Contains(name, "predict")
			if isLimit && !slices.Contains(limitFields, name) && !slices.Contains(minFields, name) && !slices.Contains(others, name) {
				t.Errorf("%s: nobody reads the limit %s", form, name)
			}
		}
		for _, name := range slices.Concat(limitFields, minFields) {
			if f := field.Form(form).Find([]byte(name)); f == nil || !f.Documented || f.Class != field.Owned {
				t.Errorf("data/forms/%s.txt: the limit %s is not owned", form, name)
			}
		}
	}
}

func TestToolOptionsAreGuarded(t *testing.T) {
	t.Parallel()
	for _, name := range []string{"model", "models", "size", "quality", "memory_limit", "engine", "search_depth", "region"} {
		if _, ok := field.ToolOption(name); !ok {
			t.Errorf("`%s` is not an option of a tool", name)
		}
	}
}

// TestStoredFieldsAreStoredEverywhere checks that a field with the id of a stored object is
// rejected inside other objects too.
func TestStoredFieldsAreStoredEverywhere(t *testing.T) {
	t.Parallel()
	for _, form := range field.Forms() {
		table := field.Form(form)
		for _, name := range table.Names() {
			if f := table.Find([]byte(name)); f.Class == field.Stored && name != "previous_response_id" && !IsStoredName([]byte(name)) &&
				(strings.HasSuffix(name, "_id") || strings.HasSuffix(name, "_ids")) {
				t.Errorf("%s refers to a stored object at the top level only", name)
			}
		}
	}
}
