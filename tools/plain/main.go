// Command plain checks that comments are plain English. It counts the relative pronouns per 100
// words of the // comments of each package, and odd phrases. A package passes with fewer than 2.0
// pronouns and no such phrase.
//
//	plain                  check all packages below the current folder
//	plain FOLDER...        print the figures and phrases of these packages
//	plain -update          update the list
//
// The list (tools/plain/above.txt) has the packages above these limits with their figures. The
// figures must not grow, and a package leaves the list once it passes.
//
// Invariants: the packages in the list exist, and all others pass.
package main

import (
	"flag"
	"fmt"
	"go/parser"
	"go/token"
	"io/fs"
	"maps"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
)

// most is the highest number of relative pronouns per 100 words of comment. The
// standard library has 1.3.
const most = 2.0

var (
	word    = regexp.MustCompile(`[A-Za-z][A-Za-z'-]*`)
	pronoun = regexp.MustCompile(`(?i)\b(?:that|which|whose|what|who)\b`)
	phrase  = regexp.MustCompile(`; nil:|; empty:|; 0:|; false:|tells whether|is none\b|be it\b|so many|as far as|nobody (?:is|has)` +
		`|what .* of (?:it|them)|who has it|in place of each|of its own too|alone\.$`)
)

// figures has the findings of one package.
type figures struct {
	words, pronouns int
	phrases         []string // place and line
}

// density returns the relative pronouns per 100 words, rounded up to a tenth.
func (f *figures) density() float64 {
	if f.words == 0 {
		return 0
	}
	tenths := (1000*f.pronouns + f.words - 1) / f.words
	return float64(tenths) / 10
}

// passes reports whether the comments are plain.
func (f *figures) passes() bool { return f.density() <= most && len(f.phrases) == 0 }

func main() {
	update := flag.Bool("update", false, "write the list of packages that do not pass")
	list := flag.String("list", "tools/plain/above.txt", "the list of packages that do not pass")
	flag.Parse()
	if err := run(flag.Args(), *list, *update); err != nil {
		fmt.Fprintln(os.Stderr, "plain:", err)
		os.Exit(1)
	}
}

func run(folders []string, list string, update bool) error {
	found := map[string]*figures{}
	for _, folder := range folders {
		if err := read(folder, false, found); err != nil {
			return err
		}
	}
	if len(folders) > 0 {
		for _, name := range slices.Sorted(maps.Keys(found)) {
			f := found[name]
			fmt.Printf("%s: %.1f relative pronouns per 100 words (%d of %d), %d phrases\n", name, f.density(), f.pronouns, f.words, len(f.phrases))
			for _, p := range f.phrases {
				fmt.Println("  " + p)
			}
		}
		return nil
	}
	if err := read(".", true, found); err != nil {
		return err
	}
	if update {
		return os.WriteFile(list, []byte(written(found)), 0o644)
	}
	raw, err := os.ReadFile(list)
	if err != nil {
		return err
	}
	faults := compare(found, string(raw))
	for _, fault := range faults {
		fmt.Println(fault)
	}
	if len(faults) > 0 {
		return fmt.Errorf("%d packages have comments that are not plain English (CONTRIBUTING.md, Rules)", len(faults))
	}
	return nil
}

// read adds the figures of a folder's package, and of all packages below if deep.
func read(root string, deep bool, found map[string]*figures) error {
	return filepath.WalkDir(root, func(path string, d fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		if d.IsDir() {
			name := d.Name()
			if path != root && (!deep || name == "testdata" || name == "build" || name == "node_modules" || strings.HasPrefix(name, ".")) {
				return filepath.SkipDir
			}
			return nil
		}
		if !strings.HasSuffix(path, ".go") {
			return nil
		}
		folder := filepath.ToSlash(filepath.Dir(path))
		if found[folder] == nil {
			found[folder] = &figures{}
		}
		return found[folder].add(path)
	})
}

// add counts the // comments of a file, except directives.
func (f *figures) add(path string) error {
	set := token.NewFileSet()
	file, err := parser.ParseFile(set, path, nil, parser.ParseComments|parser.SkipObjectResolution)
	if err != nil {
		return err
	}
	for _, group := range file.Comments {
		for _, c := range group.List {
			text, ok := strings.CutPrefix(c.Text, "//")
			if !ok || strings.HasPrefix(text, "go:") || strings.HasPrefix(text, "nolint") || strings.HasPrefix(text, "\t") {
				continue
			}
			f.words += len(word.FindAllString(text, -1))
			f.pronouns += len(pronoun.FindAllString(text, -1))
			if phrase.MatchString(text) {
				f.phrases = append(f.phrases, fmt.Sprintf("%s:%d:%s", path, set.Position(c.Pos()).Line, text))
			}
		}
	}
	return nil
}

// written returns the content of the list.
func written(found map[string]*figures) string {
	var out strings.Builder
	out.WriteString("# Packages whose comments are not plain English yet: relative pronouns per 100 words, phrases.\n")
	for _, name := range slices.Sorted(maps.Keys(found)) {
		if f := found[name]; !f.passes() {
			fmt.Fprintf(&out, "%s %.1f %d\n", name, f.density(), len(f.phrases))
		}
	}
	return out.String()
}

// compare returns the differences from the list.
func compare(found map[string]*figures, list string) (faults []string) {
	listed := map[string]bool{}
	for line := range strings.Lines(list) {
		var (
			name    string
			density float64
			phrases int
		)
		if strings.HasPrefix(line, "#") || strings.TrimSpace(line) == "" {
			continue
		}
		if _, err := fmt.Sscanf(line, "%s %f %d", &name, &density, &phrases); err != nil {
			faults = append(faults, fmt.Sprintf("the list has a line that cannot be read: %q", strings.TrimSpace(line)))
			continue
		}
		listed[name] = true
		f := found[name]
		switch {
		case f == nil:
			faults = append(faults, name+": there is no such package: run `make plain`")
		case f.passes():
			faults = append(faults, name+" is plain now: run `make plain`, which takes it off the list")
		case f.density() > density || len(f.phrases) > phrases:
			faults = append(faults, fmt.Sprintf("%s: %.1f relative pronouns per 100 words (at most %.1f), %d phrases (at most %d)",
				name, f.density(), density, len(f.phrases), phrases))
		}
	}
	for _, name := range slices.Sorted(maps.Keys(found)) {
		if f := found[name]; !listed[name] && !f.passes() {
			faults = append(faults, fmt.Sprintf("%s: %.1f relative pronouns per 100 words (at most %.1f)\n  %s",
				name, f.density(), most, strings.Join(f.phrases, "\n  ")))
		}
	}
	return faults
}
