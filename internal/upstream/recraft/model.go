package recraft

import (
	"fmt"
	"regexp"
	"slices"
	"strings"

	"tollgate/internal/upstream"
	"tollgate/internal/upstream/jobcall"
)

// raster matches the models for raster pictures.
var raster = regexp.MustCompile(`^recraftv[0-9][a-z0-9_]{0,40}$`)

// old reports whether a model is from before the fourth generation.
func old(model string) bool {
	return strings.HasPrefix(model, "recraftv2") || strings.HasPrefix(model, "recraftv3")
}

// masked reports whether a model can change a part of a picture.
func masked(model string) bool { return model == "recraftv3" }

// params are the further fields of a model.
func params(model string) []string {
	names := []string{"seed", "controls", "image_format", "block_nsfw"}
	switch {
	case old(model):
		return append(names, "negative_prompt", "style", "substyle", "style_id", "text_layout")
	case strings.Contains(model, "_flash"): // it knows no styles
		return names
	}
	return append(names, "style_id", "style_match")
}

// side returns the side of a model's square picture, in pixels.
func side(model string) int {
	if strings.Contains(model, "_pro") {
		return 2048
	}
	return 1024
}

// check returns a failure for a task impossible for the model.
func check(w jobcall.Task) *upstream.JobFailure {
	switch {
	case !raster.MatchString(w.Model):
		return upstream.Unsuitable(w.Kind, "%.80q is no name of a model at recraft", w.Model)
	case strings.Contains(w.Model, "_vector"):
		return upstream.Unsuitable(w.Kind, "recraft's model %s makes SVG, which is no picture of pixels", w.Model)
	case w.Mask != nil && !masked(w.Model):
		return upstream.Unsuitable(w.Kind, "recraft's model %s takes no mask, recraftv3 does", w.Model)
	case w.Count > maxImages:
		return upstream.Unsuitable(w.Kind, "%d pictures; recraft makes up to %d", w.Count, maxImages)
	case w.Mask == nil && w.Square() > side(w.Model), w.Mask != nil && w.Larger:
		return upstream.Unsuitable(w.Kind, "recraft's model %s does not make %s", w.Model, w.Tier)
	case len(w.References) == 0:
		if (w.Ratio != "" || w.Exact) && sizeOf(w) == "" {
			return upstream.Unsuitable(w.Kind, "recraft's model %s does not make %s (%dx%d)", w.Model, w.Ratio, w.Width, w.Height)
		}
		return nil
	case len(w.References) > 1 || !w.References[0].Image():
		return upstream.Unsuitable(w.Kind, "recraft takes one picture")
	case w.Ratio != "" || w.Exact:
		return upstream.Unsuitable(w.Kind, "a picture from a picture has its size")
	case w.References[0].Size > maxPicture:
		return upstream.Unfit(w.Kind, "The reference has more than the %d MB that the provider takes of an image.", maxPicture>>20)
	}
	return nil
}

// ratios maps the ratios supported by every model to the provider's spelling.
func ratios() map[string]string {
	spelled := map[string]string{"7:5": "14:10", "5:7": "10:14", "3:5": "6:10", "14:10": "14:10", "10:14": "10:14", "6:10": "6:10"}
	for _, ratio := range []string{"1:1", "2:1", "1:2", "3:2", "2:3", "4:3", "3:4", "5:4", "4:5", "16:9", "9:16"} {
		spelled[ratio] = ratio
	}
	return spelled
}

// sizes returns the landscape sizes of a model, in pixels.
func sizes(model string) []string {
	switch {
	case old(model):
		return []string{"1024x1024", "1365x1024", "1536x1024", "1820x1024", "2048x1024", "1434x1024", "1280x1024", "1707x1024"}
	case side(model) == 2048:
		return []string{"2048x2048", "3072x1536", "2560x1664", "2432x1792", "2304x1792", "2560x1792", "2688x1536"}
	}
	return []string{"1024x1024", "1536x768", "1280x832", "1216x896", "1152x896", "1280x896", "1344x768"}
}

// sizeOf returns the size of a picture without references: the user's pixels, or the ratio. A paid
// tier without either is a square. If empty, the provider chooses or does not make the size.
func sizeOf(w jobcall.Task) string {
	switch {
	case w.Exact:
		lying := fmt.Sprintf("%dx%d", max(w.Width, w.Height), min(w.Width, w.Height))
		if slices.Contains(sizes(w.Model), lying) {
			return fmt.Sprintf("%dx%d", w.Width, w.Height)
		}
		return ""
	case w.Ratio != "":
		return ratios()[w.Ratio]
	case w.Square() > 0:
		return fmt.Sprintf("%dx%d", side(w.Model), side(w.Model))
	}
	return ""
}
