package ui

import "strings"

// Diff shows the differences between two texts, by lines, with some lines around each change.
type Diff []DiffRow

// DiffRow is one line of both texts or of one text. Old and New are the line numbers, or 0 if the
// text does not have the line. If both are 0, the row stands for omitted lines.
type DiffRow struct {
	Old, New int
	Text     string
}

// Class returns `add`, `del`, or an empty string.
func (r DiffRow) Class() string {
	switch {
	case r.Old == 0 && r.New > 0:
		return "add"
	case r.New == 0 && r.Old > 0:
		return "del"
	}
	return ""
}

// Gap reports whether the row stands for omitted lines.
func (r DiffRow) Gap() bool { return r.Old == 0 && r.New == 0 }

// contextLines is the number of lines shown around a change. maxDiff bounds the lines of either text that are
// compared, and maxDiff²/4 bounds the product of both numbers. Above these bounds, the diff deletes all lines
// of the old text and adds all of the new text.
const (
	contextLines = 3
	maxDiff      = 4000
)

// DiffOf compares two texts.
func DiffOf(before, after string) Diff {
	a, b := linesOf(before), linesOf(after)
	prefix := 0
	for prefix < len(a) && prefix < len(b) && a[prefix] == b[prefix] {
		prefix++
	}
	suffix := 0
	for suffix < len(a)-prefix && suffix < len(b)-prefix && a[len(a)-1-suffix] == b[len(b)-1-suffix] {
		suffix++
	}
	var rows Diff
	for i := range prefix {
		rows = append(rows, DiffRow{i + 1, i + 1, a[i]})
	}
	rows = append(rows, compareLines(a[prefix:len(a)-suffix], b[prefix:len(b)-suffix], prefix)...)
	for i := range suffix {
		rows = append(rows, DiffRow{len(a) - suffix + i + 1, len(b) - suffix + i + 1, a[len(a)-suffix+i]})
	}
	return rows.fold()
}

func linesOf(text string) []string {
	if text == "" {
		return nil
	}
	return strings.Split(strings.TrimSuffix(text, "\n"), "\n")
}

// compareLines compares the lines between the common beginning and the common end, by the longest
// common subsequence. offset is the number of lines in the common beginning.
func compareLines(a, b []string, offset int) (rows Diff) {
	var common [][]int32 // length of the longest common subsequence of a[i:] and b[j:]; nil if there are too many lines
	if len(a) <= maxDiff && len(b) <= maxDiff && len(a)*len(b) <= maxDiff*maxDiff/4 {
		common = make([][]int32, len(a)+1)
		for i := range common {
			common[i] = make([]int32, len(b)+1)
		}
		for i := len(a) - 1; i >= 0; i-- {
			for j := len(b) - 1; j >= 0; j-- {
				if common[i][j] = max(common[i+1][j], common[i][j+1]); a[i] == b[j] {
					common[i][j] = common[i+1][j+1] + 1
				}
			}
		}
	}
	i, j := 0, 0
	for i < len(a) || j < len(b) {
		switch {
		case common != nil && i < len(a) && j < len(b) && a[i] == b[j]:
			rows = append(rows, DiffRow{offset + i + 1, offset + j + 1, a[i]})
			i++
			j++
		case i < len(a) && (j == len(b) || common == nil || common[i+1][j] >= common[i][j+1]):
			rows = append(rows, DiffRow{offset + i + 1, 0, a[i]})
			i++
		default:
			rows = append(rows, DiffRow{0, offset + j + 1, b[j]})
			j++
		}
	}
	return rows
}

// fold omits the lines that are far from any change.
func (d Diff) fold() Diff {
	shown := make([]bool, len(d))
	for i, r := range d {
		if r.Class() != "" {
			for j := max(0, i-contextLines); j <= min(len(d)-1, i+contextLines); j++ {
				shown[j] = true
			}
		}
	}
	var rows Diff
	for i, r := range d {
		switch {
		case shown[i]:
			rows = append(rows, r)
		case len(rows) > 0 && !rows[len(rows)-1].Gap():
			rows = append(rows, DiffRow{})
		}
	}
	if n := len(rows); n > 0 && rows[n-1].Gap() {
		rows = rows[:n-1]
	}
	return rows
}
