package archtest

import (
	"path"
	"slices"
	"strings"
	"testing"
	"unicode/utf8"
)

// Limits of files, lines and functions.
const (
	maxColumns   = 140 // characters of a line; a tab is one
	maxFileLines = 600 // lines of a file
)

// longLines returns the numbers of lines over maxColumns.
func longLines(text string) (numbers []int) {
	n := 0
	for line := range strings.Lines(text) {
		n++
		if utf8.RuneCountInString(strings.TrimRight(line, "\r\n")) > maxColumns {
			numbers = append(numbers, n)
		}
	}
	return numbers
}

// TestLinesAndFilesAreShort checks every Go file, including nested modules.
func TestLinesAndFilesAreShort(t *testing.T) {
	t.Parallel()
	files := 0
	err := walk(func(name string) error {
		if path.Ext(name) != ".go" {
			return nil
		}
		files++
		text := read(t, name)
		for _, n := range longLines(text) {
			t.Errorf("%s:%d: over %d columns", name, n, maxColumns)
		}
		if n := strings.Count(text, "\n"); n > maxFileLines {
			t.Errorf("%s has %d lines; at most %d: move one of its topics to another file", name, n, maxFileLines)
		}
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	if files < 10 {
		t.Fatalf("only %d Go files found", files)
	}
}

// TestLongLinesAreFound checks longLines with lines at and over the limit.
func TestLongLinesAreFound(t *testing.T) {
	t.Parallel()
	fits, long := strings.Repeat("ä", maxColumns), strings.Repeat("ä", maxColumns+1)
	if got := longLines(fits + "\n" + long + "\n\t\n" + long); !slices.Equal(got, []int{2, 4}) {
		t.Errorf("long lines %v, want 2 and 4", got)
	}
}
