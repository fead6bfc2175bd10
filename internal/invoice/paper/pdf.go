package paper

import (
	"bytes"
	"fmt"
	"strings"
	"time"

	"codeberg.org/go-pdf/fpdf"
)

// Measures of a page in millimetres; font sizes in points.
const (
	margin     = 20.0
	footerRoom = 18.0
	textSize   = 9.5
	titleSize  = 20.0
	smallSize  = 8.0
	leading    = 1.4   // height of a line relative to its font
	point      = 0.353 // millimetres
	gap        = 6.0   // between the parts of a page
	cellGap    = 3.0   // between two columns
)

// writer prints a sheet.
type writer struct {
	pdf   *fpdf.Fpdf
	fonts *fonts
	y     float64
	left  float64
	right float64
	end   float64 // lower edge of the text
}

// PDF returns the sheet as a PDF file.
func (s Sheet) PDF() ([]byte, error) {
	orientation := "P"
	if s.Wide {
		orientation = "L"
	}
	pdf := fpdf.New(orientation, "mm", "A4", "")
	pdf.SetCatalogSort(true)
	pdf.SetCreationDate(time.UnixMilli(s.MadeMS).UTC())
	pdf.SetModificationDate(time.UnixMilli(s.MadeMS).UTC())
	pdf.SetTitle(s.Title, true)
	pdf.SetLang("en")
	pdf.SetAutoPageBreak(false, 0)
	fonts, err := newFonts(pdf)
	if err != nil {
		return nil, err
	}
	width, height := pdf.GetPageSize()
	w := &writer{pdf: pdf, fonts: fonts, left: margin, right: width - margin, end: height - footerRoom}
	w.addPage()
	w.print(s)
	if fonts.unknown {
		w.space(gap / 2)
		w.paragraph("A question mark can stand for a character that this file cannot print. The document's page in the console shows it.",
			smallSize)
	}
	w.footers(s.Footer, height)
	if fonts.err != nil {
		return nil, fonts.err
	}
	var out bytes.Buffer
	if err := pdf.Output(&out); err != nil {
		return nil, fmt.Errorf("write a PDF file: %w", err)
	}
	return out.Bytes(), nil
}

func (w *writer) print(s Sheet) {
	if s.Mark != "" {
		w.pdf.SetTextColor(180, 40, 20)
		w.paragraph(s.Mark, textSize)
		w.pdf.SetTextColor(0, 0, 0)
		w.space(gap / 2)
	}
	w.block(s.Title, "B", titleSize, w.left, w.right-w.left, false)
	w.space(gap / 2)
	w.facts(s.Facts)
	w.space(gap)
	w.parties(s.Parties)
	w.space(gap)
	w.table(s.Table)
	w.totals(s.Totals)
	for _, note := range s.Notes {
		w.space(gap / 2)
		w.paragraph(note, textSize)
	}
}

func (w *writer) addPage() { w.pdf.AddPage(); w.y = margin }

func (w *writer) space(mm float64) { w.y += mm }

// need begins a new page if less than mm is left on the page, and reports whether it has begun one.
func (w *writer) need(mm float64) bool {
	if w.y+mm <= w.end {
		return false
	}
	w.addPage()
	return true
}

// lineHeight returns the height of a line in millimetres.
func lineHeight(size float64) float64 { return size * point * leading }

// width returns the width of a text.
func (w *writer) width(text, style string, size float64) (mm float64) {
	for _, r := range w.fonts.runs(text) {
		w.fonts.set(r, style, size)
		mm += w.pdf.GetStringWidth(r.text)
	}
	return mm
}

// draw prints a line with its upper edge at y. If right is true, the line ends at x+width.
func (w *writer) draw(text, style string, size, x, y, width float64, right bool) {
	if right {
		x += width - w.width(text, style, size)
	}
	y += lineHeight(size)*0.5 + size*point*0.35
	for _, r := range w.fonts.runs(text) {
		w.fonts.set(r, style, size)
		w.pdf.Text(x, y, r.text)
		x += w.pdf.GetStringWidth(r.text)
	}
}

// wrap splits a text into lines of at most width. It breaks at blanks, and within a word only if the word
// is longer than a line.
func (w *writer) wrap(text, style string, size, width float64) (lines []string) {
	line, lineWidth := "", 0.0
	blank := w.width(" ", style, size)
	for word := range strings.FieldsSeq(text) {
		for word != "" {
			wordWidth := w.width(word, style, size)
			switch {
			case line != "" && lineWidth+blank+wordWidth <= width:
				line, lineWidth, word = line+" "+word, lineWidth+blank+wordWidth, ""
				continue
			case line != "":
				lines, line, lineWidth = append(lines, line), "", 0
				continue
			case wordWidth <= width:
				line, lineWidth, word = word, wordWidth, ""
				continue
			}
			head := w.fit(word, style, size, width)
			lines, word = append(lines, head), word[len(head):]
		}
	}
	if line != "" || len(lines) == 0 {
		lines = append(lines, line)
	}
	return lines
}

// fit returns the longest beginning of a word that is at most as wide as width, and at least one character.
func (w *writer) fit(word, style string, size, width float64) string {
	taken := 0.0
	for i, r := range word {
		taken += w.width(string(r), style, size)
		if taken > width && i > 0 {
			return word[:i]
		}
	}
	return word
}

// block prints a text over several lines and pages.
func (w *writer) block(text, style string, size, x, width float64, right bool) {
	for _, line := range w.wrap(text, style, size, width) {
		w.need(lineHeight(size))
		w.draw(line, style, size, x, w.y, width, right)
		w.y += lineHeight(size)
	}
}

func (w *writer) paragraph(text string, size float64) {
	w.block(text, "", size, w.left, w.right-w.left, false)
}

// labelWidth is the width of the labels of facts.
const labelWidth = 38.0

func (w *writer) facts(facts []SheetFact) {
	for _, f := range facts {
		w.need(lineHeight(textSize))
		w.pdf.SetTextColor(90, 90, 90)
		w.draw(f.Label, "", textSize, w.left, w.y, labelWidth, false)
		w.pdf.SetTextColor(0, 0, 0)
		w.block(f.Value, "", textSize, w.left+labelWidth, w.right-w.left-labelWidth, false)
	}
}

// parties prints the parties side by side, a line of each at a time.
func (w *writer) parties(parties []SheetParty) {
	if len(parties) == 0 {
		return
	}
	width := (w.right - w.left) / float64(len(parties))
	columns := make([][]string, len(parties))
	w.need(2 * lineHeight(textSize))
	w.pdf.SetTextColor(90, 90, 90)
	for i, p := range parties {
		w.draw(p.Heading, "", textSize, w.left+float64(i)*width, w.y, width, false)
		for _, line := range p.Lines {
			columns[i] = append(columns[i], w.wrap(line, "", textSize, width-cellGap)...)
		}
	}
	w.pdf.SetTextColor(0, 0, 0)
	w.y += lineHeight(textSize)
	w.rows(columns, func(i int) (float64, float64) { return w.left + float64(i)*width, width }, func(int) bool { return false }, "", textSize)
}

// rows prints the lines of several columns beside each other, over as many pages as they need.
func (w *writer) rows(columns [][]string, place func(i int) (x, width float64), right func(i int) bool, style string, size float64) {
	for n := 0; ; n++ {
		more := false
		for _, c := range columns {
			more = more || n < len(c)
		}
		if !more {
			return
		}
		w.need(lineHeight(size))
		for i, c := range columns {
			if n < len(c) {
				x, width := place(i)
				w.draw(c[n], style, size, x, w.y, width, right(i))
			}
		}
		w.y += lineHeight(size)
	}
}

// table prints a table with its titles on each page.
func (w *writer) table(t SheetTable) {
	if len(t.Columns) == 0 {
		return
	}
	var shares float64
	for _, c := range t.Columns {
		shares += c.Share
	}
	starts, unit := []float64{w.left}, (w.right-w.left)/shares
	for _, c := range t.Columns {
		starts = append(starts, starts[len(starts)-1]+c.Share*unit)
	}
	place := func(i int) (float64, float64) {
		width := starts[i+1] - starts[i]
		if !t.Columns[i].Right {
			return starts[i], width - cellGap
		}
		return starts[i], width
	}
	right := func(i int) bool { return t.Columns[i].Right }
	cells := func(texts []string, style string) {
		columns := make([][]string, len(texts))
		for i, text := range texts {
			_, width := place(i)
			columns[i] = w.wrap(text, style, textSize, width)
		}
		w.rows(columns, place, right, style, textSize)
	}
	titles := func() {
		var texts []string
		for _, c := range t.Columns {
			texts = append(texts, c.Title)
		}
		cells(texts, "B")
		w.rule()
	}
	titles()
	for _, row := range t.Rows {
		if w.need(lineHeight(textSize)) {
			titles()
		}
		cells(row, "")
	}
	w.rule()
}

// rule draws a line across the page.
func (w *writer) rule() {
	w.pdf.SetDrawColor(160, 160, 160)
	w.pdf.Line(w.left, w.y+0.8, w.right, w.y+0.8)
	w.y += 1.8
}

// totals prints labels and amounts at the right edge, the last one in bold.
func (w *writer) totals(totals []SheetFact) {
	const width = 90.0
	for i, t := range totals {
		style := ""
		if i == len(totals)-1 {
			style = "B"
		}
		columns := [][]string{w.wrap(t.Label, style, textSize, width*0.5), w.wrap(t.Value, style, textSize, width*0.5)}
		w.rows(columns, func(i int) (float64, float64) { return w.right - width + float64(i)*width*0.5, width * 0.5 },
			func(i int) bool { return i == 1 }, style, textSize)
	}
}

// footers prints the footer and the number of the page on each page.
func (w *writer) footers(text string, height float64) {
	pages := w.pdf.PageCount()
	w.pdf.SetTextColor(90, 90, 90)
	for n := 1; n <= pages; n++ {
		w.pdf.SetPage(n)
		number := fmt.Sprintf("Page %d of %d", n, pages)
		room := w.right - w.left - w.width(number, "", smallSize) - cellGap
		w.draw(w.fit(text, "", smallSize, room), "", smallSize, w.left, height-margin/2-3, room, false)
		w.draw(number, "", smallSize, w.left, height-margin/2-3, w.right-w.left, true)
	}
}
