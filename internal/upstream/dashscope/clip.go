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
	req := request{Model: task.Model, Input: map[string]any{}, Parameters: map[string]any{}}
	if task.Prompt != "" {
		req.Input["prompt"] = task.Prompt
	}
	if task.Seconds > 0 {
		req.Parameters["duration"] = task.Seconds
	}
	tier := strings.ToUpper(task.Tier)
	if !resolution.MatchString(tier) {
		return req, upstream.Unsuitable(task.Kind, "dashscope knows no resolution %q", task.Tier)
	}
	format := dialectOf(task.Model)
	var err error
	switch format {
	case inMedia:
		err = a.setMedia(ctx, task, req)
	case inList:
		err = setReferenceURLs(task, req)
	case inText:
		if len(task.References) > 0 {
			err = upstream.Unsuitable(task.Kind, "dashscope's model %s takes no references", task.Model)
		}
	default:
		err = setFrames(ctx, task, req, format)
	}
	if err == nil {
		err = setSize(task, req, format, tier)
	}
	req.addParams(task, "negative_prompt", "audio_url")
	return req, err
}

// setSize adds the size of the clip.
func setSize(task jobcall.Task, req request, format dialect, tier string) error {
	if format == inList || format == inText {
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
		req.Parameters["size"] = size
		return nil
	}
	if task.Exact {
		return upstream.Unsuitable(task.Kind, "dashscope's model %s takes a resolution, no pixels", task.Model)
	}
	req.Parameters["resolution"] = tier
	switch {
	case task.Ratio == "":
	case format == inMedia && !hasFirstFrame(req):
		req.Parameters["ratio"] = task.Ratio
	case len(task.References) > 0:
		return upstream.Unsuitable(task.Kind, "a clip of dashscope's model %s has the shape of its first frame, not a ratio", task.Model)
	}
	return nil
}

// hasFirstFrame reports whether the clip has a first frame, which determines its shape.
func hasFirstFrame(req request) bool {
	list, _ := req.Input["media"].([]media)
	return slices.ContainsFunc(list, func(m media) bool { return m.Type == "first_frame" })
}

// media is a reference in input.media.
type media struct {
	Type string `json:"type"`
	URL  string `json:"url"`
}

// setMedia puts the references into input.media.
func (a *Adapter) setMedia(ctx context.Context, task jobcall.Task, req request) error {
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
			if isEditModel(task.Model) {
				m.Type = "video" // the video to edit
			}
			m.URL, err = address(task, r)
		}
		if err != nil {
			return err
		}
		list = append(list, m)
	}
	req.Input["media"] = list
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
	canBeFrames := len(task.References) <= 2 && !slices.ContainsFunc(task.References, func(r jobcall.Reference) bool { return !r.Image() })
	switch {
	case strings.Contains(task.Model, "r2v"), isEditModel(task.Model):
		return false, nil
	case strings.Contains(task.Model, "i2v"), a.options.imageRole == roleFrame:
		if !canBeFrames {
			return false, upstream.Unsuitable(task.Kind, "dashscope's model %s takes one or two pictures as frames, and no videos", task.Model)
		}
		return true, nil
	case a.options.imageRole == roleReference:
		return false, nil
	}
	return canBeFrames && task.Ratio == "", nil
}

// isEditModel reports whether a model edits a clip.
func isEditModel(model string) bool {
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

// setReferenceURLs puts the references into input.reference_urls.
func setReferenceURLs(task jobcall.Task, req request) error {
	list := make([]string, 0, len(task.References))
	for _, r := range task.References {
		link, err := address(task, r)
		if err != nil {
			return err
		}
		list = append(list, link)
	}
	if len(list) > 0 {
		req.Input["reference_urls"] = list
	}
	return nil
}

// setFrames puts one picture, or the first and the last, into separate fields.
func setFrames(ctx context.Context, task jobcall.Task, req request, format dialect) error {
	names := []string{"img_url"}
	if format == inFrames {
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
		link, err := input.Link(ctx, r)
		if err != nil {
			return err
		}
		req.Input[names[i]] = link
	}
	return nil
}
