package catalog

import (
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

// overridden is the one line of a catalog, with more about it.
func overridden(t *testing.T, more string, vars map[string]string) *Line {
	t.Helper()
	doc := mustParse(t, "models: ["+chatModel+"]\nlines: [{id: l, provider: openai, forms: [chat], api_key: \"${KEY}\", models: {a: b}, "+
		more+"}]")
	vars["KEY"] = "sk-of-the-line"
	return NewSnapshot(1, doc, testProviders(), environment(vars)).AllLines()[0]
}

func TestHeadersAreResolvedOnEachNode(t *testing.T) {
	t.Parallel()
	path := filepath.Join(t.TempDir(), "token")
	if err := os.WriteFile(path, []byte("from-a-file\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	const base = `base_url: "https://a.example", `
	headers := base + `headers: {x-team: a, x-token: "Token ${TOKEN}", x-file: "${file:` + path + `}"}`
	l := overridden(t, headers, map[string]string{"TOKEN": " from-a-variable "})
	h := l.Header()
	if l.UnusableReason != "" || h.Get("X-Team") != "a" || h.Get("X-Token") != "Token from-a-variable" || h.Get("X-File") != "from-a-file" {
		t.Errorf("out %q, headers %v", l.UnusableReason, h)
	}
	for _, secret := range []string{"sk-of-the-line", "from-a-variable", "from-a-file"} {
		if !slices.Contains(l.Secrets(), secret) {
			t.Errorf("%q is not a secret: %q", secret, l.Secrets())
		}
		for _, shown := range []string{fmt.Sprintf("%+v", l), string((&Document{Lines: []LineSpec{l.LineSpec}}).YAML())} {
			if strings.Contains(shown, secret) {
				t.Errorf("%q is shown: %s", secret, shown)
			}
		}
	}
	for headers, out := range map[string]string{
		`{x-a: "${MISSING}"}`:                  "header X-A: the variable MISSING is not set on this node",
		`{x-a: "${file:/nowhere/to/be/read}"}`: "header X-A: the file /nowhere/to/be/read cannot be read on this node",
		`{x-a: "${ODD}"}`:                      "header X-A: the variable ODD has characters that a header cannot have, or is too long",
	} {
		l := overridden(t, base+"headers: "+headers, map[string]string{"ODD": "a\r\nX-B: c"})
		if l.UnusableReason != out {
			t.Errorf("%s: out %q, want %q", headers, l.UnusableReason, out)
		}
	}
}

func TestWhatALineOmitsByItself(t *testing.T) {
	t.Parallel()
	for more, want := range map[string]string{
		`base_url: "https://api.mistral.ai/v1"`:                 "[stream_options]",
		`base_url: "https://api.mistral.ai/v1", omit: []`:       "[]",
		`base_url: "https://api.mistral.ai/v1", omit: [user]`:   "[user]",
		`base_url: "https://my-api.mistral.ai.example/v1"`:      "[]",
		`base_url: "https://a.example", omit: [user, metadata]`: "[user metadata]",
	} {
		if got := fmt.Sprint(overridden(t, more, map[string]string{}).OmittedFields()); got != want {
			t.Errorf("%s omits %s, want %s", more, got, want)
		}
	}
	l := overridden(t, `base_url: "https://a.example", set: {a: 1.5, b: {c: ["<x>", true]}, d: "5"}`, map[string]string{})
	if got := fmt.Sprintf("%s", l.FixedFields()); got != `map[a:1.5 b:{"c":["\u003cx\u003e",true]} d:"5"]` {
		t.Errorf("set: %s", got)
	}
}

// TestOverridesOfALaterVersion tests that a node of this version uses the overrides it knows from a
// later version's catalog.
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
		t.Errorf("out %q, set %v, omit %v", l.UnusableReason, l.Set, l.Omit)
	}
}
