package upstream

import (
	"context"
	"encoding/base64"
	"encoding/json"
	"slices"
	"strings"

	"tollgate/internal/fault"
)

// Image tells whether the reference is an image; else it is a video.
func (r Reference) Image() bool { return strings.HasPrefix(r.Type, "image/") }

// DataURI reads the reference whole and returns it as a data URI in base64.
// Its errors are those of Bytes.
func (r Reference) DataURI(ctx context.Context) (string, error) {
	data, err := r.Bytes(ctx)
	if err != nil {
		return "", err
	}
	return "data:" + r.Type + ";base64," + base64.StdEncoding.EncodeToString(data), nil
}

// Unfit is the trouble of a reference that a provider is known not to take. The
// words are for the user.
func Unfit(kind, format string, args ...any) *Trouble {
	t := Unsuitable(kind, format, args...)
	t.Message = t.Cause.Error()
	if kind == KindVideo {
		t.Job = fault.InvalidMaterial
	}
	return t
}

// AddParams adds the members of w.Params to a provider's object. Those that are
// there already, or that the adapter decides about without sending them now,
// its own, cannot be added: a catalog entry that lets them pass makes the work
// Unsuitable, so that nothing is dropped in silence. The error is a *Trouble.
func (w Work) AddParams(to map[string]any, own ...string) error {
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
