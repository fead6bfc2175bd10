package azure

import (
	"context"

	"tollgate/internal/upstream/jobcall"
)

// Images and videos use the requests of OpenAI.

var _ jobcall.Generator = (*Adapter)(nil)

// Blocks implements jobcall.Generator.
func (a *Adapter) Blocks(task jobcall.Task) bool { return a.OpenAI.Blocks(task) }

// ParamRule implements jobcall.Generator.
func (a *Adapter) ParamRule(task jobcall.Task) jobcall.ParamRule { return a.OpenAI.ParamRule(task) }

// Submit implements jobcall.Generator.
func (a *Adapter) Submit(ctx context.Context, task jobcall.Task) (*jobcall.TaskStatus, error) {
	s, err := a.OpenAI.Submit(ctx, task)
	return s, a.Source.Hide(err)
}

// Poll implements jobcall.Generator.
func (a *Adapter) Poll(ctx context.Context, task jobcall.Task, ticket string) (*jobcall.TaskStatus, error) {
	s, err := a.OpenAI.Poll(ctx, task, ticket)
	return s, a.Source.Hide(err)
}

// Fetch implements jobcall.Generator.
func (a *Adapter) Fetch(ctx context.Context, task jobcall.Task, r jobcall.Result) (*jobcall.Download, error) {
	d, err := a.OpenAI.Fetch(ctx, task, r)
	return d, a.Source.Hide(err)
}

// Cancel implements jobcall.Generator.
func (a *Adapter) Cancel(ctx context.Context, task jobcall.Task, ticket string) error {
	return a.Source.Hide(a.OpenAI.Cancel(ctx, task, ticket))
}
