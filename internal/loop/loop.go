// Package loop owns how a room's background step is repeated: when it runs, what
// becomes of its errors, how it stops.
//
// Invariants: the steps of a loop never overlap. A failure is logged when it
// begins and when it ends, not in between, and nothing wakes a loop that fails.
// When Run has returned, no step runs.
package loop

import (
	"context"
	"log/slog"
	"sync"
	"time"
)

// Loop is a step that is made again and again. Room, Does, Log, Step and one of
// Period and Next are required.
type Loop struct {
	// Room and Does are for the log: "job: cannot start jobs", "job: can start
	// jobs again".
	Room, Does string
	Log        *slog.Logger
	// Step does the work. It is given Run's context.
	Step func(ctx context.Context) error
	// Period is from one beginning to the next; a step that takes longer is
	// followed by another at once. After an error the next one comes sooner, see
	// firstRetry.
	Period time.Duration
	// Next, if set, says in place of Period how long to rest after a step that
	// went well. After one that did not, the rest is Period.
	Next func() time.Duration
	// Wake, if set, brings the next step forward, unless the last one failed.
	Wake <-chan struct{}
	// Pause is the least rest between two steps, whatever wakes the loop.
	Pause time.Duration
	// Later says that the first step waits for a period; without it the first
	// step is made at once.
	Later bool
}

// firstRetry is the rest after a first failure where the period is longer; each
// further one rests twice as long, up to the period.
const firstRetry = time.Second

// Run runs loops beside each other until ctx ends, and waits for their last
// steps.
func Run(ctx context.Context, loops ...Loop) {
	var all sync.WaitGroup
	for i := range loops {
		all.Go(func() { loops[i].run(ctx) })
	}
	all.Wait()
}

func (l *Loop) run(ctx context.Context) {
	next := time.Now()
	if l.Later {
		next = next.Add(l.Period)
	}
	least, retry, failing := time.Duration(0), firstRetry, false
	for l.rest(ctx, time.Until(next), least, failing) {
		began := time.Now()
		err := l.Step(ctx)
		if ctx.Err() != nil {
			return
		}
		l.say(err, failing)
		failing, least = err != nil, l.Pause
		ended := time.Now()
		switch {
		case failing:
			next = earlier(l.due(next, began, ended), ended.Add(retry))
			retry = min(2*retry, l.Period)
			continue
		case l.Next != nil:
			next = ended.Add(l.Next())
		default:
			next = l.due(next, began, ended)
		}
		retry = firstRetry
	}
}

// due is when the period wants the step after one that began and ended: steps
// that were woken do not move it.
func (l *Loop) due(next, began, ended time.Time) time.Time {
	if l.Next != nil {
		return ended.Add(l.Period)
	}
	if !began.Before(next) {
		next = next.Add(l.Period)
	}
	if next.Before(ended) {
		return ended
	}
	return next
}

// say logs a failure that begins or ends.
func (l *Loop) say(err error, failing bool) {
	switch {
	case err != nil && !failing:
		l.Log.Error(l.Room+": cannot "+l.Does, "error", err)
	case err == nil && failing:
		l.Log.Info(l.Room + ": can " + l.Does + " again")
	}
}

// rest waits for the next step: for d, or until the loop is woken, but for the
// least rest at least. false: ctx has ended.
func (l *Loop) rest(ctx context.Context, d, least time.Duration, failing bool) bool {
	least = min(least, d)
	if least > 0 && !Sleep(ctx, least) {
		return false
	}
	wake := l.Wake
	if failing {
		wake = nil
	}
	return sleep(ctx, wake, d-max(least, 0))
}

// Sleep waits for d. It reports whether d has passed before ctx ended.
func Sleep(ctx context.Context, d time.Duration) bool { return sleep(ctx, nil, d) }

// sleep waits for d or a receive from wake. It reports whether ctx has not ended.
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
