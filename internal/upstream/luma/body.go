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

// Bounds of what one request says.
const (
	side        = 2048 // of a square picture, whatever is asked for
	maxPictures = 9    // that a picture is made from
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

// say says a reference.
func say(ctx context.Context, r jobcall.Reference) (media, error) {
	if r.URL != "" {
		return media{URL: r.URL}, nil
	}
	data, err := r.Bytes(ctx)
	if err != nil {
		return media{}, upstream.Unread(err)
	}
	return media{Data: base64.StdEncoding.EncodeToString(data), Type: r.Type}, nil
}

// begin says what pictures and clips have in common.
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
	case slices.ContainsFunc(w.References, func(r jobcall.Reference) bool { return !r.Image() }):
		return nil, upstream.Unsuitable(w.Kind, "luma's edits of videos are not asked for")
	}
	body := map[string]any{"model": w.Model, "prompt": w.Prompt}
	if w.Ratio != "" {
		body["aspect_ratio"] = w.Ratio
	}
	return body, w.FitPictures(maxPicture, maxInline)
}

// picture says a picture. From pictures it is an edit of the first, for which
// the others are references.
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

// clip says a clip. One picture is its first frame, two are its first and last;
// frames and loops are of five seconds alone.
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
	case w.Seconds == 10 && (loop || len(w.References) > 0):
		return nil, upstream.Unsuitable(w.Kind, "luma makes clips with frames and loops of 5 seconds alone")
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
	for name, frame := range map[string]*jobcall.Reference{"start_frame": first, "end_frame": last} {
		if frame == nil {
			continue
		}
		if of[name], err = say(ctx, *frame); err != nil {
			return nil, err
		}
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
