// Package loop owns background loops: their period, their errors and how they stop.
//
// Invariants: the steps of a loop never overlap. A run of failures is logged twice: at the
// first failure and at the next success. Wake has no effect on a failing loop. After Run
// has returned, no step runs.
package loop

import (
	"context"
	"log/slog"
	"sync"
	"time"
)

// Loop repeats a step. Room, Does, Log, Step and one of Period and Next are required.
type Loop struct {
	// Room and Does are for log messages, such as "job: cannot start jobs" and "job: can
	// start jobs again".
	Room, Does string
	Log        *slog.Logger
	// Step does the work. Its context is the context of Run.
	Step func(ctx context.Context) error
	// Period is the time between the starts of two steps. If a step takes longer, the next step
	// follows immediately. After an error the next step starts sooner; see firstRetry.
	Period time.Duration
	// Next, if set, returns the delay after a successful step. After a failed step, the delay is
	// at most Period.
	Next func() time.Duration
	// Wake, if set, starts the next step early, unless the last step failed.
	Wake <-chan struct{}
	// Pause is the minimum delay between two steps, even if Wake fires.
	Pause time.Duration
	// Later delays the first step by Period.
	Later bool
}

// firstRetry is the delay after a first failure. It doubles with each further failure, up to
// the period.
const firstRetry = time.Second

// Run runs loops concurrently until ctx ends and waits for their last steps.
func Run(ctx context.Context, loops ...Loop) {
	var wg sync.WaitGroup
	for i := range loops {
		wg.Go(func() { loops[i].run(ctx) })
	}
	wg.Wait()
}

func (l *Loop) run(ctx context.Context) {
	next := time.Now()
	if l.Later {
		next = next.Add(l.Period)
	}
	minWait, retry, failing := time.Duration(0), firstRetry, false
	for l.wait(ctx, time.Until(next), minWait, failing) {
		start := time.Now()
		err := l.Step(ctx)
		if ctx.Err() != nil {
			return
		}
		l.logChange(err, failing)
		failing, minWait = err != nil, l.Pause
		end := time.Now()
		switch {
		case failing:
			next = earlier(l.due(next, start, end), end.Add(retry))
			retry = min(2*retry, l.Period)
			continue
		case l.Next != nil:
			next = end.Add(l.Next())
		default:
			next = l.due(next, start, end)
		}
		retry = firstRetry
	}
}

// due returns the start of the next step after a step from start to end, according to the
// period. A step started by Wake does not move the schedule.
func (l *Loop) due(next, start, end time.Time) time.Time {
	if l.Next != nil {
		return end.Add(l.Period)
	}
	if !start.Before(next) {
		next = next.Add(l.Period)
	}
	if next.Before(end) {
		return end
	}
	return next
}

// logChange logs the first failure and the first success after failures.
func (l *Loop) logChange(err error, failing bool) {
	switch {
	case err != nil && !failing:
		l.Log.Error(l.Room+": cannot "+l.Does, "error", err)
	case err == nil && failing:
		l.Log.Info(l.Room + ": can " + l.Does + " again")
	}
}

// wait waits for d or for Wake, but not less than minWait. It returns false if ctx has ended.
func (l *Loop) wait(ctx context.Context, d, minWait time.Duration, failing bool) bool {
	minWait = min(minWait, d)
	if minWait > 0 && !Sleep(ctx, minWait) {
		return false
	}
	wake := l.Wake
	if failing {
		wake = nil
	}
	return sleep(ctx, wake, d-max(minWait, 0))
}

// Sleep waits for d. It reports whether d has passed before ctx ended.
func Sleep(ctx context.Context, d time.Duration) bool { return sleep(ctx, nil, d) }

// sleep waits for d or a receive from wake. It returns false if ctx has ended.
func sleep(ctx context.Context, wake <-chan struct{}, d time.Duration) bool {
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-ctx.Done():
		return false
	case <-wake:
	case <-timer.C:
	}
	return ctx.Err() == nil
}

func earlier(a, b time.Time) time.Time {
	if b.Before(a) {
		return b
	}
	return a
}
