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
func (a *Adapter) clipRequest(ctx context.Context, task jobcall.Task) (request, error) {
	ask := request{Model: task.Model, Input: map[string]any{}, Parameters: map[string]any{}}
	if task.Prompt != "" {
		ask.Input["prompt"] = task.Prompt
	}
	if task.Seconds > 0 {
		ask.Parameters["duration"] = task.Seconds
	}
	tier := strings.ToUpper(task.Tier)
	if !resolution.MatchString(tier) {
		return ask, upstream.Unsuitable(task.Kind, "dashscope knows no resolution %q", task.Tier)
	}
	speaks := dialectOf(task.Model)
	var err error
	switch speaks {
	case inMedia:
		err = a.sayMedia(ctx, task, ask)
	case inList:
		err = sayList(task, ask)
	case inText:
		if len(task.References) > 0 {
			err = upstream.Unsuitable(task.Kind, "dashscope's model %s takes no references", task.Model)
		}
	default:
		err = sayFrames(ctx, task, ask, speaks)
	}
	if err == nil {
		err = saySize(task, ask, speaks, tier)
	}
	ask.addParams(task, "negative_prompt", "audio_url")
	return ask, err
}

// saySize adds the size of the clip.
func saySize(task jobcall.Task, ask request, speaks dialect, tier string) error {
	if speaks == inList || speaks == inText {
		ratio := task.Ratio
		if ratio == "" {
			ratio = "16:9"
		}
		size := pixels(tier, ratio)
		if task.Exact || size == "" && task.Width > 0 {
			size = fmt.Sprintf("%d*%d", task.Width, task.Height)
		}
		if size == "" {
			return upstream.Unsuitable(task.Kind, "dashscope's model %s knows no size of %s and %s", task.Model, tier, ratio)
		}
		ask.Parameters["size"] = size
		return nil
	}
	if task.Exact {
		return upstream.Unsuitable(task.Kind, "dashscope's model %s takes a resolution, no pixels", task.Model)
	}
	ask.Parameters["resolution"] = tier
	switch {
	case task.Ratio == "":
	case speaks == inMedia && !shaped(ask):
		ask.Parameters["ratio"] = task.Ratio
	case len(task.References) > 0:
		return upstream.Unsuitable(task.Kind, "a clip of dashscope's model %s has the shape of its first frame, not a ratio", task.Model)
	}
	return nil
}

// shaped reports whether the shape of the clip is that of a frame.
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
func (a *Adapter) sayMedia(ctx context.Context, task jobcall.Task, ask request) error {
	if len(task.References) == 0 {
		return nil
	}
	if strings.Contains(task.Model, "t2v") {
		return upstream.Unsuitable(task.Kind, "dashscope's model %s takes no references", task.Model)
	}
	frames, err := a.frames(task)
	if err != nil {
		return err
	}
	list := make([]media, 0, len(task.References))
	for i, r := range task.References {
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
			if edits(task.Model) {
				m.Type = "video" // the video to edit
			}
			m.URL, err = address(task, r)
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
// pictures with a video, and pictures with a ratio are references, because frames determine the
// ratio.
func (a *Adapter) frames(task jobcall.Task) (bool, error) {
	if task.HasRoles() {
		return false, nil
	}
	few := len(task.References) <= 2 && !slices.ContainsFunc(task.References, func(r jobcall.Reference) bool { return !r.Image() })
	switch {
	case strings.Contains(task.Model, "r2v"), edits(task.Model):
		return false, nil
	case strings.Contains(task.Model, "i2v"), a.options.imageRole == roleFrame:
		if !few {
			return false, upstream.Unsuitable(task.Kind, "dashscope's model %s takes one or two pictures as frames, and no videos", task.Model)
		}
		return true, nil
	case a.options.imageRole == roleReference:
		return false, nil
	}
	return few && task.Ratio == "", nil
}

// edits reports whether a model edits a clip.
func edits(model string) bool {
	return strings.Contains(model, "videoedit") || strings.Contains(model, "video-edit")
}

// address returns the address of a reference for download by DashScope, which accepts no inline
// videos.
func address(task jobcall.Task, r jobcall.Reference) (string, error) {
	if r.URL == "" {
		return "", upstream.Unsuitable(task.Kind,
			"dashscope's model %s fetches this reference from an address alone: the media host must be public", task.Model)
	}
	return r.URL, nil
}

// sayList puts the references into input.reference_urls.
func sayList(task jobcall.Task, ask request) error {
	list := make([]string, 0, len(task.References))
	for _, r := range task.References {
		at, err := address(task, r)
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

// sayFrames puts one picture, or the first and the last, into separate fields.
func sayFrames(ctx context.Context, task jobcall.Task, ask request, speaks dialect) error {
	names := []string{"img_url"}
	if speaks == inFrames {
		names = []string{"first_frame_url", "last_frame_url"}
	}
	if n := len(task.References); n == 0 || n > len(names) {
		return upstream.Unsuitable(task.Kind, "dashscope's model %s makes a clip from a picture, at most %d of them", task.Model, len(names))
	}
	refs := task.References
	if first, last, _ := task.SplitFrames(); last != nil {
		if first == nil {
			return upstream.Unsuitable(task.Kind, "dashscope's model %s takes a last frame only with a first frame", task.Model)
		}
		refs = []jobcall.Reference{*first, *last}
	}
	for i, r := range refs {
		if !r.Image() {
			return upstream.Unsuitable(task.Kind, "dashscope's model %s takes no videos", task.Model)
		}
		at, err := input.Link(ctx, r)
		if err != nil {
			return err
		}
		ask.Input[names[i]] = at
	}
	return nil
}
