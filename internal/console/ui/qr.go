package ui

import (
	"fmt"
	"strings"

	"rsc.io/qr"
)

// QR is a QR code of Text. The code is black on white in every theme.
type QR struct {
	Label Words
	Text  string
}

// qrQuiet is the width of the white border around a code, in modules, the small squares of a code.
const qrQuiet = 4

// QRDrawing is a QR code as the data of an SVG path.
type QRDrawing struct {
	Side int    // side of the square drawing, in modules
	Path string // outlines of the horizontal runs of black modules
}

// Drawing returns the code as a drawing. It returns an error if the text is too long for a code. 2331 bytes
// always fit.
func (q QR) Drawing() (QRDrawing, error) {
	code, err := qr.Encode(q.Text, qr.M)
	if err != nil {
		return QRDrawing{}, fmt.Errorf("draw a QR code: %w", err)
	}
	var path strings.Builder
	for y := range code.Size {
		for x := 0; x < code.Size; x++ {
			from := x
			for x < code.Size && code.Black(x, y) {
				x++
			}
			if x > from {
				fmt.Fprintf(&path, "M%d %dh%dv1h-%dz", from+qrQuiet, y+qrQuiet, x-from, x-from)
			}
		}
	}
	return QRDrawing{Side: code.Size + 2*qrQuiet, Path: path.String()}, nil
}
