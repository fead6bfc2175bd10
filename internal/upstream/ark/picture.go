package ark

import (
	"context"
	"encoding/json"
	"maps"
	"math"
	"regexp"
	"strconv"

	"github.com/tidwall/gjson"

	"tollgate/internal/upstream"
	"tollgate/internal/upstream/exchange"
	"tollgate/internal/upstream/input"
	"tollgate/internal/upstream/jobcall"
)

// callsAtOnce is the maximum number of calls of a submission at a time.
const callsAtOnce = 4

// maxSeed is the largest seed accepted by Ark.
const maxSeed = math.MaxInt32

// tierName matches the sizes with a name at Ark.
var tierName = regexp.MustCompile(`^[1-9]K$`)

// submitImages makes the pictures of task.
//
// Ark has no field for a count. Its sequential_image_generation makes a set of related pictures, as
// many as the model finds in the prompt, possibly only one. But `n` means n tries at one prompt, so
// n pictures are n calls. Only if the user requests a set with the param
// `sequential_image_generation: auto`, submitImages makes one call for a set of at most n pictures.
//
// If some calls succeed, submitImages returns their pictures and drops the other calls' failures.
// Without any picture, it returns the most severe failure.
func (a *Adapter) submitImages(ctx context.Context, task jobcall.Task) (*jobcall.TaskStatus, error) {
	body, err := pictureBody(ctx, task)
	if err != nil {
		return nil, err
	}
	calls := task.Count
	if set(body) {
		body["sequential_image_generation_options"] = map[string]any{"max_images": task.Count}
		calls = 1
	}
	bodies, err := variations(body)
	if err != nil {
		return nil, upstream.Unsuitable(task.Kind, "params: %w", err)
	}
	results, failure := exchange.CallSeveral(calls, callsAtOnce, func(i int) ([]jobcall.Result, *upstream.JobFailure, bool) {
		return a.one(ctx, task, i, bodies)
	})
	if failure != nil {
		return nil, failure
	}
	return &jobcall.TaskStatus{Done: true, Results: results[:min(len(results), task.Count)]}, nil
}

// pictureBody returns the body of one call.
func pictureBody(ctx context.Context, task jobcall.Task) (map[string]any, error) {
	size, err := pictureSize(task)
	if err != nil {
		return nil, err
	}
	body := map[string]any{"model": task.Model, "prompt": task.Prompt, "size": size, "response_format": "url", "stream": false}
	task.AddExtraParams(body)
	images, err := input.Pictures(ctx, task, Provider)
	switch len(images) {
	case 0:
	case 1:
		body["image"] = images[0]
	default:
		body["image"] = images
	}
	return body, err
}

// pictureSize returns the size in Ark's format. Ark has no field for a ratio, so pictureSize
// converts a ratio to pixels. Ark checks the number of pixels: the bounds differ from model to
// model, and rejections are free.
func pictureSize(task jobcall.Task) (string, error) {
	if task.Width > 0 && task.Height > 0 {
		return strconv.Itoa(task.Width) + "x" + strconv.Itoa(task.Height), nil
	}
	if !tierName.MatchString(task.Tier) {
		return "", upstream.Unsuitable(task.Kind, "ark knows no size %q", task.Tier)
	}
	return task.Tier, nil
}

// set reports whether the user requested a set of pictures.
func set(body map[string]any) bool {
	mode, _ := body["sequential_image_generation"].(json.RawMessage)
	var s string
	return json.Unmarshal(mode, &s) == nil && s == "auto"
}

// variations returns a function for the body of each call. The bodies differ only in the seed: with
// the same seed, n calls would return the same picture n times, so each call has the next seed.
func variations(body map[string]any) (func(call int) ([]byte, error), error) {
	first, err := json.Marshal(body)
	if err != nil {
		return nil, err
	}
	raw, _ := body["seed"].(json.RawMessage)
	seed, err := strconv.ParseInt(string(raw), 10, 64)
	if err != nil || seed < 0 || seed > maxSeed { // no seed, a random seed, or an invalid one that Ark rejects
		return func(int) ([]byte, error) { return first, nil }, nil
	}
	return func(call int) ([]byte, error) {
		if call == 0 {
			return first, nil
		}
		next := maps.Clone(body)
		next["seed"] = (seed + int64(call)) % (maxSeed + 1)
		return json.Marshal(next)
	}, nil
}

// one makes one call. again reports whether another call may succeed.
func (a *Adapter) one(ctx context.Context, task jobcall.Task, call int, body func(call int) ([]byte, error)) (
	results []jobcall.Result, failure *upstream.JobFailure, again bool,
) {
	raw, err := body(call)
	if err != nil {
		return nil, upstream.Unsuitable(task.Kind, "params: %w", err), false
	}
	reply, code, failure := a.submit(ctx, task.Kind, raw, "images", "generations")
	if failure != nil {
		return nil, failure, ofOutput(code)
	}
	if results, failure = readPictures(reply); failure != nil {
		return nil, reply.Redact(failure), true
	}
	return results, nil, true
}

// readPictures returns the pictures of a good response, or the failure without pictures. Single
// pictures of a set can fail. If all fail, readPictures returns the failure of the first.
func readPictures(reply *exchange.Reply) ([]jobcall.Result, *upstream.JobFailure) {
	data := gjson.GetBytes(reply.Body, "data")
	if results := exchange.Links(data.Get("#.url").Array(), math.MaxInt); results != nil {
		return results, nil
	}
	for _, item := range data.Array() {
		if e := item.Get("error"); e.IsObject() {
			return nil, taskFailure(upstream.KindImage, reply, e)
		}
	}
	return nil, upstream.EmptyResult(upstream.KindImage, "an answer without a picture")
}
