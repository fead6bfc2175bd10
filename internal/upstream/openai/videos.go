package openai

import (
	"context"
	"errors"
	"fmt"
	"math"
	"net/http"
	"net/url"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/tidwall/gjson"

	"tollgate/internal/fault"
	"tollgate/internal/upstream"
	"tollgate/internal/upstream/exchange"
	"tollgate/internal/upstream/jobcall"
)

// maxWait bounds the wait between polls requested by the provider.
const maxWait = time.Minute

// submitVideo submits a clip.
func (a *Adapter) submitVideo(ctx context.Context, task jobcall.Task) (*jobcall.TaskStatus, error) {
	f := newFields(task)
	if failure := setShape(f, task); failure != nil {
		return nil, failure
	}
	form := f.form(a.line)
	for _, r := range task.References {
		form.File("input_reference", fileName("reference", r), r)
	}
	reply, err := a.line.Submit(ctx, exchange.JobCall{
		Method: http.MethodPost, URL: a.line.URL("videos"), Header: a.headerWithKey(task.Key), Form: form,
	})
	if err != nil {
		return nil, err
	}
	if !reply.OK() {
		return nil, reply.SubmitFailure(task.Kind)
	}
	doc := gjson.ParseBytes(nil)
	if isDocument(reply) {
		doc = gjson.ParseBytes(reply.Body)
	}
	ticket := doc.Get("id").String()
	if !isTicket(ticket) {
		failure := reply.SubmitFailure(task.Kind)
		// A 2xx response without an ID may still have started a task, unless the response has an
		// error.
		e := doc.Get("error")
		failure.Lost = !e.IsObject() && e.Str == ""
		return nil, failure
	}
	return &jobcall.TaskStatus{Ticket: ticket, Wait: pollWait(reply.Header)}, nil
}

// setShape checks a clip's references and sets its size and length.
func setShape(f fields, task jobcall.Task) *upstream.JobFailure {
	switch {
	case task.Prompt == "":
		return upstream.Unsuitable(task.Kind, "no prompt; the provider needs one")
	case len(task.References) > 1:
		return upstream.Unsuitable(task.Kind, "%d references; the provider takes one", len(task.References))
	case task.Mask != nil:
		return upstream.Unsuitable(task.Kind, "a mask, which the provider does not accept")
	}
	for _, r := range task.References {
		if failure := checkFile(task.Kind, r, maxFile, "image/png", "image/jpeg", "image/webp"); failure != nil {
			return failure
		}
	}
	width, height := task.Width, task.Height
	if width <= 0 || height <= 0 { // the provider has no field for the tier
		side, ok := jobcall.TierSide(task.Tier)
		if !ok {
			return upstream.Unsuitable(task.Kind, "the tier %q", task.Tier)
		}
		width, height = (side*16/9+1)/2*2, side
	}
	if strings.HasPrefix(baseName(task.Model), "sora-") {
		var ok bool
		if width, height, ok = soraSize(width, height, task.Exact); !ok {
			return upstream.Unsuitable(task.Kind, "%s at %s; %s makes 1280x720, 720x1280, 1792x1024 and 1024x1792", task.Tier, task.Ratio,
				task.Model)
		}
		if task.Seconds != 0 && !slices.Contains([]int64{4, 8, 12}, task.Seconds) {
			return upstream.Unsuitable(task.Kind, "%d seconds; %s makes 4, 8 or 12", task.Seconds, task.Model)
		}
	}
	f.set("size", pixels(width, height))
	if task.Seconds > 0 {
		f.set("seconds", strconv.FormatInt(task.Seconds, 10)) // a string in this protocol
	}
	return nil
}

// soraSize returns the nearest size of OpenAI's own models. Its ratio may differ by 2 %, and its
// shorter side has 90 to 100 % of the requested one. If exact is true, only the same size is accepted.
func soraSize(width, height int, exact bool) (int, int, bool) {
	for _, s := range [][2]int{{1280, 720}, {720, 1280}, {1792, 1024}, {1024, 1792}} {
		if exact && (s[0] != width || s[1] != height) {
			continue
		}
		scale := float64(s[0]) * float64(height) / (float64(s[1]) * float64(width))
		side, want := min(s[0], s[1]), min(width, height)
		if math.Abs(scale-1) <= 0.02 && side <= want && 10*side >= 9*want {
			return s[0], s[1], true
		}
	}
	return 0, 0, false
}

// Poll implements jobcall.Generator. Images have no tickets.
func (a *Adapter) Poll(ctx context.Context, task jobcall.Task, ticket string) (*jobcall.TaskStatus, error) {
	u, failure := a.videoURL(task, ticket)
	if failure != nil {
		return nil, failure
	}
	reply, err := a.line.Query(ctx, exchange.JobCall{Method: http.MethodGet, URL: u, Header: a.header})
	if err != nil {
		return nil, err
	}
	p, failure := readVideo(reply, task.Kind, ticket, u.JoinPath("content").String())
	if failure != nil {
		return nil, reply.Redact(failure)
	}
	return p, nil
}

// readVideo returns the status of a clip. content is the address of the finished clip.
func readVideo(reply *exchange.Reply, kind, ticket, content string) (*jobcall.TaskStatus, *upstream.JobFailure) {
	if !isDocument(reply) {
		return nil, reply.PollFailure()
	}
	switch {
	case reply.Status == http.StatusNotFound || reply.Status == http.StatusGone:
		return nil, upstream.UnknownTask(kind, "the provider does not know "+ticket)
	case !reply.OK():
		return nil, reply.PollFailure()
	}
	doc := gjson.ParseBytes(reply.Body)
	switch status := doc.Get("status").String(); status {
	case "queued", "in_progress", "pending", "processing", "running":
		return &jobcall.TaskStatus{Ticket: ticket, Wait: pollWait(reply.Header)}, nil
	case "completed", "succeeded":
		return &jobcall.TaskStatus{Ticket: ticket, Done: true, Results: []jobcall.Result{{Ref: content, Type: "video/mp4"}}}, nil
	case "failed", "cancelled", "canceled":
		e := doc.Get("error")
		if e.Type == gjson.String {
			return nil, reply.TaskFailure(kind, "", e.Str)
		}
		return nil, reply.TaskFailure(kind, e.Get("code").String(), e.Get("message").String())
	case "expired":
		return nil, upstream.ExpiredTask(kind, "the provider gave up "+ticket)
	default:
		f := upstream.Fail(fault.UpstreamUnavailable, fmt.Errorf("unknown status %.80q", status))
		f.Status = reply.Status
		return nil, upstream.FailJob(f, fault.UpstreamError, upstream.NextPoll)
	}
}

// Cancel implements jobcall.Generator. The provider stops rendering a deleted clip. An unknown clip
// counts as cancelled.
func (a *Adapter) Cancel(ctx context.Context, task jobcall.Task, ticket string) error {
	u, failure := a.videoURL(task, ticket)
	if failure != nil {
		return failure
	}
	return a.line.Stop(ctx, exchange.JobCall{Method: http.MethodDelete, URL: u, Header: a.header})
}

// videoURL returns the address of a clip.
func (a *Adapter) videoURL(task jobcall.Task, ticket string) (*url.URL, *upstream.JobFailure) {
	if task.Kind != upstream.KindVideo || !isTicket(ticket) {
		f := upstream.Fail(fault.UpstreamUnavailable, errors.New("no ticket of this provider"))
		f.Health = upstream.HealthNone
		return nil, upstream.FailJob(f, fault.UpstreamError, upstream.NextLine)
	}
	return a.line.URL("videos", ticket), nil
}

// maxTicket is the maximum length of a clip's ID, in bytes.
const maxTicket = 512

// isTicket reports whether an ID is safe in an address.
func isTicket(id string) bool { return len(id) <= maxTicket && exchange.IsSafe(id, "-_.:~=") }

// pollWait returns the time until the next poll requested by the provider, between 0 and maxWait.
func pollWait(h http.Header) time.Duration {
	ms, err := strconv.ParseInt(h.Get("Openai-Poll-After-Ms"), 10, 64)
	if err != nil || ms <= 0 {
		return 0
	}
	return time.Duration(min(ms, maxWait.Milliseconds())) * time.Millisecond
}
