package vertex

import (
	"context"

	"tollgate/internal/fault"
	"tollgate/internal/upstream"
	"tollgate/internal/upstream/gemini"
	"tollgate/internal/upstream/jobcall"
)

// Images and clips use the requests of Google's own service. The response to a poll contains the
// clip of Veo, because the line names no bucket for clips.

var _ jobcall.Generator = (*Adapter)(nil)

// Blocks implements jobcall.Generator.
func (a *Adapter) Blocks(task jobcall.Task) bool { return a.google.Blocks(task) }

// ParamRule implements jobcall.Generator.
func (a *Adapter) ParamRule(task jobcall.Task) jobcall.ParamRule { return a.google.ParamRule(task) }

// Submit implements jobcall.Generator.
func (a *Adapter) Submit(ctx context.Context, task jobcall.Task) (*jobcall.TaskStatus, error) {
	if _, f := a.address("google", task.Model, ""); f != nil {
		return nil, upstream.FailJob(f, fault.UpstreamError, upstream.NextLine)
	}
	if task.Kind == upstream.KindVideo && !gemini.IsVeo(task.Model) {
		return nil, upstream.Unsuitable(task.Kind, "vertex makes clips with Veo alone, not with %s", task.Model)
	}
	s, err := a.google.Submit(ctx, task)
	return s, a.source.Hide(err)
}

// Poll implements jobcall.Generator.
func (a *Adapter) Poll(ctx context.Context, task jobcall.Task, ticket string) (*jobcall.TaskStatus, error) {
	s, err := a.google.Poll(ctx, task, ticket)
	return s, a.source.Hide(err)
}

// Fetch implements jobcall.Generator.
func (a *Adapter) Fetch(ctx context.Context, task jobcall.Task, r jobcall.Result) (*jobcall.Download, error) {
	d, err := a.google.Fetch(ctx, task, r)
	return d, a.source.Hide(err)
}

// Cancel implements jobcall.Generator. It is a no-op, because operations cannot be cancelled.
func (a *Adapter) Cancel(context.Context, jobcall.Task, string) error { return nil }
