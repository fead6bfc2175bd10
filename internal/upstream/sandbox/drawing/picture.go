// Package drawing owns what the sandbox makes of image and video jobs: pictures
// as PNG and clips as MP4 with H.264, drawn and encoded here.
//
// Invariants:
//   - The same task is the same picture or clip, to the byte, on every machine:
//     it is drawn with whole numbers alone.
//   - What is drawn has bounds of its own, whatever was asked for; a picture
//     that had to be smaller says so.
package drawing

import (
	"bytes"
	"context"
	"fmt"
	"image"
	"image/color"
	"image/draw"
	"image/png"

	"tollgate/internal/upstream/jobcall"
)

// Places in the palette of pictures: first a cube of colours for thumbnails.
const (
	cubeSide   = 6
	skyFrom    = cubeSide * cubeSide * cubeSide
	skySteps   = 17
	sunAt      = skyFrom + skySteps
	hillsFrom  = sunAt + 1
	lettersAt  = hillsFrom + hills // the board first, white last
	letterTone = 16
)

// Picture draws one image of a work and returns it as PNG.
func Picture(ctx context.Context, w jobcall.Task, index int) ([]byte, error) {
	l := lookOf(w, index)
	img := image.NewPaletted(image.Rect(0, 0, l.shown[0], l.shown[1]), l.palette())
	l.landscape(img)
	l.write(img, w, index)
	if err := l.pin(ctx, img, w); err != nil {
		return nil, err
	}
	var out bytes.Buffer
	encoder := png.Encoder{CompressionLevel: png.BestSpeed}
	if err := encoder.Encode(&out, img); err != nil {
		return nil, fmt.Errorf("encode the picture: %w", err)
	}
	return out.Bytes(), nil
}

// palette lists the colours of a picture.
func (l look) palette() color.Palette {
	p := cube()
	for i := range skySteps {
		p = append(p, l.sky(i, skySteps-1))
	}
	p = append(p, l.sunlight())
	for i := range hills {
		p = append(p, l.hill(i))
	}
	for i := range letterTone {
		p = append(p, mix(l.board(), color.RGBA{255, 255, 255, 255}, i, letterTone-1))
	}
	return p
}

// cube is the colours of thumbnails.
func cube() color.Palette {
	var p color.Palette
	for i := range skyFrom {
		step := func(n int) uint8 { return uint8(n % cubeSide * 255 / (cubeSide - 1)) }
		p = append(p, color.RGBA{step(i / (cubeSide * cubeSide)), step(i / cubeSide), step(i), 255})
	}
	return p
}

// shades orders the dots of a square in which the next step of the sky comes
// first, so that no bands are seen.
var shades = [4][4]int{{0, 8, 2, 10}, {12, 4, 14, 6}, {3, 11, 1, 9}, {15, 7, 13, 5}}

// landscape draws the ground.
func (l look) landscape(img *image.Paletted) {
	width, height := l.shown[0], l.shown[1]
	centre := image.Pt(width*l.sun/1000, height*46/100)
	radius := max(min(width, height)/8, 1)
	horizon := max(height*62/100, 1)
	for x := range width {
		var ridges [hills]int
		for layer := range hills {
			ridges[layer] = l.ridge(layer, x, width, height)
		}
		for y := range height {
			at := -1
			for layer := hills - 1; layer >= 0; layer-- {
				if y >= ridges[layer] {
					at = hillsFrom + layer
					break
				}
			}
			if at < 0 && inside(x, y, centre, radius) {
				at = sunAt
			}
			if at < 0 {
				down := min(y, horizon) * (skySteps - 1) * 16 / horizon
				at = skyFrom + min((down+shades[y%4][x%4])/16, skySteps-1)
			}
			img.Pix[y*img.Stride+x] = uint8(at)
		}
	}
}

// write draws the prompt on a board at the top and a note at the bottom.
func (l look) write(img *image.Paletted, w jobcall.Task, index int) {
	width, height := l.shown[0], l.shown[1]
	short := min(width, height)
	margin := short / 24
	to := func(x, y int, alpha uint8) {
		if image.Pt(x, y).In(img.Rect) {
			img.Pix[y*img.Stride+x] = uint8(lettersAt + int(alpha)*(letterTone-1)/255)
		}
	}
	text := w.Prompt
	if text == "" {
		text = "(no prompt)"
	}
	said := fit(text, width-4*margin, height/2, max(short/150, 1))
	if len(said.rows) > 0 {
		fill(img, image.Rect(margin, margin, width-margin, 3*margin+said.height()), lettersAt)
		said.draw(2*margin, 2*margin, to)
	}
	dot := max(short/480, 1)
	foot := fit(l.note(w, index), width-2*margin, letterHeight*dot, dot)
	if len(foot.rows) > 0 {
		top := height - foot.height() - 2*dot
		fill(img, image.Rect(0, top, width, height), lettersAt)
		foot.draw(margin, top+dot, to)
	}
}

// pin draws the references of a work, and its mask after them, in a row.
func (l look) pin(ctx context.Context, img *image.Paletted, w jobcall.Task) error {
	width, height := l.shown[0], l.shown[1]
	short := min(width, height)
	side, gap := short/6, max(short/48, 1)
	left, top := short/24, height-side-gap-letterHeight*max(short/480, 1)-short/24
	colours := cube()
	for _, ref := range references(w) {
		if side < 8 || left+side > width || top < 0 {
			return nil // no room for more
		}
		thumb, err := thumbnail(ctx, ref, side)
		if err != nil {
			return err
		}
		frame := thumb.Bounds().Add(image.Pt(left, top+side-thumb.Bounds().Dy()))
		fill(img, frame.Inset(-max(gap/4, 1)), lettersAt+letterTone-1)
		small := image.NewPaletted(thumb.Bounds(), colours) // a part of the picture's own palette
		draw.FloydSteinberg.Draw(small, small.Rect, thumb, image.Point{})
		for y := range small.Rect.Dy() {
			copy(img.Pix[(frame.Min.Y+y)*img.Stride+frame.Min.X:], small.Pix[y*small.Stride:][:small.Rect.Dx()])
		}
		left = frame.Max.X + gap
	}
	return nil
}

// fill paints a rectangle.
func fill(img *image.Paletted, r image.Rectangle, at int) {
	r = r.Intersect(img.Rect)
	for y := r.Min.Y; y < r.Max.Y; y++ {
		row := img.Pix[y*img.Stride:]
		for x := r.Min.X; x < r.Max.X; x++ {
			row[x] = uint8(at)
		}
	}
}
