package input

import (
	"bytes"
	"context"
	"fmt"
	"image"
	"image/draw"
	_ "image/jpeg" // masks without transparency
	"image/png"
	"io"

	"tollgate/internal/upstream"
	"tollgate/internal/upstream/jobcall"
)

// maxMask is the maximum number of pixels of a mask, because masks are decoded.
const maxMask = 1 << 24

// Gray values of the area to change in a black and white mask. Providers differ.
const (
	White = 0xFF
	Black = 0x00
)

// DrawMask returns the mask of a task as a PNG of only black and white, for providers without
// transparent masks. change is the colour of the area to change. In the user's mask the area to
// change is transparent or, without transparent pixels, white (interface.md, Images). The error is
// a *upstream.JobFailure: the mask is unreadable, not a PNG or JPEG of up to 16 megapixels, or has
// no area to change.
func DrawMask(ctx context.Context, task jobcall.Task, change uint8) (jobcall.Reference, error) {
	unfit := func(format string, args ...any) (jobcall.Reference, error) {
		return jobcall.Reference{}, upstream.Unfit(task.Kind, format, args...)
	}
	if task.Mask.Type != "image/png" && task.Mask.Type != "image/jpeg" {
		return unfit("The mask must be a PNG or JPEG image.")
	}
	data, err := task.Mask.Bytes(ctx)
	if err != nil {
		return jobcall.Reference{}, upstream.UnreadableFile(err)
	}
	done, err := task.AcquireRead(ctx) // a decoded mask needs as much memory as a whole result
	if err != nil {
		return jobcall.Reference{}, upstream.UnreadableFile(err)
	}
	defer done()
	head, _, err := image.DecodeConfig(bytes.NewReader(data))
	if err != nil || int64(head.Width)*int64(head.Height) > maxMask {
		return unfit("The mask has more than %d megapixels or cannot be read.", maxMask>>20)
	}
	mask, _, err := image.Decode(bytes.NewReader(data))
	if err != nil {
		return unfit("The mask cannot be read. Save it again as a PNG image.")
	}
	twoColors, changes := blackAndWhite(mask, change)
	if !changes {
		return unfit("The mask has no area to change. Make that area transparent or, in a mask without transparency, white.")
	}
	var out bytes.Buffer
	if err := png.Encode(&out, twoColors); err != nil {
		return jobcall.Reference{}, upstream.UnreadableFile(fmt.Errorf("the mask: %w", err))
	}
	content := out.Bytes()
	return jobcall.Reference{Type: "image/png", Size: int64(len(content)),
		Open: func(context.Context) (io.ReadCloser, error) { return io.NopCloser(bytes.NewReader(content)), nil }}, nil
}

// blackAndWhite draws a mask in two colours, and reports whether the mask has an area to change.
func blackAndWhite(mask image.Image, change uint8) (twoColors *image.Gray, changes bool) {
	const half = 0x80
	size := mask.Bounds()
	width := size.Dx()
	row := image.NewRGBA(image.Rect(0, 0, width, 1)) // the pixels of one row at a time, because a mask may be large
	each := func(do func(at int, pixel []uint8)) {
		for y := range size.Dy() {
			draw.Draw(row, row.Bounds(), mask, image.Pt(size.Min.X, size.Min.Y+y), draw.Src)
			for x := range width {
				do(y*width+x, row.Pix[4*x:4*x+4])
			}
		}
	}
	transparent := false
	each(func(_ int, pixel []uint8) { transparent = transparent || pixel[3] < half })
	twoColors = image.NewGray(image.Rect(0, 0, width, size.Dy()))
	each(func(at int, pixel []uint8) {
		inArea := pixel[3] < half
		if !transparent {
			inArea = int(pixel[0])+int(pixel[1])+int(pixel[2]) >= 3*half
		}
		changes = changes || inArea
		if inArea == (change == White) {
			twoColors.Pix[at] = White
		}
	})
	return twoColors, changes
}
