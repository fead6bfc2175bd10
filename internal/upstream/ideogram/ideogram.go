// Package ideogram owns calls to Ideogram: pictures, polled as tasks.
//
// Invariants:
//   - A call is sent at most once (by package exchange).
//   - The line's credential is only sent to the line's base address.
//   - The adapter never returns more pictures than requested, and never a picture withheld by the
//     review, although the picture is billed.
//   - A request for a feature without a field at the model is Unsuitable, never sent without the
//     feature.
package ideogram

import (
	"context"
	"encoding/json"
	"maps"
	"net/http"
	"slices"
	"strings"

	"github.com/tidwall/gjson"

	"tollgate/internal/upstream"
	"tollgate/internal/upstream/exchange"
	"tollgate/internal/upstream/input"
	"tollgate/internal/upstream/jobcall"
)

// Provider is the adapter's name in the catalog.
const Provider = "ideogram"

// defaultBaseURL is the base address of lines without base_url.
const defaultBaseURL = "https://api.ideogram.ai"

// maxPicture is the maximum length of a reference picture, in bytes.
const maxPicture = 25 << 20

// maxImages bounds the results of a call, maxPictures the reference pictures, and maxMasked the
// reference pictures of a call with a mask.
const maxImages, maxPictures, maxMasked = 8, 5, 4

// Info describes the provider for the catalog.
func Info() upstream.Info {
	return exchange.JobInfo(defaultBaseURL, exchange.NoOptions(Provider), upstream.KindImage)
}

// Adapter calls Ideogram for one line. It is safe for concurrent use.
//
// Results are links, valid for a day.
//
// Adapter does not implement jobcall.Finder, because the provider cannot look up a task by the
// gateway's key.
type Adapter struct {
	exchange.Plain
}

var _ jobcall.Generator = (*Adapter)(nil)

// New returns the adapter of a line. transport carries the calls. New returns the errors of
// exchange.Open.
func New(t upstream.Target, transport http.RoundTripper) (*Adapter, error) {
	return exchange.OpenAdapter(t, Info(), transport, "Api-Key", func(p exchange.Plain) *Adapter { return &Adapter{p} })
}

// ParamRule implements jobcall.Generator. It allows the fields of the model.
func (a *Adapter) ParamRule(task jobcall.Task) jobcall.ParamRule {
	return jobcall.OnlyParams(familyOf(task.Model).params()...)
}

// Submit implements jobcall.Generator.
func (a *Adapter) Submit(ctx context.Context, task jobcall.Task) (*jobcall.TaskStatus, error) {
	family := familyOf(task.Model)
	if failure := family.check(task); failure != nil {
		return nil, failure
	}
	fields := map[string]any{"prompt": task.Prompt, "async": true}
	if failure := family.size(fields, task); failure != nil {
		return nil, failure
	}
	calls := 1
	if family == family4 { // the model has no count
		calls = max(task.Count, 1)
	} else {
		fields["num_images"] = max(task.Count, 1)
	}
	task.AddExtraParams(fields)
	call := a.Call(http.MethodPost, family.path(task.Model)...)
	var err error
	if len(task.References) > 0 {
		if call.Form, err = a.form(ctx, family, fields, task); err != nil {
			return nil, err
		}
	} else if call.Body, err = json.Marshal(fields); err != nil {
		return nil, upstream.Unsuitable(task.Kind, "params: %w", err)
	}
	return exchange.SubmitEach(calls, func(int) (string, *upstream.JobFailure, bool) { return a.submitOne(ctx, task.Kind, call) })
}

// path returns the path for the requests of a model.
func (f family) path(model string) []string {
	if f == familyEdit {
		return append([]string{"v2", "image"}, strings.Split(model, "/")...)
	}
	return []string{"v2", "image", "generate", model}
}

// form returns the submission with files. In the provider's masks the area to change is black.
func (a *Adapter) form(ctx context.Context, f family, fields map[string]any, task jobcall.Task) (*exchange.Multipart, error) {
	form := a.Line.NewForm()
	for _, name := range slices.Sorted(maps.Keys(fields)) {
		raw, _ := json.Marshal(fields[name]) // cannot fail for valid JSON or a plain value
		var text string
		if json.Unmarshal(raw, &text) != nil {
			text = string(raw)
		}
		form.Field(name, text)
	}
	for i, r := range task.References {
		name := "images"
		if f == familyEdit {
			name = [...]string{"image", "reference_images"}[min(i, 1)]
		}
		form.File(name, "image", r)
	}
	if task.Mask != nil {
		mask, err := input.DrawMask(ctx, task, input.Black)
		if err != nil {
			return nil, err
		}
		form.File("mask", "mask.png", mask)
	}
	return form, nil
}

// submitOne makes one call and returns the ticket of its task.
func (a *Adapter) submitOne(ctx context.Context, kind string, call exchange.JobCall) (
	ticket string, failure *upstream.JobFailure, again bool,
) {
	reply, err := a.Line.Submit(ctx, call)
	if err != nil {
		return "", upstream.AsJobFailure(err), false
	}
	if !reply.OK() {
		return "", submitFailure(kind, reply), false
	}
	ticket, failure = reply.ReadTicket("generation_id")
	return ticket, failure, failure == nil
}

// Poll implements jobcall.Generator.
func (a *Adapter) Poll(ctx context.Context, task jobcall.Task, ticket string) (*jobcall.TaskStatus, error) {
	status, err := exchange.PollEach(ticket, func(part string) (*jobcall.TaskStatus, error) { return a.ask(ctx, task.Kind, part) })
	if err != nil {
		return nil, err
	}
	status.Results = status.Results[:min(len(status.Results), max(task.Count, 1))]
	return status, nil
}

// ask queries one task.
func (a *Adapter) ask(ctx context.Context, kind, ticket string) (*jobcall.TaskStatus, error) {
	reply, err := a.QueryTask(ctx, kind, ticket, "v2", "generations")
	if err != nil {
		return nil, err
	}
	doc := gjson.ParseBytes(reply.Body)
	switch status := doc.Get("status"); {
	case status.Type != gjson.String || status.Str == "":
		return nil, reply.PollFailure()
	case status.Str == "completed":
		results, failure := read(kind, doc)
		if failure != nil {
			return nil, failure
		}
		return &jobcall.TaskStatus{Ticket: ticket, Done: true, Results: results}, nil
	case status.Str == "failed":
		return nil, reply.Redact(taskFailure(kind, reply, doc.Get("failure_reason").String()))
	}
	return &jobcall.TaskStatus{Ticket: ticket}, nil
}
