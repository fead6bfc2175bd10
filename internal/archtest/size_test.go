package archtest

import (
	"path"
	"strings"
	"testing"
	"unicode/utf8"
)

// Limits of lines and files.
const (
	maxColumns   = 140 // characters of a line; a tab is one
	maxFileLines = 600 // lines of a file
)

// TestLinesAndFilesAreShort checks every Go file, including nested modules.
func TestLinesAndFilesAreShort(t *testing.T) {
	t.Parallel()
	files := 0
	err := walk(func(name string) error {
		if path.Ext(name) != ".go" {
			return nil
		}
		files++
		n := 0
		for line := range strings.Lines(read(t, name)) {
			if n++; utf8.RuneCountInString(strings.TrimRight(line, "\r\n")) > maxColumns {
				t.Errorf("%s:%d: the line has more than %d characters", name, n, maxColumns)
			}
		}
		if n > maxFileLines {
			t.Errorf("%s has %d lines; at most %d: move one of its topics to another file", name, n, maxFileLines)
		}
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	if files < 10 {
		t.Fatalf("found %d Go files, want at least 10", files)
	}
}
