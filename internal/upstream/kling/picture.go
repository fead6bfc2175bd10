package kling

import (
	"context"
	"encoding/base64"
	"slices"
	"strings"

	"tollgate/internal/upstream"
	"tollgate/internal/upstream/jobcall"
)

// The paths below /v1/images.
const (
	generations = "generations" // for a prompt with at most one reference
	omniImage   = "omni-image"  // for models with several references
)

// Bounds of pictures.
const (
	maxImages     = 9
	maxReferences = 10
)

// pictureSeries returns the path below /v1/images for a model.
func pictureSeries(model string) string {
	if strings.Contains(model, "omni") || strings.Contains(model, "image-o1") {
		return omniImage
	}
	return generations
}

// pictureRequest returns the submission of pictures.
func pictureRequest(ctx context.Context, task jobcall.Task) (*request, error) {
	if err := task.CheckPictureSizes(maxPicture, maxInline); err != nil {
		return nil, err
	}
	tier := strings.ToLower(task.Tier)
	req := &request{series: pictureSeries(task.Model)}
	switch {
	case task.Exact:
		return nil, upstream.Unsuitable(task.Kind, "a size in pixels; kling takes only a ratio")
	case !slices.Contains([]string{"1k", "2k", "4k"}, tier), tier == "4k" && req.series != omniImage:
		return nil, upstream.Unsuitable(task.Kind, "kling's model %s does not make %s", task.Model, task.Tier)
	case task.Count > maxImages:
		return nil, upstream.Unsuitable(task.Kind, "%d images; kling makes at most %d", task.Count, maxImages)
	case req.series == generations && len(task.References) > 1, len(task.References) > maxReferences:
		return nil, upstream.Unsuitable(task.Kind, "%d references are too many for kling's model %s", len(task.References), task.Model)
	}
	req.path = []string{"v1", "images", req.series}
	req.body = map[string]any{"model_name": task.Model, "prompt": task.Prompt, "n": max(task.Count, 1), "resolution": tier,
		"external_task_id": task.Key}
	if task.Ratio != "" {
		req.body["aspect_ratio"] = task.Ratio
	}
	if _, negative := task.ExtraParams()["negative_prompt"]; negative && (len(task.References) > 0 || req.series == omniImage) {
		return nil, upstream.Unsuitable(task.Kind, "a negative prompt; kling's model %s does not take it with this input", task.Model)
	}
	task.AddExtraParams(req.body)
	var images []map[string]string
	for _, r := range task.References {
		if !r.Image() {
			return nil, upstream.Unsuitable(task.Kind, "kling does not make pictures from a video")
		}
		image, err := addressOrBase64(ctx, r)
		if err != nil {
			return nil, err
		}
		images = append(images, map[string]string{"image": image})
	}
	switch {
	case len(images) == 0:
	case req.series == generations:
		req.body["image"] = images[0]["image"]
	default:
		req.body["image_list"] = images
	}
	return req, nil
}

// addressOrBase64 returns a picture in the older interface's format: its address or, without an
// address, base64 without the prefix of a data URI.
func addressOrBase64(ctx context.Context, r jobcall.Reference) (string, error) {
	if r.URL != "" {
		return r.URL, nil
	}
	data, err := r.Bytes(ctx)
	if err != nil {
		return "", upstream.UnreadableFile(err)
	}
	return base64.StdEncoding.EncodeToString(data), nil
}
