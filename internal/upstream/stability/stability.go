// Package stability owns the speech with Stability AI: pictures, one a call,
// which come in the answer.
//
// Invariants:
//   - One call is sent at most once (package exchange sends it). A submission of
//     several pictures is one call a picture, each sent once.
//   - The line's credential goes to the line's base address alone.
//   - A picture that the review blurred is never a result, though it is billed.
//   - What a model has no field for is Unsuitable, never left out.
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

// defaultBaseURL is used by lines that name none.
const defaultBaseURL = "https://api.stability.ai"

// Limits of what is sent and read, in bytes. An answer holds a picture of about
// one megapixel, in base64.
const (
	maxPicture = 9 << 20 // a request has up to 10 MB
	maxAnswer  = 24 << 20
)

// callsAtOnce is how many of a submission's calls run at a time.
const callsAtOnce = 4

// maxSeed is the largest seed that the provider takes.
const maxSeed = 4294967294

// side is that of a square picture, whatever the model.
const side = 1024

// usualStrength is how far a picture is left behind where the user does not say
// it: the provider wants it said.
const usualStrength = "0.7"

// Info describes the provider for the catalog.
func Info() upstream.Info {
	return exchange.JobInfo(defaultBaseURL, exchange.NoOptions(Provider), upstream.KindImage)
}

// Adapter speaks for one line. It is safe for concurrent use.
type Adapter struct {
	exchange.Plain
}

var _ jobcall.Generator = (*Adapter)(nil)

// New makes the adapter of a line, whose calls go over transport. It fails as
// exchange.Open does.
func New(t upstream.Target, transport http.RoundTripper) (*Adapter, error) {
	return exchange.OpenAdapter(t, Info(), transport, "Authorization", func(p exchange.Plain) *Adapter { return &Adapter{p} })
}

// Blocks implements jobcall.Generator: pictures come in the answer.
func (a *Adapter) Blocks(jobcall.Task) bool { return true }

// inpaint is the service that changes a part of a picture.
const inpaint = "inpaint"

// service is the last step of a model's path: ultra, core or inpaint, or sd3 for
// the models that a field names; empty: none that is known.
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

// check says what cannot be said to the model.
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
		return upstream.Unsuitable(w.Kind, "stability's model %s cannot be asked for %s", w.Model, w.Tier)
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

// checkInpaint says what cannot be said of a picture that is changed in a part: it
// keeps its size.
func checkInpaint(w jobcall.Task) *upstream.JobFailure {
	switch {
	case w.Mask == nil || len(w.References) != 1 || !w.References[0].Image():
		return upstream.Unsuitable(w.Kind, "stability's inpaint works from one picture and a mask")
	case w.Ratio != "" || w.Exact || w.Larger:
		return upstream.Unsuitable(w.Kind, "a picture that stability changes in a part has its size")
	}
	return tooLarge(w, w.References[0].Size+w.Mask.Size)
}

// tooLarge refuses pictures of so many bytes, if they are more than fit.
func tooLarge(w jobcall.Task, bytes int64) *upstream.JobFailure {
	if bytes > maxPicture {
		return upstream.Unfit(w.Kind, "The reference has more than the %d MB that the provider takes of an image.", maxPicture>>20)
	}
	return nil
}

// form says what one call asks for.
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

// one makes one call. Again says whether another one may fare better.
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
		return nil, refused(w.Kind, reply), false
	}
	result, failure := read(w.Kind, reply)
	if failure != nil {
		return nil, failure, true
	}
	return []jobcall.Result{result}, nil, true
}

// Poll implements jobcall.Generator: there is nothing to ask about.
func (a *Adapter) Poll(_ context.Context, w jobcall.Task, _ string) (*jobcall.TaskStatus, error) {
	return nil, upstream.Vanished(w.Kind, "pictures come in the answer")
}
