// Package stability owns calls to Stability AI: pictures, one per call, returned in the response.
//
// Invariants:
//   - A call is sent at most once (by package exchange). A submission of several pictures is one
//     call per picture, each sent once.
//   - The line's credential is only sent to the line's base address.
//   - A picture blurred by the review is never a result, although it is billed.
//   - A request for a feature without a field at the model is Unsuitable, never sent without the
//     feature.
package stability

import (
	"context"
	"encoding/json"
	"maps"
	"net/http"
	"slices"
	"strings"

	"tollgate/internal/upstream"
	"tollgate/internal/upstream/exchange"
	"tollgate/internal/upstream/input"
	"tollgate/internal/upstream/jobcall"
)

// Provider is the adapter's name in the catalog.
const Provider = "stability"

// defaultBaseURL is the base address of lines without base_url.
const defaultBaseURL = "https://api.stability.ai"

// Limits of requests and responses, in bytes. A response holds a picture of about one megapixel, in
// base64.
const (
	maxPicture = 9 << 20 // a request may have 10 MB
	maxAnswer  = 24 << 20
)

// callsAtOnce is the maximum number of calls of a submission at a time.
const callsAtOnce = 4

// maxSeed is the largest seed accepted by the provider.
const maxSeed = 4294967294

// side is the side of a square picture of every model, in pixels.
const side = 1024

// defaultStrength is the default distance from the reference picture, because the provider requires
// the field.
const defaultStrength = "0.7"

// Info describes the provider for the catalog.
func Info() upstream.Info {
	return exchange.JobInfo(defaultBaseURL, exchange.NoOptions(Provider), upstream.KindImage)
}

// Adapter calls the provider for one line. It is safe for concurrent use.
type Adapter struct {
	exchange.Plain
}

var _ jobcall.Generator = (*Adapter)(nil)

// New returns the adapter of a line. transport carries the calls. New returns the errors of
// exchange.Open.
func New(t upstream.Target, transport http.RoundTripper) (*Adapter, error) {
	return exchange.OpenAdapter(t, Info(), transport, "Authorization", func(p exchange.Plain) *Adapter { return &Adapter{p} })
}

// Blocks implements jobcall.Generator: pictures come in the response.
func (a *Adapter) Blocks(jobcall.Task) bool { return true }

// inpaint is the service for changing a part of a picture.
const inpaint = "inpaint"

// service returns the last segment of a model's path: ultra, core or inpaint, or sd3 for the models
// named in a field. It returns "" for an unknown model.
func service(model string) string {
	switch name := strings.TrimPrefix(model, "stable-image-"); {
	case name == "ultra" || name == "core" || name == inpaint:
		return name
	case strings.HasPrefix(model, "sd3"):
		return "sd3"
	}
	return ""
}

// ParamRule implements jobcall.Generator. It allows the fields of the model's endpoint.
func (a *Adapter) ParamRule(task jobcall.Task) jobcall.ParamRule {
	names := []string{"negative_prompt", "seed", "output_format", "style_preset"}
	if service(task.Model) == "sd3" {
		names = append(names, "cfg_scale")
	}
	switch {
	case service(task.Model) == inpaint:
		names = append(names, "grow_mask")
	case len(task.References) > 0:
		names = append(names, "strength")
	}
	return jobcall.OnlyParams(names...)
}

// Submit implements jobcall.Generator.
func (a *Adapter) Submit(ctx context.Context, task jobcall.Task) (*jobcall.TaskStatus, error) {
	if failure := check(task); failure != nil {
		return nil, failure
	}
	if task.Mask != nil {
		mask, err := input.DrawMask(ctx, task, input.White)
		if err != nil {
			return nil, err
		}
		task.Mask = &mask
	}
	results, failure := exchange.CallSeveral(max(task.Count, 1), callsAtOnce, func(i int) ([]jobcall.Result, *upstream.JobFailure, bool) {
		return a.one(ctx, task, i)
	})
	if failure != nil {
		return nil, failure
	}
	return &jobcall.TaskStatus{Done: true, Results: results}, nil
}

func ratios() []string {
	return []string{"21:9", "16:9", "3:2", "5:4", "1:1", "4:5", "2:3", "9:16", "9:21"}
}

// check returns a failure for a task impossible for the model.
func check(task jobcall.Task) *upstream.JobFailure {
	name := service(task.Model)
	switch {
	case name == "":
		return upstream.Unsuitable(task.Kind, "stability's models are ultra, core, inpaint and sd3…, not %.80q", task.Model)
	case name == inpaint:
		return checkInpaint(task)
	case task.Mask != nil:
		return upstream.Unsuitable(task.Kind, "stability's model %s takes no mask, inpaint does", task.Model)
	case task.Square() > side:
		return upstream.Unsuitable(task.Kind, "stability's model %s does not make %s", task.Model, task.Tier)
	case task.Ratio == "" && task.Exact:
		return upstream.Unsuitable(task.Kind, "stability takes a ratio, no pixels")
	case task.Ratio != "" && !slices.Contains(ratios(), task.Ratio):
		return upstream.Unsuitable(task.Kind, "stability does not make %s", task.Ratio)
	case len(task.References) == 0:
		return nil
	case name == "core" || len(task.References) > 1 || !task.References[0].Image():
		return upstream.Unsuitable(task.Kind, "stability's ultra and sd3 work from one picture, core from none")
	case name == "sd3" && task.Ratio != "":
		return upstream.Unsuitable(task.Kind, "a picture from a picture has its ratio")
	}
	return tooLarge(task, task.References[0].Size)
}

// checkInpaint returns a failure for an impossible change of a part of a picture. The picture keeps
// its size.
func checkInpaint(task jobcall.Task) *upstream.JobFailure {
	switch {
	case task.Mask == nil || len(task.References) != 1 || !task.References[0].Image():
		return upstream.Unsuitable(task.Kind, "stability's inpaint takes one picture and a mask")
	case task.Ratio != "" || task.Exact || task.HasSmallerTier:
		return upstream.Unsuitable(task.Kind, "a picture that stability changes in a part has its size")
	}
	return tooLarge(task, task.References[0].Size+task.Mask.Size)
}

// tooLarge returns a failure if bytes, the length of the pictures, is above maxPicture.
func tooLarge(task jobcall.Task, bytes int64) *upstream.JobFailure {
	if bytes > maxPicture {
		return upstream.Unfit(task.Kind, "The reference has more than the %d MB that the provider takes of an image.", maxPicture>>20)
	}
	return nil
}

// form returns the body of one call.
func (a *Adapter) form(task jobcall.Task, call int) *exchange.Multipart {
	f, serviceName := a.Line.NewForm(), service(task.Model)
	f.Field("prompt", task.Prompt)
	if serviceName == "sd3" {
		f.Field("model", task.Model)
	}
	if task.Ratio != "" {
		f.Field("aspect_ratio", task.Ratio)
	}
	extra := task.ExtraParams()
	if len(task.References) > 0 && serviceName != inpaint {
		if serviceName == "sd3" {
			f.Field("mode", "image-to-image")
		}
		if extra["strength"] == nil {
			f.Field("strength", defaultStrength)
		}
	}
	for _, name := range slices.Sorted(maps.Keys(extra)) {
		value := extra[name]
		if name == "seed" {
			value = input.NextSeed(value, call, maxSeed)
		}
		f.Field(name, plain(value))
	}
	if len(task.References) > 0 {
		f.File("image", "image", task.References[0])
	}
	if task.Mask != nil {
		f.File("mask", "mask.png", *task.Mask)
	}
	return f
}

// plain returns a JSON value as text for a form.
func plain(value json.RawMessage) string {
	var text string
	if json.Unmarshal(value, &text) == nil {
		return text
	}
	return string(value)
}

// one makes one call. again reports whether another call may succeed.
func (a *Adapter) one(ctx context.Context, task jobcall.Task, call int) (results []jobcall.Result, failure *upstream.JobFailure,
	again bool) {
	family := "generate"
	if service(task.Model) == inpaint {
		family = "edit"
	}
	reply, err := a.Line.Submit(ctx, exchange.JobCall{
		Method: http.MethodPost, URL: a.Line.URL("v2beta", "stable-image", family, service(task.Model)), Header: a.Header,
		Form: a.form(task, call), Limit: maxAnswer, AcquireRead: task.AcquireRead,
	})
	if err != nil {
		return nil, upstream.AsJobFailure(err), false
	}
	if !reply.OK() {
		return nil, submitFailure(task.Kind, reply), false
	}
	result, failure := read(task.Kind, reply)
	if failure != nil {
		return nil, failure, true
	}
	return []jobcall.Result{result}, nil, true
}

// Poll implements jobcall.Generator. It always fails, because pictures have no tickets.
func (a *Adapter) Poll(_ context.Context, task jobcall.Task, _ string) (*jobcall.TaskStatus, error) {
	return nil, upstream.UnknownTask(task.Kind, "pictures come in the answer")
}
