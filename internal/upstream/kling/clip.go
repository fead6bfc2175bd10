package kling

import (
	"context"
	"encoding/json"
	"fmt"
	"slices"
	"strings"

	"tollgate/internal/upstream"
	"tollgate/internal/upstream/input"
	"tollgate/internal/upstream/jobcall"
	"tollgate/internal/wire/jobrequest"
)

// soundSupport is a model family's support for sound.
type soundSupport int

const (
	soundOptional  soundSupport = iota // the setting selects native sound or no sound
	soundAlways                        // always has sound; no setting
	soundNever                         // never has sound; no setting
	soundMustBeOff                     // never has sound; the setting must be off
)

// family holds the features common to a group of clip models.
type family struct {
	omni      bool // takes references, by the path omni-video
	onlyOmni  bool // has no path except omni-video
	lastFrame bool // takes a last frame
	multiShot bool // has the setting multi_shot, which is on by default
	sound     soundSupport
}

// familyOf returns the family for the model's ID. An unknown model gets the features of the newest
// model.
func familyOf(model string) family {
	switch {
	case strings.HasPrefix(model, "kling-3.0-turbo"):
		return family{sound: soundAlways}
	case strings.Contains(model, "omni"):
		return family{omni: true, onlyOmni: true, lastFrame: true, multiShot: true}
	case strings.HasPrefix(model, "kling-o1"):
		return family{omni: true, onlyOmni: true, lastFrame: true, multiShot: true, sound: soundMustBeOff}
	case strings.HasPrefix(model, "kling-3.0"), strings.HasPrefix(model, "kling-2.6"):
		return family{lastFrame: true, multiShot: true}
	case strings.HasPrefix(model, "kling-2."):
		return family{lastFrame: true, multiShot: true, sound: soundNever}
	}
	return family{omni: true, lastFrame: true, multiShot: true, sound: soundAlways}
}

// content is an item of the body's contents: the prompt, a frame or a reference.
type content struct {
	Type string `json:"type"`
	Text string `json:"text,omitempty"`
	URL  string `json:"url,omitempty"`
	ID   string `json:"id,omitempty"`
}

// clipRequest returns the submission of a clip.
func clipRequest(ctx context.Context, task jobcall.Task) (*request, error) {
	if err := task.CheckPictureSizes(maxFrame, maxInline); err != nil {
		return nil, err
	}
	f := familyOf(task.Model)
	parts, inputs, err := contents(ctx, task, f)
	if err != nil {
		return nil, err
	}
	path := "text-to-video"
	switch {
	case f.onlyOmni, inputs.references:
		path = "omni-video"
	case inputs.frames:
		path = "image-to-video"
	}
	settings, err := settingsOf(task, f, inputs)
	if err != nil {
		return nil, err
	}
	if strings.Trim(task.Model, ".") == "" || strings.ContainsAny(task.Model, "/?#%") {
		return nil, upstream.Unsuitable(task.Kind, "%q is not a model ID of kling", task.Model)
	}
	options := map[string]any{"external_task_id": task.Key}
	if mark, ok := task.ExtraParams()["watermark_info"]; ok {
		options["watermark_info"] = mark
	}
	return &request{path: []string{path, task.Model}, body: map[string]any{"contents": parts, "settings": settings, "options": options}}, nil
}

// inputKinds reports which kinds of input a clip has.
type inputKinds struct{ frames, references, video bool }

// contents returns the prompt and the references. Without roles, one picture is the first frame,
// and two pictures are the first and the last frame if the model takes a last frame. All other
// pictures are references.
func contents(ctx context.Context, task jobcall.Task, f family) ([]content, inputKinds, error) {
	var parts []content
	if task.Prompt != "" {
		parts = append(parts, content{Type: "prompt", Text: task.Prompt})
	}
	var kinds inputKinds
	first, last, _ := task.SplitFrames()
	if last != nil && first == nil {
		return nil, kinds, upstream.Unsuitable(task.Kind, "kling takes a last frame only together with a first frame")
	}
	frames := 0
	if n := len(task.References); !task.HasRoles() && n <= 2 && !slices.ContainsFunc(task.References, isVideo) && (n < 2 || f.lastFrame) {
		frames = n
	}
	images := 0
	for i, r := range task.References {
		part := content{Type: "refer_image"}
		switch {
		case r.Role == jobrequest.FirstFrame, r.Role == jobrequest.LastFrame:
			part.Type, kinds.frames = r.Role, true
		case i < frames:
			part.Type, kinds.frames = [...]string{jobrequest.FirstFrame, jobrequest.LastFrame}[i], true
		case !f.omni:
			return nil, kinds, upstream.Unsuitable(task.Kind, "kling's model %s takes frames and no other references", task.Model)
		case !r.Image():
			if r.URL == "" || kinds.video {
				return nil, kinds, upstream.Unsuitable(task.Kind, "kling takes only one video, and only by its address: the media host must be public")
			}
			part.Type, kinds.video, kinds.references = "feature_video", true, true
		default:
			images++
			part.ID, kinds.references = fmt.Sprintf("image_%d", images), true
		}
		var err error
		if part.URL = r.URL; r.Image() {
			part.URL, err = input.Link(ctx, r)
		}
		if err != nil {
			return nil, kinds, err
		}
		parts = append(parts, part)
	}
	if len(parts) == 0 || task.Prompt == "" && !kinds.frames {
		return nil, kinds, upstream.Unsuitable(task.Kind, "kling needs a prompt or a first frame for a clip")
	}
	return parts, kinds, nil
}

func isVideo(r jobcall.Reference) bool { return !r.Image() }

// settingsOf returns the settings of a clip: size, length, shots and sound.
func settingsOf(task jobcall.Task, f family, inputs inputKinds) (map[string]any, error) {
	tier := strings.ToLower(task.Tier)
	if tier == "2160p" {
		tier = "4k"
	}
	if task.Exact || !slices.Contains([]string{"720p", "1080p", "4k"}, tier) {
		return nil, upstream.Unsuitable(task.Kind, "kling makes 720p, 1080p and 4k, not %s and not a size in pixels", task.Tier)
	}
	settings := map[string]any{"resolution": tier}
	if task.Seconds > 0 {
		settings["duration"] = task.Seconds
	}
	switch {
	case inputs.frames && task.Ratio != "":
		return nil, upstream.Unsuitable(task.Kind, "a ratio; kling makes a clip in the ratio of its first frame")
	case inputs.frames || inputs.video && task.Ratio == "":
	case task.Ratio == "":
		settings["aspect_ratio"] = "16:9" // required with references
	default:
		settings["aspect_ratio"] = task.Ratio
	}
	if f.multiShot {
		settings["multi_shot"] = inputs.video // required with a reference video
	}
	if param, ok := task.ExtraParams()["multi_shot"]; ok {
		if !f.multiShot || string(param) != "true" && string(param) != "false" {
			return nil, upstream.Unsuitable(task.Kind, "multi_shot; kling's model %s does not take this value", task.Model)
		}
		settings["multi_shot"] = json.RawMessage(param)
	}
	return settings, setAudio(settings, task, f, inputs)
}

// setAudio adds the setting for sound.
func setAudio(settings map[string]any, task jobcall.Task, f family, inputs inputKinds) error {
	enabled, set := task.Audio()
	switch {
	case !set:
	case f.sound == soundAlways && enabled, f.sound == soundNever && !enabled:
	case f.sound == soundOptional && !enabled, f.sound == soundMustBeOff && !enabled:
		settings["audio"] = "off"
	case f.sound != soundOptional, inputs.video, strings.HasPrefix(task.Model, "kling-2.6") && settings["resolution"] != "1080p":
		return upstream.Unsuitable(task.Kind, "kling's model %s cannot make this clip with sound %t", task.Model, enabled)
	default:
		settings["audio"] = "native"
	}
	return nil
}
