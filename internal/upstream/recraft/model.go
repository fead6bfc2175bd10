package recraft

import (
	"fmt"
	"regexp"
	"slices"
	"strings"

	"tollgate/internal/upstream"
	"tollgate/internal/upstream/jobcall"
)

// rasterModel matches the models for raster pictures.
var rasterModel = regexp.MustCompile(`^recraftv[0-9][a-z0-9_]{0,40}$`)

// isOld reports whether a model is from before the fourth generation.
func isOld(model string) bool {
	return strings.HasPrefix(model, "recraftv2") || strings.HasPrefix(model, "recraftv3")
}

// canMask reports whether a model can change a part of a picture.
func canMask(model string) bool { return model == "recraftv3" }

// params returns the further fields of a model.
func params(model string) []string {
	names := []string{"seed", "controls", "image_format", "block_nsfw"}
	switch {
	case isOld(model):
		return append(names, "negative_prompt", "style", "substyle", "style_id", "text_layout")
	case strings.Contains(model, "_flash"): // the model has no styles
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

// checkTask returns a failure for a task impossible for the model.
func checkTask(task jobcall.Task) *upstream.JobFailure {
	switch {
	case !rasterModel.MatchString(task.Model):
		return upstream.Unsuitable(task.Kind, "%.80q is no name of a model at recraft", task.Model)
	case strings.Contains(task.Model, "_vector"):
		return upstream.Unsuitable(task.Kind, "recraft's model %s makes SVG, which is no picture of pixels", task.Model)
	case task.Mask != nil && !canMask(task.Model):
		return upstream.Unsuitable(task.Kind, "recraft's model %s takes no mask, recraftv3 does", task.Model)
	case task.Count > maxImages:
		return upstream.Unsuitable(task.Kind, "%d pictures; recraft makes up to %d", task.Count, maxImages)
	case task.Mask == nil && task.Square() > side(task.Model), task.Mask != nil && task.HasSmallerTier:
		return upstream.Unsuitable(task.Kind, "recraft's model %s does not make %s", task.Model, task.Tier)
	case len(task.References) == 0:
		if (task.Ratio != "" || task.Exact) && sizeOf(task) == "" {
			return upstream.Unsuitable(task.Kind, "recraft's model %s does not make %s (%dx%d)", task.Model, task.Ratio, task.Width, task.Height)
		}
		return nil
	case len(task.References) > 1 || !task.References[0].Image():
		return upstream.Unsuitable(task.Kind, "recraft takes one picture")
	case task.Ratio != "" || task.Exact:
		return upstream.Unsuitable(task.Kind, "a picture from a picture has its size")
	case task.References[0].Size > maxPicture:
		return upstream.Unfit(task.Kind, "The reference has more than the %d MB that the provider takes of an image.", maxPicture>>20)
	}
	return nil
}

// ratios maps the ratios supported by every model to the provider's spelling.
func ratios() map[string]string {
	spellings := map[string]string{"7:5": "14:10", "5:7": "10:14", "3:5": "6:10", "14:10": "14:10", "10:14": "10:14", "6:10": "6:10"}
	for _, ratio := range []string{"1:1", "2:1", "1:2", "3:2", "2:3", "4:3", "3:4", "5:4", "4:5", "16:9", "9:16"} {
		spellings[ratio] = ratio
	}
	return spellings
}

// sizes returns the landscape sizes of a model, in pixels.
func sizes(model string) []string {
	switch {
	case isOld(model):
		return []string{"1024x1024", "1365x1024", "1536x1024", "1820x1024", "2048x1024", "1434x1024", "1280x1024", "1707x1024"}
	case side(model) == 2048:
		return []string{"2048x2048", "3072x1536", "2560x1664", "2432x1792", "2304x1792", "2560x1792", "2688x1536"}
	}
	return []string{"1024x1024", "1536x768", "1280x832", "1216x896", "1152x896", "1280x896", "1344x768"}
}

// sizeOf returns the size of a picture without references: the user's pixels, or the ratio. A paid
// tier without either is a square. An empty size means that the provider chooses or cannot make the
// size.
func sizeOf(task jobcall.Task) string {
	switch {
	case task.Exact:
		landscape := fmt.Sprintf("%dx%d", max(task.Width, task.Height), min(task.Width, task.Height))
		if slices.Contains(sizes(task.Model), landscape) {
			return fmt.Sprintf("%dx%d", task.Width, task.Height)
		}
		return ""
	case task.Ratio != "":
		return ratios()[task.Ratio]
	case task.Square() > 0:
		return fmt.Sprintf("%dx%d", side(task.Model), side(task.Model))
	}
	return ""
}
