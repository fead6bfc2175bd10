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

// module is the path of the main module, root its folder relative to this one.
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
	ast     *ast.File
	imports []string // import paths
}

// tree is the parsed main module. All tests share it and must not change it.
type tree struct {
	fset  *token.FileSet
	files []*sourceFile
}

// at returns the position of a node for a message.
func (t *tree) at(n ast.Node) string {
	p := t.fset.Position(n.Pos())
	return strings.TrimPrefix(filepath.ToSlash(p.Filename), root+"/") + ":" + strconv.Itoa(p.Line)
}

// load parses the module once.
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
		t.Fatalf("found %d Go files below %s, want at least 10", len(parsed.files), root)
	}
	return parsed
}

// product returns the files of the module outside of tests and of packages for tests only.
func product(t *testing.T) []*sourceFile {
	t.Helper()
	return slices.DeleteFunc(slices.Clone(source(t).files), func(f *sourceFile) bool { return f.test || testOnly(f.folder) })
}

// walk calls fn with the slash-separated path of each file in the repository, except built,
// downloaded and hidden files.
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

// inOtherModule reports whether a file belongs to a nested module.
func inOtherModule(name string) bool {
	return strings.HasPrefix(name, "browser/") || strings.HasPrefix(name, "clients/") || strings.HasPrefix(name, "tools/")
}

// roomOf returns the room of a folder as in ARCHITECTURE.md: a folder of internal with its
// subfolders, a command, or a folder of the root.
func roomOf(folder string) string {
	parts := strings.Split(folder, "/")
	switch {
	case len(parts) >= 2 && (parts[0] == "internal" || parts[0] == "cmd"):
		return parts[0] + "/" + parts[1]
	default:
		return parts[0]
	}
}

// forTests are packages for tests only.
var forTests = []string{
	"internal/store/storetest", "internal/upstream/conformance", "internal/upstream/conformance/task",
	"internal/media/formattest", "internal/wire/internal/wiretest", "internal/wire/translate/internal/pairtest",
	"internal/ledger/ledgertest", "internal/console/consoletest", "internal/console/consoletest/past", "internal/contract/contracttest",
}

// testOnly reports whether only tests may import a package.
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
