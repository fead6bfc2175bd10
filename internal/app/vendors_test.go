package app

import (
	"os"
	"path/filepath"
	"reflect"
	"slices"
	"strings"
	"testing"

	"tollgate/internal/catalog"
	"tollgate/internal/upstream"
	"tollgate/internal/upstream/adapters"
	"tollgate/internal/wire"
)

// vendors maps the lines of docs/examples/vendors.yaml to the limit field of a thinking model (""
// for forms with only one field).
var vendors = map[string]string{
	"openai": "max_completion_tokens", "azure-key": "max_completion_tokens", "azure-entra": "max_completion_tokens",
	"bedrock-openai": "max_completion_tokens", "anthropic": "", "foundry-claude": "", "bedrock-claude": "", "vertex-claude": "",
	"gemini": "", "gemini-interactions": "", "vertex-gemini": "", "xai": "max_tokens", "groq": "max_completion_tokens",
	"mistral":  "max_tokens",
	"deepseek": "max_tokens", "deepseek-messages": "", "openrouter": "max_completion_tokens", "together": "max_tokens",
	"fireworks": "max_tokens", "cerebras": "max_completion_tokens", "perplexity": "", "moonshot": "max_completion_tokens",
	"zhipu": "max_tokens", "zhipu-messages": "", "qwen": "max_tokens", "minimax": "", "minimax-chat": "max_completion_tokens",
	"cohere": "max_tokens", "ollama": "max_tokens", "vllm": "max_completion_tokens", "sglang": "max_completion_tokens",
	"lmstudio": "max_tokens",
}

// example reads an example catalog, checks that it is accepted without a warning, and returns it
// with the document about providers.
func example(t *testing.T, name string) (doc *catalog.Document, snapshot *catalog.Snapshot, document string) {
	t.Helper()
	text, err := os.ReadFile(filepath.Join("../../docs/examples", name))
	if err != nil {
		t.Fatal(err)
	}
	providers, err := os.ReadFile("../../docs/providers.md")
	if err != nil {
		t.Fatal(err)
	}
	doc, warnings, err := catalog.Parse(text, Providers())
	if err != nil || len(warnings) > 0 {
		t.Fatalf("%v\n%v", err, warnings)
	}
	snapshot = catalog.NewSnapshot(1, doc, Providers(), func(string) (string, bool) { return "key-of-the-line", true })
	return doc, snapshot, string(providers)
}

// TestVendorExamples checks the vendors' example catalog: it is accepted without a warning, can be
// opened, and sends limits in the field that each vendor obeys; the document about providers names
// each line.
func TestVendorExamples(t *testing.T) {
	t.Parallel()
	doc, snapshot, document := example(t, "vendors.yaml")
	set := adapters.New(adapters.Options{})
	defer set.Close()
	for _, l := range snapshot.AllLines() {
		want, known := vendors[l.ID]
		if !known {
			t.Errorf("line %s: not in the list of this test", l.ID)
		}
		if isFile := strings.HasPrefix(l.APIKey, "${file:"); l.UnusableReason != "" && !isFile {
			t.Errorf("line %s: %s", l.ID, l.UnusableReason)
		}
		if !strings.Contains(document, "`"+l.ID+"`") {
			t.Errorf("docs/providers.md does not name the line %s", l.ID)
		}
		key := ""
		if keys := l.Keys(); len(keys) > 0 {
			key = keys[0].Value()
		}
		if _, err := set.Open(upstream.Target{Line: l.ID, Provider: l.Provider, BaseURL: l.BaseURL, Key: key,
			Options: l.Options}); err != nil {
			t.Errorf("line %s: %v", l.ID, err)
		}
		for id := range l.Models {
			m, _ := snapshot.Model(id)
			if got := string(l.LimitFieldFor(m)); l.Supports(wire.FormChat) && got != want || !l.Supports(wire.FormChat) && want != "" {
				t.Errorf("line %s reads the limit of %s in %q, want %q", l.ID, id, got, want)
			}
		}
	}
	if len(doc.Lines) != len(vendors) {
		t.Errorf("%d lines, want %d", len(doc.Lines), len(vendors))
	}
}

// TestThreeProvidersExample checks the starter catalog: it is accepted without a warning, has three
// providers whose lines can be opened, and keeps every model of a first start, even if the sandbox
// changes.
func TestThreeProvidersExample(t *testing.T) {
	t.Parallel()
	doc, snapshot, _ := example(t, "three-providers.yaml")
	first, _, err := catalog.Parse(catalog.Sandbox(), Providers())
	if err != nil {
		t.Fatal(err)
	}
	for _, m := range first.Models {
		if !slices.ContainsFunc(doc.Models, func(own catalog.Model) bool { return reflect.DeepEqual(own, m) }) {
			t.Errorf("%s differs from the model of a first start", m.ID)
		}
	}
	for _, l := range first.Lines {
		if !slices.ContainsFunc(doc.Lines, func(own catalog.LineSpec) bool { return reflect.DeepEqual(own, l) }) {
			t.Errorf("the line %s differs from the line of a first start", l.ID)
		}
	}
	set := adapters.New(adapters.Options{})
	defer set.Close()
	providers := map[string]bool{}
	for _, l := range snapshot.AllLines() {
		if l.UnusableReason != "" {
			t.Errorf("line %s: %s", l.ID, l.UnusableReason)
		}
		if l.Provider == "sandbox" {
			continue
		}
		providers[l.Provider] = true
		if _, err := set.Open(upstream.Target{Line: l.ID, Provider: l.Provider, BaseURL: l.BaseURL, Key: "key-of-the-line"}); err != nil {
			t.Errorf("line %s: %v", l.ID, err)
		}
	}
	if len(providers) != 3 {
		t.Errorf("the providers are %v; want three", providers)
	}
}
