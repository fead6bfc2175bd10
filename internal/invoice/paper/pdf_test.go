package paper

import (
	"bytes"
	"compress/zlib"
	"io"
	"reflect"
	"regexp"
	"strconv"
	"strings"
	"testing"
	"unicode/utf16"

	"codeberg.org/go-pdf/fpdf"
)

// invoiceOf returns a sheet for a customer.
func invoiceOf(customer ...string) Sheet {
	return Sheet{Title: "Invoice INVOICE-2026-00001", Footer: "Lumen GmbH · INVOICE-2026-00001", MadeMS: 1_780_000_000_000,
		Facts:   []SheetFact{{"Number", "INVOICE-2026-00001"}, {"Date", "30 November 2026"}},
		Parties: []SheetParty{{"From", []string{"Lumen GmbH", "Ring 1", "10115 Berlin"}}, {"For", customer}},
		Table: SheetTable{Columns: []SheetColumn{{Title: "Description", Share: 4}, {Title: "Total", Right: true, Share: 1}},
			Rows: [][]string{{"Prepaid credit for the use of AI models", "119.00 EUR"}}},
		Totals: []SheetFact{{"Net", "100.00 EUR"}, {"VAT 19 %", "19.00 EUR"}, {"Total", "119.00 EUR"}},
		Notes:  []string{"Paid. Nothing is due."}}
}

var (
	streams = regexp.MustCompile(`(?s)stream\n(.*?)\nendstream`)
	shown   = regexp.MustCompile(`(?s)\(((?:[^()\\]|\\.)*)\) Tj`)
	counted = regexp.MustCompile(`/Type /Pages\s*/Kids \[[^\]]*\]\s*/Count (\d+)`)
)

// read returns the printed lines of a PDF file and the number of its pages.
func read(t testing.TB, raw []byte) (lines []string, pages int) {
	t.Helper()
	if !bytes.HasPrefix(raw, []byte("%PDF-")) || !bytes.HasSuffix(bytes.TrimSpace(raw), []byte("%%EOF")) {
		t.Fatalf("got %.20q…, want a PDF file", raw)
	}
	count := counted.FindSubmatch(raw)
	if count == nil {
		t.Fatal("the file has no pages")
	}
	pages, err := strconv.Atoi(string(count[1]))
	if err != nil {
		t.Fatal(err)
	}
	for _, stream := range streams.FindAllSubmatch(raw, -1) {
		z, err := zlib.NewReader(bytes.NewReader(stream[1]))
		if err != nil {
			continue // not compressed
		}
		content, err := io.ReadAll(z)
		if err != nil || !bytes.Contains(content, []byte(" Tj ET")) {
			continue // a font
		}
		for _, text := range shown.FindAllSubmatch(content, -1) {
			lines = append(lines, decode(text[1]))
		}
	}
	return lines, pages
}

// decode returns a text of a page, which is UTF-16 with escapes.
func decode(raw []byte) string {
	raw = []byte(strings.NewReplacer(`\(`, `(`, `\)`, `)`, `\\`, `\`, `\r`, "\r").Replace(string(raw)))
	var units []uint16
	for i := 0; i+1 < len(raw); i += 2 {
		units = append(units, uint16(raw[i])<<8|uint16(raw[i+1]))
	}
	return string(utf16.Decode(units))
}

func pdf(t testing.TB, s Sheet) []byte {
	t.Helper()
	raw, err := s.PDF()
	if err != nil {
		t.Fatal(err)
	}
	return raw
}

// TestPDFHasTheTexts prints names in several scripts. The file is the same each time.
func TestPDFHasTheTexts(t *testing.T) {
	t.Parallel()
	s := invoiceOf("Ann & Söhne", "Αθήνα", "Москва", "北京小米", "東京", "서울")
	raw := pdf(t, s)
	lines, pages := read(t, raw)
	text := strings.Join(lines, "\n")
	for _, want := range []string{"Invoice INVOICE-2026-00001", "10115 Berlin", "Ann & Söhne", "Αθήνα", "Москва", "北京小米", "東京", "서울",
		"119.00 EUR", "VAT 19 %", "Paid. Nothing is due.", "Lumen GmbH · INVOICE-2026-00001", "Page 1 of 1"} {
		if !strings.Contains(text, want) {
			t.Errorf("the file does not have %q:\n%s", want, text)
		}
	}
	if pages != 1 || strings.Contains(text, "question mark") {
		t.Errorf("got %d pages with %q, want one without a missing character", pages, text)
	}
	for range 5 {
		if !bytes.Equal(pdf(t, s), raw) {
			t.Fatal("the same sheet has another file")
		}
	}
}

// TestHostileTexts prints operators of PDF, very long words, characters without a glyph and characters
// that change the direction of a text.
func TestHostileTexts(t *testing.T) {
	t.Parallel()
	long := strings.Repeat("x", 10_000)
	lines, pages := read(t, pdf(t, invoiceOf(`) Tj ET Q endstream (\`, "\u202eevil\u2066\x00\r\n", "שלום 😀", long)))
	text := strings.Join(lines, "\n")
	for _, want := range []string{`) Tj ET Q endstream (\`, "evil", "???? ?", "A question mark can stand for a character", "119.00 EUR"} {
		if !strings.Contains(text, want) {
			t.Errorf("the file does not have %q", want)
		}
	}
	if got := strings.Count(text, "x"); got < 10_000 || pages < 2 {
		t.Errorf("got %d letters on %d pages, want all of them on several", got, pages)
	}
	if strings.ContainsAny(text, "\u202e\u2066\x00") {
		t.Error("the file has characters that change the direction of the text")
	}
}

// TestLongTable prints a table over several pages, each with the titles.
func TestLongTable(t *testing.T) {
	t.Parallel()
	s := invoiceOf("Ann")
	s.Wide = true
	for range 200 {
		s.Table.Rows = append(s.Table.Rows, []string{"row", "1.00 EUR"})
	}
	lines, pages := read(t, pdf(t, s))
	titles, rows := 0, 0
	for _, line := range lines {
		switch line {
		case "Description":
			titles++
		case "row":
			rows++
		}
	}
	if pages < 4 || titles != pages || rows != 200 {
		t.Errorf("got %d rows below %d titles on %d pages, want 200 rows, and titles on each page", rows, titles, pages)
	}
}

// TestRuns splits texts by fonts.
func TestRuns(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		text string
		want []run
	}{
		{"", nil},
		{"Ann", []run{{latin, "Ann"}}},
		{"Ann 小米 Ltd", []run{{latin, "Ann "}, {asian, "小米"}, {latin, " Ltd"}}},
		{"a\tb\u200fc", []run{{latin, "a bc"}}},
		{"\xff", []run{{latin, "\ufffd"}}},
		{"𠮷", []run{{latin, "?"}}},
	} {
		f, err := newFonts(fpdf.New("P", "mm", "A4", ""))
		if err != nil {
			t.Fatal(err)
		}
		if got := f.runs(c.text); !reflect.DeepEqual(got, c.want) {
			t.Errorf("%q: got %+v, want %+v", c.text, got, c.want)
		}
	}
}

// FuzzPDF prints texts of strangers. Each character is printed or replaced, and nothing else appears.
func FuzzPDF(f *testing.F) {
	f.Add("Ann & Söhne", "北京")
	f.Add(") Tj (", "\\")
	f.Fuzz(func(t *testing.T, name, line string) {
		if len(name)+len(line) > 1000 {
			return
		}
		texts, _ := read(t, pdf(t, invoiceOf(name, line)))
		for _, want := range []string{"Number", "119.00 EUR", "Paid. Nothing is due."} {
			if !strings.Contains(strings.Join(texts, "\n"), want) {
				t.Errorf("the file does not have %q", want)
			}
		}
	})
}
