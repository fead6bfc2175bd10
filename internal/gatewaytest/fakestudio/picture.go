package fakestudio

import (
	"bytes"
	"image"
	"image/color"
	"image/png"
)

// Picture returns a PNG of 64 by 48 pixels, different for each n below 65,536.
func Picture(n int) []byte {
	ground := color.NRGBA{R: uint8(40 + n*53), G: uint8(90 + n*31), B: uint8(150 + n*17), A: 255}
	img := image.NewNRGBA(image.Rect(0, 0, 64, 48))
	for y := range 48 {
		for x := range 64 {
			img.SetNRGBA(x, y, ground)
		}
	}
	for bit := range 16 { // draw the bits of n as squares
		if n>>bit&1 == 0 {
			continue
		}
		left, top := 4+bit%8*7, 12+bit/8*12
		for y := range 8 {
			for x := range 5 {
				img.SetNRGBA(left+x, top+y, color.NRGBA{R: 255, G: 255, B: 255, A: 255})
			}
		}
	}
	var out bytes.Buffer
	_ = png.Encode(&out, img) // cannot fail
	return out.Bytes()
}

// isBlackAndWhite reports whether a file is a PNG of black and white pixels only.
func isBlackAndWhite(file []byte) bool {
	mask, err := png.Decode(bytes.NewReader(file))
	if err != nil {
		return false
	}
	for y := range mask.Bounds().Dy() {
		for x := range mask.Bounds().Dx() {
			if g, ok := mask.At(x, y).(color.Gray); !ok || g.Y != 0 && g.Y != 0xFF {
				return false
			}
		}
	}
	return true
}
