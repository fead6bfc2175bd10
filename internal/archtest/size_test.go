package archtest

import (
	"fmt"
	"path"
	"slices"
	"strings"
	"testing"
	"unicode/utf8"
)

// How large what one reads at a time may be.
const (
	maxColumns      = 140  // characters of a line; a tab is one
	maxFileLines    = 600  // lines of a file
	maxPackageLines = 4000 // lines of a package's product code
)

// longLines returns the numbers of the lines that are over maxColumns.
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

// packageLines counts the lines of product code by package.
func packageLines(files []*sourceFile) map[string]int {
	lines := map[string]int{}
	for _, f := range files {
		if !f.test && !testOnly(f.folder) {
			lines[f.folder] += f.lines
		}
	}
	return lines
}

// oversized names the packages that are over maxPackageLines.
func oversized(lines map[string]int) (wrong []string) {
	for folder, n := range lines {
		if n > maxPackageLines {
			wrong = append(wrong, fmt.Sprintf("%s has %d lines of product code; at most %d: give a part of it a package of its own",
				folder, n, maxPackageLines))
		}
	}
	slices.Sort(wrong)
	return wrong
}

// TestLinesAndFilesAreShort holds every Go file, also of the nested modules, to
// what fits on a screen and into a head.
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
			t.Errorf("%s has %d lines; at most %d: give an idea of it a file of its own", name, n, maxFileLines)
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

// TestPackagesAreSmall holds product code to what one can know.
func TestPackagesAreSmall(t *testing.T) {
	t.Parallel()
	for _, wrong := range oversized(packageLines(source(t).files)) {
		t.Error(wrong)
	}
}

// TestSizeRulesSeeWhatIsTooLarge plants what the rules are to find.
func TestSizeRulesSeeWhatIsTooLarge(t *testing.T) {
	t.Parallel()
	fits, long := strings.Repeat("ä", maxColumns), strings.Repeat("ä", maxColumns+1)
	if got := longLines(fits + "\n" + long + "\n\t\n" + long); !slices.Equal(got, []int{2, 4}) {
		t.Errorf("long lines %v, want 2 and 4", got)
	}
	planted := packageLines([]*sourceFile{
		{folder: "internal/a", lines: 3000}, {folder: "internal/a", lines: 1001}, {folder: "internal/b", lines: 4000},
		{folder: "internal/b", lines: 4000, test: true}, {folder: "internal/c", lines: 4001}, {folder: "internal/gatewaytest/scene", lines: 5000},
	})
	wrong := oversized(planted)
	if len(wrong) != 2 || !strings.HasPrefix(wrong[0], "internal/a has 4001 lines") || !strings.HasPrefix(wrong[1], "internal/c has") {
		t.Errorf("too large: %q; want internal/a and internal/c", wrong)
	}
}
