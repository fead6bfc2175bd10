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
	maxPicture = 9 << 20 // a request has up to 10 MB
	maxAnswer  = 24 << 20
)

// callsAtOnce is the maximum number of calls of a submission at a time.
const callsAtOnce = 4

// maxSeed is the largest seed accepted by the provider.
const maxSeed = 4294967294

// side is the side of a square picture of every model, in pixels.
const side = 1024

// usualStrength is the default distance from the reference picture, because the provider requires
// the field.
const usualStrength = "0.7"

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

// Blocks implements jobcall.Generator: pictures come in the answer.
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

// ParamRule implements jobcall.Generator: the fields of the model's endpoint.
func (a *Adapter) ParamRule(w jobcall.Task) jobcall.ParamRule {
	names := []string{"negative_prompt", "seed", "output_format", "style_preset"}
	if service(w.Model) == "sd3" {
		names = append(names, "cfg_scale")
	}
	switch {
	case service(w.Model) == inpaint:
		names = append(names, "grow_mask")
	case len(w.References) > 0:
		names = append(names, "strength")
	}
	return jobcall.Only(names...)
}

// Submit implements jobcall.Generator.
func (a *Adapter) Submit(ctx context.Context, w jobcall.Task) (*jobcall.TaskStatus, error) {
	if failure := check(w); failure != nil {
		return nil, failure
	}
	if w.Mask != nil {
		mask, err := input.DrawMask(ctx, w, input.White)
		if err != nil {
			return nil, err
		}
		w.Mask = &mask
	}
	results, failure := exchange.Several(max(w.Count, 1), callsAtOnce, func(i int) ([]jobcall.Result, *upstream.JobFailure, bool) {
		return a.one(ctx, w, i)
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
func check(w jobcall.Task) *upstream.JobFailure {
	of := service(w.Model)
	switch {
	case of == "":
		return upstream.Unsuitable(w.Kind, "stability's models are ultra, core, inpaint and sd3…, not %.80q", w.Model)
	case of == inpaint:
		return checkInpaint(w)
	case w.Mask != nil:
		return upstream.Unsuitable(w.Kind, "stability's model %s takes no mask, inpaint does", w.Model)
	case w.Square() > side:
		return upstream.Unsuitable(w.Kind, "stability's model %s does not make %s", w.Model, w.Tier)
	case w.Ratio == "" && w.Exact:
		return upstream.Unsuitable(w.Kind, "stability takes a ratio, no pixels")
	case w.Ratio != "" && !slices.Contains(ratios(), w.Ratio):
		return upstream.Unsuitable(w.Kind, "stability does not make %s", w.Ratio)
	case len(w.References) == 0:
		return nil
	case of == "core" || len(w.References) > 1 || !w.References[0].Image():
		return upstream.Unsuitable(w.Kind, "stability's ultra and sd3 work from one picture, core from none")
	case of == "sd3" && w.Ratio != "":
		return upstream.Unsuitable(w.Kind, "a picture from a picture has its ratio")
	}
	return tooLarge(w, w.References[0].Size)
}

// checkInpaint returns a failure for an impossible change of a part of a picture. The picture keeps
// its size.
func checkInpaint(w jobcall.Task) *upstream.JobFailure {
	switch {
	case w.Mask == nil || len(w.References) != 1 || !w.References[0].Image():
		return upstream.Unsuitable(w.Kind, "stability's inpaint takes one picture and a mask")
	case w.Ratio != "" || w.Exact || w.Larger:
		return upstream.Unsuitable(w.Kind, "a picture that stability changes in a part has its size")
	}
	return tooLarge(w, w.References[0].Size+w.Mask.Size)
}

// tooLarge returns a failure if bytes, the length of the pictures, is above maxPicture.
func tooLarge(w jobcall.Task, bytes int64) *upstream.JobFailure {
	if bytes > maxPicture {
		return upstream.Unfit(w.Kind, "The reference has more than the %d MB that the provider takes of an image.", maxPicture>>20)
	}
	return nil
}

// form returns the body of one call.
func (a *Adapter) form(w jobcall.Task, call int) *exchange.Multipart {
	f, of := a.Line.NewForm(), service(w.Model)
	f.Field("prompt", w.Prompt)
	if of == "sd3" {
		f.Field("model", w.Model)
	}
	if w.Ratio != "" {
		f.Field("aspect_ratio", w.Ratio)
	}
	further := w.Further()
	if len(w.References) > 0 && of != inpaint {
		if of == "sd3" {
			f.Field("mode", "image-to-image")
		}
		if further["strength"] == nil {
			f.Field("strength", usualStrength)
		}
	}
	for _, name := range slices.Sorted(maps.Keys(further)) {
		value := further[name]
		if name == "seed" {
			value = input.NextSeed(value, call, maxSeed)
		}
		f.Field(name, plain(value))
	}
	if len(w.References) > 0 {
		f.File("image", "image", w.References[0])
	}
	if w.Mask != nil {
		f.File("mask", "mask.png", *w.Mask)
	}
	return f
}

// plain is a JSON value as the text of a form.
func plain(value json.RawMessage) string {
	var text string
	if json.Unmarshal(value, &text) == nil {
		return text
	}
	return string(value)
}

// one makes one call. again reports whether another call may succeed.
func (a *Adapter) one(ctx context.Context, w jobcall.Task, call int) (results []jobcall.Result, failure *upstream.JobFailure, again bool) {
	family := "generate"
	if service(w.Model) == inpaint {
		family = "edit"
	}
	reply, err := a.Line.Submit(ctx, exchange.JobCall{
		Method: http.MethodPost, URL: a.Line.URL("v2beta", "stable-image", family, service(w.Model)), Header: a.Header,
		Form: a.form(w, call), Limit: maxAnswer, Reading: w.Reading,
	})
	if err != nil {
		return nil, upstream.AsJobFailure(err), false
	}
	if !reply.Good() {
		return nil, submitFailure(w.Kind, reply), false
	}
	result, failure := read(w.Kind, reply)
	if failure != nil {
		return nil, failure, true
	}
	return []jobcall.Result{result}, nil, true
}

// Poll implements jobcall.Generator: there is nothing to ask about.
func (a *Adapter) Poll(_ context.Context, w jobcall.Task, _ string) (*jobcall.TaskStatus, error) {
	return nil, upstream.UnknownTask(w.Kind, "pictures come in the answer")
}
