package app

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"time"

	"tollgate/internal/loop"
)

// cleanup is one step of the shutdown.
type cleanup struct {
	name string
	run  func(ctx context.Context) error
}

// lifecycle has the cleanups in the order of construction. It is used by one goroutine.
type lifecycle struct {
	log      *slog.Logger
	cleanups []cleanup
}

// addCleanup registers a cleanup. It must be called right after the construction that the cleanup
// undoes.
func (l *lifecycle) addCleanup(name string, run func(ctx context.Context) error) {
	l.cleanups = append(l.cleanups, cleanup{name, run})
}

// loop calls run in a goroutine and registers a cleanup that cancels the context of run and waits
// for its return.
func (l *lifecycle) loop(name string, run func(ctx context.Context)) {
	ctx, cancel := context.WithCancel(context.Background())
	done := make(chan struct{})
	go func() {
		defer close(done)
		run(ctx)
	}()
	l.addCleanup(name, func(bound context.Context) error {
		cancel()
		select {
		case <-done:
			return nil
		case <-bound.Done():
			return bound.Err()
		}
	})
}

// lastWords bounds the time in which a loop may send its last messages during the shutdown.
const lastWords = 2 * time.Second

// lingering is loop for a function with messages to send at its end: the context work ends
// lastWords after ctx.
func (l *lifecycle) lingering(name string, run func(ctx, work context.Context)) {
	l.loop(name, func(ctx context.Context) {
		work, cancel := loop.Linger(ctx, lastWords)
		defer cancel()
		run(ctx, work)
	})
}

// stepBound bounds the wait for one cleanup. After stepBound the next cleanup begins.
const stepBound = 10 * time.Second

// unwind runs all cleanups, last first, so servers close before the rooms that they use. An error
// of one cleanup does not stop the others.
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
