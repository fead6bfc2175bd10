// Package recraft owns calls to Recraft: pictures, returned in the response as links.
//
// Invariants:
//   - A call is sent at most once (by package exchange).
//   - The line's credential is only sent to the line's base address.
//   - The adapter never returns more pictures than requested.
//   - A request for a feature without a field at the model is Unsuitable, because the provider may
//     ignore unsupported fields.
package recraft

import (
	"context"
	"encoding/json"
	"maps"
	"net/http"
	"slices"
	"strconv"

	"github.com/tidwall/gjson"

	"tollgate/internal/upstream"
	"tollgate/internal/upstream/exchange"
	"tollgate/internal/upstream/input"
	"tollgate/internal/upstream/jobcall"
)

// Provider is the adapter's name in the catalog.
const Provider = "recraft"

// defaultBaseURL is the base address of lines without base_url.
const defaultBaseURL = "https://external.api.recraft.ai/v1"

// maxPicture is the maximum length of a reference picture, in bytes.
const maxPicture = 10 << 20

// maxImages is the maximum number of pictures of a call.
const maxImages = 6

// defaultStrength is the default distance from the reference picture, because the provider requires
// the field.
const defaultStrength = 0.5

// Info describes the provider for the catalog.
func Info() upstream.Info {
	return exchange.JobInfo(defaultBaseURL, exchange.NoOptions(Provider), upstream.KindImage)
}

// Adapter calls the provider for one line. It is safe for concurrent use.
//
// Results are links, valid for about a day.
type Adapter struct {
	exchange.Plain
}

var _ jobcall.Generator = (*Adapter)(nil)

// New returns the adapter of a line. transport carries the calls. New returns the errors of
// exchange.Open.
func New(t upstream.Target, transport http.RoundTripper) (*Adapter, error) {
	return exchange.OpenAdapter(t, Info(), transport, "Authorization", func(p exchange.Plain) *Adapter { return &Adapter{p} })
}

// Blocks implements jobcall.Generator. It returns true, because pictures come in the response.
func (a *Adapter) Blocks(jobcall.Task) bool { return true }

// ParamRule implements jobcall.Generator. It allows the fields of the model.
func (a *Adapter) ParamRule(task jobcall.Task) jobcall.ParamRule {
	names := params(task.Model)
	switch {
	case task.Mask != nil:
		names = []string{"negative_prompt", "style", "substyle", "style_id"}
	case len(task.References) > 0:
		names = append(names, "strength")
	}
	return jobcall.OnlyParams(names...)
}

// Submit implements jobcall.Generator.
func (a *Adapter) Submit(ctx context.Context, task jobcall.Task) (*jobcall.TaskStatus, error) {
	if failure := checkTask(task); failure != nil {
		return nil, failure
	}
	request := a.generate
	if task.Mask != nil {
		request = a.edit
	}
	reply, err := request(ctx, task)
	if err != nil {
		return nil, err
	}
	if !reply.OK() || !gjson.ValidBytes(reply.Body) {
		return nil, submitFailure(task.Kind, reply)
	}
	results := exchange.Links(gjson.GetBytes(reply.Body, "data.#.url").Array(), max(task.Count, 1))
	switch {
	case results != nil:
		return &jobcall.TaskStatus{Done: true, Results: results}, nil
	case gjson.GetBytes(reply.Body, "data").IsArray():
		return nil, upstream.EmptyResult(task.Kind, "an answer without a picture")
	}
	return nil, submitFailure(task.Kind, reply)
}

// generate requests pictures from a prompt, or from one whole reference picture.
func (a *Adapter) generate(ctx context.Context, task jobcall.Task) (*exchange.Reply, error) {
	body := map[string]any{"model": task.Model, "prompt": task.Prompt, "n": max(task.Count, 1), "response_format": "url"}
	action := "generations"
	if len(task.References) > 0 {
		action = "imageToImage"
		link, err := input.Link(ctx, task.References[0])
		if err != nil {
			return nil, err
		}
		body["image_url"], body["strength"] = link, defaultStrength
	} else if size := sizeOf(task); size != "" {
		body["size"] = size
	}
	task.AddExtraParams(body)
	if seed, ok := body["seed"]; ok {
		body["random_seed"] = seed
		delete(body, "seed")
	}
	return a.SubmitJSON(ctx, task.Kind, body, "images", action)
}

// edit requests a change of a part of a picture. In the provider's masks the area to change is
// white.
func (a *Adapter) edit(ctx context.Context, task jobcall.Task) (*exchange.Reply, error) {
	mask, err := input.DrawMask(ctx, task, input.White)
	if err != nil {
		return nil, err
	}
	call := a.Call(http.MethodPost, "images", "inpaint")
	form := a.Line.NewForm()
	form.Field("model", task.Model)
	form.Field("prompt", task.Prompt)
	form.Field("n", strconv.Itoa(max(task.Count, 1)))
	form.Field("response_format", "url")
	extra := task.ExtraParams()
	for _, name := range slices.Sorted(maps.Keys(extra)) {
		var text string
		if err := json.Unmarshal(extra[name], &text); err != nil {
			return nil, upstream.Unsuitable(task.Kind, "%s, which is no text", name)
		}
		form.Field(name, text)
	}
	form.File("image", "image", task.References[0])
	form.File("mask", "mask.png", mask)
	call.Form = form
	return a.Line.Submit(ctx, call)
}

// Poll implements jobcall.Generator. It always fails, because pictures have no tickets.
func (a *Adapter) Poll(_ context.Context, task jobcall.Task, _ string) (*jobcall.TaskStatus, error) {
	return nil, upstream.UnknownTask(task.Kind, "pictures come in the answer")
}
