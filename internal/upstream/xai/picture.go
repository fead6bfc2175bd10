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
	maxImages     = 10
	maxReferences = 3
)

// ratios returns the aspect ratios of pictures. Clips support only the first seven.
func ratios() []string {
	return []string{"1:1", "3:4", "4:3", "9:16", "16:9", "2:3", "3:2", "9:20", "20:9", "1:2", "2:1"}
}

// pictureRequest returns the path and body for new or edited pictures. A size in pixels is sent as a
// tier and a ratio, because xAI accepts no pixels.
func pictureRequest(ctx context.Context, task jobcall.Task) (path []string, body map[string]any, err error) {
	tier := strings.ToLower(task.Tier)
	switch {
	case tier != "1k" && tier != "2k":
		return nil, nil, upstream.Unsuitable(task.Kind, "the tier %s; xai makes 1K and 2K", task.Tier)
	case task.Ratio != "" && !slices.Contains(ratios(), task.Ratio):
		return nil, nil, upstream.Unsuitable(task.Kind, "the ratio %s; xai makes %s", task.Ratio, strings.Join(ratios(), ", "))
	case task.Count > maxImages:
		return nil, nil, upstream.Unsuitable(task.Kind, "%d images; xai makes up to %d", task.Count, maxImages)
	case len(task.References) > maxReferences:
		return nil, nil, upstream.Unsuitable(task.Kind, "%d references; xai takes up to %d", len(task.References), maxReferences)
	}
	body = map[string]any{"model": task.Model, "prompt": task.Prompt, "n": max(task.Count, 1), "resolution": tier, "response_format": "url"}
	if task.Ratio != "" {
		body["aspect_ratio"] = task.Ratio
	}
	list, err := images(ctx, task, task.References)
	for _, image := range list {
		image["type"] = "image_url"
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

// readPictures returns the pictures in a response, without those that the content review withheld.
func readPictures(task jobcall.Task, reply *exchange.Reply) (*jobcall.TaskStatus, error) {
	items := gjson.Result{}
	if reply.OK() && gjson.ValidBytes(reply.Body) {
		items = gjson.GetBytes(reply.Body, "data")
	}
	if !items.IsArray() {
		return nil, submitFailure(task.Kind, reply)
	}
	var (
		results  []jobcall.Result
		withheld bool
	)
	for _, item := range items.Array() {
		if item.Get("respect_moderation").Type == gjson.False {
			withheld = true
		} else if r, ok := readPicture(item); ok && len(results) < max(task.Count, 1) {
			results = append(results, r)
		}
	}
	switch {
	case len(results) > 0:
		return &jobcall.TaskStatus{Done: true, Results: results}, nil
	case withheld:
		return nil, upstream.ModerationFailure(task.Kind, "the provider's review withheld the images", false)
	}
	return nil, upstream.EmptyResult(task.Kind, "an answer without a picture")
}

// readPicture reads an item with the address of a picture or with the picture in base64.
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
