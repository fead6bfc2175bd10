package openai

import (
	"fmt"
	"math"
	"strings"

	"tollgate/internal/upstream"
	"tollgate/internal/upstream/jobcall"
)

// family is a group of models with the same size fields.
type family int

const (
	// familyOther is for compatible vendors. The pixels are sent unchanged. Without pixels, a
	// larger tier becomes a square.
	familyOther family = iota
	// familyFixed is for OpenAI's models up to gpt-image-1.5, with three sizes.
	familyFixed
	// familyFree is for gpt-image-2 and later, with any size within bounds.
	familyFree
	// familyAspect is for xAI, with fields for ratio and tier.
	familyAspect
)

// familyOf returns the family for a model's name.
func familyOf(model string) family {
	name := baseName(model)
	rest, isGPT := strings.CutPrefix(name, "gpt-image-")
	switch {
	case strings.HasPrefix(name, "chatgpt-image"), isGPT && (rest == "1" || strings.HasPrefix(rest, "1-") || strings.HasPrefix(rest, "1.")):
		return familyFixed
	case isGPT:
		return familyFree
	case strings.HasPrefix(name, "grok-"):
		return familyAspect
	}
	return familyOther
}

// Bounds of the sizes of gpt-image-2 and later.
const (
	sideStep  = 16
	maxSide   = 3840
	maxPixels = 3840 * 2160
	minPixels = 655_360
	maxRatio  = 3 // of the longer to the shorter side
)

// sizeImage sets the fields for the size of the images.
func sizeImage(f fields, task jobcall.Task) *upstream.JobFailure {
	switch familyOf(task.Model) {
	case familyFixed:
		return sizeFixed(f, task)
	case familyFree:
		return sizeFree(f, task)
	case familyAspect:
		return sizeAspect(f, task)
	}
	switch side := task.Square(); {
	case task.Width > 0 && task.Height > 0:
		f.set("size", pixels(task.Width, task.Height))
	case side > 0:
		f.set("size", pixels(side, side))
	}
	return nil
}

// sizeFixed sends one of three sizes, all of the tier 1K, or auto.
func sizeFixed(f fields, task jobcall.Task) *upstream.JobFailure {
	size := ""
	switch {
	case task.Exact:
		size = pixels(task.Width, task.Height)
	case task.Tier != "1K":
		return upstream.Unsuitable(task.Kind, "the tier %s; %s makes only 1K", task.Tier, task.Model)
	default:
		size = map[string]string{"": "auto", "1:1": "1024x1024", "3:2": "1536x1024", "2:3": "1024x1536"}[task.Ratio]
	}
	switch size {
	case "auto", "1024x1024", "1536x1024", "1024x1536":
		f.set("size", size)
		return nil
	}
	return upstream.Unsuitable(task.Kind, "%s at %s; %s makes 1024x1024, 1536x1024 and 1024x1536", task.Ratio, pixels(task.Width,
		task.Height), task.Model)
}

// sizeFree sends the size in pixels: the user's pixels unchanged, or the gateway's pixels fitted
// into the bounds, if the fitted size still reaches the paid tier.
func sizeFree(f fields, task jobcall.Task) *upstream.JobFailure {
	width, height := task.Width, task.Height
	if width <= 0 || height <= 0 {
		if task.Tier == "1K" { // the size of `auto`
			f.set("size", "auto")
			return nil
		}
		width, _ = jobcall.TierSide(task.Tier)
		height = width
	}
	if max(width, height) > maxRatio*min(width, height) {
		return upstream.Unsuitable(task.Kind, "%s: the provider makes ratios up to %d:1", pixels(width, height), maxRatio)
	}
	if !task.Exact {
		width, height = fitPixels(width, height)
		if !reachesTier(task.Tier, width, height) {
			return upstream.Unsuitable(task.Kind, "%s at %s is more than the provider makes", task.Tier, task.Ratio)
		}
	}
	switch n := width * height; {
	case width%sideStep != 0 || height%sideStep != 0:
		return upstream.Unsuitable(task.Kind, "%s: the provider makes only sides that are multiples of %d", pixels(width, height), sideStep)
	case max(width, height) > maxSide || n > maxPixels || n < minPixels:
		return upstream.Unsuitable(task.Kind, "%s: the provider makes %d to %d pixels, and sides up to %d", pixels(width, height), minPixels,
			maxPixels, maxSide)
	}
	f.set("size", pixels(width, height))
	return nil
}

// sizeAspect sends ratio and tier, also in place of the user's pixels.
func sizeAspect(f fields, task jobcall.Task) *upstream.JobFailure {
	if task.Tier != "1K" && task.Tier != "2K" {
		return upstream.Unsuitable(task.Kind, "the tier %s; the provider makes 1K and 2K", task.Tier)
	}
	f.set("resolution", strings.ToLower(task.Tier))
	if task.Ratio != "" {
		f.set("aspect_ratio", task.Ratio)
	}
	return nil
}

// fitPixels scales a size into the bounds and rounds the sides to multiples of sideStep. The ratio must be
// at most maxRatio; it changes only by the rounding.
func fitPixels(width, height int) (int, int) {
	w, h := float64(width), float64(height)
	scale, round := min(1, maxSide/max(w, h), math.Sqrt(maxPixels/(w*h))), math.Round
	if n := w * h; n < 1.1*minPixels { // rounding down could go below the bound
		scale, round = max(1, math.Sqrt(minPixels/n)), math.Ceil
	}
	width, height = int(round(w*scale/sideStep))*sideStep, int(round(h*scale/sideStep))*sideStep
	for max(width, height) > maxSide || width*height > maxPixels || max(width, height) > maxRatio*min(width, height) {
		if width >= height {
			width -= sideStep
		} else {
			height -= sideStep
		}
	}
	return width, height
}

// reachesTier reports whether an image is too large for the tier with half the side, so that a user
// never pays for a tier and gets the tier below.
func reachesTier(tier string, width, height int) bool {
	side, ok := jobcall.TierSide(tier)
	if !ok {
		return false
	}
	if strings.HasSuffix(tier, "K") {
		half := side / 2
		return 2*width*height > 3*half*half // a tier includes images of up to 1.5 times its square
	}
	return 2*min(width, height) > side
}

// pixels returns a size in the provider's format.
func pixels(width, height int) string { return fmt.Sprintf("%dx%d", width, height) }
