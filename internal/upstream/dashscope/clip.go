package dashscope

import (
	"context"
	"fmt"
	"regexp"
	"slices"
	"strings"

	"tollgate/internal/upstream"
	"tollgate/internal/upstream/input"
	"tollgate/internal/upstream/jobcall"
	"tollgate/internal/wire/jobrequest"
)

// Values of the option image_role. If empty, frames decides.
const (
	roleFrame     = "frame"
	roleReference = "reference"
)

// resolution matches the names of tiers at DashScope (`720P`).
var resolution = regexp.MustCompile(`^[0-9]{1,4}[PK]$`)

// clipRequest returns the submission of a clip in the model's dialect.
func (a *Adapter) clipRequest(ctx context.Context, w jobcall.Task) (request, error) {
	ask := request{Model: w.Model, Input: map[string]any{}, Parameters: map[string]any{}}
	if w.Prompt != "" {
		ask.Input["prompt"] = w.Prompt
	}
	if w.Seconds > 0 {
		ask.Parameters["duration"] = w.Seconds
	}
	tier := strings.ToUpper(w.Tier)
	if !resolution.MatchString(tier) {
		return ask, upstream.Unsuitable(w.Kind, "dashscope knows no resolution %q", w.Tier)
	}
	speaks := dialectOf(w.Model)
	var err error
	switch speaks {
	case inMedia:
		err = a.sayMedia(ctx, w, ask)
	case inList:
		err = sayList(w, ask)
	case inText:
		if len(w.References) > 0 {
			err = upstream.Unsuitable(w.Kind, "dashscope's model %s takes no references", w.Model)
		}
	default:
		err = sayFrames(ctx, w, ask, speaks)
	}
	if err == nil {
		err = saySize(w, ask, speaks, tier)
	}
	ask.addParams(w, "negative_prompt", "audio_url")
	return ask, err
}

// saySize adds the size of the clip.
func saySize(w jobcall.Task, ask request, speaks dialect, tier string) error {
	if speaks == inList || speaks == inText {
		ratio := w.Ratio
		if ratio == "" {
			ratio = "16:9"
		}
		size := pixels(tier, ratio)
		if w.Exact || size == "" && w.Width > 0 {
			size = fmt.Sprintf("%d*%d", w.Width, w.Height)
		}
		if size == "" {
			return upstream.Unsuitable(w.Kind, "dashscope's model %s knows no size of %s and %s", w.Model, tier, ratio)
		}
		ask.Parameters["size"] = size
		return nil
	}
	if w.Exact {
		return upstream.Unsuitable(w.Kind, "dashscope's model %s takes a resolution, no pixels", w.Model)
	}
	ask.Parameters["resolution"] = tier
	switch {
	case w.Ratio == "":
	case speaks == inMedia && !shaped(ask):
		ask.Parameters["ratio"] = w.Ratio
	case len(w.References) > 0:
		return upstream.Unsuitable(w.Kind, "a clip of dashscope's model %s has the shape of its first frame, not a ratio", w.Model)
	}
	return nil
}

// shaped reports whether the clip takes its shape from a frame.
func shaped(ask request) bool {
	list, _ := ask.Input["media"].([]media)
	return slices.ContainsFunc(list, func(m media) bool { return m.Type == "first_frame" })
}

// media is a reference in input.media.
type media struct {
	Type string `json:"type"`
	URL  string `json:"url"`
}

// sayMedia puts the references into input.media.
func (a *Adapter) sayMedia(ctx context.Context, w jobcall.Task, ask request) error {
	if len(w.References) == 0 {
		return nil
	}
	if strings.Contains(w.Model, "t2v") {
		return upstream.Unsuitable(w.Kind, "dashscope's model %s takes no references", w.Model)
	}
	frames, err := a.frames(w)
	if err != nil {
		return err
	}
	list := make([]media, 0, len(w.References))
	for i, r := range w.References {
		var m media
		if r.Image() {
			m.Type = "reference_image"
			if r.Role == jobrequest.FirstFrame || r.Role == jobrequest.LastFrame {
				m.Type = r.Role
			} else if frames {
				m.Type = [...]string{"first_frame", "last_frame"}[i]
			}
			m.URL, err = input.Link(ctx, r)
		} else {
			m.Type = "reference_video"
			if edits(w.Model) {
				m.Type = "video" // the video to edit
			}
			m.URL, err = address(w, r)
		}
		if err != nil {
			return err
		}
		list = append(list, m)
	}
	ask.Input["media"] = list
	return nil
}

// frames reports whether a clip's pictures without roles are its first and last frame. For some
// models the ID decides. For models with both modes the line's image_role decides. Otherwise one
// picture is the first frame and two are the first and the last frame. Three or more pictures,
// pictures beside a video, and pictures beside a ratio are references: frames have a shape of their
// own.
func (a *Adapter) frames(w jobcall.Task) (bool, error) {
	if w.HasRoles() {
		return false, nil
	}
	few := len(w.References) <= 2 && !slices.ContainsFunc(w.References, func(r jobcall.Reference) bool { return !r.Image() })
	switch {
	case strings.Contains(w.Model, "r2v"), edits(w.Model):
		return false, nil
	case strings.Contains(w.Model, "i2v"), a.options.imageRole == roleFrame:
		if !few {
			return false, upstream.Unsuitable(w.Kind, "dashscope's model %s takes one or two pictures as frames, and no videos", w.Model)
		}
		return true, nil
	case a.options.imageRole == roleReference:
		return false, nil
	}
	return few && w.Ratio == "", nil
}

// edits reports whether a model edits a clip.
func edits(model string) bool {
	return strings.Contains(model, "videoedit") || strings.Contains(model, "video-edit")
}

// address returns the address of a reference for download by DashScope, which accepts no inline
// videos.
func address(w jobcall.Task, r jobcall.Reference) (string, error) {
	if r.URL == "" {
		return "", upstream.Unsuitable(w.Kind,
			"dashscope's model %s fetches this reference from an address alone: the media host must be public", w.Model)
	}
	return r.URL, nil
}

// sayList puts the references into input.reference_urls.
func sayList(w jobcall.Task, ask request) error {
	list := make([]string, 0, len(w.References))
	for _, r := range w.References {
		at, err := address(w, r)
		if err != nil {
			return err
		}
		list = append(list, at)
	}
	if len(list) > 0 {
		ask.Input["reference_urls"] = list
	}
	return nil
}

// sayFrames puts one picture, or the first and the last, into fields of their
// own.
func sayFrames(ctx context.Context, w jobcall.Task, ask request, speaks dialect) error {
	names := []string{"img_url"}
	if speaks == inFrames {
		names = []string{"first_frame_url", "last_frame_url"}
	}
	if n := len(w.References); n == 0 || n > len(names) {
		return upstream.Unsuitable(w.Kind, "dashscope's model %s makes a clip from a picture, at most %d of them", w.Model, len(names))
	}
	refs := w.References
	if first, last, _ := w.SplitFrames(); last != nil {
		if first == nil {
			return upstream.Unsuitable(w.Kind, "dashscope's model %s takes a last frame only with a first frame", w.Model)
		}
		refs = []jobcall.Reference{*first, *last}
	}
	for i, r := range refs {
		if !r.Image() {
			return upstream.Unsuitable(w.Kind, "dashscope's model %s takes no videos", w.Model)
		}
		at, err := input.Link(ctx, r)
		if err != nil {
			return err
		}
		ask.Input[names[i]] = at
	}
	return nil
}
