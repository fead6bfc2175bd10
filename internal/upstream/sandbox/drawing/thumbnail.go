package drawing

import (
	"bytes"
	"context"
	"fmt"
	"image"
	"image/color"
	"image/draw"
	"image/gif"
	"image/jpeg"
	"image/png"
	"io"

	scaling "golang.org/x/image/draw"
	"golang.org/x/image/webp"

	"tollgate/internal/upstream/jobcall"
)

// Bounds of references that are decoded. Others are shown as a card with their
// type.
const (
	maxThumbnails     = 8
	maxReferenceBytes = 8 << 20
	maxReferencePixel = 4 << 20
)

// references are those that are shown, the mask after them.
func references(w jobcall.Task) []jobcall.Reference {
	shown := w.References[:min(len(w.References), maxThumbnails)]
	if w.Mask != nil {
		shown = append(shown[:len(shown):len(shown)], *w.Mask)
	}
	return shown
}

// thumbnail draws a reference no larger than a square of that side. What
// cannot be decoded cheaply becomes a card. It fails when the bytes cannot be
// read.
func thumbnail(ctx context.Context, ref jobcall.Reference, side int) (*image.RGBA, error) {
	if decoderOf(ref.Type) == nil || ref.Size > maxReferenceBytes {
		return card(ref, side), nil
	}
	body, err := ref.Open(ctx)
	if err != nil {
		return nil, fmt.Errorf("open a reference: %w", err)
	}
	defer body.Close()
	data, err := io.ReadAll(io.LimitReader(body, maxReferenceBytes+1))
	if err != nil {
		return nil, fmt.Errorf("read a reference: %w", err)
	}
	img := decode(ref.Type, data)
	if img == nil {
		return card(ref, side), nil
	}
	width, height := img.Bounds().Dx(), img.Bounds().Dy()
	most := max(width, height)
	out := image.NewRGBA(image.Rect(0, 0, max(width*side/most, 1), max(height*side/most, 1)))
	draw.Draw(out, out.Rect, image.NewUniform(color.White), image.Point{}, draw.Src) // behind what can be seen through
	scaling.ApproxBiLinear.Scale(out, out.Rect, img, img.Bounds(), draw.Over, nil)
	return out, nil
}

// codec reads one type of images.
type codec struct {
	config func(io.Reader) (image.Config, error)
	whole  func(io.Reader) (image.Image, error)
}

// decoderOf is the codec of a content type; nil: none.
func decoderOf(contentType string) *codec {
	switch contentType {
	case "image/png":
		return &codec{png.DecodeConfig, png.Decode}
	case "image/jpeg":
		return &codec{jpeg.DecodeConfig, jpeg.Decode}
	case "image/gif":
		return &codec{gif.DecodeConfig, gif.Decode}
	case "image/webp":
		return &codec{webp.DecodeConfig, webp.Decode}
	}
	return nil
}

// decode reads an image; nil: it is too large or is none. The size of extended
// WebP files says nothing of the image inside, so they are left alone.
func decode(contentType string, data []byte) image.Image {
	c := decoderOf(contentType)
	if c == nil || len(data) > maxReferenceBytes || (len(data) > 16 && string(data[12:16]) == "VP8X") {
		return nil
	}
	config, err := c.config(bytes.NewReader(data))
	if err != nil || config.Width <= 0 || config.Height <= 0 || config.Width > maxReferencePixel/config.Height {
		return nil
	}
	img, err := c.whole(bytes.NewReader(data))
	if err != nil || img.Bounds().Empty() {
		return nil
	}
	return img
}

// card stands for a reference that is not decoded.
func card(ref jobcall.Reference, side int) *image.RGBA {
	img := image.NewRGBA(image.Rect(0, 0, side, side))
	ground := color.RGBA{51, 51, 51, 255}
	draw.Draw(img, img.Rect, image.NewUniform(ground), image.Point{}, draw.Src)
	label := fit(fmt.Sprintf("%s %d kB", ref.Type, (ref.Size+999)/1000), side-8, side-8, max(side/64, 1))
	label.draw(4, 4, func(x, y int, alpha uint8) {
		img.SetRGBA(x, y, mix(ground, color.RGBA{255, 255, 255, 255}, int(alpha), 255))
	})
	return img
}
