package loop_test

import (
	"bytes"
	"context"
	"errors"
	"log/slog"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"tollgate/internal/loop"
)

// runLoop runs a loop in fake time. It returns the start times of the steps, in milliseconds, and the
// lines of the log. act runs in another goroutine and may wake the loop.
func runLoop(t *testing.T, run time.Duration, l loop.Loop, step func(n int) error,
	act func(wake chan<- struct{})) (starts []int, logged []string) {
	t.Helper()
	synctest.Test(t, func(t *testing.T) {
		ctx, cancel := context.WithTimeout(t.Context(), run)
		defer cancel()
		start, running := time.Now(), false
		var log bytes.Buffer
		wake := make(chan struct{}, 1)
		l.Room, l.Does, l.Wake = "room", "work", wake
		l.Log = slog.New(slog.NewTextHandler(&log, nil))
		l.Step = func(context.Context) error {
			if running {
				t.Error("two steps run at the same time")
			}
			running = true
			defer func() { running = false }()
			starts = append(starts, int(time.Since(start).Milliseconds()))
			return step(len(starts) - 1)
		}
		go act(wake)
		loop.Run(ctx, l)
		if running {
			t.Error("a step runs after Run has returned")
		}
		for text := range strings.Lines(log.String()) {
			_, text, _ = strings.Cut(text, "level=")
			logged = append(logged, strings.TrimSpace(text))
		}
	})
	return starts, logged
}

func noWake(chan<- struct{}) {}

// TestSchedule checks the start times of steps for each kind of loop.
func TestSchedule(t *testing.T) {
	t.Parallel()
	broken := errors.New("broken")
	failing := func(from, to int) func(int) error {
		return func(n int) error {
			if n >= from && n < to {
				return broken
			}
			return nil
		}
	}
	lasting := func(durations ...time.Duration) func(int) error {
		return func(n int) error {
			if n < len(durations) {
				time.Sleep(durations[n])
			}
			return nil
		}
	}
	for name, c := range map[string]struct {
		loop loop.Loop
		step func(int) error
		run  time.Duration
		want []int
	}{
		"at once, then every period": {loop.Loop{Period: time.Second}, failing(0, 0), 3500 * time.Millisecond, []int{0, 1000, 2000, 3000}},
		"after a period": {loop.Loop{Period: time.Second, Later: true}, failing(0, 0), 3500 * time.Millisecond,
			[]int{1000, 2000, 3000}},
		"steps shorter than the period": {
			loop.Loop{Period: time.Second}, lasting(300*time.Millisecond, 900*time.Millisecond), 3500 * time.Millisecond,
			[]int{0, 1000, 2000, 3000}},
		"a step longer than the period": {
			loop.Loop{Period: time.Second}, lasting(2500 * time.Millisecond), 5 * time.Second, []int{0, 2500, 3500, 4500}},
		"errors back off up to the period": {
			loop.Loop{Period: 10 * time.Second}, failing(0, 6), 50 * time.Second, []int{0, 1000, 3000, 7000, 15000, 25000, 35000, 45000}},
		"a success resets the back-off": {
			loop.Loop{Period: 10 * time.Second}, func(n int) error { return failing(n&^1, n|1)(n) }, 25 * time.Second,
			[]int{0, 1000, 11000, 12000, 22000, 23000}},
		"the period bounds the back-off": {
			loop.Loop{Period: 500 * time.Millisecond}, failing(0, 9), 2100 * time.Millisecond, []int{0, 500, 1000, 1500, 2000}},
		"Next sets the pause": {
			loop.Loop{Period: time.Second, Next: func() time.Duration { return 250 * time.Millisecond }}, failing(2, 3), 1900 * time.Millisecond,
			[]int{0, 250, 500, 1500, 1750}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			if got, _ := runLoop(t, c.run, c.loop, c.step, noWake); !slices.Equal(got, c.want) {
				t.Errorf("steps began at %v, want %v", got, c.want)
			}
		})
	}
}

// TestWake checks that Wake starts a step early and does not move later steps. Wake has no effect
// on a failing loop and during Pause.
func TestWake(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		loop  loop.Loop
		fails int
		wakes []int
		want  []int
	}{
		"between two steps":      {loop.Loop{Period: time.Second}, 0, []int{300}, []int{0, 300, 1000, 2000}},
		"after a failed step":    {loop.Loop{Period: time.Second}, 2, []int{300}, []int{0, 1000, 2000, 2000}},
		"twice within the pause": {loop.Loop{Period: time.Second, Pause: 100 * time.Millisecond}, 0, []int{10, 20}, []int{0, 100, 1000, 2000}},
		"without a wake":         {loop.Loop{Period: time.Second}, 0, nil, []int{0, 1000, 2000}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			got, _ := runLoop(t, 2500*time.Millisecond, c.loop, func(n int) error {
				if n < c.fails {
					return errors.New("broken")
				}
				return nil
			}, func(wake chan<- struct{}) {
				at := 0
				for _, ms := range c.wakes {
					time.Sleep(time.Duration(ms-at) * time.Millisecond)
					at = ms
					select {
					case wake <- struct{}{}:
					default:
					}
				}
			})
			if !slices.Equal(got, c.want) {
				t.Errorf("steps began at %v, want %v", got, c.want)
			}
		})
	}
}

// TestLog checks that a run of failures is logged only at its beginning and its end.
func TestLog(t *testing.T) {
	t.Parallel()
	_, logged := runLoop(t, 7500*time.Millisecond, loop.Loop{Period: time.Second}, func(n int) error {
		if n >= 1 && n < 4 || n == 6 {
			return errors.New("broken")
		}
		return nil
	}, noWake)
	want := []string{
		`ERROR msg="room: cannot work" error=broken`, `INFO msg="room: can work again"`,
		`ERROR msg="room: cannot work" error=broken`, `INFO msg="room: can work again"`,
	}
	if !slices.Equal(logged, want) {
		t.Errorf("logged %q, want %q", logged, want)
	}
}

// TestStop checks that Run waits for the steps of all loops, and that an error caused by the stop
// is not logged.
func TestStop(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		ctx, cancel := context.WithCancel(t.Context())
		var log bytes.Buffer
		ended := 0
		l := loop.Loop{Room: "room", Does: "work", Log: slog.New(slog.NewTextHandler(&log, nil)), Period: time.Second,
			Step: func(ctx context.Context) error {
				<-ctx.Done()
				ended++
				return ctx.Err()
			}}
		time.AfterFunc(time.Second, cancel)
		loop.Run(ctx, l)
		if ended != 1 || log.Len() > 0 {
			t.Errorf("%d steps ended and the log has %q, want 1 and no log", ended, log.String())
		}
		loop.Run(ctx, l, l)
		if ended != 1 {
			t.Error("a step began although the context had ended")
		}
	})
}
