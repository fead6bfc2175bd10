package upstream

import (
	"strings"

	"tollgate/internal/fault"
)

// Image tells whether the reference is an image; else it is a video.
func (r Reference) Image() bool { return strings.HasPrefix(r.Type, "image/") }

// Unfit is the failure of a reference that a provider is known not to take. The
// words are for the user.
func Unfit(kind, format string, args ...any) *JobFailure {
	t := Unsuitable(kind, format, args...)
	t.Message = t.Cause.Error()
	if kind == KindVideo {
		t.Job = fault.InvalidMaterial
	}
	return t
}

// FitPictures checks the images among w's references against what a provider
// takes: the most bytes of one, and of all those together that must go inline,
// in base64. It reads none of them. The error is a *JobFailure.
func (w Task) FitPictures(most, inline int64) error {
	var together int64
	for i, r := range w.References {
		if !r.Image() {
			continue
		}
		if r.Size > most {
			return Unfit(w.Kind, "Reference %d has more than the %d MB that the provider takes of an image.", i+1, most>>20)
		}
		if r.URL == "" {
			together += (r.Size + 2) / 3 * 4
		}
	}
	if together > inline {
		return Unfit(w.Kind, "The references have more bytes together than the provider takes in one request.")
	}
	return nil
}
