package archtest

import (
	"path"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
)

var (
	quoted    = regexp.MustCompile("`([^`]+)`")
	namedPath = regexp.MustCompile(`^[A-Za-z0-9_.][A-Za-z0-9_./-]*$`)
)

// TestNamedPathsExist checks the paths in backticks of the documents for contributors:
// `internal/wire` from the root, `wire/sse` from internal, and a short name (`decide.go`) from the
// folder of the last path on its line. NAME matches any name.
func TestNamedPathsExist(t *testing.T) {
	t.Parallel()
	count := 0
	for _, document := range []string{"ARCHITECTURE.md", "CONTRIBUTING.md", "docs/errors-inside.md"} {
		for line := range strings.Lines(read(t, document)) {
			folder := ""
			for _, m := range quoted.FindAllStringSubmatch(line, -1) {
				if name := m[1]; namedPath.MatchString(name) {
					found, isPath := resolvePath(name, folder)
					if isPath && found == "" {
						t.Errorf("%s: `%s` does not exist. A file name without a folder belongs to the last folder on its line, here %q",
							document, name, folder)
					}
					if found != "" {
						folder = found
						count++
					}
				}
			}
		}
	}
	if count < 100 {
		t.Errorf("found %d paths, want at least 100", count)
	}
}

// resolvePath looks up a path of a document. folder is the folder of short names. found is the
// folder of the path, or "" if the path does not exist. isPath reports whether name is a path at all.
func resolvePath(name, folder string) (found string, isPath bool) {
	first, _, hasSlash := strings.Cut(name, "/")
	from := ""
	switch {
	case hasSlash && exists(first):
	case hasSlash && exists("internal/"+first):
		from = "internal"
	case strings.HasSuffix(name, ".go"):
		from = folder
	default:
		return "", false
	}
	name = path.Join(from, strings.ReplaceAll(name, "NAME", "*"))
	switch {
	case !exists(name):
		return "", true
	case strings.HasSuffix(name, ".go"):
		return path.Dir(name), true
	}
	return name, true
}

// exists reports whether the tree has a match for pattern.
func exists(pattern string) bool {
	files, err := filepath.Glob(filepath.Join(root, filepath.FromSlash(pattern)))
	return err == nil && len(files) > 0
}
