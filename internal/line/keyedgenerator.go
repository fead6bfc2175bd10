package line

import (
	"context"

	"tollgate/internal/upstream"
	"tollgate/internal/upstream/jobcall"
)

// keyedGenerator is the generator of a line with several keys. It submits a task with the first key that the
// provider accepts. It polls with the same key, unless the line no longer has this key or the provider
// refuses the key.
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
	generator, ok := entry.keys[0].adapter.(jobcall.Generator)
	if !ok {
		return nil
	}
	keyed := keyedGenerator{generator, l, entry}
	if _, isFinder := generator.(jobcall.Finder); isFinder {
		return keyedFinder{keyed}
	}
	return keyed
}

// each makes a call with one key after the other until the provider accepts a key.
func (g keyedGenerator) each(task jobcall.Task, call func(generator jobcall.Generator, mark string) error) error {
	selector := g.lines.selectKey(g.entry, task.KeyMark)
	selector.forRequest = true
	for {
		generator, ok := selector.key.adapter.(jobcall.Generator)
		if !ok {
			return UnusableFailure(task.Kind)
		}
		err := call(generator, selector.key.mark)
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
	err = g.each(task, func(generator jobcall.Generator, mark string) (err error) {
		if status, err = generator.Submit(ctx, task); err == nil {
			status.KeyMark = mark
		}
		return err
	})
	return status, err
}

// Poll implements jobcall.Generator.
func (g keyedGenerator) Poll(ctx context.Context, task jobcall.Task, ticket string) (status *jobcall.TaskStatus, err error) {
	err = g.each(task, func(generator jobcall.Generator, _ string) (err error) {
		status, err = generator.Poll(ctx, task, ticket)
		return err
	})
	return status, err
}

// Fetch implements jobcall.Generator.
func (g keyedGenerator) Fetch(ctx context.Context, task jobcall.Task, r jobcall.Result) (download *jobcall.Download, err error) {
	err = g.each(task, func(generator jobcall.Generator, _ string) (err error) {
		download, err = generator.Fetch(ctx, task, r)
		return err
	})
	return download, err
}

// Cancel implements jobcall.Generator.
func (g keyedGenerator) Cancel(ctx context.Context, task jobcall.Task, ticket string) error {
	return g.each(task, func(generator jobcall.Generator, _ string) error { return generator.Cancel(ctx, task, ticket) })
}

// Find implements jobcall.Finder.
func (g keyedFinder) Find(ctx context.Context, task jobcall.Task) (ticket string, err error) {
	err = g.each(task, func(generator jobcall.Generator, _ string) (err error) {
		finder, ok := generator.(jobcall.Finder)
		if !ok {
			return nil
		}
		ticket, err = finder.Find(ctx, task)
		return err
	})
	return ticket, err
}
