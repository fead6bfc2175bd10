package catalog

import (
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

// lineWithKeys returns the line of a catalog with further keys of the line. vars are the variables
// of the node.
func lineWithKeys(t *testing.T, keys string, vars map[string]string) *Line {
	t.Helper()
	doc := mustParse(t, "models: ["+chatModel+"]\nlines: [{id: l, provider: openai, forms: [chat], api_key: \"${KEY}\", models: {a: b}, "+
		keys+"}]")
	vars["KEY"] = "sk-of-the-line"
	return NewSnapshot(1, doc, testProviders(), environment(vars)).AllLines()[0]
}

// TestHeadersAreResolvedOnEachNode checks that references in headers are resolved, that their
// values are not printed, and that a line with a missing value is unusable.
func TestHeadersAreResolvedOnEachNode(t *testing.T) {
	t.Parallel()
	path := filepath.Join(t.TempDir(), "token")
	if err := os.WriteFile(path, []byte("from-a-file\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	const base = `base_url: "https://a.example", `
	headers := base + `headers: {x-team: a, x-token: "Token ${TOKEN}", x-file: "${file:` + path + `}"}`
	l := lineWithKeys(t, headers, map[string]string{"TOKEN": " from-a-variable "})
	h := l.Header()
	if l.UnusableReason != "" || h.Get("X-Team") != "a" || h.Get("X-Token") != "Token from-a-variable" || h.Get("X-File") != "from-a-file" {
		t.Errorf("reason %q, headers %v, want all headers resolved", l.UnusableReason, h)
	}
	for _, secret := range []string{"sk-of-the-line", "from-a-variable", "from-a-file"} {
		if !slices.Contains(l.Secrets(), secret) {
			t.Errorf("Secrets() = %q, want %q among them", l.Secrets(), secret)
		}
		for _, text := range []string{fmt.Sprintf("%+v", l), string((&Document{Lines: []LineSpec{l.LineSpec}}).YAML())} {
			if strings.Contains(text, secret) {
				t.Errorf("a printed line has the secret %q: %s", secret, text)
			}
		}
	}
	for headers, reason := range map[string]string{
		`{x-a: "${MISSING}"}`:                  "header X-A: the variable MISSING is not set on this node",
		`{x-a: "${file:/nowhere/to/be/read}"}`: "header X-A: the file /nowhere/to/be/read cannot be read on this node",
		`{x-a: "${ODD}"}`:                      "header X-A: the variable ODD has characters that a header cannot have, or is too long",
	} {
		l := lineWithKeys(t, base+"headers: "+headers, map[string]string{"ODD": "a\r\nX-B: c"})
		if l.UnusableReason != reason {
			t.Errorf("headers %s: reason %q, want %q", headers, l.UnusableReason, reason)
		}
	}
}

// TestOmittedAndFixedFields checks the omitted fields of a host and of an operator, and the JSON of
// fixed fields.
func TestOmittedAndFixedFields(t *testing.T) {
	t.Parallel()
	for keys, want := range map[string]string{
		`base_url: "https://api.mistral.ai/v1"`:                 "[stream_options]",
		`base_url: "https://api.mistral.ai/v1", omit: []`:       "[]",
		`base_url: "https://api.mistral.ai/v1", omit: [user]`:   "[user]",
		`base_url: "https://my-api.mistral.ai.example/v1"`:      "[]",
		`base_url: "https://a.example", omit: [user, metadata]`: "[user metadata]",
	} {
		if got := fmt.Sprint(lineWithKeys(t, keys, map[string]string{}).OmittedFields()); got != want {
			t.Errorf("%s: omitted fields %s, want %s", keys, got, want)
		}
	}
	l := lineWithKeys(t, `base_url: "https://a.example", set: {a: 1.5, b: {c: ["<x>", true]}, d: "5"}`, map[string]string{})
	want := `map[a:1.5 b:{"c":["\u003cx\u003e",true]} d:"5"]`
	if got := fmt.Sprintf("%s", l.FixedFields()); got != want {
		t.Errorf("fixed fields %s, want %s", got, want)
	}
}

// TestOverridesOfALaterVersion checks that a node of this version drops unknown overrides of a
// later version's catalog and keeps the others.
func TestOverridesOfALaterVersion(t *testing.T) {
	t.Parallel()
	doc, _, err := load([]byte(`{"models":[` +
		`{"id":"a","kind":"chat","context_window":9,"max_output_tokens":9,"price":{"input":0,"output":0}}` +
		`],"lines":[{"id":"l","provider":"sandbox","models":{"a":"b"},"headers":{"X-A":"${vault:a/b}"},"set":{"n":1,"x":1},"omit":["input"]}]}`))
	if err != nil {
		t.Fatal(err)
	}
	l := NewSnapshot(1, doc, testProviders(), environment(nil)).AllLines()[0]
	if !strings.HasPrefix(l.UnusableReason, "header X-A: ") || len(l.Set) != 1 || len(l.Omit) != 0 {
		t.Errorf("reason %q, set %v, omit %v, want a reason for X-A, one set field and no omitted field", l.UnusableReason, l.Set, l.Omit)
	}
}
