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

// maxConcurrentCalls is the maximum number of calls of a submission at a time.
const maxConcurrentCalls = 4

// maxSeed is the largest seed accepted by Ark.
const maxSeed = math.MaxInt32

// tierName matches the sizes with a name at Ark.
var tierName = regexp.MustCompile(`^[1-9]K$`)

// submitImages makes the pictures of task.
//
// Because Ark has no field for a count, submitImages makes one call per picture. If the user requests a set
// of related pictures with the param `sequential_image_generation: auto`, submitImages makes one
// call for a set of at most Count pictures. The model chooses the number of pictures in a set.
//
// If some calls succeed, submitImages returns their pictures and drops the other calls' failures.
// If there is no picture, it returns the most severe failure.
func (a *Adapter) submitImages(ctx context.Context, task jobcall.Task) (*jobcall.TaskStatus, error) {
	body, err := pictureBody(ctx, task)
	if err != nil {
		return nil, err
	}
	calls := task.Count
	if requestsSet(body) {
		body["sequential_image_generation_options"] = map[string]any{"max_images": task.Count}
		calls = 1
	}
	bodies, err := callBodies(body)
	if err != nil {
		return nil, upstream.Unsuitable(task.Kind, "params: %w", err)
	}
	results, failure := exchange.CallSeveral(calls, maxConcurrentCalls, func(i int) ([]jobcall.Result, *upstream.JobFailure, bool) {
		return a.makeCall(ctx, task, i, bodies)
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
// converts a ratio to pixels. pictureSize does not check the number of pixels, because the bounds
// differ from model to model, and a rejection by Ark is free.
func pictureSize(task jobcall.Task) (string, error) {
	if task.Width > 0 && task.Height > 0 {
		return strconv.Itoa(task.Width) + "x" + strconv.Itoa(task.Height), nil
	}
	if !tierName.MatchString(task.Tier) {
		return "", upstream.Unsuitable(task.Kind, "ark knows no size %q", task.Tier)
	}
	return task.Tier, nil
}

// requestsSet reports whether the user requested a set of pictures.
func requestsSet(body map[string]any) bool {
	mode, _ := body["sequential_image_generation"].(json.RawMessage)
	var s string
	return json.Unmarshal(mode, &s) == nil && s == "auto"
}

// callBodies returns a function for the body of each call. The bodies differ only in the seed: with
// the same seed, n calls would return the same picture n times, so each call has the next seed.
func callBodies(body map[string]any) (func(call int) ([]byte, error), error) {
	body0, err := json.Marshal(body)
	if err != nil {
		return nil, err
	}
	raw, _ := body["seed"].(json.RawMessage)
	seed, err := strconv.ParseInt(string(raw), 10, 64)
	if err != nil || seed < 0 || seed > maxSeed { // no seed, a random seed, or an invalid one that Ark rejects
		return func(int) ([]byte, error) { return body0, nil }, nil
	}
	return func(call int) ([]byte, error) {
		if call == 0 {
			return body0, nil
		}
		next := maps.Clone(body)
		next["seed"] = (seed + int64(call)) % (maxSeed + 1)
		return json.Marshal(next)
	}, nil
}

// makeCall makes one call. again reports whether another call may succeed.
func (a *Adapter) makeCall(ctx context.Context, task jobcall.Task, call int, body func(call int) ([]byte, error)) (
	results []jobcall.Result, failure *upstream.JobFailure, again bool,
) {
	raw, err := body(call)
	if err != nil {
		return nil, upstream.Unsuitable(task.Kind, "params: %w", err), false
	}
	reply, code, failure := a.submit(ctx, task.Kind, raw, "images", "generations")
	if failure != nil {
		return nil, failure, isOutputCode(code)
	}
	if results, failure = readPictures(reply); failure != nil {
		return nil, reply.Redact(failure), true
	}
	return results, nil, true
}

// readPictures returns the pictures of a good response, or a failure if there are none. Single
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
