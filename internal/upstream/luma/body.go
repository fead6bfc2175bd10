package luma

import (
	"context"
	"encoding/base64"
	"encoding/json"
	"slices"
	"strconv"
	"unicode/utf8"

	"tollgate/internal/upstream"
	"tollgate/internal/upstream/jobcall"
)

// Bounds of one request.
const (
	squareSide    = 2048 // width and height of every square picture, in pixels
	maxReferences = 9    // for a picture
	maxPrompt     = 6000 // characters
)

func clipRatios() []string { return []string{"9:16", "3:4", "1:1", "4:3", "16:9", "21:9"} }

func pictureRatios() []string {
	return append(clipRatios(), "3:1", "2:1", "3:2", "2:3", "1:2", "1:3")
}

// media is a reference in a body: its address, or its content in base64.
type media struct {
	URL  string `json:"url,omitempty"`
	Data string `json:"data,omitempty"`
	Type string `json:"media_type,omitempty"`
}

// mediaOf returns a reference as media.
func mediaOf(ctx context.Context, r jobcall.Reference) (media, error) {
	switch {
	case r.URL != "" && r.Image():
		return media{URL: r.URL}, nil
	case r.URL != "": // Luma needs the type of a video to fetch it
		return media{URL: r.URL, Type: r.Type}, nil
	}
	data, err := r.Bytes(ctx)
	if err != nil {
		return media{}, upstream.UnreadableFile(err)
	}
	return media{Data: base64.StdEncoding.EncodeToString(data), Type: r.Type}, nil
}

// hasVideo reports whether a task has a reference video.
func hasVideo(task jobcall.Task) bool {
	return slices.ContainsFunc(task.References, func(r jobcall.Reference) bool { return !r.Image() })
}

// commonFields returns the fields common to pictures and clips.
func commonFields(task jobcall.Task, ratios []string) (map[string]any, error) {
	switch {
	case task.Mask != nil:
		return nil, upstream.Unsuitable(task.Kind, "luma takes no mask")
	case task.Prompt == "" || utf8.RuneCountInString(task.Prompt) > maxPrompt:
		return nil, upstream.Unsuitable(task.Kind, "luma needs a prompt of at most %d characters", maxPrompt)
	case task.Ratio == "" && task.Exact:
		return nil, upstream.Unsuitable(task.Kind, "a size in pixels; luma takes only a ratio")
	case task.Ratio != "" && !slices.Contains(ratios, task.Ratio):
		return nil, upstream.Unsuitable(task.Kind, "luma does not make the ratio %s", task.Ratio)
	case hasVideo(task) && task.Kind != upstream.KindVideo:
		return nil, upstream.Unsuitable(task.Kind, "luma does not make pictures from a video")
	}
	body := map[string]any{"model": task.Model, "prompt": task.Prompt}
	if task.Ratio != "" {
		body["aspect_ratio"] = task.Ratio
	}
	return body, task.CheckPictureSizes(maxPicture, maxInline)
}

// pictureBody returns the body for a picture. If the task has references, the body edits the first
// reference and uses the others as references.
func pictureBody(ctx context.Context, task jobcall.Task) (map[string]any, error) {
	if task.Square() > squareSide {
		return nil, upstream.Unsuitable(task.Kind, "luma's model %s does not make %s", task.Model, task.Tier)
	}
	if len(task.References) > maxReferences {
		return nil, upstream.Unsuitable(task.Kind, "%d references; luma takes at most %d", len(task.References), maxReferences)
	}
	body, err := commonFields(task, pictureRatios())
	if err != nil {
		return nil, err
	}
	body["type"] = "image"
	task.AddExtraParams(body)
	var others []media
	for i, r := range task.References {
		item, err := mediaOf(ctx, r)
		if err != nil {
			return nil, err
		}
		if i > 0 {
			others = append(others, item)
			continue
		}
		body["type"], body["source"] = "image_edit", item
	}
	if len(others) > 0 {
		body["image_ref"] = others
	}
	return body, nil
}

// clipBody returns the body for a clip without a reference video. One picture is the first frame, two
// pictures are the first and the last frame. Only clips of five seconds can loop.
func clipBody(ctx context.Context, task jobcall.Task) (map[string]any, error) {
	var loop bool
	params := task.ExtraParams()
	first, last, rest := task.Frames()
	_ = json.Unmarshal(params["loop"], &loop) // the provider rejects a value of another type
	switch {
	case !slices.Contains([]string{"360p", "540p", "720p", "1080p"}, task.Tier):
		return nil, upstream.Unsuitable(task.Kind, "luma knows no resolution %q", task.Tier)
	case task.Exact:
		return nil, upstream.Unsuitable(task.Kind, "a size in pixels; luma takes only a resolution and a ratio")
	case task.Seconds != 0 && task.Seconds != 5 && task.Seconds != 10:
		return nil, upstream.Unsuitable(task.Kind, "luma makes clips of 5 or 10 seconds, not %d", task.Seconds)
	case task.Seconds == 10 && loop:
		return nil, upstream.Unsuitable(task.Kind, "luma makes only loops of 5 seconds")
	case len(rest) > 0, last != nil && first == nil:
		return nil, upstream.Unsuitable(task.Kind, "luma takes only a first frame, or a first and a last frame")
	}
	body, err := commonFields(task, clipRatios())
	if err != nil {
		return nil, err
	}
	video := map[string]any{"resolution": task.Tier}
	if task.Seconds > 0 {
		video["duration"] = strconv.FormatInt(task.Seconds, 10) + "s"
	}
	if err := addFrames(ctx, video, first, last, task.Seconds); err != nil {
		return nil, err
	}
	if raw := params["loop"]; raw != nil {
		video["loop"] = raw
	}
	if raw := params["style"]; raw != nil {
		body["style"] = raw
	}
	body["type"], body["video"] = "video", video
	return body, nil
}

// frameRate is the number of frames per second, for the frame numbers of keyframes.
const frameRate = 24

// addFrames adds the first and the last frame to the fields of a video. A nil frame is omitted. For
// a clip of ten seconds, the frames are keyframes with frame numbers, because the fields for frames
// only work with five seconds.
func addFrames(ctx context.Context, video map[string]any, first, last *jobcall.Reference, seconds int64) error {
	var (
		keyframes []media
		numbers   []int64
	)
	for i, frame := range []*jobcall.Reference{first, last} {
		if frame == nil {
			continue
		}
		item, err := mediaOf(ctx, *frame)
		if err != nil {
			return err
		}
		if seconds != 10 {
			video[[...]string{"start_frame", "end_frame"}[i]] = item
			continue
		}
		keyframes, numbers = append(keyframes, item), append(numbers, int64(i)*seconds*frameRate)
	}
	if keyframes != nil {
		video["keyframes"], video["keyframe_indexes"] = keyframes, numbers
	}
	return nil
}

// editBody returns the body for a clip made from a reference video: an edit, or the video in
// another ratio. The clip has the length of the video. The gateway does not know that length in
// advance, so it cannot charge by the second. A reference picture becomes the first frame.
func (a *Adapter) editBody(ctx context.Context, task jobcall.Task) (map[string]any, error) {
	first, last, rest := task.SplitFrames()
	switch {
	case a.role == "":
		return nil, upstream.Unsuitable(task.Kind, "a reference video; a line for luma takes videos only with the option video_role")
	case len(rest) != 1 || rest[0].Image() || last != nil || first != nil && a.role != roleEdit:
		return nil, upstream.Unsuitable(task.Kind, "luma edits one video, with at most a first frame as a further reference")
	case task.Seconds != 0:
		return nil, upstream.Unsuitable(task.Kind, "%d seconds; a clip made from a video has the length of the video", task.Seconds)
	case task.Exact || (a.role == roleReframe) != (task.Ratio != ""):
		return nil, upstream.Unsuitable(task.Kind, "an edit (video_role edit) takes no size or ratio, and video_role reframe needs a ratio")
	case !slices.Contains([]string{"360p", "540p", "720p", "1080p"}, task.Tier):
		return nil, upstream.Unsuitable(task.Kind, "luma knows no resolution %q", task.Tier)
	case rest[0].Size > maxPicture:
		return nil, upstream.Unfit(task.Kind, "The video is larger than %d MB, the maximum of the provider.", maxPicture>>20)
	}
	body, err := commonFields(task, clipRatios())
	if err != nil {
		return nil, err
	}
	if body["source"], err = mediaOf(ctx, rest[0]); err != nil {
		return nil, err
	}
	video := map[string]any{"resolution": task.Tier}
	if err := addFrames(ctx, video, first, nil, 0); err != nil {
		return nil, err
	}
	if raw, ok := task.ExtraParams()["strength"]; ok {
		if a.role != roleEdit {
			return nil, upstream.Unsuitable(task.Kind, "strength, which luma takes only with video_role edit")
		}
		video["edit"] = map[string]any{"strength": raw}
	}
	body["type"], body["video"] = "video_"+a.role, video
	return body, nil
}
