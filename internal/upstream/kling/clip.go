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

// sound is a model family's support for sound.
type sound int

const (
	soundOf     sound = iota // native or off, by a setting
	soundAlways              // always, without a setting
	soundNever               // never, without a setting
	soundOff                 // never; the setting must be off
)

// family holds the features common to a group of clip models.
type family struct {
	omni  bool // takes references beside frames, at a path of its own
	only  bool // only has the path for references
	last  bool // takes a last frame
	shots bool // has the setting multi_shot, on by default
	sound sound
}

// familyOf returns the family for the model's ID. An unknown model gets the features of the newest.
func familyOf(model string) family {
	switch {
	case strings.HasPrefix(model, "kling-3.0-turbo"):
		return family{sound: soundAlways}
	case strings.Contains(model, "omni"):
		return family{omni: true, only: true, last: true, shots: true}
	case strings.HasPrefix(model, "kling-o1"):
		return family{omni: true, only: true, last: true, shots: true, sound: soundOff}
	case strings.HasPrefix(model, "kling-3.0"), strings.HasPrefix(model, "kling-2.6"):
		return family{last: true, shots: true}
	case strings.HasPrefix(model, "kling-2."):
		return family{last: true, shots: true, sound: soundNever}
	}
	return family{omni: true, last: true, shots: true, sound: soundAlways}
}

// content is one input of a clip: the prompt, a frame or a reference.
type content struct {
	Type string `json:"type"`
	Text string `json:"text,omitempty"`
	URL  string `json:"url,omitempty"`
	ID   string `json:"id,omitempty"`
}

// clipRequest returns the submission of a clip.
func clipRequest(ctx context.Context, w jobcall.Task) (*request, error) {
	if err := w.FitPictures(maxFrame, maxInline); err != nil {
		return nil, err
	}
	f := familyOf(w.Model)
	parts, shape, err := contents(ctx, w, f)
	if err != nil {
		return nil, err
	}
	path := "text-to-video"
	switch {
	case f.only, shape.references:
		path = "omni-video"
	case shape.frames:
		path = "image-to-video"
	}
	settings, err := settingsOf(w, f, shape)
	if err != nil {
		return nil, err
	}
	if strings.Trim(w.Model, ".") == "" || strings.ContainsAny(w.Model, "/?#%") {
		return nil, upstream.Unsuitable(w.Kind, "%q is no id of a model at kling", w.Model)
	}
	options := map[string]any{"external_task_id": w.Key}
	if mark, ok := w.Further()["watermark_info"]; ok {
		options["watermark_info"] = mark
	}
	return &request{path: []string{path, w.Model}, body: map[string]any{"contents": parts, "settings": settings, "options": options}}, nil
}

// shape reports the kinds of input of a clip.
type shape struct{ frames, references, video bool }

// contents returns the prompt and the references. Without roles, one picture is the first frame and
// two are the first and the last frame, if the model accepts the frames. Three or more pictures,
// and pictures beside a video, are references.
func contents(ctx context.Context, w jobcall.Task, f family) ([]content, shape, error) {
	var parts []content
	if w.Prompt != "" {
		parts = append(parts, content{Type: "prompt", Text: w.Prompt})
	}
	var s shape
	first, last, _ := w.Framed()
	if last != nil && first == nil {
		return nil, s, upstream.Unsuitable(w.Kind, "kling takes a last frame beside a first one alone")
	}
	frames := 0
	if n := len(w.References); !w.HasRoles() && n <= 2 && !slices.ContainsFunc(w.References, isVideo) && (n < 2 || f.last) {
		frames = n
	}
	images := 0
	for i, r := range w.References {
		part := content{Type: "refer_image"}
		switch {
		case r.Role == jobrequest.FirstFrame, r.Role == jobrequest.LastFrame:
			part.Type, s.frames = r.Role, true
		case i < frames:
			part.Type, s.frames = [...]string{jobrequest.FirstFrame, jobrequest.LastFrame}[i], true
		case !f.omni:
			return nil, s, upstream.Unsuitable(w.Kind, "kling's model %s takes frames and no other references", w.Model)
		case !r.Image():
			if r.URL == "" || s.video {
				return nil, s, upstream.Unsuitable(w.Kind, "kling takes one video, by its address alone: the media host must be public")
			}
			part.Type, s.video, s.references = "feature_video", true, true
		default:
			images++
			part.ID, s.references = fmt.Sprintf("image_%d", images), true
		}
		var err error
		if part.URL = r.URL; r.Image() {
			part.URL, err = input.Link(ctx, r)
		}
		if err != nil {
			return nil, s, err
		}
		parts = append(parts, part)
	}
	if len(parts) == 0 || w.Prompt == "" && !s.frames {
		return nil, s, upstream.Unsuitable(w.Kind, "kling makes a clip of a prompt or a first frame")
	}
	return parts, s, nil
}

func isVideo(r jobcall.Reference) bool { return !r.Image() }

// settingsOf returns size, length and sound.
func settingsOf(w jobcall.Task, f family, s shape) (map[string]any, error) {
	tier := strings.ToLower(w.Tier)
	if tier == "2160p" {
		tier = "4k"
	}
	if w.Exact || !slices.Contains([]string{"720p", "1080p", "4k"}, tier) {
		return nil, upstream.Unsuitable(w.Kind, "kling makes 720p, 1080p and 4k, not %s or pixels", w.Tier)
	}
	settings := map[string]any{"resolution": tier}
	if w.Seconds > 0 {
		settings["duration"] = w.Seconds
	}
	switch {
	case s.frames && w.Ratio != "":
		return nil, upstream.Unsuitable(w.Kind, "a clip of kling has the shape of its first frame, not a ratio")
	case s.frames || s.video && w.Ratio == "":
	case w.Ratio == "":
		settings["aspect_ratio"] = "16:9" // it has no default beside references
	default:
		settings["aspect_ratio"] = w.Ratio
	}
	if f.shots {
		settings["multi_shot"] = s.video // a reference video wants it
	}
	if own, ok := w.Further()["multi_shot"]; ok {
		if !f.shots || string(own) != "true" && string(own) != "false" {
			return nil, upstream.Unsuitable(w.Kind, "multi_shot, which kling's model %s does not take so", w.Model)
		}
		settings["multi_shot"] = json.RawMessage(own)
	}
	return settings, sayAudio(settings, w, f, s)
}

// sayAudio adds the setting for sound.
func sayAudio(settings map[string]any, w jobcall.Task, f family, s shape) error {
	on, set := w.Audio()
	switch {
	case !set:
	case f.sound == soundAlways && on, f.sound == soundNever && !on:
	case f.sound == soundOf && !on, f.sound == soundOff && !on:
		settings["audio"] = "off"
	case f.sound != soundOf, s.video, strings.HasPrefix(w.Model, "kling-2.6") && settings["resolution"] != "1080p":
		return upstream.Unsuitable(w.Kind, "kling's model %s cannot do this with sound %t", w.Model, on)
	default:
		settings["audio"] = "native"
	}
	return nil
}
