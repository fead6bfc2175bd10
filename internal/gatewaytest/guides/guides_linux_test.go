// Package guides runs the commands of the README, the guides and the references in docs, and
// compares their output. Each document runs in a shell with an empty folder, an empty home
// directory and its own network.
//
// A document needs no special syntax. Its fenced blocks run in order:
//
//   - A console block has commands after "$ ", continued after "> ", and the output. In the output, …
//     stands for any text, and a line … for any lines.
//   - A json block is the output of the command before it, in any layout.
//   - A block with a language and a name is a file: ```yaml catalog.yaml.
//   - A block after the comment <!-- not run: REASON --> does not run.
//
// In commands and files, placeholders such as sk-… and acct_… stand for the last printed key or id. A
// complete id stands for the id at the same place in an output. "tollgate serve" runs in the
// background. Commands that only read are repeated until their output matches.
//
// testdata/NAME.sh adds commands for the test of a document, for example to start a provider. A
// section with the title "### TEXT" runs before the next line of the document that begins with
// TEXT. Every command of a section must succeed. "#= TEXT OTHER" replaces TEXT in the document by
// OTHER.
package guides

import (
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"
)

const (
	root     = "../../../"
	packages = root + "build/packages" // of scripts/packages

	// envAbsent lists the missing programs and sets of packages. scripts/test sets it.
	envAbsent = "TOLLGATE_TEST_ABSENT"

	blocksNotRun   = 15 // in all documents
	maxLines       = 200
	commandTimeout = 4 * time.Minute
)

var (
	// references are the other documents with commands.
	references = []string{"README.md", "docs/clients.md", "docs/import.md", "docs/interface.md", "docs/operator.md"}

	// elsewhere has the documents whose blocks are tested elsewhere.
	elsewhere = map[string]string{
		"docs/error-reference.md": "internal/fault makes it from its tables",
		"docs/failover.md":        "make patroni",
		"docs/money.md":           "internal/archtest reads the catalog and computes every number",
	}

	// sets has the required sets of packages by document.
	sets = map[string][]string{
		"clients": {"node", "python"}, "coding-agents": {"agents", "aider"}, "embeddings-and-speech": {"node", "python"},
		"errors-and-retries": {"python"},
		"gemini":             {"node", "python"}, "langchain": {"python"}, "node": {"node"}, "python": {"python"}, "vercel-ai-sdk": {"vercel"},
	}
)

// TestGuides runs all documents, concurrently if each document can have its own network.
func TestGuides(t *testing.T) {
	skipped := 0
	for _, path := range append(guides(t), references...) {
		name := strings.TrimSuffix(filepath.Base(path), ".md")
		steps, n, err := document(path, name)
		if err != nil {
			t.Error(err)
			continue
		}
		skipped += n
		t.Run(name, func(t *testing.T) {
			if namespaces() != 0 {
				t.Parallel()
			}
			if missing := absent(t, name, steps); missing != "" {
				t.Logf("%s is missing on this machine: the document was NOT run", missing)
				return
			}
			if err := run(t, steps, commandTimeout); err != nil {
				t.Fatal(err)
			}
		})
	}
	if skipped != blocksNotRun {
		t.Errorf("%d blocks are not run, want %d. Change blocksNotRun only for a block that no test machine can run.", skipped, blocksNotRun)
	}
}

// document reads a document and its script.
func document(path, name string) (steps []step, skipped int, err error) {
	text, err := os.ReadFile(root + path)
	if err != nil {
		return nil, 0, err
	}
	scriptPath := "testdata/" + name + ".sh"
	script, err := os.ReadFile(scriptPath)
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return nil, 0, err
	}
	sections, replacements := readScript(scriptPath, string(script))
	if steps, skipped, err = parse(path, string(text), sections); err != nil {
		return nil, 0, err
	}
	for _, pair := range replacements {
		for i := range steps {
			st := &steps[i]
			if !st.script {
				st.text = strings.ReplaceAll(st.text, pair[0], pair[1])
			}
			st.json = strings.ReplaceAll(st.json, pair[0], anyText)
			for j := range st.want {
				st.want[j] = strings.ReplaceAll(st.want[j], pair[0], anyText)
			}
		}
	}
	return steps, skipped, nil
}

// run runs steps until one fails.
func run(t testing.TB, steps []step, timeout time.Duration) error {
	t.Helper()
	s := openShell(t, timeout)
	for _, st := range steps {
		if err := s.do(st); err != nil {
			return err
		}
	}
	return nil
}

// absent returns a program or set of packages that the document needs but that scripts/test has
// reported as missing, or the empty string.
func absent(t *testing.T, name string, steps []step) string {
	t.Helper()
	missing := strings.Fields(os.Getenv(envAbsent))
	for _, set := range sets[name] {
		if slices.Contains(missing, "build/packages/"+set) {
			return "the set of packages " + set
		}
		if _, err := os.Stat(filepath.Join(packages, set, "ready")); err != nil {
			t.Fatalf("scripts/packages %s downloads the packages that the document installs: %v", set, err)
		}
	}
	for _, program := range missing {
		words := regexp.QuoteMeta(program)
		if program == "curl" {
			words = "curl|ready|gateway" // the functions of testdata/lib call curl
		}
		word := regexp.MustCompile(`(^|[\s(])(` + words + `)(\s|$)`)
		for _, st := range steps {
			if st.file == "" && word.MatchString(st.text) {
				return program
			}
		}
	}
	return ""
}

// TestIndexNamesEveryGuide checks that docs/README.md has a link to every guide, and that no
// guide is too long.
func TestIndexNamesEveryGuide(t *testing.T) {
	t.Parallel()
	index := read(t, "docs/README.md")
	for _, path := range guides(t) {
		if name := filepath.Base(path); !strings.Contains(index, "(guides/"+name+")") {
			t.Errorf("docs/README.md has no link to guides/%s", name)
		}
		if n := strings.Count(read(t, path), "\n"); n > maxLines {
			t.Errorf("%s has %d lines, want at most %d", path, n, maxLines)
		}
	}
}

// TestEveryBlockIsChecked checks that every document with blocks is in references or elsewhere, and
// that every script in testdata belongs to a document.
func TestEveryBlockIsChecked(t *testing.T) {
	t.Parallel()
	for _, path := range glob(t, "docs/*.md") {
		blocks, checked := strings.Contains(read(t, path), "\n```"), slices.Contains(references, path) || elsewhere[path] != ""
		if blocks != checked {
			t.Errorf("%s: has blocks: %t, is in references or elsewhere: %t", path, blocks, checked)
		}
	}
	documents := strings.Join(append(guides(t), references...), " ")
	for _, path := range glob(t, "internal/gatewaytest/guides/testdata/*.sh") {
		if name := strings.TrimSuffix(filepath.Base(path), ".sh"); !strings.Contains(documents, name+".md") {
			t.Errorf("%s: there is no document %s.md", path, name)
		}
	}
}

func guides(t *testing.T) []string { return glob(t, "docs/guides/*.md") }

// glob returns paths relative to the root of the tree.
func glob(t *testing.T, pattern string) []string {
	t.Helper()
	paths, err := filepath.Glob(root + pattern)
	if err != nil || len(paths) == 0 {
		t.Fatalf("no files %s: %v", pattern, err)
	}
	for i := range paths {
		paths[i] = strings.TrimPrefix(paths[i], root)
	}
	return paths
}

func read(t *testing.T, path string) string {
	t.Helper()
	text, err := os.ReadFile(root + path)
	if err != nil {
		t.Fatal(err)
	}
	return string(text)
}
