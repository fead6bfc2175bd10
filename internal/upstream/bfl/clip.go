package bfl

import (
	"context"

	"tollgate/internal/upstream"
	"tollgate/internal/upstream/input"
	"tollgate/internal/upstream/jobcall"
)

// Bounds of a clip's length, in seconds.
const minSeconds, maxSeconds = 5, 20

// clipTiers maps tiers to the spelling of flux-3-video.
func clipTiers() map[string]string { return map[string]string{"720p": "hd", "1080p": "fhd"} }

func clipRatios() []string { return []string{"21:9", "2:1", "16:9", "4:3", "1:1", "3:4", "9:16"} }

// clipBody returns the body for a clip. The references choose the mode: one picture is the first frame,
// two are the first and the last frame, and one video is the source of the clip. There is no field
// for reference pictures of subjects.
func clipBody(ctx context.Context, task jobcall.Task) (map[string]any, error) {
	tier, ok := clipTiers()[task.Tier]
	switch {
	case !ok:
		return nil, upstream.Unsuitable(task.Kind, "bfl's model %s does not make %q", task.Model, task.Tier)
	case task.Exact:
		return nil, upstream.Unsuitable(task.Kind, "bfl's model %s takes a resolution and a ratio, no pixels", task.Model)
	case task.Seconds != 0 && (task.Seconds < minSeconds || task.Seconds > maxSeconds):
		return nil, upstream.Unsuitable(task.Kind, "bfl's model %s makes %d to %d seconds, not %d", task.Model, minSeconds, maxSeconds,
			task.Seconds)
	}
	body := map[string]any{"resolution": tier, "mode": "t2v"}
	if task.Seconds > 0 {
		body["duration"] = task.Seconds
	}
	if err := setRatio(body, task, clipRatios()); err != nil {
		return nil, err
	}
	first, last, rest := task.Frames()
	switch video := len(rest) == 1 && !rest[0].Image() && first == nil; {
	case len(task.References) == 0:
		return body, nil
	case video && rest[0].URL == "":
		return nil, upstream.Unsuitable(task.Kind, "bfl fetches videos from an address: the media host must be public")
	case video:
		body["mode"], body["start_video"] = "v2v", rest[0].URL
		return body, nil
	case first == nil || len(rest) > 0:
		return nil, upstream.Unsuitable(task.Kind, "bfl's model %s takes a first frame, and a last one beside it, or one video", task.Model)
	}
	var frames []string
	for _, frame := range []*jobcall.Reference{first, last} {
		if frame == nil {
			continue
		}
		link, err := input.Link(ctx, *frame)
		if err != nil {
			return nil, err
		}
		frames = append(frames, link)
	}
	body["mode"], body["keyframes"] = "i2v", frames
	return body, nil
}
