package archtest

import (
	"go/ast"
	"go/parser"
	"go/token"
	"io/fs"
	"os"
	"path"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"
)

// module is the path of the main module; root is where it stands as seen from
// this folder.
const (
	module = "tollgate"
	root   = "../.."
)

// sourceFile is one Go file of the main module.
type sourceFile struct {
	path    string // from the root of the module, with slashes
	folder  string // the package's folder, from the root
	room    string // see roomOf
	test    bool   // a _test.go file
	lines   int
	ast     *ast.File
	imports []string // import paths
}

// tree is the parsed main module. It is read once and shared by all tests,
// which only look at it.
type tree struct {
	fset  *token.FileSet
	files []*sourceFile
}

// at returns the place of a node for a message.
func (t *tree) at(n ast.Node) string {
	p := t.fset.Position(n.Pos())
	return strings.TrimPrefix(filepath.ToSlash(p.Filename), root+"/") + ":" + strconv.Itoa(p.Line)
}

// load parses the module at the first call.
var load = sync.OnceValues(func() (*tree, error) {
	t := &tree{fset: token.NewFileSet()}
	err := walk(func(name string) error {
		if !strings.HasSuffix(name, ".go") || inOtherModule(name) {
			return nil
		}
		full := filepath.Join(root, filepath.FromSlash(name))
		parsed, err := parser.ParseFile(t.fset, full, nil, parser.ParseComments|parser.SkipObjectResolution)
		if err != nil {
			return err
		}
		f := &sourceFile{
			path:   name,
			folder: path.Dir(name),
			room:   roomOf(path.Dir(name)),
			test:   strings.HasSuffix(name, "_test.go"),
			lines:  t.fset.File(parsed.Pos()).LineCount(),
			ast:    parsed,
		}
		for _, spec := range parsed.Imports {
			imported, err := strconv.Unquote(spec.Path.Value)
			if err != nil {
				return err
			}
			f.imports = append(f.imports, imported)
		}
		t.files = append(t.files, f)
		return nil
	})
	return t, err
})

// source returns the parsed module.
func source(t *testing.T) *tree {
	t.Helper()
	parsed, err := load()
	if err != nil {
		t.Fatal(err)
	}
	if len(parsed.files) < 10 {
		t.Fatalf("only %d Go files found from %s: is the folder right?", len(parsed.files), root)
	}
	return parsed
}

// walk calls fn with each file of the repository that is not built, downloaded
// or hidden, by its slash-separated path from the root.
func walk(fn func(name string) error) error {
	return filepath.WalkDir(root, func(full string, d fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		name, err := filepath.Rel(root, full)
		if err != nil {
			return err
		}
		name = filepath.ToSlash(name)
		if d.IsDir() {
			switch base := path.Base(name); {
			case name == ".", name == ".ci":
				return nil
			case name == "build", name == "bin", name == "data", base == "node_modules", strings.HasPrefix(base, "."):
				return fs.SkipDir
			}
			return nil
		}
		if name == ".git" { // a file in a linked worktree
			return nil
		}
		return fn(name)
	})
}

// inOtherModule tells whether a file belongs to a nested module.
func inOtherModule(name string) bool {
	return strings.HasPrefix(name, "browser/") || strings.HasPrefix(name, "clients/") || strings.HasPrefix(name, "tools/")
}

// roomOf names the room that a folder belongs to, as the table in
// ARCHITECTURE.md writes it: a folder of internal with all below it, a command,
// or a folder of the root.
func roomOf(folder string) string {
	parts := strings.Split(folder, "/")
	switch {
	case len(parts) >= 2 && (parts[0] == "internal" || parts[0] == "cmd"):
		return parts[0] + "/" + parts[1]
	default:
		return parts[0]
	}
}

// forTests are packages beside the product's that only tests may import.
var forTests = []string{
	"internal/store/storetest", "internal/upstream/conformance", "internal/upstream/conformance/task",
	"internal/media/formattest", "internal/wire/internal/wiretest", "internal/wire/translate/internal/pairtest",
	"internal/ledger/ledgertest", "internal/console/consoletest", "internal/console/consoletest/past", "internal/contract/contracttest",
}

// testOnly tells whether a package is for tests alone.
func testOnly(folder string) bool {
	room := roomOf(folder)
	return room == "internal/gatewaytest" || room == "internal/archtest" || room == "bench" || slices.Contains(forTests, folder)
}

// read returns the text of a file of the repository.
func read(t *testing.T, name string) string {
	t.Helper()
	raw, err := os.ReadFile(filepath.Join(root, filepath.FromSlash(name)))
	if err != nil {
		t.Fatal(err)
	}
	return string(raw)
}
