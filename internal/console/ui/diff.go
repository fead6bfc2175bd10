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

// around is the number of lines shown around a change. maxDiff bounds the compared lines of either
// text: if there are more, all lines of one text are replaced by all of the other.
const (
	around  = 3
	maxDiff = 4000
)

// DiffOf compares two texts.
func DiffOf(before, after string) Diff {
	a, b := linesOf(before), linesOf(after)
	same := 0
	for same < len(a) && same < len(b) && a[same] == b[same] {
		same++
	}
	end := 0
	for end < len(a)-same && end < len(b)-same && a[len(a)-1-end] == b[len(b)-1-end] {
		end++
	}
	var rows Diff
	for i := range same {
		rows = append(rows, DiffRow{i + 1, i + 1, a[i]})
	}
	rows = append(rows, compareLines(a[same:len(a)-end], b[same:len(b)-end], same)...)
	for i := range end {
		rows = append(rows, DiffRow{len(a) - end + i + 1, len(b) - end + i + 1, a[len(a)-end+i]})
	}
	return rows.folded()
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
	var common [][]int32 // nil if there are too many lines
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

// folded omits the lines far from any change.
func (d Diff) folded() Diff {
	near := make([]bool, len(d))
	for i, r := range d {
		if r.Class() != "" {
			for at := max(0, i-around); at <= min(len(d)-1, i+around); at++ {
				near[at] = true
			}
		}
	}
	var rows Diff
	for i, r := range d {
		switch {
		case near[i]:
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
