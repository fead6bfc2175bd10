package storetest

import (
	"sync/atomic"
	"testing"
	"time"

	"tollgate/internal/store"
)

// EachClock is Each with a clock that also sets the time of the database.
func EachClock(t *testing.T, test func(t *testing.T, db *store.DB, clock *Clock)) {
	t.Helper()
	EachURL(t, func(t *testing.T, url string) {
		clock := new(Clock)
		test(t, Open(t, url, store.Options{Now: clock.Now}), clock)
	})
}

// Clock is a clock that only a test moves. The zero value is ready to use. It is safe for
// concurrent use.
type Clock struct{ passed atomic.Int64 }

// Now returns the time, for store.Options.Now. The clock starts at noon of 2026-11-21 UTC.
func (c *Clock) Now() time.Time {
	return time.Date(2026, time.November, 21, 12, 0, 0, 0, time.UTC).Add(time.Duration(c.passed.Load()))
}

// Advance moves the clock.
func (c *Clock) Advance(d time.Duration) { c.passed.Add(int64(d)) }
