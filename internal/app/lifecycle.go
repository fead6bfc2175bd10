package app

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"time"

	"tollgate/internal/loop"
)

// cleanup is one thing to undo when the process stops.
type cleanup struct {
	name string
	run  func(ctx context.Context) error
}

// lifecycle holds the cleanups in the order of construction. It is used by one goroutine.
type lifecycle struct {
	log      *slog.Logger
	cleanups []cleanup
}

// later registers a cleanup; call it right after the construction it undoes.
func (l *lifecycle) later(name string, run func(ctx context.Context) error) {
	l.cleanups = append(l.cleanups, cleanup{name, run})
}

// loop starts a long part and registers its end: its context is cancelled and
// its goroutine waited for.
func (l *lifecycle) loop(name string, run func(ctx context.Context)) {
	ctx, cancel := context.WithCancel(context.Background())
	done := make(chan struct{})
	go func() {
		defer close(done)
		run(ctx)
	}()
	l.later(name, func(bound context.Context) error {
		cancel()
		select {
		case <-done:
			return nil
		case <-bound.Done():
			return bound.Err()
		}
	})
}

// lastWords is the time that a part may take to send its last messages after it has to end.
const lastWords = 2 * time.Second

// lingering is loop for a part with messages to send at its end: its second context ends later, by
// lastWords.
func (l *lifecycle) lingering(name string, run func(ctx, work context.Context)) {
	l.loop(name, func(ctx context.Context) {
		work, cancel := loop.Linger(ctx, lastWords)
		defer cancel()
		run(ctx, work)
	})
}

// stepBound is the longest one cleanup may take; the next begins then anyway.
const stepBound = 10 * time.Second

// unwind runs all cleanups, last first, so servers close before the rooms behind them. Every
// cleanup runs, whatever the others return.
func (l *lifecycle) unwind() error {
	var errs []error
	for i := len(l.cleanups) - 1; i >= 0; i-- {
		c := l.cleanups[i]
		ctx, cancel := context.WithTimeout(context.Background(), stepBound)
		began := time.Now()
		if err := c.run(ctx); err != nil {
			errs = append(errs, fmt.Errorf("stop %s: %w", c.name, err))
		}
		cancel()
		l.log.Debug("stopped", "part", c.name, "took", time.Since(began))
	}
	l.cleanups = nil
	return errors.Join(errs...)
}
