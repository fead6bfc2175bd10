package kling

import (
	"context"
	"slices"
	"strconv"
	"strings"

	"tollgate/internal/upstream"
	"tollgate/internal/upstream/jobcall"
)

// This file makes clips with the older interface, which has the model in the body, because the
// newer interface does not accept a pair of keys.

// The paths below /v1/videos.
const (
	text2Video  = "text2video"
	image2Video = "image2video"
)

// olderModel holds the features common to a group of clip models of the older interface.
type olderModel struct {
	modes     map[string]string // by tier
	sound     bool              // has a setting for sound
	anyLength bool              // makes 3 to 15 seconds; otherwise 5 or 10 seconds
}

// olderOf returns the features of a model by the model's ID. ok reports whether the model is known.
func olderOf(model string) (_ olderModel, ok bool) {
	modes := map[string]string{"720p": "std", "1080p": "pro"}
	switch model {
	case "kling-v3":
		return olderModel{modes: map[string]string{"720p": "std", "1080p": "pro", "4k": "4k"}, sound: true, anyLength: true}, true
	case "kling-v2-6":
		return olderModel{modes: modes, sound: true}, true
	case "kling-v2-5-turbo":
		return olderModel{modes: modes}, true
	}
	return olderModel{}, false
}

// olderSeries returns the path below /v1/videos for a clip.
func olderSeries(task jobcall.Task) string {
	if len(task.References) > 0 {
		return image2Video
	}
	return text2Video
}

// olderRequest returns the submission of a clip from a text, or from one or two frames.
func olderRequest(ctx context.Context, task jobcall.Task) (*request, error) {
	if err := task.CheckPictureSizes(maxPicture, maxInline); err != nil {
		return nil, err
	}
	model, ok := olderOf(task.Model)
	first, last, rest := task.Frames()
	mode := model.modes[strings.ToLower(task.Tier)]
	switch {
	case !ok:
		return nil, upstream.Unsuitable(task.Kind, "kling's model %.80q does not accept a pair of keys: use an API key", task.Model)
	case task.Exact || mode == "":
		return nil, upstream.Unsuitable(task.Kind, "kling's model %s does not make %s, or a size in pixels", task.Model, task.Tier)
	case len(rest) > 0 || last != nil && first == nil:
		return nil, upstream.Unsuitable(task.Kind, "kling's model %s takes only a first frame, or a first and a last frame", task.Model)
	case first == nil && task.Prompt == "", first != nil && task.Ratio != "":
		return nil, upstream.Unsuitable(task.Kind, "kling makes a clip from a prompt, or in the ratio of its first frame")
	case task.Seconds != 0 && !model.allowsLength(task.Seconds):
		return nil, upstream.Unsuitable(task.Kind, "kling's model %s does not make %d seconds", task.Model, task.Seconds)
	}
	body := map[string]any{"model_name": task.Model, "mode": mode, "external_task_id": task.Key}
	for name, value := range map[string]string{"prompt": task.Prompt, "aspect_ratio": task.Ratio} {
		if value != "" {
			body[name] = value
		}
	}
	if task.Seconds > 0 {
		body["duration"] = strconv.FormatInt(task.Seconds, 10)
	}
	for name, frame := range map[string]*jobcall.Reference{"image": first, "image_tail": last} {
		if frame == nil {
			continue
		}
		image, err := addressOrBase64(ctx, *frame)
		if err != nil {
			return nil, err
		}
		body[name] = image
	}
	for _, name := range []string{"negative_prompt", "watermark_info"} {
		if raw, ok := task.ExtraParams()[name]; ok {
			body[name] = raw
		}
	}
	series := olderSeries(task)
	return &request{path: []string{"v1", "videos", series}, series: series, body: body}, model.setAudio(body, task, mode)
}

// allowsLength reports whether the model makes clips of a length.
func (o olderModel) allowsLength(seconds int64) bool {
	if o.anyLength {
		return seconds >= 3 && seconds <= 15
	}
	return slices.Contains([]int64{5, 10}, seconds)
}

// setAudio adds the setting for sound.
func (o olderModel) setAudio(body map[string]any, task jobcall.Task, mode string) error {
	enabled, set := task.Audio()
	switch {
	case !set, !enabled && !o.sound:
	case !o.sound, enabled && mode == "std" && !o.anyLength:
		return upstream.Unsuitable(task.Kind, "kling's model %s cannot make this clip with sound %t", task.Model, enabled)
	case enabled:
		body["sound"] = "on"
	default:
		body["sound"] = "off"
	}
	return nil
}
