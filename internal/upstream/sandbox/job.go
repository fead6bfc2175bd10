package sandbox

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"syscall"
	"time"

	"tollgate/internal/fault"
	"tollgate/internal/upstream"
	"tollgate/internal/upstream/jobcall"
	"tollgate/internal/wire/jobrequest"
)

// maxCount is the maximum number of images of a task.
const maxCount = 64

// Blocks implements jobcall.Generator. By default, images block and videos have tickets; the option
// `async` overrides this.
func (a *Adapter) Blocks(task jobcall.Task) bool {
	if a.options.async != nil {
		return !*a.options.async
	}
	return task.Kind == upstream.KindImage
}

// ParamRule implements jobcall.Generator. All fields are accepted; they only affect the
// choice of the picture.
func (a *Adapter) ParamRule(jobcall.Task) jobcall.ParamRule {
	return jobcall.AllParamsExcept().Rename("audio", "audio").Roles(jobrequest.Roles()...)
}

// Submit implements jobcall.Generator.
func (a *Adapter) Submit(ctx context.Context, task jobcall.Task) (*jobcall.TaskStatus, error) {
	if err := ctx.Err(); err != nil {
		return nil, upstream.LostAnswer(ctx, err)
	}
	if t := unfit(task); t != nil {
		return nil, t
	}
	failKind := a.failKindOf(task)
	if t := atSubmission(ctx, task, failKind); t != nil {
		return nil, t
	}
	now := time.Now()
	if !a.Blocks(task) {
		accepted := ticket{accepted: now.UnixMilli(), failKind: failKind, name: nameOf(task.Key)}
		return &jobcall.TaskStatus{Ticket: accepted.String(), Wait: a.wait(accepted, now)}, nil
	}
	if failKind == failNever {
		<-ctx.Done()
		return nil, upstream.LostAnswer(ctx, ctx.Err())
	}
	if err := pause(ctx, nil, a.options.delay); err != nil {
		return nil, upstream.LostAnswer(ctx, err)
	}
	if t := atEnd(task.Kind, failKind); t != nil {
		return nil, t
	}
	// A blocking call has no poll for fresh links, so a bad link works later.
	return &jobcall.TaskStatus{Done: true, Results: results(task, failKind, now.Add(a.options.delay+a.nap()).UnixMilli())}, nil
}

// Poll implements jobcall.Generator. The ticket holds the whole state, so any process
// may poll.
func (a *Adapter) Poll(ctx context.Context, task jobcall.Task, text string) (*jobcall.TaskStatus, error) {
	if err := ctx.Err(); err != nil {
		return nil, upstream.FailJob(upstream.ConnectionFailure(ctx, err), fault.UpstreamError, upstream.NextPoll)
	}
	accepted, ok := readTicket(text)
	if !ok {
		return nil, upstream.UnknownTask(task.Kind, "sandbox: no task has this ticket")
	}
	if t := atPoll(task.Kind, accepted.failKind); t != nil {
		return nil, t
	}
	now := time.Now()
	done := accepted.done(a.options.delay)
	if accepted.failKind == failNever || now.Before(done) {
		return &jobcall.TaskStatus{Ticket: text, Wait: a.wait(accepted, now)}, nil
	}
	if t := atEnd(task.Kind, accepted.failKind); t != nil {
		return nil, t
	}
	good := always
	if now.Before(done.Add(a.nap())) {
		good = never
	}
	return &jobcall.TaskStatus{Ticket: text, Done: true, Results: results(task, accepted.failKind, good)}, nil
}

// Fetch implements jobcall.Generator. The same task and result have the same
// bytes on every node.
func (a *Adapter) Fetch(ctx context.Context, task jobcall.Task, r jobcall.Result) (*jobcall.Download, error) {
	broken := func(f *upstream.Failure) (*jobcall.Download, error) {
		return nil, upstream.FailJob(f, fault.UpstreamError, upstream.NextPoll)
	}
	l, ok := readLink(r.Ref)
	if !ok || l.index >= count(task) {
		return broken(upstream.Fail(fault.UpstreamUnavailable, errors.New("sandbox: the result has no such address")))
	}
	if l.good == never || time.Now().UnixMilli() < l.good {
		f := upstream.Fail(fault.UpstreamUnavailable, errors.New("the host of the result rejected the link"))
		f.Status = 403
		return broken(f)
	}
	if err := ctx.Err(); err != nil {
		return broken(upstream.ConnectionFailure(ctx, err))
	}
	var data []byte
	var err error
	if task.Kind == upstream.KindVideo {
		data, err = clip(task)
	} else {
		data, err = picture(task, l.index)
	}
	if err != nil {
		return broken(upstream.ConnectionFailure(ctx, fmt.Errorf("sandbox: %w", err)))
	}
	f := &jobcall.Download{Body: io.NopCloser(bytes.NewReader(data)), Type: typeOf(task.Kind), Size: int64(len(data))}
	if l.broken {
		f.Body = io.NopCloser(io.MultiReader(bytes.NewReader(data[:len(data)/2]), brokenReader{}))
	}
	return f, nil
}

// Cancel implements jobcall.Generator. It is a no-op.
func (a *Adapter) Cancel(context.Context, jobcall.Task, string) error { return nil }

// unfit returns the failure of a task outside the limits, or nil.
func unfit(task jobcall.Task) error {
	switch {
	case task.Kind != upstream.KindImage && task.Kind != upstream.KindVideo:
		return upstream.Unsuitable(task.Kind, "the sandbox makes images and videos, not %q", task.Kind)
	case task.Kind == upstream.KindImage && task.Count > maxCount:
		return upstream.Unsuitable(task.Kind, "the sandbox makes at most %d images at a time, not %d", maxCount, task.Count)
	case task.Seconds > maxSeconds:
		return upstream.Unsuitable(task.Kind, "the sandbox makes clips of at most %d seconds, not %d", maxSeconds, task.Seconds)
	}
	return nil
}

// failKindOf returns the failure to simulate for a task, or "". It depends only on the task, so a
// repeated submission with the same key fails in the same way.
func (a *Adapter) failKindOf(task jobcall.Task) string {
	failKind := a.options.failKindOf(task.Prompt)
	if failKind == "" || !chosen(task.Key, a.options.failRate) {
		return ""
	}
	return failKind
}

// nap returns the time between two polls.
func (a *Adapter) nap() time.Duration {
	if a.options.pollWait > 0 {
		return a.options.pollWait
	}
	return defaultPollWait
}

// wait returns the time until the next poll, which is not later than the task's end.
func (a *Adapter) wait(t ticket, now time.Time) time.Duration {
	if left := t.done(a.options.delay).Sub(now); left > 0 {
		return min(left, a.nap())
	}
	return a.nap()
}

// count returns the number of results of a task.
func count(task jobcall.Task) int {
	if task.Kind == upstream.KindVideo {
		return 1
	}
	return max(task.Count, 1)
}

// typeOf returns the content type of a kind's results.
func typeOf(kind string) string {
	if kind == upstream.KindVideo {
		return "video/mp4"
	}
	return "image/png"
}

// results returns the links of a completed task. For bad_link_once, the links work
// from the time good on.
func results(task jobcall.Task, failKind string, good int64) []jobcall.Result {
	if failKind != failBadLink {
		good = always
	}
	out := make([]jobcall.Result, count(task))
	for i := range out {
		out[i] = jobcall.Result{Ref: link{index: i, good: good, broken: failKind == failFetch}.String(), Type: typeOf(task.Kind)}
	}
	return out
}

// brokenReader fails like a reset connection.
type brokenReader struct{}

// Read implements io.Reader.
func (brokenReader) Read([]byte) (int, error) {
	return 0, fmt.Errorf("sandbox: read: %w", syscall.ECONNRESET)
}
