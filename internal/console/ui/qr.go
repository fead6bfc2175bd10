package ui

import (
	"fmt"
	"strings"

	"rsc.io/qr"
)

// QR is a text as a QR code. It is black on white in every theme.
type QR struct {
	Label string
	Text  string
}

// qrQuiet is the width of the white border around a code, in modules.
const qrQuiet = 4

// QRDrawing is the code as one path in a square.
type QRDrawing struct {
	Side int    // side of the square, in modules
	Path string // around each run of black modules
}

// Drawing returns the code as a drawing. It returns an error if the text has more than 2000 bytes.
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
