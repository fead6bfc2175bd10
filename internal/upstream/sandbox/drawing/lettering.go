package drawing

import (
	"image"
	"strings"
	"unicode"

	"golang.org/x/image/font/basicfont"
	"golang.org/x/image/font/inconsolata"
)

// The cell of a letter, in dots. A character that the font lacks is drawn as
// its number in a frame; one above U+FFFF takes two cells.
const (
	letterWidth  = 8
	letterHeight = 17
)

// maxLetters is how much of a text is drawn at most, in characters.
const maxLetters = 4000

// ink takes one dot of a letter and how dark it is, 1 to 255.
type ink func(x, y int, alpha uint8)

// lettering is a text that was fitted into a box: its rows, and the size of a
// dot.
type lettering struct {
	rows [][]rune
	dot  int
}

// fit breaks a text into rows for a box of the given size, in the largest dots
// up to largest that hold all of it. Text that is too long for dots of 1 ends
// in an ellipsis. A box that holds no letter holds no rows.
func fit(text string, width, height, largest int) lettering {
	words := paragraphs(text)
	for dot := max(largest, 1); dot > 0; dot-- {
		columns, most := width/(letterWidth*dot), height/(letterHeight*dot)
		if columns < 2 || most < 1 { // some characters need two cells
			continue
		}
		rows := wrap(words, columns, most+1)
		if len(rows) <= most {
			return lettering{rows, dot}
		}
		if dot == 1 {
			rows = rows[:most]
			rows[most-1] = shorten(rows[most-1], columns)
			return lettering{rows, dot}
		}
	}
	return lettering{nil, 1}
}

// height is what the rows take, in the units of the box.
func (l lettering) height() int { return len(l.rows) * letterHeight * l.dot }

// draw draws the rows with their upper left corner at a point.
func (l lettering) draw(left, top int, to ink) {
	for i, row := range l.rows {
		drawRow(row, left, top+i*letterHeight*l.dot, l.dot, to)
	}
}

// drawRow draws characters in a row.
func drawRow(row []rune, left, top, dot int, to ink) {
	for _, r := range row {
		glyph(r, func(x, y int, alpha uint8) {
			for dy := range dot {
				for dx := range dot {
					to(left+x*dot+dx, top+y*dot+dy, alpha)
				}
			}
		})
		left += cells(r) * letterWidth * dot
	}
}

// paragraphs splits a text at its line breaks and into words. What is not seen
// (controls, joiners, marks on the letter before) is left out.
func paragraphs(text string) [][][]rune {
	var out [][][]rune
	left := maxLetters
	for line := range strings.Lines(text) {
		var words [][]rune
		for word := range strings.FieldsSeq(line) {
			var seen []rune
			for _, r := range word {
				if left > 0 && !unicode.In(r, unicode.Cc, unicode.Cf, unicode.Mn, unicode.Me) {
					seen, left = append(seen, plainer(r)), left-1
				}
			}
			if len(seen) > 0 {
				words = append(words, seen)
			}
		}
		if out = append(out, words); left == 0 {
			break
		}
	}
	return out
}

// plainer is a character that looks the same and is in the font.
func plainer(r rune) rune {
	switch {
	case r >= 0x2010 && r <= 0x2015: // dashes
		return '-'
	case r >= 0xFF01 && r <= 0xFF5E: // letters of double width
		return r - 0xFF01 + '!'
	}
	return r
}

// wrap breaks paragraphs into rows of so many cells, and stops after most rows.
// Words that are longer than a row are broken.
func wrap(lines [][][]rune, columns, most int) [][]rune {
	var rows [][]rune
	for _, words := range lines {
		var row []rune
		used := 0
		for _, word := range words {
			if used > 0 && used+1+wide(word) <= columns {
				row, used = append(row, ' '), used+1
			} else if used > 0 {
				rows, row, used = append(rows, row), nil, 0
			}
			for _, r := range word {
				if used+cells(r) > columns {
					rows, row, used = append(rows, row), nil, 0
				}
				row, used = append(row, r), used+cells(r)
			}
			if len(rows) >= most {
				return rows[:most]
			}
		}
		rows = append(rows, row)
	}
	return rows[:min(len(rows), most)]
}

// shorten ends a row in an ellipsis.
func shorten(row []rune, columns int) []rune {
	for len(row) > 0 && wide(row) >= columns {
		row = row[:len(row)-1]
	}
	return append(row[:len(row):len(row)], '…')
}

// wide is how many cells characters take.
func wide(row []rune) int {
	n := 0
	for _, r := range row {
		n += cells(r)
	}
	return n
}

// cells is how many cells a character takes.
func cells(r rune) int {
	if r > 0xFFFF {
		return 2
	}
	return 1
}

// glyph draws one character in dots of 1.
func glyph(r rune, to ink) {
	face := inconsolata.Bold8x16
	place, ok := placeOf(face, r)
	if !ok {
		numbered(r, to)
		return
	}
	mask, isAlpha := face.Mask.(*image.Alpha)
	if !isAlpha {
		numbered(r, to)
		return
	}
	for y := range letterHeight {
		for x := range face.Width {
			at := x + face.Left
			if a := mask.AlphaAt(x, place*letterHeight+y).A; a > 0 && at >= 0 && at < letterWidth {
				to(at, y, a)
			}
		}
	}
}

// placeOf finds a character in the font.
func placeOf(face *basicfont.Face, r rune) (int, bool) {
	for _, span := range face.Ranges {
		if r >= span.Low && r < span.High {
			return int(r-span.Low) + span.Offset, true
		}
	}
	return 0, false
}

// numbered draws the number of a character in a frame: four digits in two
// rows, six in a double cell.
func numbered(r rune, to ink) {
	right, digits := letterWidth*cells(r)-1, 2*cells(r)
	if digits == 4 {
		digits = 3
	}
	for x := range right {
		to(x, 1, 120)
		to(x, letterHeight-3, 120)
	}
	for y := 2; y < letterHeight-3; y++ {
		to(0, y, 120)
		to(right-1, y, 120)
	}
	for i := range 2 * digits {
		digit := int(r) >> (4 * (2*digits - 1 - i)) & 15
		left, top := (right+1-4*digits)/2+i%digits*4, 3+i/digits*6
		for dot := range 15 {
			if digitDots[digit]>>(14-dot)&1 == 1 {
				to(left+dot%3, top+dot/3, 255)
			}
		}
	}
}

// digitDots are the digits 0 to F in dots, three wide and five high, a row
// after the other.
var digitDots = [16]uint16{
	0b111_101_101_101_111, 0b010_110_010_010_111, 0b111_001_111_100_111, 0b111_001_011_001_111,
	0b101_101_111_001_001, 0b111_100_111_001_111, 0b111_100_111_101_111, 0b111_001_010_010_010,
	0b111_101_111_101_111, 0b111_101_111_001_111, 0b010_101_111_101_101, 0b110_101_110_101_110,
	0b111_100_100_100_111, 0b110_101_101_101_110, 0b111_100_110_100_111, 0b111_100_110_100_100,
}
