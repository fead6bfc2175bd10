// Package kling owns calls to Kling: clips through its new interface, with the model in the
// address, and pictures through its older interface, with the model in the body. A line with a pair
// of keys, in place of one key, only has the older interface.
//
// Invariants:
//   - A call is sent at most once (by package exchange). Each call has the task's key, and Kling
//     accepts only one task per key. A submission with a lost response is looked up by its key.
//   - Key and tokens are only sent to the line's base address.
//   - A response with a code other than 0 is an error, with any status.
//   - A model's params never override the gateway's own fields (model, size, count, length, sound).
package kling

import (
	"cmp"
	"context"
	"fmt"
	"net/http"
	"net/url"
	"slices"
	"strings"

	"tollgate/internal/upstream"
	"tollgate/internal/upstream/chatcall"
	"tollgate/internal/upstream/credential"
	"tollgate/internal/upstream/exchange"
	"tollgate/internal/upstream/jobcall"
	"tollgate/internal/wire/jobrequest"
)

// Provider is the adapter's name in the catalog.
const Provider = "kling"

// defaultBaseURL is the base address of lines without base_url.
const defaultBaseURL = "https://api-singapore.klingai.com"

// Limits of requests, in bytes.
const (
	maxFrame   = 50 << 20 // of a reference picture for a clip
	maxPicture = 10 << 20 // of a reference picture for a picture
	maxInline  = 60 << 20
)

// Info describes the provider for the catalog.
func Info() upstream.Info {
	return exchange.JobInfo(defaultBaseURL, checkOptions, upstream.KindImage, upstream.KindVideo)
}

func checkOptions(options map[string]any) error {
	return exchange.CheckTexts(options, Provider, map[string]func(string) error{"access_key": exchange.CheckWord})
}

// Adapter calls Kling for one line. It is safe for concurrent use.
type Adapter struct {
	exchange.Plain
	source *credential.Source // source of tokens signed with a pair of keys; nil if the line has one key
}

var (
	_ jobcall.Generator  = (*Adapter)(nil)
	_ jobcall.Finder     = (*Adapter)(nil)
	_ chatcall.Secretive = (*Adapter)(nil)
)

// New returns the adapter of a line. transport carries the calls. New returns the errors of
// exchange.Open.
func New(t upstream.Target, transport http.RoundTripper, keeper *credential.Keeper) (*Adapter, error) {
	a := &Adapter{}
	access := exchange.TextOption(t.Options, "access_key", "")
	if access != "" {
		lineURL, err := url.Parse(cmp.Or(t.BaseURL, defaultBaseURL))
		if err != nil {
			return nil, fmt.Errorf("line %s: base_url is not a plain http(s) address", t.Line)
		}
		a.source = keeper.Source([]any{Provider, access, t.Key}, signTokens(access, t.Key, keeper.Time))
		transport = &credential.Transport{Base: transport, Source: a.source, LineURL: lineURL}
	}
	var err error
	if a.Plain, err = exchange.OpenPlain(t, Info(), transport, "Authorization"); err != nil {
		return nil, err
	}
	if access != "" {
		a.Header.Del("Authorization") // the transport sets it
	}
	return a, nil
}

// Secrets implements chatcall.Secretive.
func (a *Adapter) Secrets() []string { return a.source.Secrets() }

// ParamRule implements jobcall.Generator. Elements and voices are rejected, because they are stored in
// the provider's account, which all users share.
func (a *Adapter) ParamRule(task jobcall.Task) jobcall.ParamRule {
	if task.Kind == upstream.KindImage {
		return jobcall.OnlyParams("negative_prompt", "image_reference", "image_fidelity", "watermark_info")
	}
	if a.source != nil {
		return jobcall.OnlyParams("audio", "negative_prompt", "watermark_info").Roles(jobrequest.FirstFrame, jobrequest.LastFrame)
	}
	rule := jobcall.OnlyParams("audio", "multi_shot", "watermark_info")
	switch f := familyOf(task.Model); {
	case f.omni:
		return rule.Roles(jobrequest.Roles()...)
	case f.lastFrame:
		return rule.Roles(jobrequest.FirstFrame, jobrequest.LastFrame)
	}
	return rule.Roles(jobrequest.FirstFrame)
}

// Submit implements jobcall.Generator.
func (a *Adapter) Submit(ctx context.Context, job jobcall.Task) (*jobcall.TaskStatus, error) {
	var (
		req *request
		err error
	)
	switch {
	case job.Mask != nil:
		return nil, upstream.Unsuitable(job.Kind, "kling takes no mask")
	case job.Kind == upstream.KindImage:
		req, err = pictureRequest(ctx, job)
	case a.source != nil:
		req, err = olderRequest(ctx, job)
	default:
		req, err = clipRequest(ctx, job)
	}
	if err != nil {
		return nil, err
	}
	reply, err := a.SubmitJSON(ctx, job.Kind, req.body, req.path...)
	if err != nil {
		return nil, a.source.Hide(err)
	}
	task, failure := readSubmission(job.Kind, reply)
	if failure != nil && isDuplicate(reply) { // the existing task has this task's key, so it is the same task
		if ticket, err := a.Find(ctx, job); err == nil && ticket != "" {
			return &jobcall.TaskStatus{Ticket: ticket}, nil
		}
	}
	if failure != nil {
		return nil, a.source.Hide(failure)
	}
	id := task.Get("id").String()
	if req.series != "" {
		id = task.Get("task_id").String()
	}
	if !exchange.IsTicket(id) {
		return nil, upstream.MissingTicket("id")
	}
	return &jobcall.TaskStatus{Ticket: ticket{req.series, id}.String()}, nil
}

// ticket names a task. In the older interface, series is the path of submissions and queries below
// /v1/images or /v1/videos. In the new interface, series is empty.
type ticket struct{ series, id string }

func (t ticket) String() string {
	if t.series == "" {
		return t.id
	}
	return t.series + ":" + t.id
}

// readTicket reads a ticket of a task of this kind.
func readTicket(kind, text string) (ticket, bool) {
	t := ticket{id: text}
	series := []string{generations, omniImage}
	if kind == upstream.KindVideo {
		series = []string{text2Video, image2Video}
	}
	if before, after, ok := strings.Cut(text, ":"); ok || kind == upstream.KindImage {
		if t.series, t.id = before, after; !slices.Contains(series, before) {
			return t, false
		}
	}
	return t, exchange.IsTicket(t.id)
}

// taskURL returns the address for queries about a task.
func (a *Adapter) taskURL(kind string, t ticket) *url.URL {
	if t.series != "" {
		return a.Line.URL("v1", kind+"s", t.series, t.id)
	}
	return a.clipsURL("task_ids", t.id)
}

// clipsURL returns the address of the clips with the given value of a field.
func (a *Adapter) clipsURL(field, value string) *url.URL {
	u := a.Line.URL("tasks")
	u.RawQuery = url.Values{field: {value}}.Encode()
	return u
}

// Poll implements jobcall.Generator.
func (a *Adapter) Poll(ctx context.Context, task jobcall.Task, text string) (*jobcall.TaskStatus, error) {
	t, ok := readTicket(task.Kind, text)
	if !ok {
		return nil, upstream.UnknownTask(task.Kind, "the ticket is not a task ID")
	}
	reply, err := a.Line.Query(ctx, exchange.JobCall{Method: http.MethodGet, URL: a.taskURL(task.Kind, t), Header: a.Header})
	if err != nil {
		return nil, a.source.Hide(err)
	}
	status, failure := readTask(task, t, reply)
	if failure != nil {
		return nil, a.source.Hide(reply.Redact(failure))
	}
	return status, nil
}

// Find implements jobcall.Finder.
func (a *Adapter) Find(ctx context.Context, job jobcall.Task) (string, error) {
	t := ticket{}
	u := a.clipsURL("external_task_ids", job.Key)
	switch {
	case job.Kind == upstream.KindImage:
		t.series = pictureSeries(job.Model)
	case a.source != nil:
		t.series = olderSeries(job)
	}
	if t.series != "" {
		u = a.taskURL(job.Kind, ticket{t.series, job.Key})
	}
	reply, err := a.Line.Query(ctx, exchange.JobCall{Method: http.MethodGet, URL: u, Header: a.Header})
	if err != nil {
		return "", a.source.Hide(err)
	}
	task, ok := responseData(reply)
	switch {
	case t.series != "" && reply.TaskUnknown():
		return "", nil
	case !ok:
		return "", reply.PollFailure()
	}
	if t.series == "" {
		task = task.Get("0")
		t.id = task.Get("id").String()
	} else {
		t.id = task.Get("task_id").String()
	}
	if !exchange.IsTicket(t.id) {
		return "", nil
	}
	return t.String(), nil
}

// Fetch implements jobcall.Generator. Results are signed links.
func (a *Adapter) Fetch(ctx context.Context, task jobcall.Task, r jobcall.Result) (*jobcall.Download, error) {
	d, err := a.Plain.Fetch(ctx, task, r)
	return d, a.source.Hide(err)
}

// request is a submission: its destination and its body.
type request struct {
	path   []string
	series string // path below /v1/images or /v1/videos in the older interface
	body   map[string]any
}
