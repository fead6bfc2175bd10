package main

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// write writes a package with one file.
func write(t *testing.T, folder, text string) {
	t.Helper()
	if err := os.MkdirAll(folder, 0o755); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(filepath.Join(folder, "file.go"), []byte(text), 0o644); err != nil {
		t.Fatal(err)
	}
}

func TestPackagesPassOrFail(t *testing.T) {
	root := t.TempDir()
	t.Chdir(root)
	write(t, "plain", "// Package plain returns the first line of a file.\npackage plain\n")
	write(t, "private", "// Package private tells whether what is asked is that which it has.\npackage private\n")
	write(t, "phrase", "// Package phrase returns the line of a text; nil: there was not any line of this kind.\npackage phrase\n")
	write(t, "testdata", "// what that which whose who\npackage testdata\n")
	found := map[string]*figures{}
	if err := read(".", true, found); err != nil {
		t.Fatal(err)
	}
	if len(found) != 3 || !found["plain"].passes() || found["private"].passes() || found["phrase"].passes() {
		t.Errorf("got %+v, want 3 packages of which only plain passes", found)
	}
	if f := found["private"]; f.words != 12 || f.pronouns != 3 || f.density() != 25 || len(f.phrases) != 1 {
		t.Errorf("private has %+v, want 3 pronouns of 12 words and one phrase", f)
	}
	if err := run(nil); err == nil || !strings.HasPrefix(err.Error(), "2 packages ") {
		t.Errorf("the check returned %v, want the count of failed packages", err)
	}
	if err := os.RemoveAll("private"); err != nil {
		t.Fatal(err)
	}
	if err := os.RemoveAll("phrase"); err != nil {
		t.Fatal(err)
	}
	if err := run(nil); err != nil {
		t.Errorf("the check of a plain package returned %v, want no error", err)
	}
}

func TestDirectivesDoNotCount(t *testing.T) {
	root := t.TempDir()
	write(t, root, "//go:build what && which\n\n// Package p owns it.\npackage p\n\n//\twhat which\nfunc f() {}\n")
	found := map[string]*figures{}
	if err := read(root, false, found); err != nil {
		t.Fatal(err)
	}
	for _, f := range found {
		if f.words != 4 || f.pronouns != 0 {
			t.Errorf("counted %+v, want 4 words and no pronouns", f)
		}
	}
}
