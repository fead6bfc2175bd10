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
	seen := 0
	for _, document := range []string{"ARCHITECTURE.md", "CONTRIBUTING.md", "docs/errors-inside.md"} {
		for line := range strings.Lines(read(t, document)) {
			folder := ""
			for _, m := range quoted.FindAllStringSubmatch(line, -1) {
				if name := m[1]; namedPath.MatchString(name) {
					found, known := follow(name, folder)
					if known && found == "" {
						t.Errorf("%s: there is no `%s` (a short name counts in the folder of the path before it: %s)", document, name, folder)
					}
					if found != "" {
						folder = found
						seen++
					}
				}
			}
		}
	}
	if seen < 100 {
		t.Errorf("%d paths found: the test looks past them", seen)
	}
}

// follow returns the folder for short names after a path, or "" if the path does not exist. known
// reports whether name is a path at all.
func follow(name, folder string) (found string, known bool) {
	first, _, deep := strings.Cut(name, "/")
	from := ""
	switch {
	case deep && isThere(first):
	case deep && isThere("internal/"+first):
		from = "internal"
	case strings.HasSuffix(name, ".go"):
		from = folder
	default:
		return "", false
	}
	name = path.Join(from, strings.ReplaceAll(name, "NAME", "*"))
	switch {
	case !isThere(name):
		return "", true
	case strings.HasSuffix(name, ".go"):
		return path.Dir(name), true
	}
	return name, true
}

// isThere reports whether the tree has a match for pattern.
func isThere(pattern string) bool {
	files, err := filepath.Glob(filepath.Join(root, filepath.FromSlash(pattern)))
	return err == nil && len(files) > 0
}
