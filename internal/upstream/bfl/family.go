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
	familyOld            // flux-pro-1.1 and flux-dev: pixels, without reference pictures
	familyFill           // flux-pro-1.0-fill: changes a part of a picture
)

// familyOf returns the family for the model's name and the requested kind.
func familyOf(task jobcall.Task) family {
	for _, entry := range []struct {
		prefix string
		family family
	}{
		{"flux-3-video", familyClip}, {"flux-3-image", familyNamed}, {"flux-2", familyFree}, {"flux-kontext", familyKontext},
		{"flux-pro-1.1-ultra", familyUltra}, {"flux-pro-1.1", familyOld}, {"flux-dev", familyOld},
		{"flux-pro-1.0-fill", familyFill},
	} {
		if strings.HasPrefix(task.Model, entry.prefix) {
			if (entry.family == familyClip) != (task.Kind == upstream.KindVideo) {
				return familyNone
			}
			return entry.family
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
func (f family) body(ctx context.Context, task jobcall.Task) (map[string]any, error) {
	switch f {
	case familyClip:
		return clipBody(ctx, task)
	case familyNamed:
		return namedBody(ctx, task)
	case familyFree:
		return freeBody(ctx, task)
	case familyKontext:
		return shapedBody(ctx, task, 1024, 1)
	case familyUltra:
		return shapedBody(ctx, task, 2048, 0)
	case familyOld:
		return oldBody(task)
	case familyFill:
		return fillBody(ctx, task)
	}
	return nil, upstream.Unsuitable(task.Kind, "bfl's model %s is unknown for the kind %s", task.Model, task.Kind)
}

// Bounds of pictures.
const (
	maxNamedPictures       = 10
	maxFreePictures        = 8
	sideStep, oldSideStep  = 16, 32  // sides are multiples of the step
	minSide                = 64      // for flux-2
	maxPixels              = 4 << 20 // for flux-2
	minOldSide, maxOldSide = 256, 1440
)

// namedTiers maps tiers to the spelling of flux-3-image.
func namedTiers() map[string]string {
	return map[string]string{"768p": "768sq", "1K": "1k", "2K": "2k", "4K": "4k"}
}

func namedRatios() []string {
	return []string{"21:9", "2:1", "16:9", "3:2", "7:5", "4:3", "5:4", "1:1", "4:5", "3:4", "5:7", "2:3", "9:16", "1:2", "9:21"}
}

// namedBody returns the body for models with a ratio and a resolution.
func namedBody(ctx context.Context, task jobcall.Task) (map[string]any, error) {
	body := map[string]any{}
	tier, ok := namedTiers()[task.Tier]
	if !ok {
		return nil, upstream.Unsuitable(task.Kind, "bfl's model %s does not make %q", task.Model, task.Tier)
	}
	body["resolution"] = tier
	if err := setRatio(body, task, namedRatios()); err != nil {
		return nil, err
	}
	images, err := pictures(ctx, task, maxNamedPictures)
	if err != nil {
		return nil, err
	}
	if len(images) > 0 {
		body["images"] = images
	}
	return body, nil
}

// setRatio adds the task's ratio, which must be in allowed unless allowed is nil.
func setRatio(body map[string]any, task jobcall.Task, allowed []string) error {
	switch {
	case task.Ratio == "" && task.Exact:
		return upstream.Unsuitable(task.Kind, "bfl's model %s takes a ratio, no pixels", task.Model)
	case task.Ratio == "":
	case allowed != nil && !slices.Contains(allowed, task.Ratio):
		return upstream.Unsuitable(task.Kind, "bfl's model %s does not make %s", task.Model, task.Ratio)
	default:
		body["aspect_ratio"] = task.Ratio
	}
	return nil
}

// freeBody returns the body for models with a size in pixels. Without a ratio, a larger tier becomes a
// square.
func freeBody(ctx context.Context, task jobcall.Task) (map[string]any, error) {
	body := map[string]any{}
	width, height := task.Width, task.Height
	if width <= 0 || height <= 0 {
		width, height = task.Square(), task.Square()
	}
	if width > 0 {
		if !task.Exact {
			width, height = fitPixels(width, height, task.Square())
		}
		if width%sideStep+height%sideStep > 0 || min(width, height) < minSide || width*height > maxPixels {
			return nil, upstream.Unsuitable(task.Kind, "bfl's model %s does not make %dx%d pixels", task.Model, width, height)
		}
		body["width"], body["height"] = width, height
	}
	return body, addPictures(ctx, body, task, maxFreePictures)
}

// addPictures adds the reference pictures, each in a separate field.
func addPictures(ctx context.Context, body map[string]any, task jobcall.Task, limit int) error {
	images, err := pictures(ctx, task, limit)
	for i, image := range images {
		name := "input_image"
		if i > 0 {
			name += "_" + strconv.Itoa(i+1)
		}
		body[name] = image
	}
	return err
}

// fitPixels rounds a size down to steps. If a square with the given side is within maxPixels, fitPixels first
// scales the size down to maxPixels, because in some ratios the tier's pixels are slightly more.
func fitPixels(width, height, side int) (int, int) {
	if pixels := width * height; pixels > maxPixels && side*side <= maxPixels {
		scale := math.Sqrt(float64(maxPixels) / float64(pixels))
		width, height = int(float64(width)*scale), int(float64(height)*scale)
	}
	return width / sideStep * sideStep, height / sideStep * sideStep
}

// shapedBody returns the body for models with a ratio and a fixed size. side is the side of a square of
// this size.
func shapedBody(ctx context.Context, task jobcall.Task, side, maxPictures int) (map[string]any, error) {
	body := map[string]any{}
	if task.Square() > side {
		return nil, upstream.Unsuitable(task.Kind, "bfl's model %s does not make %s", task.Model, task.Tier)
	}
	if err := setRatio(body, task, nil); err != nil {
		return nil, err
	}
	return body, addPictures(ctx, body, task, maxPictures)
}

// oldBody returns the size in pixels for models without reference pictures.
func oldBody(task jobcall.Task) (map[string]any, error) {
	body := map[string]any{}
	if len(task.References) > 0 {
		return nil, upstream.Unsuitable(task.Kind, "bfl's model %s takes no pictures", task.Model)
	}
	width, height := task.Width, task.Height
	if width <= 0 || height <= 0 {
		width, height = task.Square(), task.Square()
	}
	if width == 0 {
		return body, nil
	}
	if !task.Exact {
		width, height = width/oldSideStep*oldSideStep, height/oldSideStep*oldSideStep
	}
	if width%oldSideStep+height%oldSideStep > 0 || min(width, height) < minOldSide || max(width, height) > maxOldSide {
		return nil, upstream.Unsuitable(task.Kind, "bfl's model %s does not make %dx%d pixels", task.Model, width, height)
	}
	body["width"], body["height"] = width, height
	return body, nil
}

// fillBody returns the body for changing a part of a picture. The picture keeps its size. The part comes from
// the mask or, without a mask, from the transparent pixels of the picture. Both are sent as plain
// base64.
func fillBody(ctx context.Context, task jobcall.Task) (map[string]any, error) {
	switch {
	case len(task.References) != 1 || !task.References[0].Image():
		return nil, upstream.Unsuitable(task.Kind, "bfl's model %s changes one picture", task.Model)
	case task.Ratio != "" || task.Exact || task.HasSmallerTier:
		return nil, upstream.Unsuitable(task.Kind, "a picture that bfl's model %s changes in a part has its size", task.Model)
	}
	data, err := task.References[0].Bytes(ctx)
	if err != nil {
		return nil, upstream.UnreadableFile(err)
	}
	body := map[string]any{"image": base64.StdEncoding.EncodeToString(data)}
	if task.Mask == nil {
		return body, nil
	}
	mask, err := input.DrawMask(ctx, task, input.White)
	if err != nil {
		return nil, err
	}
	if data, err = mask.Bytes(ctx); err != nil {
		return nil, upstream.UnreadableFile(err)
	}
	body["mask"] = base64.StdEncoding.EncodeToString(data)
	return body, nil
}

// pictures returns the links of the references. It returns an error if there are more than limit
// references, or if one is a video.
func pictures(ctx context.Context, task jobcall.Task, limit int) ([]string, error) {
	if len(task.References) > limit {
		return nil, upstream.Unsuitable(task.Kind, "%d references; bfl's model %s takes up to %d", len(task.References), task.Model, limit)
	}
	return input.Pictures(ctx, task, Provider)
}
