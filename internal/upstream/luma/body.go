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
	side        = 2048 // of a square picture, whatever is asked for
	maxPictures = 9    // of references for a picture
	maxPrompt   = 6000
)

func clipRatios() []string { return []string{"9:16", "3:4", "1:1", "4:3", "16:9", "21:9"} }

func pictureRatios() []string {
	return append(clipRatios(), "3:1", "2:1", "3:2", "2:3", "1:2", "1:3")
}

// media is a reference: its address, or itself in bare base64.
type media struct {
	URL  string `json:"url,omitempty"`
	Data string `json:"data,omitempty"`
	Type string `json:"media_type,omitempty"`
}

// say returns a reference as media.
func say(ctx context.Context, r jobcall.Reference) (media, error) {
	switch {
	case r.URL != "" && r.Image():
		return media{URL: r.URL}, nil
	case r.URL != "": // it wants to know a video before it fetches it
		return media{URL: r.URL, Type: r.Type}, nil
	}
	data, err := r.Bytes(ctx)
	if err != nil {
		return media{}, upstream.Unread(err)
	}
	return media{Data: base64.StdEncoding.EncodeToString(data), Type: r.Type}, nil
}

// fromVideo reports whether a task has a video as a reference.
func fromVideo(w jobcall.Task) bool {
	return slices.ContainsFunc(w.References, func(r jobcall.Reference) bool { return !r.Image() })
}

// begin returns the fields common to pictures and clips.
func begin(w jobcall.Task, ratios []string) (map[string]any, error) {
	switch {
	case w.Mask != nil:
		return nil, upstream.Unsuitable(w.Kind, "luma takes no mask")
	case w.Prompt == "" || utf8.RuneCountInString(w.Prompt) > maxPrompt:
		return nil, upstream.Unsuitable(w.Kind, "luma wants a prompt, of up to %d characters", maxPrompt)
	case w.Ratio == "" && w.Exact:
		return nil, upstream.Unsuitable(w.Kind, "luma takes a ratio, no pixels")
	case w.Ratio != "" && !slices.Contains(ratios, w.Ratio):
		return nil, upstream.Unsuitable(w.Kind, "luma does not make %s", w.Ratio)
	case fromVideo(w) && w.Kind != upstream.KindVideo:
		return nil, upstream.Unsuitable(w.Kind, "luma makes no pictures from a video")
	}
	body := map[string]any{"model": w.Model, "prompt": w.Prompt}
	if w.Ratio != "" {
		body["aspect_ratio"] = w.Ratio
	}
	return body, w.FitPictures(maxPicture, maxInline)
}

// picture returns the body for a picture. With references it is an edit of the first picture, with
// the other pictures as references.
func picture(ctx context.Context, w jobcall.Task) (map[string]any, error) {
	if w.Square() > side {
		return nil, upstream.Unsuitable(w.Kind, "luma's model %s cannot be asked for %s", w.Model, w.Tier)
	}
	if len(w.References) > maxPictures {
		return nil, upstream.Unsuitable(w.Kind, "%d references; luma takes up to %d", len(w.References), maxPictures)
	}
	body, err := begin(w, pictureRatios())
	if err != nil {
		return nil, err
	}
	body["type"] = "image"
	w.AddFurther(body)
	var others []media
	for i, r := range w.References {
		m, err := say(ctx, r)
		if err != nil {
			return nil, err
		}
		if i > 0 {
			others = append(others, m)
			continue
		}
		body["type"], body["source"] = "image_edit", m
	}
	if len(others) > 0 {
		body["image_ref"] = others
	}
	return body, nil
}

// clip returns the body for a clip. One picture is the first frame, two are the first and the last
// frame. Only clips of five seconds may loop or have frames in their own fields.
func clip(ctx context.Context, w jobcall.Task) (map[string]any, error) {
	var loop bool
	further := w.Further()
	first, last, rest := w.Frames()
	_ = json.Unmarshal(further["loop"], &loop) // of another type: for the provider to refuse
	switch {
	case !slices.Contains([]string{"360p", "540p", "720p", "1080p"}, w.Tier):
		return nil, upstream.Unsuitable(w.Kind, "luma knows no resolution %q", w.Tier)
	case w.Exact:
		return nil, upstream.Unsuitable(w.Kind, "luma takes a resolution and a ratio, no pixels")
	case w.Seconds != 0 && w.Seconds != 5 && w.Seconds != 10:
		return nil, upstream.Unsuitable(w.Kind, "luma makes clips of 5 or 10 seconds, not %d", w.Seconds)
	case w.Seconds == 10 && loop:
		return nil, upstream.Unsuitable(w.Kind, "luma makes loops of 5 seconds alone")
	case len(rest) > 0, last != nil && first == nil:
		return nil, upstream.Unsuitable(w.Kind, "luma takes a first frame, and a last one beside it")
	}
	body, err := begin(w, clipRatios())
	if err != nil {
		return nil, err
	}
	of := map[string]any{"resolution": w.Tier}
	if w.Seconds > 0 {
		of["duration"] = strconv.FormatInt(w.Seconds, 10) + "s"
	}
	if err := frames(ctx, of, first, last, w.Seconds); err != nil {
		return nil, err
	}
	if raw := further["loop"]; raw != nil {
		of["loop"] = raw
	}
	if raw := further["style"]; raw != nil {
		body["style"] = raw
	}
	body["type"], body["video"] = "video", of
	return body, nil
}

// rate is the frame rate for the numbers of keyframes, in frames per second.
const rate = 24

// frames adds the first and the last frame; either may be nil. Clips of ten seconds have the frames
// as keyframes with frame numbers.
func frames(ctx context.Context, to map[string]any, first, last *jobcall.Reference, seconds int64) error {
	var (
		keyframes []media
		numbers   []int64
	)
	for i, frame := range []*jobcall.Reference{first, last} {
		if frame == nil {
			continue
		}
		item, err := say(ctx, *frame)
		if err != nil {
			return err
		}
		if seconds != 10 {
			to[[...]string{"start_frame", "end_frame"}[i]] = item
			continue
		}
		keyframes, numbers = append(keyframes, item), append(numbers, int64(i)*seconds*rate)
	}
	if keyframes != nil {
		to["keyframes"], to["keyframe_indexes"] = keyframes, numbers
	}
	return nil
}

// changed returns the body for a clip made from a video: edited or in another ratio. The clip has
// the video's length, unknown in advance, so it cannot be charged by the second. A picture beside
// the video is the new first frame.
func (a *Adapter) changed(ctx context.Context, w jobcall.Task) (map[string]any, error) {
	first, last, rest := w.Framed()
	switch {
	case a.role == "":
		return nil, upstream.Unsuitable(w.Kind, "a line for luma takes videos with the option video_role")
	case len(rest) != 1 || rest[0].Image() || last != nil || first != nil && a.role != roleEdit:
		return nil, upstream.Unsuitable(w.Kind, "luma changes one video, which a first frame alone may stand beside")
	case w.Seconds != 0:
		return nil, upstream.Unsuitable(w.Kind, "a clip that luma changes has its length: it cannot be of %d seconds", w.Seconds)
	case w.Exact || (a.role == roleReframe) != (w.Ratio != ""):
		return nil, upstream.Unsuitable(w.Kind, "a clip of luma has its shape where it is changed, and a ratio where it is framed anew")
	case !slices.Contains([]string{"360p", "540p", "720p", "1080p"}, w.Tier):
		return nil, upstream.Unsuitable(w.Kind, "luma knows no resolution %q", w.Tier)
	case rest[0].Size > maxPicture:
		return nil, upstream.Unfit(w.Kind, "The video has more than the %d MB that the provider takes.", maxPicture>>20)
	}
	body, err := begin(w, clipRatios())
	if err != nil {
		return nil, err
	}
	if body["source"], err = say(ctx, rest[0]); err != nil {
		return nil, err
	}
	of := map[string]any{"resolution": w.Tier}
	if err := frames(ctx, of, first, nil, 0); err != nil {
		return nil, err
	}
	if raw, ok := w.Further()["strength"]; ok {
		if a.role != roleEdit {
			return nil, upstream.Unsuitable(w.Kind, "strength, which luma has for changes alone")
		}
		of["edit"] = map[string]any{"strength": raw}
	}
	body["type"], body["video"] = "video_"+a.role, of
	return body, nil
}
