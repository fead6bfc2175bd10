package gemini

import (
	"context"
	"encoding/base64"
	"encoding/json"
	"net/http"
	"net/url"
	"slices"
	"strings"

	"github.com/tidwall/gjson"

	"tollgate/internal/upstream"
	"tollgate/internal/upstream/exchange"
	"tollgate/internal/upstream/jobcall"
)

// Bounds of images.
const (
	maxImages     = 10
	maxReferences = 14
	maxConcurrent = 4        // concurrent calls of one task
	maxImageReply = 64 << 20 // bytes of a response with an image
)

// imagePaths are the paths of an image task's further fields.
var imagePaths = paramPaths{
	"temperature":      {"generationConfig", "temperature"},
	"topP":             {"generationConfig", "topP"},
	"topK":             {"generationConfig", "topK"},
	"seed":             {"generationConfig", "seed"},
	"thinkingConfig":   {"generationConfig", "thinkingConfig"},
	"personGeneration": {"generationConfig", "imageConfig", "personGeneration"},
	"safetySettings":   {"safetySettings"},
}

// makeImages makes the images of a task, with one call for each image.
func (a *Adapter) makeImages(ctx context.Context, task jobcall.Task) (*jobcall.TaskStatus, error) {
	count := max(task.Count, 1)
	if count > maxImages {
		return nil, upstream.Unsuitable(task.Kind, "%d images; the line makes at most %d", count, maxImages)
	}
	u, f := a.address(a.resource(task.Model), "generateContent")
	if f != nil {
		return nil, invalidModel(f)
	}
	bodies, failure := imageBodies(ctx, task, count)
	if failure != nil {
		return nil, failure
	}
	results, failure := exchange.CallSeveral(count, maxConcurrent, func(i int) ([]jobcall.Result, *upstream.JobFailure, bool) {
		return a.makeImage(ctx, task, u, bodies[i])
	})
	if failure != nil {
		return nil, failure
	}
	return &jobcall.TaskStatus{Done: true, Results: results}, nil
}

// makeImage makes one image. again reports whether the next call may succeed; it is false if the
// line cannot be used or the provider rejected the prompt.
func (a *Adapter) makeImage(ctx context.Context, task jobcall.Task, u *url.URL, body []byte) (
	_ []jobcall.Result, failure *upstream.JobFailure, again bool,
) {
	reply, err := a.line.Submit(ctx, exchange.JobCall{
		Method: http.MethodPost, URL: u, Header: a.header, Body: body, Limit: maxImageReply, AcquireRead: task.AcquireRead,
	})
	if err != nil {
		failure = upstream.AsJobFailure(err)
		return nil, failure, failure.Health == upstream.HealthNone || failure.Health == upstream.HealthHalf
	}
	if !reply.OK() {
		failure = submitFailure(reply, task.Kind)
		return nil, failure, failure.Health == upstream.HealthHalf
	}
	result, failure, again := readImage(reply)
	if failure != nil {
		return nil, reply.Redact(failure), again
	}
	return []jobcall.Result{*result}, nil, true
}

// imageBodies returns the bodies of the calls. Each call gets the next seed, because with one seed
// all images would be the same. The bodies are equal in everything else.
func imageBodies(ctx context.Context, task jobcall.Task, count int) ([][]byte, *upstream.JobFailure) {
	config, failure := imageConfig(task)
	if failure != nil {
		return nil, failure
	}
	references, failure := readBlobs(ctx, task, maxReferences, "image/png", "image/jpeg", "image/webp")
	if failure != nil {
		return nil, failure
	}
	parts := []any{map[string]any{"text": task.Prompt}}
	for _, b := range references {
		parts = append(parts, map[string]any{"inlineData": map[string]any{"mimeType": b.kind, "data": b.data}})
	}
	generation := map[string]any{"responseModalities": []string{"IMAGE"}}
	if len(config) > 0 {
		generation["imageConfig"] = config
	}
	body := map[string]any{
		"contents":         []any{map[string]any{"role": "user", "parts": parts}},
		"generationConfig": generation,
	}
	imagePaths.set(body, task)
	seed := gjson.ParseBytes(task.ExtraParams()["seed"])
	first, _ := json.Marshal(body) // cannot fail for maps, strings and bytes
	bodies := slices.Repeat([][]byte{first}, count)
	for i := 1; i < count && seed.Type == gjson.Number; i++ {
		generation["seed"] = seed.Int() + int64(i)
		bodies[i], _ = json.Marshal(body)
	}
	return bodies, nil
}

// imageConfig returns the size and ratio. For a size in pixels, it returns the tier and ratio of
// the pixels, because the API does not take pixels.
func imageConfig(task jobcall.Task) (map[string]any, *upstream.JobFailure) {
	config := map[string]any{}
	onlyOneSize := strings.Contains(task.Model, "gemini-2.5-")
	switch task.Ratio {
	case "":
	case "1:1", "2:3", "3:2", "3:4", "4:3", "4:5", "5:4", "9:16", "16:9", "21:9":
		config["aspectRatio"] = task.Ratio
	case "1:4", "4:1", "1:8", "8:1":
		if onlyOneSize || strings.Contains(task.Model, "gemini-3-pro-") {
			return nil, upstream.Unsuitable(task.Kind, "the ratio %s; %s does not make it", task.Ratio, task.Model)
		}
		config["aspectRatio"] = task.Ratio
	default:
		return nil, upstream.Unsuitable(task.Kind, "the ratio %s; the provider does not make it", task.Ratio)
	}
	switch {
	case onlyOneSize && task.Tier == "1K": // the model has no field for the size
	case onlyOneSize:
		return nil, upstream.Unsuitable(task.Kind, "the tier %s; %s makes only 1K", task.Tier, task.Model)
	case task.Tier == "512p":
		config["imageSize"] = "512"
	case task.Tier == "1K" || task.Tier == "2K" || task.Tier == "4K":
		config["imageSize"] = task.Tier
	default:
		return nil, upstream.Unsuitable(task.Kind, "the tier %s; the provider makes 512p, 1K, 2K and 4K", task.Tier)
	}
	return config, nil
}

// readImage returns the image in a good response. Images in the model's thoughts are drafts and not
// results. again reports whether the next call may succeed; it is false if the prompt was blocked.
func readImage(reply *exchange.Reply) (_ *jobcall.Result, failure *upstream.JobFailure, again bool) {
	const kind = upstream.KindImage
	doc, ok := parseDocument(reply)
	if !ok || doc.Get("error").IsObject() || doc.Get("promptFeedback.blockReason").Str != "" {
		return nil, reply.SubmitFailure(kind), false
	}
	var image *jobcall.Result
	reason := ""
	doc.Get("candidates").ForEach(func(_, candidate gjson.Result) bool {
		if r := candidate.Get("finishReason").Str; reason == "" {
			reason = r
		}
		candidate.Get("content.parts").ForEach(func(_, part gjson.Result) bool {
			mime := part.Get("inlineData.mimeType").Str
			if part.Get("thought").Bool() || !strings.HasPrefix(mime, "image/") {
				return true
			}
			data, err := base64.StdEncoding.DecodeString(part.Get("inlineData.data").Str)
			if err == nil && len(data) > 0 {
				image = &jobcall.Result{Data: data, Type: mime}
			}
			return image == nil
		})
		return image == nil
	})
	switch {
	case image != nil:
		return image, nil, true
	case isFilter(reason):
		return nil, upstream.ModerationFailure(kind, "the provider's safety system stopped the image ("+reason+")", true), true
	}
	return nil, upstream.EmptyResult(kind, "no image in the answer: "+reason), true
}
