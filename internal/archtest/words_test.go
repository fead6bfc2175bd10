package archtest

import (
	"os"
	"path"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
	"unicode/utf8"
)

// unwanted are words that no file may contain, with the alternative. A file without a word's hints,
// ignoring case, is not searched for it.
var unwanted = []struct {
	hints   []string
	word    *regexp.Regexp
	instead string
}{
	{[]string{"to" + "do", "fix" + "me", "xx" + "x"}, regexp.MustCompile(`\b(?:TO[D]O|FIX[M]E|XX[X])\b`), "finish it or open an issue"},
	{[]string{"implement" + "ed"}, regexp.MustCompile(`(?i)\bnot (?:yet )?implement[e]d\b`), "build it or leave it out"},
	{[]string{"root/", "home/", "users/", "work/", "farm/"},
		regexp.MustCompile(`(?:^|[\s"'(=` + "`" + `])/(?:root|home|Users|work|farm)/`), "a path of one machine: make it relative"},
	{[]string{"../share" + "d"}, regexp.MustCompile(`\.\./share[d]\b`), "a path outside the repository"},
	{[]string{"-----begin"}, regexp.MustCompile(`-----BEGIN [A-Z ]*PRIVATE K[E]Y`), "a secret: make it in the test"},
}

// TestTreeHoldsNoUnwantedWords checks every text of the repository.
func TestTreeHoldsNoUnwantedWords(t *testing.T) {
	t.Parallel()
	if err := walk(func(name string) error {
		base := path.Base(name)
		if base == "go.sum" || base == "LICENSE" || base == "package-lock.json" {
			return nil
		}
		raw, err := os.ReadFile(filepath.Join(root, filepath.FromSlash(name)))
		if err != nil {
			return err
		}
		if !utf8.Valid(raw) {
			return nil
		}
		text := string(raw)
		lower := strings.ToLower(text)
		for _, u := range unwanted {
			if !slices.ContainsFunc(u.hints, func(hint string) bool { return strings.Contains(lower, hint) }) {
				continue
			}
			number := 0
			for line := range strings.Lines(text) {
				number++
				if found := u.word.FindString(line); found != "" {
					t.Errorf("%s:%d: %q: %s", name, number, strings.TrimSpace(found), u.instead)
				}
			}
		}
		return nil
	}); err != nil {
		t.Fatal(err)
	}
}

// dependencies is the document with the reason for every module.
const dependencies = "docs/adr/0004-dependencies.md"

// TestEveryDependencyHasAReason compares the direct requirements of go.mod with the table of
// dependencies, and the importers of each module with the rooms in its row.
func TestEveryDependencyHasAReason(t *testing.T) {
	t.Parallel()
	users := map[string][]string{} // rooms by module
	for _, cells := range tableRows(read(t, dependencies), "module", "used by", "why") {
		var named []string
		for word := range strings.SplitSeq(cells[1], ",") {
			named = append(named, strings.TrimSpace(word))
		}
		users[strings.Trim(cells[0], "`")] = named
		if cells[2] == "" {
			t.Errorf("%s: %s has no reason", dependencies, cells[0])
		}
	}
	direct := directRequirements(read(t, "go.mod"))
	for _, path := range direct {
		if _, ok := users[path]; !ok {
			t.Errorf("go.mod requires %s, which has no row in %s", path, dependencies)
		}
	}
	for path := range users {
		if !slices.Contains(direct, path) {
			t.Errorf("%s has a row for %s, which go.mod does not require", dependencies, path)
		}
	}
	unused := map[string]bool{} // "module room" of each entry of the table
	for path, named := range users {
		for _, name := range named {
			unused[path+" "+name] = true
		}
	}
	imports := map[string]bool{}
	for _, f := range source(t).files {
		for _, imported := range f.imports {
			if imported == module || strings.HasPrefix(imported, module+"/") || !strings.Contains(strings.Split(imported, "/")[0], ".") {
				continue
			}
			owner := ""
			for path := range users {
				if (imported == path || strings.HasPrefix(imported, path+"/")) && len(path) > len(owner) { // a module may stand inside another's path
					owner = path
				}
			}
			name := strings.TrimPrefix(f.room, "internal/")
			if f.test || testOnly(f.folder) {
				delete(unused, owner+" tests")
			}
			delete(unused, owner+" "+name)
			imports[owner] = true
			if owner == "" {
				t.Errorf("%s imports %s, which no row of %s covers", f.path, imported, dependencies)
			} else if !slices.Contains(users[owner], name) && !slices.Contains(users[owner], "tests") {
				t.Errorf("%s: %s is for %v (%s)", f.path, owner, users[owner], dependencies)
			} else if !slices.Contains(users[owner], name) && !f.test && !testOnly(f.folder) {
				t.Errorf("%s: %s is for tests (%s)", f.path, owner, dependencies)
			}
		}
	}
	for entry := range unused {
		if path, room, _ := strings.Cut(entry, " "); imports[path] { // otherwise `go mod tidy` reports it
			t.Errorf("%s: %s is not imported by %s", dependencies, path, room)
		}
	}
}

// directRequirements returns the direct requirements of a go.mod.
func directRequirements(text string) []string {
	var paths []string
	inside := false
	for line := range strings.Lines(text) {
		line = strings.TrimSpace(line)
		switch {
		case line == "require (":
			inside = true
		case line == ")":
			inside = false
		case inside && !strings.HasSuffix(line, "// indirect"):
			paths = append(paths, strings.Fields(line)[0])
		}
	}
	return paths
}
