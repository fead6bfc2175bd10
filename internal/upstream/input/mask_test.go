package input_test

import (
	"bytes"
	"context"
	stdimage "image"
	"image/color"
	"image/jpeg"
	"image/png"
	"io"
	"testing"

	"tollgate/internal/upstream"
	"tollgate/internal/upstream/conformance"
	"tollgate/internal/upstream/conformance/task"
	"tollgate/internal/upstream/input"
	"tollgate/internal/upstream/jobcall"
)

// maskPNG returns a PNG mask of 2x2 pixels, with the colours in row order.
func maskPNG(t *testing.T, colours ...color.Color) jobcall.Reference {
	t.Helper()
	mask := stdimage.NewNRGBA(stdimage.Rect(3, 5, 5, 7)) // does not begin at the origin
	for i, c := range colours {
		mask.Set(3+i%2, 5+i/2, c)
	}
	var out bytes.Buffer
	if err := png.Encode(&out, mask); err != nil {
		t.Fatal(err)
	}
	return task.Reference("image/png", "", out.String())
}

// TestMask tests that the area to change, transparent or, without transparency, white, gets the
// provider's colour.
func TestMask(t *testing.T) {
	t.Parallel()
	var (
		clear = color.NRGBA{R: 255}
		faint = color.NRGBA{G: 255, A: 40}
		red   = color.NRGBA{R: 255, A: 255}
		white = color.NRGBA{R: 255, G: 255, B: 255, A: 255}
		grey  = color.NRGBA{R: 90, G: 90, B: 90, A: 255}
	)
	for name, tt := range map[string]struct {
		mask   jobcall.Reference
		change uint8
		want   string // by pixel: # black, . white
	}{
		"transparent, white changes": {maskPNG(t, clear, red, white, faint), input.White, ".##."},
		"transparent, black changes": {maskPNG(t, clear, red, white, faint), input.Black, "#..#"},
		"opaque, white changes":      {maskPNG(t, white, grey, red, white), input.White, ".##."},
		"opaque, black changes":      {maskPNG(t, white, grey, red, white), input.Black, "#..#"},
		"everything":                 {maskPNG(t, clear, clear, faint, clear), input.White, "...."},
		"nothing":                    {maskPNG(t, red, grey, red, grey), input.White, ""},
		"another type":               {task.Reference("image/webp", "", "abc"), input.White, ""},
		"no picture":                 {task.Reference("image/png", "", "abc"), input.White, ""},
		"half a picture":             {task.Reference("image/png", "", halfPNG(t)), input.White, ""},
		"too large":                  {task.Reference("image/png", "", hugePNG(t)), input.White, ""},
	} {
		drawn, err := input.DrawMask(t.Context(), task.Image("m", task.Mask(tt.mask)), tt.change)
		if tt.want == "" {
			if f := upstream.AsJobFailure(err); err == nil || f.Message == "" || f.Next != upstream.NextLine {
				t.Errorf("%s: %v", name, err)
			}
			continue
		}
		if err != nil {
			t.Errorf("%s: %v", name, err)
			continue
		}
		if got := pixels(t, drawn); got != tt.want {
			t.Errorf("%s: %s, want %s", name, got, tt.want)
		}
	}
}

// pixels returns the pixels of a black and white mask in row order: # for black, . for white.
func pixels(t *testing.T, r jobcall.Reference) string {
	t.Helper()
	data, err := r.Bytes(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	return conformance.Pixels(t, data)
}

// halfPNG returns the first part of a PNG mask.
func halfPNG(t *testing.T) string {
	r := maskPNG(t, color.Transparent, color.Black)
	data, err := r.Bytes(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	return string(data[:len(data)/2+8])
}

// hugePNG returns a PNG with slightly more pixels than a mask may have.
func hugePNG(t *testing.T) string {
	t.Helper()
	var out bytes.Buffer
	if err := png.Encode(&out, stdimage.NewGray(stdimage.Rect(0, 0, 4097, 4096))); err != nil {
		t.Fatal(err)
	}
	return out.String()
}

// TestMaskOfJPEG checks a mask without transparency and with blurred edges.
func TestMaskOfJPEG(t *testing.T) {
	t.Parallel()
	mask := stdimage.NewGray(stdimage.Rect(0, 0, 16, 1))
	for x := range 8 {
		mask.SetGray(x, 0, color.Gray{Y: 255})
	}
	var out bytes.Buffer
	if err := jpeg.Encode(&out, mask, nil); err != nil {
		t.Fatal(err)
	}
	drawn, err := input.DrawMask(t.Context(), task.Image("m", task.Mask(task.Reference("image/jpeg", "", out.String()))), input.Black)
	if err != nil {
		t.Fatal(err)
	}
	if got := pixels(t, drawn); got != "########........" {
		t.Error(got)
	}
}

// TestUnreadableMask tests that an error of the gateway's media store is blamed on neither the user
// nor the line.
func TestUnreadableMask(t *testing.T) {
	t.Parallel()
	mask := maskPNG(t, color.Transparent)
	mask.Open = func(context.Context) (io.ReadCloser, error) { return nil, io.ErrUnexpectedEOF }
	_, err := input.DrawMask(t.Context(), task.Image("m", task.Mask(mask)), input.White)
	if f := upstream.AsJobFailure(err); err == nil || f.Health != upstream.HealthNone || f.Message != "" {
		t.Errorf("%+v", err)
	}
}

// FuzzDrawMask tests that every mask from a user becomes a mask of two colours or a failure with a
// reason.
func FuzzDrawMask(f *testing.F) {
	whole, err := task.PaintedMask().Bytes(f.Context())
	if err != nil {
		f.Fatal(err)
	}
	f.Add("image/png", whole)
	f.Add("image/png", whole[:len(whole)/2])
	f.Add("image/jpeg", []byte("\xff\xd8\xff"))
	f.Fuzz(func(t *testing.T, kind string, data []byte) {
		drawn, err := input.DrawMask(t.Context(), task.Image("m", task.Mask(task.Reference(kind, "", string(data)))), input.White)
		if err != nil {
			if upstream.AsJobFailure(err).Message == "" {
				t.Error(err)
			}
			return
		}
		mask, err := drawn.Bytes(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		conformance.Pixels(t, mask)
	})
}
