package ideogram

import (
	"fmt"
	"slices"
	"strings"

	"tollgate/internal/upstream"
	"tollgate/internal/upstream/jobcall"
)

// family is a generation of models with the same fields.
type family int

// The families.
const (
	familyNone family = iota
	family45          // preset sizes, or pixels within bounds with reference pictures
	familyEdit        // changes a picture and keeps its size
	family4           // preset sizes, one picture per call
	family3           // ratios
)

// familyOf returns the family for a model's name.
func familyOf(model string) family {
	switch model {
	case "ideogram-4-5":
		return family45
	case "precise-edit/ideogram-4-5", "precise-edit/ideogram-4-6":
		return familyEdit
	case "ideogram-4":
		return family4
	case "ideogram-3":
		return family3
	}
	return familyNone
}

// params returns the further fields of a family.
func (f family) params() []string {
	switch f {
	case family45:
		return []string{"seed", "magic_prompt", "quality", "enable_copyright_detection"}
	case familyEdit:
		return []string{"seed", "quality"}
	case family4:
		return []string{"rendering_speed"}
	case family3:
		return []string{"seed", "negative_prompt", "magic_prompt", "rendering_speed", "style_type", "style_preset"}
	}
	return nil
}

// check returns a failure for a task impossible for the family, except by its size.
func (f family) check(task jobcall.Task) *upstream.JobFailure {
	switch {
	case f == familyNone:
		return upstream.Unsuitable(task.Kind, "ideogram's model %.80q is unknown", task.Model)
	case f == familyEdit && len(task.References) == 0:
		return upstream.Unsuitable(task.Kind, "ideogram's model %s changes a picture, and there is none", task.Model)
	case task.Mask != nil && len(task.References) > maxMasked:
		return upstream.Unsuitable(task.Kind, "%d references beside a mask; ideogram takes up to %d", len(task.References), maxMasked)
	case f.keepsSize(task) && (task.Ratio != "" || task.Exact || task.HasSmallerTier):
		return upstream.Unsuitable(task.Kind, "a picture that ideogram changes in a part has its size")
	case f != family4 && task.Count > maxImages:
		return upstream.Unsuitable(task.Kind, "%d pictures; ideogram makes up to %d", task.Count, maxImages)
	case f != family45 && f != familyEdit && len(task.References) > 0:
		return upstream.Unsuitable(task.Kind, "ideogram's model %s takes no pictures", task.Model)
	case len(task.References) > maxPictures:
		return upstream.Unsuitable(task.Kind, "%d references; ideogram takes up to %d", len(task.References), maxPictures)
	}
	for i, r := range task.References {
		switch {
		case !r.Image():
			return upstream.Unsuitable(task.Kind, "ideogram makes no pictures from a video")
		case !slices.Contains([]string{"image/jpeg", "image/png", "image/webp"}, r.Type):
			return upstream.Unfit(task.Kind, "Reference %d is %s; the provider takes JPEG, PNG and WebP.", i+1, r.Type)
		case r.Size > maxPicture:
			return upstream.Unfit(task.Kind, "Reference %d has more than the %d MB that the provider takes of an image.", i+1, maxPicture>>20)
		}
	}
	return nil
}

// keepsSize reports whether the picture has the size of the first reference.
func (f family) keepsSize(task jobcall.Task) bool {
	return f == familyEdit || f == family45 && task.Mask != nil
}

// size sets the size. A larger tier is always requested.
func (f family) size(fields map[string]any, task jobcall.Task) *upstream.JobFailure {
	var (
		size string
		ok   bool
	)
	switch {
	case f.keepsSize(task):
		return nil
	case f == family3:
		return setRatio3(fields, task)
	case len(task.References) > 0:
		size, ok = customSize(task)
	default:
		size, ok = presetSize(task)
	}
	if !ok {
		return upstream.Unsuitable(task.Kind, "ideogram's model %s does not make %s at %s (%dx%d)", task.Model, task.Ratio, task.Tier,
			task.Width, task.Height)
	}
	if size != "" {
		fields["size"] = size
	}
	return nil
}

// presets holds the sizes of pictures without references, by tier and ratio (portrait or square).
func presets() map[string]map[string][2]int {
	return map[string]map[string][2]int{
		"1K": {"1:1": {1024, 1024}, "4:5": {896, 1120}, "3:4": {864, 1152}, "2:3": {832, 1248}, "5:8": {800, 1280}, "10:16": {800, 1280},
			"9:16": {720, 1280}, "1:2": {720, 1440}},
		"2K": {"1:1": {2048, 2048}, "4:5": {1792, 2240}, "3:4": {1728, 2304}, "2:3": {1664, 2496}, "5:8": {1600, 2560},
			"10:16": {1600, 2560}, "9:16": {1440, 2560}, "1:2": {1440, 2880}, "5:12": {1280, 3072}},
	}
}

// presetSize returns the size of a picture without references. Without a ratio it is a square, because
// the provider's default is its larger tier.
func presetSize(task jobcall.Task) (string, bool) {
	sizes := presets()[task.Tier]
	width, height := task.Width, task.Height
	if !task.Exact {
		ratio := task.Ratio
		if ratio == "" {
			ratio = "1:1"
		}
		if pixels, ok := sizes[ratio]; ok {
			return pixelsOf(pixels[0], pixels[1]), true
		}
		a, b, _ := strings.Cut(ratio, ":")
		pixels, ok := sizes[b+":"+a]
		return pixelsOf(pixels[1], pixels[0]), ok
	}
	for _, pixels := range sizes {
		if pixels == [2]int{width, height} || pixels == [2]int{height, width} {
			return pixelsOf(width, height), true
		}
	}
	return "", false
}

// Bounds of a picture with references.
const (
	sideStep  = 32
	minSide   = 256
	maxPixels = 2048 * 2048
	maxAspect = 6 // ratio of the longer to the shorter side
)

// customSize returns the size of a picture with references. If empty, the provider chooses.
func customSize(task jobcall.Task) (string, bool) {
	width, height := task.Width, task.Height
	if width <= 0 || height <= 0 {
		width, height = task.Square(), task.Square()
	}
	if width == 0 {
		return "", true
	}
	if !task.Exact {
		width, height = width/sideStep*sideStep, height/sideStep*sideStep
	}
	short, long := min(width, height), max(width, height)
	ok := width%sideStep+height%sideStep == 0 && short >= minSide && width*height <= maxPixels && long <= maxAspect*short
	return pixelsOf(width, height), ok
}

func pixelsOf(width, height int) string { return fmt.Sprintf("%dx%d", width, height) }

func ratios3() []string {
	return []string{"1:3", "3:1", "1:2", "2:1", "9:16", "16:9", "10:16", "16:10", "2:3", "3:2", "3:4", "4:3", "4:5", "5:4", "1:1"}
}

// setRatio3 sets the ratio for the third generation, which makes about one megapixel.
func setRatio3(fields map[string]any, task jobcall.Task) *upstream.JobFailure {
	switch {
	case task.Square() > 1024:
		return upstream.Unsuitable(task.Kind, "ideogram's model %s does not make %s", task.Model, task.Tier)
	case task.Ratio == "" && task.Exact:
		return upstream.Unsuitable(task.Kind, "ideogram's model %s takes a ratio, no pixels", task.Model)
	case task.Ratio == "":
	case !slices.Contains(ratios3(), task.Ratio):
		return upstream.Unsuitable(task.Kind, "ideogram's model %s does not make %s", task.Model, task.Ratio)
	default:
		fields["aspect_ratio"] = strings.Replace(task.Ratio, ":", "x", 1)
	}
	return nil
}
