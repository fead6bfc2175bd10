package paper

import (
	"bytes"
	"compress/gzip"
	_ "embed"
	"fmt"
	"io"
	"strings"
	"unicode"

	"codeberg.org/go-pdf/fpdf"
	"golang.org/x/image/font/gofont/gobold"
	"golang.org/x/image/font/gofont/goregular"
	"golang.org/x/image/font/sfnt"
)

// droid is Droid Sans Fallback, which has the Chinese, Japanese and Korean characters.
//
//go:embed fonts/DroidSansFallback.ttf.gz
var droid []byte

// The families of fonts. The Go fonts have Latin, Greek and Cyrillic.
const (
	latin = "go"
	asian = "droid"
)

// unknownRune stands for a character without a glyph.
const unknownRune = '?'

// fonts has the fonts of a file. The Asian font is read when it is first needed.
type fonts struct {
	pdf     *fpdf.Fpdf
	latin   *sfnt.Font
	asian   *sfnt.Font
	unknown bool // a character without a glyph was printed
	err     error
}

func newFonts(pdf *fpdf.Fpdf) (*fonts, error) {
	pdf.AddUTF8FontFromBytes(latin, "", goregular.TTF)
	pdf.AddUTF8FontFromBytes(latin, "B", gobold.TTF)
	parsed, err := sfnt.Parse(goregular.TTF)
	if err != nil {
		return nil, fmt.Errorf("read the font: %w", err)
	}
	return &fonts{pdf: pdf, latin: parsed}, pdf.Error()
}

// readAsian adds the Asian font.
func (f *fonts) readAsian() error {
	r, err := gzip.NewReader(bytes.NewReader(droid))
	if err != nil {
		return fmt.Errorf("read the Asian font: %w", err)
	}
	raw, err := io.ReadAll(r)
	if err != nil {
		return fmt.Errorf("read the Asian font: %w", err)
	}
	f.pdf.AddUTF8FontFromBytes(asian, "", raw)
	f.asian, err = sfnt.Parse(raw)
	return err
}

// run is a text in one font.
type run struct{ family, text string }

// set selects the font of a run. The Asian font has no bold style.
func (f *fonts) set(r run, style string, size float64) {
	if r.family == asian {
		style = ""
	}
	f.pdf.SetFont(r.family, style, size)
}

// has reports whether a font has a glyph for r. The PDF library supports characters up to U+FFFF.
func has(font *sfnt.Font, r rune) bool {
	i, err := font.GlyphIndex(nil, r)
	return err == nil && i != 0 && r <= 0xFFFF
}

// familyOf returns the font of a character, and the character to print.
func (f *fonts) familyOf(r rune) (string, rune) {
	switch {
	case unicode.IsSpace(r), r == '\u00a0':
		return latin, ' '
	case has(f.latin, r):
		return latin, r
	case f.asian == nil && f.err == nil:
		f.err = f.readAsian()
	}
	if f.asian != nil && has(f.asian, r) {
		return asian, r
	}
	f.unknown = true
	return latin, unknownRune
}

// runs splits a text by fonts. Characters without an effect of their own, such as controls, are left out.
func (f *fonts) runs(text string) (all []run) {
	var b strings.Builder
	family := latin
	end := func() {
		if b.Len() > 0 {
			all = append(all, run{family, b.String()})
			b.Reset()
		}
	}
	for _, r := range text {
		if !unicode.IsSpace(r) && (unicode.IsControl(r) || unicode.Is(unicode.Cf, r)) {
			continue
		}
		next, printed := f.familyOf(r)
		if next != family {
			end()
			family = next
		}
		b.WriteRune(printed)
	}
	end()
	return all
}
