// Package luma owns calls to Luma's Agents API: pictures and clips, polled as tasks. (Dream
// Machine, Luma's older API, has other keys and other models.)
//
// Invariants:
//   - A call is sent at most once (by package exchange). A submission of several pictures is one
//     task per picture.
//   - The line's credential is only sent to the line's base address.
//   - A request for a feature without a field is Unsuitable, never sent without the feature.
package luma

import (
	"context"
	"encoding/json"
	"net/http"
	"regexp"

	"github.com/tidwall/gjson"

	"tollgate/internal/upstream"
	"tollgate/internal/upstream/exchange"
	"tollgate/internal/upstream/jobcall"
	"tollgate/internal/wire/jobrequest"
)

// Provider is the adapter's name in the catalog.
const Provider = "luma"

// defaultBaseURL is the base address of lines without base_url.
const defaultBaseURL = "https://agents.lumalabs.ai/v1"

// Limits of requests, in bytes.
const (
	maxPicture = 50 << 20
	maxInline  = 60 << 20
)

// Info describes the provider for the catalog.
func Info() upstream.Info {
	return exchange.JobInfo(defaultBaseURL, checkOptions, upstream.KindImage, upstream.KindVideo)
}

// Values of the option `video_role`, which sets the use of a reference video.
const (
	roleEdit    = "edit"    // edit the video
	roleReframe = "reframe" // change the ratio of the video
)

func checkOptions(options map[string]any) error {
	return exchange.CheckTexts(options, Provider, map[string]func(string) error{"video_role": exchange.OneOf(roleEdit, roleReframe)})
}

// Adapter calls Luma for one line. It is safe for concurrent use.
//
// Results are links, valid for an hour. The next poll may return a fresh link.
//
// Adapter does not implement jobcall.Finder, because the provider cannot look up a task by the
// gateway's key.
type Adapter struct {
	exchange.Plain
	role string // the option video_role; if empty, reference videos are rejected
}

var _ jobcall.Generator = (*Adapter)(nil)

// New returns the adapter of a line. transport carries the calls. New returns the errors of
// exchange.Open.
func New(t upstream.Target, transport http.RoundTripper) (*Adapter, error) {
	return exchange.OpenAdapter(t, Info(), transport, "Authorization", func(p exchange.Plain) *Adapter {
		return &Adapter{Plain: p, role: exchange.TextOption(t.Options, "video_role", "")}
	})
}

// ParamRule implements jobcall.Generator. HDR and web search are rejected, because they cost more
// and the catalog has no price for them.
func (a *Adapter) ParamRule(task jobcall.Task) jobcall.ParamRule {
	switch {
	case task.Kind == upstream.KindVideo && hasVideo(task):
		return jobcall.OnlyParams("strength").Roles(jobrequest.FirstFrame, jobrequest.Subject)
	case task.Kind == upstream.KindVideo:
		return jobcall.OnlyParams("style", "loop").Roles(jobrequest.FirstFrame, jobrequest.LastFrame)
	}
	return jobcall.OnlyParams("style", "output_format")
}

// Submit implements jobcall.Generator.
func (a *Adapter) Submit(ctx context.Context, task jobcall.Task) (*jobcall.TaskStatus, error) {
	var (
		body map[string]any
		err  error
	)
	switch {
	case task.Kind == upstream.KindVideo && hasVideo(task):
		body, err = a.editBody(ctx, task)
	case task.Kind == upstream.KindVideo:
		body, err = clipBody(ctx, task)
	default:
		body, err = pictureBody(ctx, task)
	}
	if err != nil {
		return nil, err
	}
	raw, err := json.Marshal(body)
	if err != nil {
		return nil, upstream.Unsuitable(task.Kind, "params: %w", err)
	}
	return exchange.SubmitEach(max(task.Count, 1), func(int) (string, *upstream.JobFailure, bool) { return a.submitOne(ctx, task.Kind, raw) })
}

// submitOne submits one task and returns its ticket.
func (a *Adapter) submitOne(ctx context.Context, kind string, body []byte) (ticket string, failure *upstream.JobFailure, again bool) {
	call := a.Call(http.MethodPost, "generations")
	call.Body = body
	reply, err := a.Line.Submit(ctx, call)
	if err != nil {
		return "", upstream.AsJobFailure(err), false
	}
	if !reply.OK() {
		return "", submitFailure(kind, reply), false
	}
	ticket, failure = reply.ReadTicket("id")
	return ticket, failure, failure == nil
}

// fetchErrors matches the provider's message about a failed download of media.
var fetchErrors = regexp.MustCompile(`(?i)ingest|download|fetch`)

// submitFailure returns the failure for a response without success. A failed download of media has the
// status of an unavailable provider but may be the user's fault, so one such response does not take
// the line out of use.
func submitFailure(kind string, reply *exchange.Reply) *upstream.JobFailure {
	f := reply.SubmitFailure(kind)
	if reply.Status == http.StatusServiceUnavailable && fetchErrors.MatchString(gjson.GetBytes(reply.Body, "detail").String()) {
		f.Unproven = true
	}
	return f
}

// Poll implements jobcall.Generator.
func (a *Adapter) Poll(ctx context.Context, job jobcall.Task, ticket string) (*jobcall.TaskStatus, error) {
	return exchange.PollEach(ticket, func(task string) (*jobcall.TaskStatus, error) { return a.pollOne(ctx, job.Kind, task) })
}

// pollOne returns the status of one task.
func (a *Adapter) pollOne(ctx context.Context, kind, ticket string) (*jobcall.TaskStatus, error) {
	reply, err := a.QueryTask(ctx, kind, ticket, "generations")
	if err != nil {
		return nil, err
	}
	doc := gjson.ParseBytes(reply.Body)
	switch state := doc.Get("state"); {
	case state.Type != gjson.String || state.Str == "":
		return nil, reply.PollFailure()
	case state.Str == "failed":
		return nil, reply.Redact(taskFailure(kind, reply, doc))
	case state.Str != "completed": // any other state is a running task; the line's longest wait ends it
		return &jobcall.TaskStatus{Ticket: ticket}, nil
	}
	status, failure := exchange.SuccessStatus(kind, ticket, doc.Get("output.#.url"), 1)
	if failure != nil {
		return nil, failure
	}
	return status, nil
}

// taskFailure returns the failure of a failed task, by the provider's failure_code.
func taskFailure(kind string, reply *exchange.Reply, doc gjson.Result) *upstream.JobFailure {
	code, reason := doc.Get("failure_code").String(), doc.Get("failure_reason").String()
	switch code {
	case "content_moderated":
		return upstream.ModerationFailure(kind, code+": "+reason, false)
	case "invalid_request":
		return reply.TaskFailure(kind, "invalidparameter", reason)
	case "image_too_large", "unsupported_format", "corrupt_input":
		return reply.TaskFailure(kind, "invalid_image", code+": "+reason)
	case "generation_failed":
		f := reply.TaskFailure(kind, "", code+": "+reason)
		f.Next = upstream.NextSame
		return f
	case "output_not_found":
		return upstream.EmptyResult(kind, code+": "+reason)
	case "rate_limited":
		return reply.TaskFailure(kind, "rate_limit_exceeded", reason)
	case "budget_exhausted":
		return reply.TaskFailure(kind, "insufficient_quota", reason)
	}
	return reply.TaskFailure(kind, code, reason)
}
