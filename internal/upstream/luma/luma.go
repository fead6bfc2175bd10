// Package luma owns the speech with Luma's Agents API: pictures and clips, which
// are tasks that are polled. (Dream Machine, Luma's older API, has other keys and
// other models.)
//
// Invariants:
//   - One call is sent at most once (package exchange sends it). A submission of
//     several pictures is one task a picture.
//   - The line's credential goes to the line's base address alone.
//   - What has no field is Unsuitable, never left out.
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

// defaultBaseURL is used by lines that name none.
const defaultBaseURL = "https://agents.lumalabs.ai/v1"

// Limits of what is sent and read, in bytes. Answers name results and hold none.
const (
	maxPicture = 50 << 20
	maxInline  = 60 << 20
	maxAnswer  = 1 << 20
)

// Info describes the provider for the catalog.
func Info() upstream.Info {
	return exchange.JobInfo(defaultBaseURL, checkOptions, upstream.KindImage, upstream.KindVideo)
}

// What a video to work from is for, in the option `video_role`.
const (
	roleEdit    = "edit"    // it is changed
	roleReframe = "reframe" // it gets another ratio
)

func checkOptions(options map[string]any) error {
	return exchange.Texts(options, Provider, map[string]func(string) error{"video_role": exchange.OneOf(roleEdit, roleReframe)})
}

// Adapter speaks for one line. It is safe for concurrent use.
//
// Results are links. They hold for an hour, and the next poll may bring a fresh
// one.
//
// It is no jobcall.Finder: tasks are known by the provider's names alone.
type Adapter struct {
	exchange.Plain
	role string // of videos; empty: none is taken
}

var _ jobcall.Generator = (*Adapter)(nil)

// New makes the adapter of a line, whose calls go over transport. It fails as
// exchange.Open does.
func New(t upstream.Target, transport http.RoundTripper) (*Adapter, error) {
	return exchange.OpenAdapter(t, Info(), transport, "Authorization", func(p exchange.Plain) *Adapter {
		return &Adapter{Plain: p, role: exchange.Text(t.Options, "video_role", "")}
	})
}

// Blocks implements jobcall.Generator: all of it is polled.
func (a *Adapter) Blocks(jobcall.Task) bool { return false }

// ParamRule implements jobcall.Generator. HDR and searches of the web are not
// among them: they cost more, and no catalog has a price for them.
func (a *Adapter) ParamRule(w jobcall.Task) jobcall.ParamRule {
	switch {
	case w.Kind == upstream.KindVideo && fromVideo(w):
		return jobcall.Only("strength").Roles(jobrequest.FirstFrame, jobrequest.Subject)
	case w.Kind == upstream.KindVideo:
		return jobcall.Only("style", "loop").Roles(jobrequest.FirstFrame, jobrequest.LastFrame)
	}
	return jobcall.Only("style", "output_format")
}

// Submit implements jobcall.Generator.
func (a *Adapter) Submit(ctx context.Context, w jobcall.Task) (*jobcall.TaskStatus, error) {
	var (
		body map[string]any
		err  error
	)
	switch {
	case w.Kind == upstream.KindVideo && fromVideo(w):
		body, err = a.changed(ctx, w)
	case w.Kind == upstream.KindVideo:
		body, err = clip(ctx, w)
	default:
		body, err = picture(ctx, w)
	}
	if err != nil {
		return nil, err
	}
	raw, err := json.Marshal(body)
	if err != nil {
		return nil, upstream.Unsuitable(w.Kind, "params: %w", err)
	}
	return exchange.SubmitEach(max(w.Count, 1), func(int) (string, *upstream.JobFailure, bool) { return a.one(ctx, w.Kind, raw) })
}

// one submits one task and returns its ticket.
func (a *Adapter) one(ctx context.Context, kind string, body []byte) (ticket string, failure *upstream.JobFailure, again bool) {
	reply, err := a.Line.Submit(ctx, exchange.JobCall{
		Method: http.MethodPost, URL: a.Line.URL("generations"), Header: a.Header, Body: body, Limit: maxAnswer,
	})
	if err != nil {
		return "", upstream.AsJobFailure(err), false
	}
	if !reply.Good() {
		return "", refused(kind, reply), false
	}
	ticket, failure = reply.Named("id")
	return ticket, failure, failure == nil
}

// ingestion matches what the provider says of media that it could not fetch.
var ingestion = regexp.MustCompile(`(?i)ingest|download|fetch`)

// refused is the verdict on an answer that is not a good one. Media that could
// not be fetched has the status of a provider that is away, and may be the
// user's fault: that alone takes no line out.
func refused(kind string, reply *exchange.Reply) *upstream.JobFailure {
	f := reply.Refused(kind)
	if reply.Status == http.StatusServiceUnavailable && ingestion.MatchString(gjson.GetBytes(reply.Body, "detail").String()) {
		f.Unproven = true
	}
	return f
}

// Poll implements jobcall.Generator.
func (a *Adapter) Poll(ctx context.Context, w jobcall.Task, ticket string) (*jobcall.TaskStatus, error) {
	return exchange.PollEach(ticket, func(one string) (*jobcall.TaskStatus, error) { return a.ask(ctx, w.Kind, one) })
}

// ask asks about one task.
func (a *Adapter) ask(ctx context.Context, kind, ticket string) (*jobcall.TaskStatus, error) {
	if !exchange.Ticket(ticket) {
		return nil, upstream.Vanished(kind, "no name of a task")
	}
	reply, err := a.Line.Asked(ctx, kind, exchange.JobCall{
		Method: http.MethodGet, URL: a.Line.URL("generations", ticket), Header: a.Header, Limit: maxAnswer,
	})
	if err != nil {
		return nil, err
	}
	said := gjson.ParseBytes(reply.Body)
	switch state := said.Get("state"); {
	case state.Type != gjson.String || state.Str == "":
		return nil, reply.Silent()
	case state.Str == "failed":
		return nil, reply.Redact(ended(kind, reply, said))
	case state.Str != "completed": // also a word of tomorrow: the line's longest wait ends it
		return &jobcall.TaskStatus{Ticket: ticket}, nil
	}
	for _, item := range said.Get("output").Array() {
		if link := item.Get("url"); link.Type == gjson.String && link.Str != "" {
			return &jobcall.TaskStatus{Ticket: ticket, Done: true, Results: []jobcall.Result{{Ref: link.Str}}}, nil
		}
	}
	return nil, upstream.Nothing(kind, "completed without a result")
}

// ended is the verdict on a task that failed, by the provider's failure_code.
func ended(kind string, reply *exchange.Reply, said gjson.Result) *upstream.JobFailure {
	code, reason := said.Get("failure_code").String(), said.Get("failure_reason").String()
	switch code {
	case "content_moderated":
		return upstream.Moderated(kind, code+": "+reason, false)
	case "invalid_request":
		return reply.Ended(kind, "invalidparameter", reason)
	case "image_too_large", "unsupported_format", "corrupt_input":
		return reply.Ended(kind, "invalid_image", code+": "+reason)
	case "generation_failed":
		f := reply.Ended(kind, "", code+": "+reason)
		f.Next = upstream.NextSame
		return f
	case "output_not_found":
		return upstream.Nothing(kind, code+": "+reason)
	case "rate_limited":
		return reply.Ended(kind, "rate_limit_exceeded", reason)
	case "budget_exhausted":
		return reply.Ended(kind, "insufficient_quota", reason)
	}
	return reply.Ended(kind, code, reason)
}
