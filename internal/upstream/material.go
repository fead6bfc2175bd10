package upstream

import (
	"encoding/json"
	"slices"
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

// AddParams adds the members of w.Params to a provider's object. Those that are
// there already, or that the adapter decides about without sending them now,
// its own, cannot be added: a catalog entry that lets them pass makes the task
// Unsuitable, so that nothing is dropped in silence. The error is a *JobFailure.
func (w Task) AddParams(to map[string]any, own ...string) error {
	if len(w.Params) == 0 {
		return nil
	}
	var params map[string]json.RawMessage
	if err := json.Unmarshal(w.Params, &params); err != nil {
		return Unsuitable(w.Kind, "params: %w", err)
	}
	for name, value := range params {
		if _, taken := to[name]; taken || slices.Contains(own, name) {
			return Unsuitable(w.Kind, "the provider's field %q cannot be a param of the model: the gateway sets it", name)
		}
		to[name] = value
	}
	return nil
}
