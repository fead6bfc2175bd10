package wire

import (
	"go/ast"
	"go/parser"
	"go/token"
	"os"
	"slices"
	"strconv"
	"strings"
	"testing"

	"tollgate/internal/fault"
)

// checks are the checks of all bodies, each on a good one with one more member.
func checks() map[string]func(member string) error {
	with := func(body, member string) []byte { return []byte(strings.Replace(body, "{", "{"+member+",", 1)) }
	return map[string]func(string) error{
		"chat": func(m string) error {
			r, err := OpenChat(with(`{"messages":[{"role":"user","content":"x"}]}`, m))
			if err == nil {
				err = r.Check()
			}
			return err
		},
		"responses": func(m string) error {
			r, err := OpenResponses(with(`{"input":"x"}`, m))
			if err == nil {
				err = r.Check()
			}
			return err
		},
		"messages": func(m string) error {
			r, err := OpenMessages(with(`{"max_tokens":5,"messages":[{"role":"user","content":"x"}]}`, m))
			if err == nil {
				err = r.Check()
			}
			return err
		},
		"a count": func(m string) error {
			r, err := OpenMessages(with(`{"messages":[{"role":"user","content":"x"}]}`, m))
			if err == nil {
				err = r.CheckCount()
			}
			return err
		},
		"images": func(m string) error {
			r, err := OpenImage(with(`{"prompt":"x"}`, m))
			if err == nil {
				err = r.Check(false)
			}
			return err
		},
		"videos": func(m string) error {
			r, err := OpenVideo(with(`{"prompt":"x"}`, m))
			if err == nil {
				err = r.Check()
			}
			return err
		},
	}
}

func fieldLists() map[string][]string {
	return map[string][]string{"chat": chatFields, "responses": responsesFields, "messages": messagesFields, "a count": messagesFields, "images": owned, "videos": owned}
}

// TestOtherCaseIsRefused: every field that is read or owned, in capitals and with
// the two letters outside ASCII that fold into it.
func TestOtherCaseIsRefused(t *testing.T) {
	t.Parallel()
	lists := fieldLists()
	for form, check := range checks() {
		for _, field := range lists[form] {
			for _, name := range []string{
				strings.ToUpper(field), strings.ToUpper(field[:1]) + field[1:], strings.ToLower(field),
				strings.Replace(field, "s", "ſ", 1), strings.Replace(field, "k", "\u212a", 1),
			} {
				if name == field {
					continue
				}
				for _, value := range []string{"1", `"x"`, "null"} {
					if code, param := codeOf(t, check(strconv.Quote(name)+":"+value)); code != fault.InvalidRequest || param != name {
						t.Errorf("%s: %s: %s, param %q", form, name, code, param)
					}
				}
			}
		}
		for _, name := range []string{"Xyz", "xSTREAM", "ünknown", "Metadata2"} {
			if err := check(strconv.Quote(name) + ":1"); err != nil {
				t.Errorf("%s: %s: %v", form, name, err)
			}
		}
	}
}

// TestFieldListsAreWhole: what the code of a form reads at the top level stands
// in the form's list.
func TestFieldListsAreWhole(t *testing.T) {
	t.Parallel()
	chats := slices.Concat(chatFields, responsesFields, messagesFields)
	lists := map[string][]string{ // by receiver
		"ChatRequest": chatFields, "ResponsesRequest": responsesFields, "MessagesRequest": messagesFields, "Asked": chats,
		"Submission": owned, "ImageRequest": owned, "VideoRequest": append([]string{"size", "seconds"}, owned...),
	}
	files, err := os.ReadDir(".")
	if err != nil {
		t.Fatal(err)
	}
	seen := 0
	for _, f := range files {
		if !strings.HasSuffix(f.Name(), ".go") || strings.HasSuffix(f.Name(), "_test.go") {
			continue
		}
		file, err := parser.ParseFile(token.NewFileSet(), f.Name(), nil, 0)
		if err != nil {
			t.Fatal(err)
		}
		for _, d := range file.Decls {
			fn, ok := d.(*ast.FuncDecl)
			if !ok {
				continue
			}
			list := chats // functions about a document of any form
			if strings.HasPrefix(f.Name(), "responses") {
				list = responsesFields
			}
			if fn.Recv != nil {
				if star, ok := fn.Recv.List[0].Type.(*ast.StarExpr); ok {
					if own, ok := lists[star.X.(*ast.Ident).Name]; ok {
						list = own
					}
				}
			}
			for _, name := range fieldsRead(fn) {
				seen++
				if !slices.Contains(list, name) {
					t.Errorf("%s: %s reads %q, which is not in the form's list", f.Name(), fn.Name.Name, name)
				}
			}
		}
	}
	if seen < 60 {
		t.Errorf("only %d reads were found: the test looks for what is not there", seen)
	}
}

// fieldsRead returns the names that a function gives to raw, find or set of a
// document: directly, or out of a list of words that it ranges over.
func fieldsRead(fn *ast.FuncDecl) (names []string) {
	words := func(n ast.Node) (out []string) {
		ast.Inspect(n, func(n ast.Node) bool {
			if lit, ok := n.(*ast.BasicLit); ok && lit.Kind == token.STRING {
				if word, err := strconv.Unquote(lit.Value); err == nil {
					out = append(out, word)
				}
			}
			return true
		})
		return out
	}
	consts := map[string][]string{} // local names of words
	ast.Inspect(fn, func(n ast.Node) bool {
		switch n := n.(type) {
		case *ast.RangeStmt:
			if key, ok := n.Value.(*ast.Ident); ok {
				if _, ok := n.X.(*ast.CompositeLit); ok {
					consts[key.Name] = words(n.X)
				}
			}
		case *ast.ValueSpec:
			for i, name := range n.Names {
				if i < len(n.Values) {
					consts[name.Name] = words(n.Values[i])
				}
			}
		case *ast.AssignStmt:
			for i, to := range n.Lhs {
				if id, ok := to.(*ast.Ident); ok && i < len(n.Rhs) {
					if lit, ok := n.Rhs[i].(*ast.BasicLit); ok {
						consts[id.Name] = append(consts[id.Name], words(lit)...)
					}
				}
			}
		}
		return true
	})
	ast.Inspect(fn, func(n ast.Node) bool {
		call, ok := n.(*ast.CallExpr)
		if !ok || len(call.Args) == 0 {
			return true
		}
		method, ok := call.Fun.(*ast.SelectorExpr)
		if !ok || !slices.Contains([]string{"raw", "find", "word", "count", "either"}, method.Sel.Name) {
			return true
		}
		switch arg := call.Args[0].(type) {
		case *ast.BasicLit:
			names = append(names, words(arg)...)
		case *ast.Ident:
			names = append(names, consts[arg.Name]...)
		}
		return true
	})
	return names
}
