package app

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"slices"
	"syscall"
	"time"

	"tollgate/internal/media"
	"tollgate/internal/store"
)

// startError returns the final error of a start or a command. It is a SettingError unless the fault may
// end without a change of the setting.
func startError(key string, err error) error {
	if store.NoRoom(err) {
		return fmt.Errorf("%s: its disk is full or failing: %w", key, err)
	}
	if isNotUp(err) || errors.Is(err, syscall.EADDRINUSE) || errors.Is(err, context.Canceled) {
		return fmt.Errorf("%s: %w", key, err)
	}
	return &SettingError{key, err}
}

// isNotUp reports whether a failing server may come up by itself: nothing answers at its address,
// or it answers that it is not ready. A refused password and an unknown database or bucket are
// final.
func isNotUp(err error) bool {
	var op *net.OpError
	var name *net.DNSError // in a group of containers names come with the servers
	var fault net.Error
	return errors.As(err, &name) ||
		errors.As(err, &op) && slices.Contains([]string{"dial", "read", "write"}, op.Op) ||
		errors.As(err, &fault) && fault.Timeout() ||
		store.IsStarting(err) || media.IsStarting(err)
}

// Pauses between tries.
const (
	startPause    = 100 * time.Millisecond // after the first try; it doubles
	longestPause  = 2 * time.Second
	startReminder = 10 * time.Second // between two lines of the log
)

// startTarget returns the name of the server of a setting, for messages.
func startTarget(key string) string {
	if key == "media" {
		return "media store"
	}
	return key
}

// waitUntilUp calls try until the target of a setting is up, an error is final, within has passed, or
// ctx ends. It returns the last error of try.
func waitUntilUp(ctx context.Context, key string, within time.Duration, log *slog.Logger, try func(context.Context) error) error {
	ctx, cancel := context.WithTimeout(ctx, within)
	defer cancel()
	reminder := time.NewTicker(startReminder)
	defer reminder.Stop()
	logged := false
	var last error
	for pause := startPause; ; pause = min(2*pause, longestPause) {
		err := try(ctx)
		if err != nil && ctx.Err() != nil { // the end of the wait is not an answer
			err = cmp.Or(last, err)
		}
		last = err
		if err == nil || !isNotUp(err) {
			return err
		}
		if !logged {
			logged = true
			log.Warn("waiting for the "+startTarget(key), "setting", key, "within", within.String(), "error", err)
		}
		select {
		case <-reminder.C:
			logged = false
		case <-ctx.Done():
			if errors.Is(ctx.Err(), context.Canceled) {
				return fmt.Errorf("stopped while waiting: %w", ctx.Err())
			}
			return fmt.Errorf("the %s did not answer within start_wait (%s): %w", startTarget(key), within, err)
		case <-time.After(pause):
		}
	}
}
