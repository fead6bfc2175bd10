// Package ideogram owns the speech with Ideogram: pictures, which are tasks that
// are polled.
//
// Invariants:
//   - One call is sent at most once (package exchange sends it).
//   - The line's credential goes to the line's base address alone.
//   - No more pictures come back than were asked for, and none that the review
//     withheld, though it is billed.
//   - What a model has no field for is Unsuitable, never left out.
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

// defaultBaseURL is used by lines that name none.
const defaultBaseURL = "https://api.ideogram.ai"

// Limits of what is sent and read, in bytes. Answers name results and hold none.
const (
	maxPicture = 25 << 20
	maxAnswer  = 1 << 20
)

// maxImages is how many pictures a call makes, maxPictures how many one is made
// from, and maxMasked from how many beside a mask.
const maxImages, maxPictures, maxMasked = 8, 5, 4

// Info describes the provider for the catalog.
func Info() upstream.Info {
	return exchange.JobInfo(defaultBaseURL, exchange.NoOptions(Provider), upstream.KindImage)
}

// Adapter speaks for one line. It is safe for concurrent use.
//
// Results are links. They hold for a day.
//
// It is no jobcall.Finder: tasks are known by the provider's names alone.
type Adapter struct {
	exchange.Plain
}

var _ jobcall.Generator = (*Adapter)(nil)

// New makes the adapter of a line, whose calls go over transport. It fails as
// exchange.Open does.
func New(t upstream.Target, transport http.RoundTripper) (*Adapter, error) {
	return exchange.OpenAdapter(t, Info(), transport, "Api-Key", func(p exchange.Plain) *Adapter { return &Adapter{p} })
}

// Blocks implements jobcall.Generator: the provider is always asked for a task,
// so that an answer that is lost is a short one.
func (a *Adapter) Blocks(jobcall.Task) bool { return false }

// ParamRule implements jobcall.Generator: the fields of the model.
func (a *Adapter) ParamRule(w jobcall.Task) jobcall.ParamRule {
	return jobcall.Only(familyOf(w.Model).params()...)
}

// Submit implements jobcall.Generator.
func (a *Adapter) Submit(ctx context.Context, w jobcall.Task) (*jobcall.TaskStatus, error) {
	family := familyOf(w.Model)
	if failure := family.check(w); failure != nil {
		return nil, failure
	}
	fields := map[string]any{"prompt": w.Prompt, "async": true}
	if failure := family.size(fields, w); failure != nil {
		return nil, failure
	}
	calls := 1
	if family == family4 { // it has no count
		calls = max(w.Count, 1)
	} else {
		fields["num_images"] = max(w.Count, 1)
	}
	w.AddFurther(fields)
	call := exchange.JobCall{
		Method: http.MethodPost, URL: a.Line.URL(family.path(w.Model)...), Header: a.Header, Limit: maxAnswer,
	}
	var err error
	if len(w.References) > 0 {
		if call.Form, err = a.form(ctx, family, fields, w); err != nil {
			return nil, err
		}
	} else if call.Body, err = json.Marshal(fields); err != nil {
		return nil, upstream.Unsuitable(w.Kind, "params: %w", err)
	}
	return exchange.SubmitEach(calls, func(int) (string, *upstream.JobFailure, bool) { return a.one(ctx, w.Kind, call) })
}

// path is where a model is asked.
func (f family) path(model string) []string {
	if f == familyEdit {
		return append([]string{"v2", "image"}, strings.Split(model, "/")...)
	}
	return []string{"v2", "image", "generate", model}
}

// form says the same with files. What may change is black in the provider's masks.
func (a *Adapter) form(ctx context.Context, f family, fields map[string]any, w jobcall.Task) (*exchange.Multipart, error) {
	said := a.Line.NewForm()
	for _, name := range slices.Sorted(maps.Keys(fields)) {
		raw, _ := json.Marshal(fields[name]) // was JSON, or is a plain value: cannot fail
		var text string
		if json.Unmarshal(raw, &text) != nil {
			text = string(raw)
		}
		said.Field(name, text)
	}
	for i, r := range w.References {
		name := "images"
		if f == familyEdit {
			name = [...]string{"image", "reference_images"}[min(i, 1)]
		}
		said.File(name, "image", r)
	}
	if w.Mask != nil {
		mask, err := input.DrawMask(ctx, w, input.Black)
		if err != nil {
			return nil, err
		}
		said.File("mask", "mask.png", mask)
	}
	return said, nil
}

// one makes one call and returns the ticket of its task.
func (a *Adapter) one(ctx context.Context, kind string, call exchange.JobCall) (ticket string, failure *upstream.JobFailure, again bool) {
	reply, err := a.Line.Submit(ctx, call)
	if err != nil {
		return "", upstream.AsJobFailure(err), false
	}
	if !reply.Good() {
		return "", refused(kind, reply), false
	}
	ticket, failure = reply.Named("generation_id")
	return ticket, failure, failure == nil
}

// Poll implements jobcall.Generator.
func (a *Adapter) Poll(ctx context.Context, w jobcall.Task, ticket string) (*jobcall.TaskStatus, error) {
	made, err := exchange.PollEach(ticket, func(one string) (*jobcall.TaskStatus, error) { return a.ask(ctx, w.Kind, one) })
	if err != nil {
		return nil, err
	}
	made.Results = made.Results[:min(len(made.Results), max(w.Count, 1))]
	return made, nil
}

// ask asks about one task.
func (a *Adapter) ask(ctx context.Context, kind, ticket string) (*jobcall.TaskStatus, error) {
	if !exchange.Ticket(ticket) {
		return nil, upstream.Vanished(kind, "no name of a task")
	}
	reply, err := a.Line.Asked(ctx, kind, exchange.JobCall{
		Method: http.MethodGet, URL: a.Line.URL("v2", "generations", ticket), Header: a.Header, Limit: maxAnswer,
	})
	if err != nil {
		return nil, err
	}
	said := gjson.ParseBytes(reply.Body)
	switch status := said.Get("status"); {
	case status.Type != gjson.String || status.Str == "":
		return nil, reply.Silent()
	case status.Str == "completed":
		results, failure := read(kind, said)
		if failure != nil {
			return nil, failure
		}
		return &jobcall.TaskStatus{Ticket: ticket, Done: true, Results: results}, nil
	case status.Str == "failed":
		return nil, reply.Redact(ended(kind, reply, said.Get("failure_reason").String()))
	}
	return &jobcall.TaskStatus{Ticket: ticket}, nil
}
