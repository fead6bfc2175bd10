package bfl

import (
	"context"
	"encoding/base64"
	"math"
	"slices"
	"strconv"
	"strings"

	"tollgate/internal/upstream"
	"tollgate/internal/upstream/input"
	"tollgate/internal/upstream/jobcall"
)

// family is a group of models with the same request format.
type family int

// The families, with the form of their size.
const (
	familyNone    family = iota
	familyClip           // flux-3-video
	familyNamed          // flux-3-image: a ratio and a resolution
	familyFree           // flux-2: pixels
	familyKontext        // flux-kontext: a ratio, about one megapixel
	familyUltra          // flux-pro-1.1-ultra: a ratio, about four megapixels
	familyOld            // flux-pro-1.1 and flux-dev: pixels, without pictures to work from
	familyFill           // flux-pro-1.0-fill: a picture changed in a part
)

// familyOf returns the family for the model's name and the requested kind.
func familyOf(w jobcall.Task) family {
	for _, of := range []struct {
		prefix string
		family family
	}{
		{"flux-3-video", familyClip}, {"flux-3-image", familyNamed}, {"flux-2", familyFree}, {"flux-kontext", familyKontext},
		{"flux-pro-1.1-ultra", familyUltra}, {"flux-pro-1.1", familyOld}, {"flux-dev", familyOld},
		{"flux-pro-1.0-fill", familyFill},
	} {
		if strings.HasPrefix(w.Model, of.prefix) {
			if (of.family == familyClip) != (w.Kind == upstream.KindVideo) {
				return familyNone
			}
			return of.family
		}
	}
	return familyNone
}

// params returns the further fields accepted by the models of a family.
func (f family) params() []string {
	switch f {
	case familyClip:
		return []string{"generate_audio", "safety_tolerance"}
	case familyNamed:
		return []string{"grounding", "safety_tolerance", "version"}
	case familyFree:
		return []string{"seed", "safety_tolerance", "output_format", "prompt_upsampling", "steps", "guidance"}
	case familyKontext, familyOld:
		return []string{"seed", "safety_tolerance", "output_format", "prompt_upsampling"}
	case familyUltra:
		return []string{"seed", "safety_tolerance", "output_format", "raw"}
	case familyFill:
		return []string{"seed", "safety_tolerance", "output_format", "prompt_upsampling", "steps", "guidance"}
	}
	return nil
}

// body returns the body without the prompt and the further fields.
func (f family) body(ctx context.Context, w jobcall.Task) (map[string]any, error) {
	switch f {
	case familyClip:
		return clip(ctx, w)
	case familyNamed:
		return named(ctx, w)
	case familyFree:
		return free(ctx, w)
	case familyKontext:
		return shaped(ctx, w, 1024, 1)
	case familyUltra:
		return shaped(ctx, w, 2048, 0)
	case familyOld:
		return old(w)
	case familyFill:
		return fill(ctx, w)
	}
	return nil, upstream.Unsuitable(w.Kind, "bfl's model %s is unknown for the kind %s", w.Model, w.Kind)
}

// Bounds of pictures.
const (
	maxNamedPictures = 10
	maxFreePictures  = 8
	step, oldStep    = 16, 32  // sides are multiples of it
	minSide          = 64      // of flux-2
	maxPixels        = 4 << 20 // of flux-2
	minOld, maxOld   = 256, 1440
)

// namedTiers are the tiers of flux-3-image in its words.
func namedTiers() map[string]string {
	return map[string]string{"768p": "768sq", "1K": "1k", "2K": "2k", "4K": "4k"}
}

func namedRatios() []string {
	return []string{"21:9", "2:1", "16:9", "3:2", "7:5", "4:3", "5:4", "1:1", "4:5", "3:4", "5:7", "2:3", "9:16", "1:2", "9:21"}
}

// named asks for a ratio and a resolution.
func named(ctx context.Context, w jobcall.Task) (map[string]any, error) {
	body := map[string]any{}
	tier, ok := namedTiers()[w.Tier]
	if !ok {
		return nil, upstream.Unsuitable(w.Kind, "bfl's model %s does not make %q", w.Model, w.Tier)
	}
	body["resolution"] = tier
	if err := ratio(body, w, namedRatios()); err != nil {
		return nil, err
	}
	images, err := pictures(ctx, w, maxNamedPictures)
	if err != nil {
		return nil, err
	}
	if len(images) > 0 {
		body["images"] = images
	}
	return body, nil
}

// ratio asks for one of a list; nil takes any.
func ratio(body map[string]any, w jobcall.Task, of []string) error {
	switch {
	case w.Ratio == "" && w.Exact:
		return upstream.Unsuitable(w.Kind, "bfl's model %s takes a ratio, no pixels", w.Model)
	case w.Ratio == "":
	case of != nil && !slices.Contains(of, w.Ratio):
		return upstream.Unsuitable(w.Kind, "bfl's model %s does not make %s", w.Model, w.Ratio)
	default:
		body["aspect_ratio"] = w.Ratio
	}
	return nil
}

// free sets the pixels. Without a ratio, a larger tier becomes a square.
func free(ctx context.Context, w jobcall.Task) (map[string]any, error) {
	body := map[string]any{}
	width, height := w.Width, w.Height
	if width <= 0 || height <= 0 {
		width, height = w.Square(), w.Square()
	}
	if width > 0 {
		if !w.Exact {
			width, height = fit(width, height, w.Square())
		}
		if width%step+height%step > 0 || min(width, height) < minSide || width*height > maxPixels {
			return nil, upstream.Unsuitable(w.Kind, "bfl's model %s does not make %dx%d pixels", w.Model, width, height)
		}
		body["width"], body["height"] = width, height
	}
	return body, worked(ctx, body, w, maxFreePictures)
}

// worked adds the reference pictures, each in a field of its own.
func worked(ctx context.Context, body map[string]any, w jobcall.Task, most int) error {
	images, err := pictures(ctx, w, most)
	for i, image := range images {
		name := "input_image"
		if i > 0 {
			name += "_" + strconv.Itoa(i+1)
		}
		body[name] = image
	}
	return err
}

// fit is a size in steps, within the bound where the tier itself, a square of this
// side, is: in some ratios its pixels are a little more.
func fit(width, height, side int) (int, int) {
	if pixels := width * height; pixels > maxPixels && side*side <= maxPixels {
		scale := math.Sqrt(float64(maxPixels) / float64(pixels))
		width, height = int(float64(width)*scale), int(float64(height)*scale)
	}
	return width / step * step, height / step * step
}

// shaped returns the body for models with a ratio and a fixed size. side is the side of a square of
// this size.
func shaped(ctx context.Context, w jobcall.Task, side, most int) (map[string]any, error) {
	body := map[string]any{}
	if w.Square() > side {
		return nil, upstream.Unsuitable(w.Kind, "bfl's model %s does not make %s", w.Model, w.Tier)
	}
	if err := ratio(body, w, nil); err != nil {
		return nil, err
	}
	return body, worked(ctx, body, w, most)
}

// old returns the size in pixels for models without reference pictures.
func old(w jobcall.Task) (map[string]any, error) {
	body := map[string]any{}
	if len(w.References) > 0 {
		return nil, upstream.Unsuitable(w.Kind, "bfl's model %s takes no pictures", w.Model)
	}
	width, height := w.Width, w.Height
	if width <= 0 || height <= 0 {
		width, height = w.Square(), w.Square()
	}
	if width == 0 {
		return body, nil
	}
	if !w.Exact {
		width, height = width/oldStep*oldStep, height/oldStep*oldStep
	}
	if width%oldStep+height%oldStep > 0 || min(width, height) < minOld || max(width, height) > maxOld {
		return nil, upstream.Unsuitable(w.Kind, "bfl's model %s does not make %dx%d pixels", w.Model, width, height)
	}
	body["width"], body["height"] = width, height
	return body, nil
}

// fill returns the body for changing a part of a picture, which keeps its size. The part comes from
// the mask or, without a mask, from the transparent pixels of the picture. Both are sent as plain
// base64.
func fill(ctx context.Context, w jobcall.Task) (map[string]any, error) {
	switch {
	case len(w.References) != 1 || !w.References[0].Image():
		return nil, upstream.Unsuitable(w.Kind, "bfl's model %s changes one picture", w.Model)
	case w.Ratio != "" || w.Exact || w.Larger:
		return nil, upstream.Unsuitable(w.Kind, "a picture that bfl's model %s changes in a part has its size", w.Model)
	}
	data, err := w.References[0].Bytes(ctx)
	if err != nil {
		return nil, upstream.UnreadableFile(err)
	}
	body := map[string]any{"image": base64.StdEncoding.EncodeToString(data)}
	if w.Mask == nil {
		return body, nil
	}
	mask, err := input.DrawMask(ctx, w, input.White)
	if err != nil {
		return nil, err
	}
	if data, err = mask.Bytes(ctx); err != nil {
		return nil, upstream.UnreadableFile(err)
	}
	body["mask"] = base64.StdEncoding.EncodeToString(data)
	return body, nil
}

// pictures returns the references, or an error if there are more than most or a video is among them.
func pictures(ctx context.Context, w jobcall.Task, most int) ([]string, error) {
	if len(w.References) > most {
		return nil, upstream.Unsuitable(w.Kind, "%d references; bfl's model %s takes up to %d", len(w.References), w.Model, most)
	}
	return input.Pictures(ctx, w, Provider)
}
