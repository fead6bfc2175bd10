package app

import (
	"context"
	"errors"
	"log/slog"
	"net"
	"testing"
	"testing/synctest"
	"time"
)

// TestTheEndOfTheWaitIsNoAnswer checks that a try cut short by the end of the wait does not hide
// that the server was not up. Otherwise a missing answer would count as a wrong setting.
func TestTheEndOfTheWaitIsNoAnswer(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		tries := 0
		err := waitUntilUp(t.Context(), "media", time.Second, slog.New(slog.DiscardHandler), func(ctx context.Context) error {
			if tries++; tries == 1 {
				return &net.OpError{Op: "dial", Err: errors.New("connection refused")}
			}
			<-ctx.Done()
			return errors.New("no credentials: request canceled")
		})
		if !isNotUp(err) {
			t.Errorf("%v", err)
		}
	})
}
