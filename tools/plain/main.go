// Command plain checks that comments are plain English. It counts the relative pronouns per 100
// words of the // comments of each package, and odd phrases. A package passes with at most 2.0
// pronouns and no such phrase.
//
//	plain              check all packages below the current folder
//	plain FOLDER...    print the figures and phrases of these packages
package main

import (
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

// limit is the maximum number of relative pronouns per 100 words of comment. The standard library has
// 1.3.
const limit = 2.0

var (
	word    = regexp.MustCompile(`[A-Za-z][A-Za-z'-]*`)
	pronoun = regexp.MustCompile(`(?i)\b(?:that|which|whose|what|who)\b`)
	phrase  = regexp.MustCompile(`; nil:|; empty:|; 0:|; false:|tells whether|is none\b|be it\b|so many|as far as|nobody (?:is|has)` +
		`|what .* of (?:it|them)|who has it|in place of each|of its own too|alone\.$`)
)

// figures has the findings of one package.
type figures struct {
	words, pronouns int
	phrases         []string // position and text
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
func (f *figures) passes() bool { return f.density() <= limit && len(f.phrases) == 0 }

func main() {
	if err := run(os.Args[1:]); err != nil {
		fmt.Fprintln(os.Stderr, "plain:", err)
		os.Exit(1)
	}
}

func run(folders []string) error {
	found := map[string]*figures{}
	for _, folder := range folders {
		if err := read(folder, false, found); err != nil {
			return err
		}
	}
	if len(folders) == 0 {
		if err := read(".", true, found); err != nil {
			return err
		}
	}
	failed := 0
	for _, name := range slices.Sorted(maps.Keys(found)) {
		f := found[name]
		if !f.passes() {
			failed++
		}
		if len(folders) > 0 || !f.passes() {
			fmt.Print(f.report(name))
		}
	}
	if len(folders) == 0 && failed > 0 {
		return fmt.Errorf("%d packages have comments that are not plain English (CONTRIBUTING.md, Rules)", failed)
	}
	return nil
}

// report describes the figures of the package called name.
func (f *figures) report(name string) string {
	text := fmt.Sprintf("%s: %.1f relative pronouns per 100 words (%d of %d), %d phrases\n",
		name, f.density(), f.pronouns, f.words, len(f.phrases))
	for _, p := range f.phrases {
		text += "  " + p + "\n"
	}
	return text
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
