package xai

import (
	"context"
	"encoding/base64"
	"net/http"
	"slices"
	"strings"

	"github.com/tidwall/gjson"

	"tollgate/internal/upstream"
	"tollgate/internal/upstream/exchange"
	"tollgate/internal/upstream/jobcall"
)

// Bounds of pictures.
const (
	maxImages = 10
	maxEdited = 3 // reference pictures
)

// ratios are those of pictures; clips have the first seven.
func ratios() []string {
	return []string{"1:1", "3:4", "4:3", "9:16", "16:9", "2:3", "3:2", "9:20", "20:9", "1:2", "2:1"}
}

// pictures returns the path and body for new or edited pictures. A user's pixels are expressed by
// their tier and ratio, because xAI has no pixels.
func pictures(ctx context.Context, w jobcall.Task) (path []string, body map[string]any, err error) {
	tier := strings.ToLower(w.Tier)
	switch {
	case tier != "1k" && tier != "2k":
		return nil, nil, upstream.Unsuitable(w.Kind, "the tier %s; xai makes 1K and 2K", w.Tier)
	case w.Ratio != "" && !slices.Contains(ratios(), w.Ratio):
		return nil, nil, upstream.Unsuitable(w.Kind, "the ratio %s; xai makes %s", w.Ratio, strings.Join(ratios(), ", "))
	case w.Count > maxImages:
		return nil, nil, upstream.Unsuitable(w.Kind, "%d images; xai makes up to %d", w.Count, maxImages)
	case len(w.References) > maxEdited:
		return nil, nil, upstream.Unsuitable(w.Kind, "%d references; xai takes up to %d", len(w.References), maxEdited)
	}
	body = map[string]any{"model": w.Model, "prompt": w.Prompt, "n": max(w.Count, 1), "resolution": tier, "response_format": "url"}
	if w.Ratio != "" {
		body["aspect_ratio"] = w.Ratio
	}
	list, err := images(ctx, w.References)
	for _, one := range list {
		one["type"] = "image_url"
	}
	switch {
	case err != nil:
		return nil, nil, err
	case len(list) == 0:
		return []string{"images", "generations"}, body, nil
	case len(list) == 1:
		body["image"] = list[0]
	default:
		body["images"] = list
	}
	return []string{"images", "edits"}, body, nil
}

// readPictures returns the pictures in a response, without pictures stopped by the review.
func readPictures(w jobcall.Task, reply *exchange.Reply) (*jobcall.TaskStatus, error) {
	items := gjson.Result{}
	if reply.Good() && gjson.ValidBytes(reply.Body) {
		items = gjson.GetBytes(reply.Body, "data")
	}
	if !items.IsArray() {
		return nil, refused(w.Kind, reply)
	}
	var (
		results []jobcall.Result
		stopped bool
	)
	for _, item := range items.Array() {
		if item.Get("respect_moderation").Type == gjson.False {
			stopped = true
		} else if r, ok := readPicture(item); ok && len(results) < max(w.Count, 1) {
			results = append(results, r)
		}
	}
	switch {
	case len(results) > 0:
		return &jobcall.TaskStatus{Done: true, Results: results}, nil
	case stopped:
		return nil, upstream.Moderated(w.Kind, "the provider's review withheld the images", false)
	}
	return nil, upstream.Nothing(w.Kind, "an answer without a picture")
}

// readPicture reads one item: an address, or the picture in base64.
func readPicture(item gjson.Result) (jobcall.Result, bool) {
	if link := item.Get("url"); link.Type == gjson.String && link.Str != "" {
		return jobcall.Result{Ref: link.Str}, true
	}
	data, err := base64.StdEncoding.DecodeString(item.Get("b64_json").Str)
	if err != nil || len(data) == 0 {
		return jobcall.Result{}, false
	}
	return jobcall.Result{Data: data, Type: http.DetectContentType(data)}, true
}
