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
	// familyOther: compatible vendors; pixels are sent as they are. Without any a
	// larger tier is square.
	familyOther family = iota
	// familyFixed: OpenAI's models up to gpt-image-1.5: three sizes.
	familyFixed
	// familyFree: gpt-image-2 and later: any size within bounds.
	familyFree
	// familyAspect: xAI: ratio and tier in fields of their own.
	familyAspect
)

// familyOf finds the family by the model's name.
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
func sizeImage(f fields, w jobcall.Task) *upstream.JobFailure {
	switch familyOf(w.Model) {
	case familyFixed:
		return sizeFixed(f, w)
	case familyFree:
		return sizeFree(f, w)
	case familyAspect:
		return sizeAspect(f, w)
	}
	switch side := w.Square(); {
	case w.Width > 0 && w.Height > 0:
		f.set("size", pixels(w.Width, w.Height))
	case side > 0:
		f.set("size", pixels(side, side))
	}
	return nil
}

// sizeFixed chooses among three sizes, all of the tier 1K.
func sizeFixed(f fields, w jobcall.Task) *upstream.JobFailure {
	size := ""
	switch {
	case w.Exact:
		size = pixels(w.Width, w.Height)
	case w.Tier != "1K":
		return upstream.Unsuitable(w.Kind, "the tier %s; %s makes 1K alone", w.Tier, w.Model)
	default:
		size = map[string]string{"": "auto", "1:1": "1024x1024", "3:2": "1536x1024", "2:3": "1024x1536"}[w.Ratio]
	}
	switch size {
	case "auto", "1024x1024", "1536x1024", "1024x1536":
		f.set("size", size)
		return nil
	}
	return upstream.Unsuitable(w.Kind, "%s at %s; %s makes 1024x1024, 1536x1024 and 1024x1536", w.Ratio, pixels(w.Width, w.Height), w.Model)
}

// sizeFree sends the size in pixels: the user's pixels unchanged, or the gateway's fitted into the
// bounds if the result is still in the paid tier.
func sizeFree(f fields, w jobcall.Task) *upstream.JobFailure {
	width, height := w.Width, w.Height
	if width <= 0 || height <= 0 {
		if w.Tier == "1K" { // the size of `auto`
			f.set("size", "auto")
			return nil
		}
		width, _ = jobcall.TierSide(w.Tier)
		height = width
	}
	if max(width, height) > maxRatio*min(width, height) {
		return upstream.Unsuitable(w.Kind, "%s: the provider makes ratios up to %d:1", pixels(width, height), maxRatio)
	}
	if !w.Exact {
		width, height = fit(width, height)
		if !holds(w.Tier, width, height) {
			return upstream.Unsuitable(w.Kind, "%s at %s is more than the provider makes", w.Tier, w.Ratio)
		}
	}
	switch n := width * height; {
	case width%sideStep != 0 || height%sideStep != 0:
		return upstream.Unsuitable(w.Kind, "%s: the provider makes sides that %d divides", pixels(width, height), sideStep)
	case max(width, height) > maxSide || n > maxPixels || n < minPixels:
		return upstream.Unsuitable(w.Kind, "%s: the provider makes %d to %d pixels, and sides up to %d", pixels(width, height), minPixels,
			maxPixels, maxSide)
	}
	f.set("size", pixels(width, height))
	return nil
}

// sizeAspect names ratio and tier. The user's pixels are given by these, too.
func sizeAspect(f fields, w jobcall.Task) *upstream.JobFailure {
	if w.Tier != "1K" && w.Tier != "2K" {
		return upstream.Unsuitable(w.Kind, "the tier %s; the provider makes 1K and 2K", w.Tier)
	}
	f.set("resolution", strings.ToLower(w.Tier))
	if w.Ratio != "" {
		f.set("aspect_ratio", w.Ratio)
	}
	return nil
}

// fit scales a size into the bounds and rounds its sides. The ratio, at most
// maxRatio, stays as near as the rounding lets it.
func fit(width, height int) (int, int) {
	w, h := float64(width), float64(height)
	scale, round := min(1, maxSide/max(w, h), math.Sqrt(maxPixels/(w*h))), math.Round
	if n := w * h; n < 1.1*minPixels { // where rounding down could lead below the bound
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

// holds reports whether an image of this size is larger than the tier of half the number holds, so
// a user never pays for a tier and gets the tier below.
func holds(tier string, width, height int) bool {
	side, ok := jobcall.TierSide(tier)
	if !ok {
		return false
	}
	if strings.HasSuffix(tier, "K") {
		half := side / 2
		return 2*width*height > 3*half*half // a tier holds 1.5 times its square
	}
	return 2*min(width, height) > side
}

// pixels writes a size as the provider wants it.
func pixels(width, height int) string { return fmt.Sprintf("%dx%d", width, height) }
