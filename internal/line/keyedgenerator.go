package line

import (
	"context"

	"tollgate/internal/upstream"
	"tollgate/internal/upstream/jobcall"
)

// keyedGenerator is the generator of a line with any accepted key. It polls a task with the key
// that submitted it, if the line still has this key and it is not refused.
type keyedGenerator struct {
	jobcall.Generator // generator of the first key, for methods that do not call the provider
	lines             *Lines
	entry             *routingEntry
}

// keyedFinder is a keyedGenerator for a provider that can look up submissions.
type keyedFinder struct{ keyedGenerator }

var (
	_ jobcall.Generator = keyedGenerator{}
	_ jobcall.Finder    = keyedFinder{}
)

// generatorOf returns the generator of a line, or nil if the line has none.
func (l *Lines) generatorOf(entry *routingEntry) jobcall.Generator {
	any, ok := entry.keys[0].adapter.(jobcall.Generator)
	if !ok {
		return nil
	}
	keyed := keyedGenerator{any, l, entry}
	if _, finds := any.(jobcall.Finder); finds {
		return keyedFinder{keyed}
	}
	return keyed
}

// each makes a call with one key after the other until the provider accepts one.
func (g keyedGenerator) each(task jobcall.Task, call func(with jobcall.Generator, mark string) error) error {
	selector := g.lines.selectKey(g.entry, task.KeyMark)
	selector.ofRequest = true
	for {
		with, ok := selector.key.adapter.(jobcall.Generator)
		if !ok {
			return Unusable(task.Kind)
		}
		err := call(with, selector.key.mark)
		if err == nil {
			selector.recordAnswer()
			return nil
		}
		f := upstream.AsJobFailure(err)
		f.Conceal(task.Texts())
		if f.Lost || !selector.recordFailure(f.Failure) {
			return f
		}
	}
}

// Submit implements jobcall.Generator.
func (g keyedGenerator) Submit(ctx context.Context, task jobcall.Task) (status *jobcall.TaskStatus, err error) {
	err = g.each(task, func(with jobcall.Generator, mark string) (err error) {
		if status, err = with.Submit(ctx, task); err == nil {
			status.KeyMark = mark
		}
		return err
	})
	return status, err
}

// Poll implements jobcall.Generator.
func (g keyedGenerator) Poll(ctx context.Context, task jobcall.Task, ticket string) (status *jobcall.TaskStatus, err error) {
	err = g.each(task, func(with jobcall.Generator, _ string) (err error) {
		status, err = with.Poll(ctx, task, ticket)
		return err
	})
	return status, err
}

// Fetch implements jobcall.Generator.
func (g keyedGenerator) Fetch(ctx context.Context, task jobcall.Task, r jobcall.Result) (got *jobcall.Download, err error) {
	err = g.each(task, func(with jobcall.Generator, _ string) (err error) {
		got, err = with.Fetch(ctx, task, r)
		return err
	})
	return got, err
}

// Cancel implements jobcall.Generator.
func (g keyedGenerator) Cancel(ctx context.Context, task jobcall.Task, ticket string) error {
	return g.each(task, func(with jobcall.Generator, _ string) error { return with.Cancel(ctx, task, ticket) })
}

// Find implements jobcall.Finder.
func (g keyedFinder) Find(ctx context.Context, task jobcall.Task) (ticket string, err error) {
	err = g.each(task, func(with jobcall.Generator, _ string) (err error) {
		finder, ok := with.(jobcall.Finder)
		if !ok {
			return nil
		}
		ticket, err = finder.Find(ctx, task)
		return err
	})
	return ticket, err
}
